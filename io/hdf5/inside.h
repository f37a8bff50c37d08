/* What the files of this room share; nobody else includes it. They lie in layers, and each calls
 * only those above it in this list (a test holds them to it):
 *
 *   h5.c          files, types, errors
 *   objects.c     what is there, by its path
 *   attributes.c  numbers and texts that belong to an object
 *   sets.c        datasets by the library's own means
 *   checked.c     datasets with checksums      packed.c  deflated by all threads
 *   texts.c       lists of texts               shared.c  written by all ranks
 *   location.c    where a dataset lies, for mapping
 *   read.c        rows, however they are stored
 *   fields.c      checkpoints */
#ifndef FASCICLE_H5_INSIDE_H
#define FASCICLE_H5_INSIDE_H

#include "h5.h"

#include <hdf5.h>

/* Wraps a call on an open file: a negative result is fatal, any other is returned.
 * `what`: the object's path. */
int64_t h5_check_at(const char *source, int line, const struct h5_file *file, const char *what,
                    int64_t result);
#define CHECK_H5(file, what, call) h5_check_at(__FILE__, __LINE__, file, what, (int64_t)(call))

/* How names are followed: never into another file. Set where a file is opened. */
void h5_set_links(struct h5_file *file);
static inline hid_t h5_links(const struct h5_file *file) {
  return (hid_t)file->links;
}

/* No chunk of ours is larger, in bytes. */
enum { H5_MOST_CHUNK = 64 << 20 };

/* The innermost reason that the library gives for its last failure. */
void h5_reason(char *text, size_t size);

/* Fatal: the file or object is not what it should be. */
_Noreturn void h5_refuse(const struct h5_file *file, const char *what, const char *why);

hid_t h5_memory_type(enum ftype type);
hid_t h5_stored_type(enum ftype type);
enum ftype h5_type_of(hid_t type);
bool h5_is_kind(struct h5_file *file, const char *path, H5I_type_t kind);

/* A dataset while it is open. */
struct h5_set {
  struct h5_file *file;
  const char *path; /* the caller's */
  hid_t id;
  struct h5_shape shape;
};
/* Fatal when it is no dataset. */
struct h5_set h5_open_set(struct h5_file *file, const char *path);
void h5_close_set(const struct h5_set *set);

/* Makes missing groups on the way; `layout` is a dataset creation list, closed here. */
hid_t h5_make_dataset(struct h5_file *file, const char *path, hid_t type, int64_t n, int width,
                      hid_t layout);

/* The i-th filter of a dataset's creation list. */
int h5_filter(hid_t made, int i);

/* Only what we write is read: all there, in the file itself, shuffled and deflated at most, in
 * chunks of a sensible size; else fatal. */
void h5_check_stored(const struct h5_set *set);

/* ---- three ways to read rows [first, first + n) of an open dataset, n >
 * 0, within its shape ---- */

/* True when it is packed as ours are and holds native elements of `type`:
 * then h5_read_packed may. */
bool h5_is_packed(const struct h5_set *set, enum ftype type, int64_t *chunk_rows);
void h5_read_packed(const struct h5_set *set, enum ftype type, int64_t chunk_rows, int64_t first,
                    int64_t n, void *data);

/* The stored checksums (mem_free them), or NULL where there are none or the type
 * is not the stored one. */
uint32_t *h5_checksums(const struct h5_set *set, enum ftype type);
void h5_read_checked(const struct h5_set *set, const uint32_t *sums, int64_t first, int64_t n,
                     void *data);

/* The library's own reader: any layout, filters and type that converts. */
void h5_read_plain(const struct h5_set *set, enum ftype type, int64_t first, int64_t n, void *data);

/* The attribute that holds checksums. */
#define H5_CHECKSUMS "crc32"

/* ---- texts ---- */

/* UTF-8 in `bytes` bytes, the final 0 among them. */
hid_t h5_text_type(size_t bytes);
bool h5_is_fixed_text(hid_t type);

#endif
