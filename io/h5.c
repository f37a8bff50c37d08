#include "h5_inside.h"
#include "mem.h"
#include "watchdog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- errors ---- */

enum { REASON = 512 };

static herr_t keep_first(unsigned n, const H5E_error2_t *e, void *text) {
  char *to = text;
  (void)n;
  if (!*to && e->desc) snprintf(to, REASON, "%s", e->desc);
  return 0;
}

/* The library adds time, buffer address and a line break to what the system said: only the system's words are
 * kept. True when there are some: then the file may be good. */
static bool system_words(const char *reason, char *text, size_t size) {
  static const char before[] = "error message = '";
  const char *words = strstr(reason, before), *end = words ? strchr(words + strlen(before), '\'') : NULL;
  if (end)
    snprintf(text, size, "%.*s: %.*s", (int)strcspn(reason, ":,"), reason,
             (int)(end - words) - (int)strlen(before), words + strlen(before));
  return end != NULL;
}

static bool reason_of(char *text, size_t size) {
  char reason[REASON] = "";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, reason);
  if (system_words(reason, text, size)) return true;
  snprintf(text, size, "HDF5: %.*s", (int)strcspn(reason, "\n"), *reason ? reason : "no reason given");
  return false;
}

void h5_reason(char *text, size_t size) {
  reason_of(text, size);
}

int64_t h5_check_at(const char *source, int line, const struct h5_file *file, const char *what,
                    const char *call, int64_t result) {
  if (result >= 0) return result;
  char reason[256];
  const bool by_system = reason_of(reason, sizeof reason);
  if (file->discard) unlink(file->discard);
  if (file->writing)
    die_at(source, line, EXIT_OUTPUT, "%s: cannot write %s: %s (%.40s)", file->path, what, reason, call);
  die_at(source, line, EXIT_INPUT, "%s: cannot read %s: %s%s (%.40s)", file->path, what,
         by_system ? "" : "the file is damaged or incomplete: ", reason, call);
}

_Noreturn void h5_refuse(const struct h5_file *file, const char *what, const char *why) {
  DIE(EXIT_INPUT, "%s: %s: %s", file->path, what, why);
}

/* The library must not print its own stacks: one line is ours to print. Nor load code that a file asks for.
 */
static void silence(void) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  H5PLset_loading_state(0);
}

/* ---- types ---- */

static const struct {
  const char *name;
  size_t bytes;
} ftypes[] = {[F_U8] = {"u8", 1},   [F_I16] = {"i16", 2},    [F_U16] = {"u16", 2}, [F_I32] = {"i32", 4},
              [F_U32] = {"u32", 4}, [F_I64] = {"i64", 8},    [F_U64] = {"u64", 8}, [F_F32] = {"f32", 4},
              [F_F64] = {"f64", 8}, [F_OTHER] = {"other", 0}};

size_t ftype_bytes(enum ftype type) {
  return ftypes[type].bytes;
}

const char *ftype_name(enum ftype type) {
  return ftypes[type].name;
}

hid_t h5_memory_type(enum ftype type) {
  const hid_t of[] = {[F_U8] = H5T_NATIVE_UINT8,   [F_I16] = H5T_NATIVE_INT16,  [F_U16] = H5T_NATIVE_UINT16,
                      [F_I32] = H5T_NATIVE_INT32,  [F_U32] = H5T_NATIVE_UINT32, [F_I64] = H5T_NATIVE_INT64,
                      [F_U64] = H5T_NATIVE_UINT64, [F_F32] = H5T_NATIVE_FLOAT,  [F_F64] = H5T_NATIVE_DOUBLE};
  return of[type];
}

hid_t h5_stored_type(enum ftype type) {
  const hid_t of[] = {[F_U8] = H5T_STD_U8LE,   [F_I16] = H5T_STD_I16LE,  [F_U16] = H5T_STD_U16LE,
                      [F_I32] = H5T_STD_I32LE, [F_U32] = H5T_STD_U32LE,  [F_I64] = H5T_STD_I64LE,
                      [F_U64] = H5T_STD_U64LE, [F_F32] = H5T_IEEE_F32LE, [F_F64] = H5T_IEEE_F64LE};
  return of[type];
}

enum ftype h5_type_of(hid_t type) {
  for (enum ftype t = F_U8; t < F_OTHER; t++)
    if (H5Tequal(type, h5_stored_type(t)) > 0) return t;
  return F_OTHER;
}

/* ---- open and close ---- */

static herr_t refuse_link(const char *from, const char *group, const char *file, const char *object,
                          unsigned *flags, hid_t access, void *unused) {
  (void)from, (void)group, (void)file, (void)object, (void)flags, (void)access, (void)unused;
  return -1;
}

void h5_set_links(struct h5_file *file) {
  file->links = H5Pcreate(H5P_LINK_ACCESS);
  if (file->links < 0 || H5Pset_elink_cb((hid_t)file->links, refuse_link, NULL) < 0)
    DIE(EXIT_RUNTIME, "HDF5: no access list");
}

/* Attributes and links stand in the header of their object, which has a checksum of its own: from damaged
 * heaps of them the library frees what it never took. Groups made on the way to an object are made like the
 * root. */
static void keep_in_header(hid_t creation) {
  if (H5Pset_attr_phase_change(creation, 1000, 500) < 0 || H5Pset_link_phase_change(creation, 1000, 500) < 0)
    DIE(EXIT_RUNTIME, "HDF5: no creation list");
}

/* With the blank: "sblock" stands in the words for a file cut short. */
static bool about_locks(const char *reason) {
  return strstr(reason, " lock") != NULL;
}

static struct status lock_failure(int code, const char *path, const char *reason) {
  return failure(code,
                 "%s: cannot lock the file (%s): another program is writing it, or this file system has no "
                 "locks; in that case set HDF5_USE_FILE_LOCKING=FALSE",
                 path, reason);
}

struct status h5_create(const char *path, struct h5_file *file) {
  silence();
  *file = (struct h5_file){.writing = true};
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
  /* The format of 1.10: every piece of metadata has a checksum, so that a turned bit is an error, not a
   * crash. */
  if (access < 0 || creation < 0 || H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) < 0)
    DIE(EXIT_RUNTIME, "%s: HDF5: no access list", path);
  keep_in_header(creation);
  errno = 0;
  file->id = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
  const int why = errno;
  char reason[256];
  h5_reason(reason, sizeof reason); /* before any other call: each one forgets it */
  H5Pclose(access), H5Pclose(creation);
  if (file->id < 0) {
    unlink(path); /* it may have been made, and be empty */
    if (about_locks(reason)) return lock_failure(EXIT_OUTPUT, path, reason);
    return failure(EXIT_OUTPUT, "%s: cannot write: %s", path, why ? strerror(why) : reason);
  }
  file->path = mem_string(path);
  file->discard = mem_string(path);
  h5_set_links(file);
  return fine();
}

/* Why a file did not open, in words that lead to a remedy. */
static struct status open_failure(const char *path) {
  char reason[256];
  const bool by_system = reason_of(reason, sizeof reason);
  FILE *plain = fopen(path, "rbe");
  if (!plain) return failure(EXIT_INPUT, "%s: cannot open: %s", path, strerror(errno));
  static const char magic[8] = "\211HDF\r\n\032\n";
  char head[8] = "";
  const size_t got = fread(head, 1, sizeof head, plain);
  const bool folder = !got && ferror(plain);
  fclose(plain);
  if (folder) return failure(EXIT_INPUT, "%s: is a folder, not a file", path);
  if (!got) return failure(EXIT_INPUT, "%s: the file is empty", path);
  if (got < sizeof head || memcmp(head, magic, sizeof head))
    return failure(EXIT_INPUT, "%s: not an HDF5 file; `fascicle convert` makes a graph of a table", path);
  if (about_locks(reason)) return lock_failure(EXIT_INPUT, path, reason);
  if (by_system) return failure(EXIT_INPUT, "%s: cannot open: %s", path, reason);
  return failure(EXIT_INPUT, "%s: the file is damaged or was cut short: %s", path, reason);
}

struct status h5_open(const char *path, struct h5_file *file) {
  silence();
  *file = (struct h5_file){0};
  file->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file->id < 0) return open_failure(path);
  file->path = mem_string(path);
  h5_set_links(file);
  return fine();
}

/* When a rank's write fails within the collective close, the library goes on to close the file there while
 * the others wait for it in another call. So as much as can is written before, where the failure comes back
 * to us; for the rest no long pause is granted: there is little left to write. */
static void close_shared(struct h5_file *file) {
  pulse("HDF5 flush");
  CHECK_H5(file, "its end", H5Fflush(file->id, H5F_SCOPE_LOCAL));
  pulse("HDF5 close");
  CHECK_H5(file, "its end", H5Fclose(file->id));
}

static void close_own(struct h5_file *file) {
  watchdog_pause("HDF5 close");
  CHECK_H5(file, "its end", H5Fclose(file->id));
  watchdog_resume();
}

void h5_close(struct h5_file *file) {
  if (!file->path) return;
  if (file->shared)
    close_shared(file);
  else
    close_own(file);
  H5Pclose((hid_t)file->links);
  mem_free(file->path), mem_free(file->discard);
  *file = (struct h5_file){0};
}

/* ---- objects ---- */

/* A link that cannot be looked up is not a missing one, unless it would lie below something that is no group.
 */
static bool has_link(struct h5_file *file, const char *path) {
  const htri_t found = H5Lexists(file->id, path, h5_links(file));
  const char *slash = strrchr(path, '/');
  if (found >= 0) return found > 0;
  if (slash && slash > path) {
    char above[1024];
    snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
    const hid_t object = CHECK_H5(file, above, H5Oopen(file->id, above, h5_links(file)));
    const bool is_group = H5Iget_type(object) == H5I_GROUP;
    H5Oclose(object);
    if (!is_group) return false;
  }
  return CHECK_H5(file, path, H5Lexists(file->id, path, h5_links(file))) > 0;
}

/* Looks at each step of the path, as the library requires. */
bool h5_has(struct h5_file *file, const char *path) {
  char part[1024];
  if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) return false;
  for (char *at = part + (*part == '/');; at++) {
    if (*at && *at != '/') continue;
    const char kept = *at;
    *at = 0;
    if (strcmp(part, "/") && *part && !has_link(file, part)) return false;
    *at = kept;
    if (!kept) return true;
  }
}

static bool is_kind(struct h5_file *file, const char *path, H5I_type_t kind) {
  if (!h5_has(file, path)) return false;
  const hid_t object = CHECK_H5(file, path, H5Oopen(file->id, path, h5_links(file)));
  const bool is = H5Iget_type(object) == kind;
  H5Oclose(object);
  return is;
}

bool h5_is_group(struct h5_file *file, const char *path) {
  return is_kind(file, path, H5I_GROUP);
}

/* Make the groups on the way to an object. */
static hid_t with_groups(const struct h5_file *file, const char *path) {
  const hid_t links = CHECK_H5(file, path, H5Pcreate(H5P_LINK_CREATE));
  CHECK_H5(file, path, H5Pset_create_intermediate_group(links, 1));
  return links;
}

void h5_link(struct h5_file *file, const char *path, const char *second) {
  CHECK_H5(file, second, H5Lcreate_hard(file->id, path, file->id, second, H5P_DEFAULT, H5P_DEFAULT));
}

/* More than any file of ours holds: groups within themselves would have no end. */
enum { MOST_OBJECTS = 10000, DEEPEST = 16 };

struct members {
  char **name;
  int64_t n, room;
};

static herr_t take_member(hid_t group, const char *name, const H5L_info_t *info, void *to) {
  (void)group, (void)info;
  struct members *m = to;
  if (m->n == m->room) return -1; /* more than the group said */
  m->name[m->n++] = mem_string(name);
  return 0;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In the library's own order, sorted here: it crashes when it fails to sort those of a damaged group. */
char **h5_members(struct h5_file *file, const char *path) {
  const hid_t group = CHECK_H5(file, path, H5Oopen(file->id, path, h5_links(file)));
  if (H5Iget_type(group) != H5I_GROUP) h5_refuse(file, path, "is not a group");
  H5G_info_t info;
  CHECK_H5(file, path, H5Gget_info(group, &info));
  if (info.nlinks > MOST_OBJECTS) h5_refuse(file, path, "holds too many objects to be a group of ours");
  struct members m = {.name = NEW_ZERO(char *, (int64_t)info.nlinks + 1), .room = (int64_t)info.nlinks};
  hsize_t at = 0;
  CHECK_H5(file, path, H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, take_member, &m));
  qsort(m.name, (size_t)m.n, sizeof *m.name, by_bytes);
  H5Gclose(group);
  return m.name;
}

struct walk {
  struct h5_file *file;
  struct status (*visit)(void *self, const char *path);
  void *self;
  int seen, depth;
};

static struct status walk_group(struct walk *w, const char *group) {
  struct status s = fine();
  char path[1024], **names = h5_members(w->file, *group ? group : "/");
  for (int i = 0; names[i] && !s.code; i++) {
    if (++w->seen > MOST_OBJECTS || w->depth == DEEPEST)
      h5_refuse(w->file, "/", "holds too many objects, or groups within themselves");
    if (snprintf(path, sizeof path, "%s%s%s", group, *group ? "/" : "", names[i]) >= (int)sizeof path)
      continue;
    if (is_kind(w->file, path, H5I_GROUP)) {
      w->depth++;
      s = walk_group(w, path);
      w->depth--;
    } else if (is_kind(w->file, path, H5I_DATASET))
      s = w->visit(w->self, path);
  }
  texts_free(names);
  return s;
}

struct status h5_walk(struct h5_file *file, struct status (*visit)(void *self, const char *path),
                      void *self) {
  return walk_group(&(struct walk){file, visit, self, 0, 0}, "");
}

void texts_free(char **texts) {
  for (char **t = texts; t && *t; t++) mem_free(*t);
  mem_free(texts);
}

/* ---- datasets ---- */

hid_t h5_open_dataset(struct h5_file *file, const char *path) {
  const hid_t set = CHECK_H5(file, path, H5Oopen(file->id, path, h5_links(file)));
  if (H5Iget_type(set) != H5I_DATASET) h5_refuse(file, path, "is not a dataset");
  return set;
}

hid_t h5_make_dataset(struct h5_file *file, const char *path, hid_t type, int64_t n, int width,
                      hid_t layout) {
  const hsize_t dims[2] = {(hsize_t)n, (hsize_t)width};
  const hid_t space = CHECK_H5(file, path, H5Screate_simple(width > 1 ? 2 : 1, dims, NULL));
  const hid_t links = with_groups(file, path);
  const hid_t set = CHECK_H5(file, path, H5Dcreate2(file->id, path, type, space, links, layout, H5P_DEFAULT));
  H5Sclose(space), H5Pclose(links);
  if (layout != H5P_DEFAULT) H5Pclose(layout);
  return set;
}

/* Bytes of one element, and the elements of a chunk; 0 when it is not chunked. */
static int64_t chunk_elements(hid_t made) {
  hsize_t chunk[H5S_MAX_RANK];
  if (H5Pget_layout(made) != H5D_CHUNKED) return 0;
  const int rank = H5Pget_chunk(made, H5S_MAX_RANK, chunk);
  int64_t n = 1;
  for (int i = 0; i < rank; i++)
    if (__builtin_mul_overflow(n, (int64_t)chunk[i], &n)) return INT64_MAX;
  return n;
}

/* Rows and elements per row, so that neither they nor their bytes overflow. */
static void take_dims(struct h5_file *file, const char *path, hid_t space, int64_t element,
                      struct h5_shape *shape) {
  hsize_t dims[H5S_MAX_RANK] = {0};
  int64_t bytes = 2 * element; /* with room to spare for sums of offsets */
  shape->rank = (int)CHECK_H5(file, path, H5Sget_simple_extent_dims(space, dims, NULL));
  shape->n = shape->rank > 0 ? (int64_t)dims[0] : 1, shape->width = 1;
  bool fits = shape->n >= 0 && !__builtin_mul_overflow(bytes, shape->n, &bytes);
  for (int i = 1; i < shape->rank; i++)
    fits = fits && dims[i] <= INT64_MAX / 16 && !__builtin_mul_overflow(bytes, (int64_t)dims[i], &bytes) &&
           !__builtin_mul_overflow(shape->width, (int64_t)dims[i], &shape->width);
  if (!fits || shape->width > INT64_MAX / 16) h5_refuse(file, path, "claims more elements than can be");
}

struct h5_shape h5_shape_of(struct h5_file *file, const char *path, hid_t set) {
  /* Deflate makes at most 1032 bytes of one. */
  enum { MOST_DEFLATED = 1100 };
  struct h5_shape shape = {.width = 1};
  hsize_t in_file;
  const hid_t type = CHECK_H5(file, path, H5Dget_type(set)), space = CHECK_H5(file, path, H5Dget_space(set));
  const hid_t made = CHECK_H5(file, path, H5Dget_create_plist(set));
  if (H5Fget_filesize((hid_t)file->id, &in_file) < 0 || file->writing) in_file = INT64_MAX;
  const int64_t element = (int64_t)H5Tget_size(type), chunk = chunk_elements(made);
  if (element <= 0) h5_refuse(file, path, "has elements without a size");
  take_dims(file, path, space, element, &shape);
  shape.type = h5_type_of(type);
  shape.stored = (int64_t)H5Dget_storage_size(set);
  shape.chunk_bytes = chunk > INT64_MAX / element ? INT64_MAX : chunk * element;
  const int64_t bytes = shape.n * shape.width * element, most = (int64_t)in_file;
  shape.whole = shape.stored >= 0 && shape.stored <= most && H5Pget_layout(made) != H5D_VIRTUAL &&
                H5Pget_external_count(made) == 0 &&
                bytes <= (chunk ? MOST_DEFLATED * shape.stored : shape.stored);
  H5Pclose(made), H5Sclose(space), H5Tclose(type);
  return shape;
}

bool h5_shape(struct h5_file *file, const char *path, struct h5_shape *shape) {
  if (!is_kind(file, path, H5I_DATASET)) return false;
  const hid_t set = h5_open_dataset(file, path);
  *shape = h5_shape_of(file, path, set);
  H5Dclose(set);
  return true;
}

void h5_write(struct h5_file *file, const char *path, enum ftype type, int64_t n, int width,
              const void *data) {
  const hid_t set = h5_make_dataset(file, path, h5_stored_type(type), n, width, H5P_DEFAULT);
  watchdog_pause("HDF5 write");
  if (n > 0) CHECK_H5(file, path, H5Dwrite(set, h5_memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
  watchdog_resume();
  CHECK_H5(file, path, H5Dclose(set));
}

void h5_write_constant(struct h5_file *file, const char *path, enum ftype type, int64_t n, int64_t value) {
  const hid_t layout = CHECK_H5(file, path, H5Pcreate(H5P_DATASET_CREATE));
  const hsize_t chunk = (hsize_t)(n < H5_CHUNK ? n : H5_CHUNK);
  if (n > 0) CHECK_H5(file, path, H5Pset_chunk(layout, 1, &chunk));
  CHECK_H5(file, path, H5Pset_fill_value(layout, H5T_NATIVE_INT64, &value));
  CHECK_H5(file, path, H5Dclose(h5_make_dataset(file, path, h5_stored_type(type), n, 1, layout)));
}

void h5_read_plain(struct h5_file *file, const char *path, hid_t set, const struct h5_shape *shape,
                   enum ftype type, int64_t first, int64_t n, void *data) {
  const hid_t space = CHECK_H5(file, path, H5Dget_space(set));
  hsize_t start[H5S_MAX_RANK] = {(hsize_t)first}, count[H5S_MAX_RANK];
  CHECK_H5(file, path, H5Sget_simple_extent_dims(space, count, NULL));
  count[0] = (hsize_t)n;
  CHECK_H5(file, path, H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
  const hid_t memory = CHECK_H5(file, path, H5Screate_simple(shape->rank, count, NULL));
  CHECK_H5(file, path, H5Dread(set, h5_memory_type(type), memory, space, H5P_DEFAULT, data));
  H5Sclose(memory), H5Sclose(space);
}

/* Only what we write is read: plain numbers, in the file itself, shuffled and deflated at most. */
static void refuse_strange(struct h5_file *file, const char *path, hid_t set, const struct h5_shape *shape) {
  if (shape->type == F_OTHER) h5_refuse(file, path, "does not hold numbers of a type that fascicle writes");
  if (!shape->whole) h5_refuse(file, path, "was never written, or not all of it, or lies in another file");
  if (shape->chunk_bytes > H5_MOST_CHUNK) h5_refuse(file, path, "is stored in larger chunks than ours");
  if (h5_crumbles(shape))
    h5_refuse(file, path, "is stored in too many too small chunks; rechunk it with h5repack");
  const hid_t made = CHECK_H5(file, path, H5Dget_create_plist(set));
  const int n = (int)CHECK_H5(file, path, H5Pget_nfilters(made));
  for (int i = 0; i < n; i++)
    if (h5_filter(made, i) != H5Z_FILTER_SHUFFLE && h5_filter(made, i) != H5Z_FILTER_DEFLATE)
      h5_refuse(file, path, "is stored with a filter that fascicle does not write");
  H5Pclose(made);
}

void h5_read(struct h5_file *file, const char *path, enum ftype type, int64_t first, int64_t n, void *data) {
  h5_read_rows(file, path, type, first, n, 1, data);
}

void h5_read_rows(struct h5_file *file, const char *path, enum ftype type, int64_t first, int64_t n,
                  int64_t width, void *data) {
  if (n == 0) return;
  const hid_t set = h5_open_dataset(file, path);
  const struct h5_shape shape = h5_shape_of(file, path, set);
  if (first < 0 || n < 0 || first > shape.n - n || shape.rank < 1)
    h5_refuse(file, path, "holds fewer rows than the file promises");
  if (shape.width != width) h5_refuse(file, path, "has rows of another width than the file promises");
  refuse_strange(file, path, set, &shape);
  int64_t chunk_rows;
  watchdog_pause("HDF5 read");
  uint32_t *sums = h5_checksums(file, path, &shape, type);
  if (sums)
    h5_read_checked(file, path, set, &shape, sums, first, n, data);
  else if (shape.stored > 0 && h5_is_packed(file, path, set, type, &chunk_rows))
    h5_read_packed(file, path, set, chunk_rows, first, n, ftype_bytes(type) * (size_t)shape.width,
                   ftype_bytes(type), data);
  else
    h5_read_plain(file, path, set, &shape, type, first, n, data);
  watchdog_resume();
  mem_free(sums);
  H5Dclose(set);
}
