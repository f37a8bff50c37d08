/* HDF5, all of it: nothing outside this room calls the library. Objects are named by their path
 * in the file. A call that fails inside the library is fatal and names the file, the object and the
 * library's own reason; it exits with EXIT_INPUT on a file opened for reading and EXIT_OUTPUT on
 * one that is being written. Opening is not fatal: it returns a status.
 *
 * What is read may be damaged or hostile: nothing is followed into other files, no code is loaded,
 * nothing is read that we would not have written so, and room is asked for only as far as the file
 * can fill it.
 *
 * The library is not thread-safe: call these functions from one thread at a time. */
#ifndef FASCICLE_H5_H
#define FASCICLE_H5_H

#include "core/comm.h"
#include "ftype.h"
#include "core/types.h"

/* Elements of one chunk of a packed dataset. */
enum { H5_CHUNK = 262144 };

struct h5_file {
  int64_t id, links; /* the library's handles: the file, and how names in it are followed */
  char *path;
  bool writing;
  bool shared;   /* opened by all ranks of a communicator through MPI-IO */
  char *discard; /* a temporary file to remove should a call fail; NULL for none */
};

/* ---- serial files: one process ---- */

/* Make or truncate PATH, which should be a temporary name: it is removed again
 * should a later call fail. */
struct status h5_create(const char *path, struct h5_file *file);
/* For reading. EXIT_INPUT: missing, no HDF5 file, cut short, locked. Many
 * ranks may open the same. */
struct status h5_open(const char *path, struct h5_file *file);
void h5_close(struct h5_file *file);

/* ---- attributes; `at` is the path of their object, "/" for the file itself ---- */

/* UTF-8 of fixed length. */
void h5_put_text(struct h5_file *file, const char *at, const char *name, const char *text);
/* n = 1 makes a scalar. */
void h5_put_values(struct h5_file *file, const char *at, const char *name, enum ftype type, int n,
                   const void *values);
void h5_put_number(struct h5_file *file, const char *at, const char *name, int64_t value);
/* An enumeration of n words, stored as one byte, with the value `chosen`. */
void h5_put_choice(struct h5_file *file, const char *at, const char *name, int n,
                   const char *const *word, int chosen);
/* NULL when there is no such text of fixed length; mem_free it. */
char *h5_text(struct h5_file *file, const char *at, const char *name);
/* EXIT_INPUT unless the file's attributes `format` and `format_version` are these. */
struct status h5_check_format(struct h5_file *file, const char *kind, int version);
bool h5_has_attribute(struct h5_file *file, const char *at, const char *name);
/* False when there is no such number. */
bool h5_number(struct h5_file *file, const char *at, const char *name, int64_t *value);
bool h5_real(struct h5_file *file, const char *at, const char *name, double *value);

/* ---- objects ---- */

struct h5_shape {
  enum ftype type;
  int rank;
  int64_t element;     /* bytes of one, texts included */
  int64_t n, width;    /* rows, elements per row */
  int64_t stored;      /* bytes in the file; 0 for one that was never written */
  int64_t chunk_bytes; /* of one chunk, inflated; 0 when it is not chunked */
  bool whole; /* as many elements as it claims can be in the file: room for them may be asked for */
};

bool h5_has(struct h5_file *file, const char *path);
/* False when there is no dataset of that name. */
bool h5_shape(struct h5_file *file, const char *path, struct h5_shape *shape);
/* Names of the members of a group, in byte order, NULL-terminated; texts_free them. */
char **h5_members(struct h5_file *file, const char *path);
bool h5_is_group(struct h5_file *file, const char *path);
/* Call `visit` with the path of every dataset ("a/b"), until one of the calls fails. */
struct status h5_walk(struct h5_file *file, struct status (*visit)(void *self, const char *path),
                      void *self);
void texts_free(char **texts);

/* A second name for the same object. */
void h5_link(struct h5_file *file, const char *path, const char *second);

/* ---- datasets of n rows of `width` elements; width 1 makes them one-dimensional ---- */

/* Contiguous. */
void h5_write(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width,
              const void *data);
/* Contiguous, with a CRC-32 for every H5_CHUNK elements in the attribute
 * `crc32`, which h5_read checks. */
void h5_write_checked(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width,
                      const void *data);
/* All elements equal: nothing is stored but the value. */
void h5_write_constant(struct h5_file *file, const char *path, enum ftype type, int64_t n,
                       int64_t value);
/* UTF-8 of fixed length, that of the longest, with a CRC-32 over all of it in
 * the attribute `crc32`. */
void h5_write_texts(struct h5_file *file, const char *path, int64_t n, char *const *text);

/* Chunked, shuffled and deflated, by all threads. Not for what libsonata must read: its wheel
 * is built without zlib. */
void h5_write_packed(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width,
                     const void *data);
/* The same in pieces: make it, then put rows from `first`, a multiple of
 * h5_piece_rows(width) ... */
void h5_make_packed(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width);
void h5_put_packed(struct h5_file *file, const char *path, int64_t first, int64_t n,
                   const void *data);
int64_t h5_piece_rows(int width);

/* Rows [first, first + n) of `width` elements (1) into `data`, converted to `type`; packed ones are
 * inflated by all threads. Fatal when the dataset has no such rows or is of another width. */
void h5_read(struct h5_file *file, const char *path, enum ftype type, int64_t first, int64_t n,
             void *data);
void h5_read_rows(struct h5_file *file, const char *path, enum ftype type, int64_t first, int64_t n,
                  int64_t width, void *data);
/* Where a contiguous dataset of `type` lies in the open file, for mapping: `descriptor` is the
 * library's own. Nothing stored: bytes 0. Fatal when it is stored in another way. */
struct h5_location {
  int descriptor;
  int64_t offset, bytes;
};
struct h5_location h5_locate(struct h5_file *file, const char *path, enum ftype type);
/* All of a one-dimensional text dataset, NULL-terminated. */
char **h5_read_texts(struct h5_file *file, const char *path);

/* ---- one file written by all ranks ---- */

/* Contiguous room for n rows, not yet filled; on the serial file, before the
 * ranks open it together. */
void h5_make_rows(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width);
/* The same, with two dimensions also where width is 1; on a serial file. */
void h5_make_matrix(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width);
/* The serial way to fill it: rows [first, first + n). */
void h5_put(struct h5_file *file, const char *path, enum ftype type, int64_t first, int64_t n,
            const void *data);
/* Open an existing file for writing through MPI-IO. */
struct status h5_open_shared(const struct comm *comm, const char *path, struct h5_file *file);
/* Every rank writes its rows [first, first + n), n = 0 included, in pieces under 1 GiB. */
void h5_put_rows(const struct comm *comm, struct h5_file *file, const char *path, enum ftype type,
                 int64_t first, int64_t n, const void *data);

#endif
