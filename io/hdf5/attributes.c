/* Reads and writes attributes: numbers and texts. */
#include "inside.h"
#include "core/json.h"
#include "core/mem.h"

#include <string.h>

hid_t h5_text_type(size_t bytes) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  if (type < 0 || H5Tset_size(type, bytes) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)
    DIE(EXIT_RUNTIME, "HDF5: no text type");
  return type;
}

bool h5_is_fixed_text(hid_t type) {
  return H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0;
}

/* ---- writing ---- */

static void put_attribute(struct h5_file *file, const char *at, const char *name, hid_t stored,
                          hid_t memory, int n, const void *values) {
  ASSERT(file->writing && n >= 1);
  const hsize_t dims = (hsize_t)n;
  const hid_t space =
      CHECK_H5(file, name, n == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &dims, NULL));
  const hid_t object = CHECK_H5(file, at, H5Oopen(file->id, at, h5_links(file)));
  const hid_t attribute =
      CHECK_H5(file, name, H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT));
  CHECK_H5(file, name, H5Awrite(attribute, memory, values));
  H5Aclose(attribute), H5Oclose(object), H5Sclose(space);
}

void h5_put_text(struct h5_file *file, const char *at, const char *name, const char *text) {
  const hid_t type = h5_text_type(strlen(text) + 1);
  put_attribute(file, at, name, type, type, 1, text);
  H5Tclose(type);
}

void h5_put_values(struct h5_file *file, const char *at, const char *name, enum ftype type, int n,
                   const void *values) {
  put_attribute(file, at, name, h5_stored_type(type), h5_memory_type(type), n, values);
}

void h5_put_number(struct h5_file *file, const char *at, const char *name, int64_t value) {
  h5_put_values(file, at, name, F_I64, 1, &value);
}

void h5_put_choice(struct h5_file *file, const char *at, const char *name, int n,
                   const char *const *word, int chosen) {
  const hid_t type = CHECK_H5(file, name, H5Tenum_create(H5T_STD_U8LE));
  const hid_t space = CHECK_H5(file, name, H5Screate(H5S_SCALAR));
  ASSERT(n <= UINT8_MAX && chosen >= 0 && chosen < n);
  for (uint8_t i = 0; i < n; i++) CHECK_H5(file, name, H5Tenum_insert(type, word[i], &i));
  const hid_t attribute = CHECK_H5(
      file, name,
      H5Acreate_by_name(file->id, at, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const uint8_t value = (uint8_t)chosen;
  CHECK_H5(file, name, H5Awrite(attribute, type, &value));
  H5Aclose(attribute), H5Sclose(space), H5Tclose(type);
}

/* ---- reading ---- */

bool h5_has_attribute(struct h5_file *file, const char *at, const char *name) {
  return (!strcmp(at, "/") || h5_has(file, at)) &&
         CHECK_H5(file, name, H5Aexists_by_name(file->id, at, name, h5_links(file))) > 0;
}

static hid_t open_attribute(struct h5_file *file, const char *at, const char *name) {
  if (!h5_has_attribute(file, at, name)) return -1;
  return CHECK_H5(file, name, H5Aopen_by_name(file->id, at, name, H5P_DEFAULT, h5_links(file)));
}

char *h5_text(struct h5_file *file, const char *at, const char *name) {
  const hid_t attribute = open_attribute(file, at, name);
  if (attribute < 0) return NULL;
  const hid_t type = CHECK_H5(file, name, H5Aget_type(attribute));
  const hid_t space = CHECK_H5(file, name, H5Aget_space(attribute));
  char *text = NULL;
  if (h5_is_fixed_text(type) && H5Sget_simple_extent_npoints(space) == 1 &&
      H5Aget_storage_size(attribute) == H5Tget_size(type)) {
    text = NEW_ZERO(char, (int64_t)H5Tget_size(type) + 1);
    CHECK_H5(file, name, H5Aread(attribute, type, text));
  }
  H5Sclose(space), H5Tclose(type), H5Aclose(attribute);
  if (text && !json_can_hold(text, (int64_t)strlen(text)))
    h5_refuse(file, name, "the file is damaged: this text is not UTF-8");
  return text;
}

/* A text of variable length, which is not read: the library keeps those in a heap without
 * checksums, and does not survive a damaged one. Early files of ours had them. */
static bool text_varies(struct h5_file *file, const char *at, const char *name) {
  const hid_t attribute = open_attribute(file, at, name);
  if (attribute < 0) return false;
  const hid_t type = CHECK_H5(file, name, H5Aget_type(attribute));
  const bool varies = H5Tis_variable_str(type) > 0;
  H5Tclose(type), H5Aclose(attribute);
  return varies;
}

static bool read_scalar(struct h5_file *file, const char *at, const char *name, H5T_class_t class,
                        hid_t memory, void *value) {
  const hid_t attribute = open_attribute(file, at, name);
  if (attribute < 0) return false;
  const hid_t type = CHECK_H5(file, name, H5Aget_type(attribute));
  const hid_t space = CHECK_H5(file, name, H5Aget_space(attribute));
  const bool right = H5Tget_class(type) == class && h5_type_of(type) != F_OTHER &&
                     H5Sget_simple_extent_npoints(space) == 1;
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

struct status h5_check_format(struct h5_file *file, const char *kind, int version) {
  char *format = h5_text(file, "/", "format");
  struct status s = fine();
  int64_t stored = 0;
  if (text_varies(file, "/", "format"))
    s = failure(
        EXIT_INPUT,
        "%s: its texts are of variable length, which are not read: it was not written by this "
        "version; make it again",
        file->path);
  else if (!format)
    s = failure(EXIT_INPUT, "%s: an HDF5 file, but not a %s (no attribute 'format')", file->path,
                kind);
  else if (strcmp(format, kind))
    s = failure(EXIT_INPUT, "%s: holds a '%.60s', not a '%s'", file->path, format, kind);
  else if (!h5_number(file, "/", "format_version", &stored))
    s = failure(EXIT_INPUT,
                "%s: damaged or incomplete: attribute 'format_version' is missing; make it again",
                file->path);
  else if (stored != version)
    s = failure(EXIT_INPUT, "%s: format version %lld; this program reads version %d; make it again",
                file->path, (long long)stored, version);
  mem_free(format);
  return s;
}
