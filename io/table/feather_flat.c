/* FlatBuffers, read field by field with every position checked. */
#include "feather_flat.h"

#include <string.h>

static bool fits(struct flat *f, int64_t at, int64_t bytes) {
  if (at >= 0 && bytes >= 0 && at <= f->size && bytes <= f->size - at) return true;
  f->bad = true;
  return false;
}

int64_t flat_at(struct flat *f, int64_t at, int bytes) {
  int64_t x = 0;
  if (!fits(f, at, bytes)) return 0;
  memcpy(&x, f->at + at, (size_t)bytes);
  const int shift = 64 - 8 * bytes;
  return (int64_t)((uint64_t)x << shift) >> shift;
}

static int64_t unsigned_at(struct flat *f, int64_t at, int bytes) {
  return bytes == 2 ? flat_at(f, at, 2) & 0xffff : flat_at(f, at, 4) & 0xffffffff;
}

/* Follows an offset that stands at `at`. */
static int64_t follow(struct flat *f, int64_t at) {
  const int64_t offset = unsigned_at(f, at, 4);
  if (offset == 0) f->bad = true;
  return fits(f, at + offset, 4) && offset ? at + offset : 0;
}

int64_t flat_root(struct flat *f) {
  return follow(f, 0);
}

/* Position of a field's value, 0 when it is absent. */
static int64_t field_at(struct flat *f, int64_t table, int field) {
  if (!table) return 0;
  const int64_t vtable = table - flat_at(f, table, 4);
  if (!fits(f, vtable, 4)) return 0;
  const int64_t vtable_bytes = unsigned_at(f, vtable, 2),
                table_bytes = unsigned_at(f, vtable + 2, 2);
  if (!fits(f, vtable, vtable_bytes) || !fits(f, table, table_bytes)) return 0;
  const int64_t entry = 4 + 2 * (int64_t)field;
  if (entry + 2 > vtable_bytes) return 0;
  const int64_t offset = unsigned_at(f, vtable + entry, 2);
  if (offset >= table_bytes) f->bad |= offset != 0;
  return offset && offset < table_bytes ? table + offset : 0;
}

int64_t flat_int(struct flat *f, int64_t table, int field, int bytes, int64_t missing) {
  const int64_t at = field_at(f, table, field);
  return at ? flat_at(f, at, bytes) : missing;
}

int64_t flat_table(struct flat *f, int64_t table, int field) {
  const int64_t at = field_at(f, table, field);
  return at ? follow(f, at) : 0;
}

int64_t flat_vector(struct flat *f, int64_t table, int field, int bytes, int64_t *n) {
  *n = 0;
  const int64_t at = flat_table(f, table, field);
  if (!at) return 0;
  const int64_t items = unsigned_at(f, at, 4);
  if (!fits(f, at + 4, items * bytes)) return 0;
  *n = items;
  return at + 4;
}

int64_t flat_item(struct flat *f, int64_t vector, int64_t i) {
  return vector ? follow(f, vector + 4 * i) : 0;
}

const char *flat_text(struct flat *f, int64_t table, int field, int64_t *n) {
  const int64_t at = flat_vector(f, table, field, 1, n);
  return at ? (const char *)f->at + at : "";
}
