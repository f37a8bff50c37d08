#include "h5_inside.h"
#include "mem.h"
#include "watchdog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- errors ---- */

static herr_t keep_first(unsigned n, const H5E_error2_t *e, void *text) {
  char *to = text;
  if (n == 0 && e->desc) snprintf(to, 256, "%s", e->desc);
  return 0;
}

void h5_reason(char *text, size_t size) {
  char reason[256] = "no reason given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, reason);
  snprintf(text, size, "%s", reason);
}

int64_t h5_check_at(const char *source, int line, const struct h5_file *file, const char *what,
                    const char *call, int64_t result) {
  if (result >= 0) return result;
  char reason[256];
  h5_reason(reason, sizeof reason);
  if (file->discard) unlink(file->discard);
  if (file->writing)
    die_at(source, line, EXIT_OUTPUT, "%s: cannot write %s: HDF5: %s (%.40s)", file->path, what, reason,
           call);
  die_at(source, line, EXIT_INPUT, "%s: cannot read %s: the file is damaged or incomplete: HDF5: %s (%.40s)",
         file->path, what, reason, call);
}

_Noreturn void h5_refuse(const struct h5_file *file, const char *what, const char *why) {
  DIE(EXIT_INPUT, "%s: %s: %s", file->path, what, why);
}

/* The library must not print its own stacks: one line is ours to print. */
static void silence(void) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
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

static hid_t text_type(H5T_cset_t letters) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  if (type < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, letters) < 0)
    DIE(EXIT_RUNTIME, "HDF5: no text type");
  return type;
}

/* ---- open and close ---- */

struct status h5_create(const char *path, struct h5_file *file) {
  silence();
  *file = (struct h5_file){.writing = true};
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  /* Formats of 1.8 to 1.10: read everywhere, and no "being written" mark that outlives a kill. */
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110);
  errno = 0;
  file->id = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const int why = errno;
  H5Pclose(access);
  if (file->id < 0) {
    char reason[256];
    h5_reason(reason, sizeof reason);
    return failure(EXIT_OUTPUT, "%s: cannot write: %s", path, why ? strerror(why) : reason);
  }
  file->path = mem_string(path);
  file->discard = mem_string(path);
  return fine();
}

/* Why a file did not open, in words that lead to a remedy. */
static struct status open_failure(const char *path, int why) {
  char reason[256];
  h5_reason(reason, sizeof reason);
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
    return failure(EXIT_INPUT, "%s: not an HDF5 file", path);
  if (strstr(reason, " lock")) /* with the blank: "sblock" stands in the words for a file cut short */
    return failure(EXIT_INPUT,
                   "%s: cannot lock the file (%s): another program is writing it, or this file system has no "
                   "locks; in that case set HDF5_USE_FILE_LOCKING=FALSE",
                   path, why ? strerror(why) : reason);
  return failure(EXIT_INPUT, "%s: the file is damaged or was cut short: HDF5: %s", path, reason);
}

struct status h5_open(const char *path, struct h5_file *file) {
  silence();
  *file = (struct h5_file){0};
  errno = 0;
  file->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file->id < 0) return open_failure(path, errno);
  file->path = mem_string(path);
  return fine();
}

void h5_close(struct h5_file *file) {
  if (!file->path) return;
  watchdog_pause("HDF5 close");
  CHECK_H5(file, "its end", H5Fclose(file->id));
  watchdog_resume();
  mem_free(file->path), mem_free(file->discard);
  *file = (struct h5_file){0};
}

/* ---- attributes ---- */

static void put_attribute(struct h5_file *file, const char *at, const char *name, hid_t stored, hid_t memory,
                          int n, const void *values) {
  const hsize_t dims = (hsize_t)n;
  const hid_t space = n == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &dims, NULL);
  const hid_t object = CHECK_H5(file, at, H5Oopen(file->id, at, H5P_DEFAULT));
  const hid_t attribute =
      CHECK_H5(file, name, H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT));
  CHECK_H5(file, name, H5Awrite(attribute, memory, values));
  H5Aclose(attribute), H5Oclose(object), H5Sclose(space);
}

void h5_put_text(struct h5_file *file, const char *at, const char *name, const char *text) {
  const hid_t type = text_type(H5T_CSET_UTF8);
  put_attribute(file, at, name, type, type, 1, &text);
  H5Tclose(type);
}

void h5_put_values(struct h5_file *file, const char *at, const char *name, enum ftype type, int n,
                   const void *values) {
  put_attribute(file, at, name, h5_stored_type(type), h5_memory_type(type), n, values);
}

void h5_put_number(struct h5_file *file, const char *at, const char *name, int64_t value) {
  h5_put_values(file, at, name, F_I64, 1, &value);
}

void h5_put_choice(struct h5_file *file, const char *at, const char *name, int n, const char *const *word,
                   int chosen) {
  const hid_t type = CHECK_H5(file, name, H5Tenum_create(H5T_STD_U8LE)), space = H5Screate(H5S_SCALAR);
  for (uint8_t i = 0; i < n; i++) CHECK_H5(file, name, H5Tenum_insert(type, word[i], &i));
  const hid_t attribute = CHECK_H5(
      file, name, H5Acreate_by_name(file->id, at, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const uint8_t value = (uint8_t)chosen;
  CHECK_H5(file, name, H5Awrite(attribute, type, &value));
  H5Aclose(attribute), H5Sclose(space), H5Tclose(type);
}

bool h5_has_attribute(struct h5_file *file, const char *at, const char *name) {
  return H5Aexists_by_name(file->id, at, name, H5P_DEFAULT) > 0;
}

static hid_t open_attribute(struct h5_file *file, const char *at, const char *name) {
  if (!h5_has_attribute(file, at, name)) return -1;
  return CHECK_H5(file, name, H5Aopen_by_name(file->id, at, name, H5P_DEFAULT, H5P_DEFAULT));
}

/* Texts of variable length, as we write them, or of fixed length, as other writers may. */
static char *read_text(struct h5_file *file, const char *name, hid_t attribute, hid_t type) {
  if (H5Tis_variable_str(type) > 0) {
    char *text = NULL;
    const hid_t memory = text_type(H5Tget_cset(type)); /* HDF5 does not turn ASCII into UTF-8 */
    CHECK_H5(file, name, H5Aread(attribute, memory, &text));
    H5Tclose(memory);
    char *copy = mem_string(text ? text : "");
    H5free_memory(text);
    return copy;
  }
  char *copy = NEW_ZERO(char, (int64_t)H5Tget_size(type) + 1);
  CHECK_H5(file, name, H5Aread(attribute, type, copy));
  return copy;
}

char *h5_text(struct h5_file *file, const char *at, const char *name) {
  const hid_t attribute = open_attribute(file, at, name);
  if (attribute < 0) return NULL;
  const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
  char *text = NULL;
  if (H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1)
    text = read_text(file, name, attribute, type);
  H5Sclose(space), H5Tclose(type), H5Aclose(attribute);
  return text;
}

static bool read_scalar(struct h5_file *file, const char *at, const char *name, H5T_class_t class,
                        hid_t memory, void *value) {
  const hid_t attribute = open_attribute(file, at, name);
  if (attribute < 0) return false;
  const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
  const bool right = H5Tget_class(type) == class && H5Sget_simple_extent_npoints(space) == 1;
  if (right) CHECK_H5(file, name, H5Aread(attribute, memory, value));
  H5Sclose(space), H5Tclose(type), H5Aclose(attribute);
  return right;
}

bool h5_number(struct h5_file *file, const char *at, const char *name, int64_t *value) {
  return read_scalar(file, at, name, H5T_INTEGER, H5T_NATIVE_INT64, value);
}

bool h5_real(struct h5_file *file, const char *at, const char *name, double *value) {
  return read_scalar(file, at, name, H5T_FLOAT, H5T_NATIVE_DOUBLE, value);
}

/* ---- objects ---- */

/* Looks at each step of the path, as the library requires. */
bool h5_has(struct h5_file *file, const char *path) {
  char part[1024];
  if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) return false;
  for (char *at = part + (*part == '/');; at++) {
    if (*at && *at != '/') continue;
    const char kept = *at;
    *at = 0;
    if (strcmp(part, "/") && *part && H5Lexists(file->id, part, H5P_DEFAULT) <= 0) return false;
    *at = kept;
    if (!kept) return true;
  }
}

static bool is_kind(struct h5_file *file, const char *path, H5I_type_t kind) {
  if (!h5_has(file, path)) return false;
  const hid_t object = CHECK_H5(file, path, H5Oopen(file->id, path, H5P_DEFAULT));
  const bool is = H5Iget_type(object) == kind;
  H5Oclose(object);
  return is;
}

bool h5_is_group(struct h5_file *file, const char *path) {
  return is_kind(file, path, H5I_GROUP);
}

static hid_t with_groups(void) {
  const hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  return links;
}

void h5_make_group(struct h5_file *file, const char *path) {
  const hid_t links = with_groups();
  const hid_t group = CHECK_H5(file, path, H5Gcreate2(file->id, path, links, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(group), H5Pclose(links);
}

void h5_link(struct h5_file *file, const char *path, const char *second) {
  CHECK_H5(file, second, H5Lcreate_hard(file->id, path, file->id, second, H5P_DEFAULT, H5P_DEFAULT));
}

char **h5_members(struct h5_file *file, const char *path) {
  const hid_t group = CHECK_H5(file, path, H5Gopen2(file->id, path, H5P_DEFAULT));
  H5G_info_t info;
  CHECK_H5(file, path, H5Gget_info(group, &info));
  char **names = NEW_ZERO(char *, (int64_t)info.nlinks + 1);
  for (hsize_t i = 0; i < info.nlinks; i++) {
    char name[512];
    CHECK_H5(file, path,
             H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT));
    names[i] = mem_string(name);
  }
  H5Gclose(group);
  return names;
}

void texts_free(char **texts) {
  for (char **t = texts; t && *t; t++) mem_free(*t);
  mem_free(texts);
}

/* ---- datasets ---- */

hid_t h5_open_dataset(struct h5_file *file, const char *path) {
  return CHECK_H5(file, path, H5Dopen2(file->id, path, H5P_DEFAULT));
}

hid_t h5_make_dataset(struct h5_file *file, const char *path, hid_t type, int64_t n, int width,
                      hid_t layout) {
  const hsize_t dims[2] = {(hsize_t)n, (hsize_t)width};
  const hid_t space = H5Screate_simple(width > 1 ? 2 : 1, dims, NULL), links = with_groups();
  const hid_t set = CHECK_H5(file, path, H5Dcreate2(file->id, path, type, space, links, layout, H5P_DEFAULT));
  H5Sclose(space), H5Pclose(links);
  if (layout != H5P_DEFAULT) H5Pclose(layout);
  return set;
}

struct h5_shape h5_shape_of(struct h5_file *file, const char *path, hid_t set) {
  struct h5_shape shape = {.width = 1};
  const hid_t type = CHECK_H5(file, path, H5Dget_type(set)), space = CHECK_H5(file, path, H5Dget_space(set));
  hsize_t dims[H5S_MAX_RANK] = {0};
  shape.rank = (int)CHECK_H5(file, path, H5Sget_simple_extent_dims(space, dims, NULL));
  shape.type = h5_type_of(type);
  shape.n = shape.rank > 0 ? (int64_t)dims[0] : 1;
  for (int i = 1; i < shape.rank; i++) shape.width *= (int64_t)dims[i];
  shape.stored = (int64_t)H5Dget_storage_size(set);
  H5Sclose(space), H5Tclose(type);
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
  const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk = (hsize_t)(n < H5_CHUNK ? n : H5_CHUNK);
  if (n > 0) CHECK_H5(file, path, H5Pset_chunk(layout, 1, &chunk));
  CHECK_H5(file, path, H5Pset_fill_value(layout, H5T_NATIVE_INT64, &value));
  CHECK_H5(file, path, H5Dclose(h5_make_dataset(file, path, h5_stored_type(type), n, 1, layout)));
}

void h5_write_texts(struct h5_file *file, const char *path, int64_t n, char *const *text) {
  const hid_t type = text_type(H5T_CSET_UTF8), set = h5_make_dataset(file, path, type, n, 1, H5P_DEFAULT);
  if (n > 0) CHECK_H5(file, path, H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text));
  H5Tclose(type);
  CHECK_H5(file, path, H5Dclose(set));
  const uint32_t sum = h5_texts_sum(n, text);
  h5_put_values(file, path, H5_CHECKSUMS, F_U32, 1, &sum);
}

void h5_read_plain(struct h5_file *file, const char *path, hid_t set, const struct h5_shape *shape,
                   enum ftype type, int64_t first, int64_t n, void *data) {
  const hid_t space = CHECK_H5(file, path, H5Dget_space(set));
  hsize_t start[H5S_MAX_RANK] = {(hsize_t)first}, count[H5S_MAX_RANK];
  CHECK_H5(file, path, H5Sget_simple_extent_dims(space, count, NULL));
  count[0] = (hsize_t)n;
  CHECK_H5(file, path, H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
  const hid_t memory = H5Screate_simple(shape->rank, count, NULL);
  CHECK_H5(file, path, H5Dread(set, h5_memory_type(type), memory, space, H5P_DEFAULT, data));
  H5Sclose(memory), H5Sclose(space);
}

void h5_read(struct h5_file *file, const char *path, enum ftype type, int64_t first, int64_t n, void *data) {
  if (n == 0) return;
  const hid_t set = h5_open_dataset(file, path);
  const struct h5_shape shape = h5_shape_of(file, path, set);
  if (first < 0 || n < 0 || first > shape.n - n || shape.rank < 1)
    h5_refuse(file, path, "holds fewer rows than the file promises");
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

char **h5_read_texts(struct h5_file *file, const char *path) {
  const hid_t set = h5_open_dataset(file, path);
  const struct h5_shape shape = h5_shape_of(file, path, set);
  const hid_t stored = H5Dget_type(set), space = H5Dget_space(set);
  if (H5Tis_variable_str(stored) <= 0 || shape.rank != 1) h5_refuse(file, path, "is not a list of texts");
  const hid_t type = text_type(H5Tget_cset(stored));
  char **raw = NEW_ZERO(char *, shape.n), **texts = NEW_ZERO(char *, shape.n + 1);
  if (shape.n > 0) CHECK_H5(file, path, H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw));
  for (int64_t i = 0; i < shape.n; i++) texts[i] = mem_string(raw[i] ? raw[i] : "");
  if (shape.n > 0) H5Dvlen_reclaim(type, space, H5P_DEFAULT, raw);
  mem_free(raw);
  H5Sclose(space), H5Tclose(stored), H5Tclose(type), H5Dclose(set);
  int64_t sum;
  if (h5_number(file, path, H5_CHECKSUMS, &sum) && sum != h5_texts_sum(shape.n, texts))
    h5_refuse(file, path, "the file is damaged: these texts do not match their checksum");
  return texts;
}
