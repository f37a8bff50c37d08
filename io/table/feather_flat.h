/* FlatBuffers read by hand: the metadata of Arrow IPC files. Every position is checked against the
 * buffer; anything that does not fit sets `bad`, which sticks, and reads as 0 or absent. Positions
 * are offsets from the start; 0 stands for "not there" (no table begins at 0). Layout:
 * https://flatbuffers.dev/internals/ */
#ifndef FASCICLE_FEATHER_FLAT_H
#define FASCICLE_FEATHER_FLAT_H

#include "core/types.h"

struct flat {
  const uint8_t *at;
  int64_t size;
  bool bad;
};

/* The root table. */
int64_t flat_root(struct flat *f);

/* A scalar field of 1, 2, 4 or 8 bytes, sign-extended; `missing` when it is absent. */
int64_t flat_int(struct flat *f, int64_t table, int field, int bytes, int64_t missing);

/* A table, absent: 0. */
int64_t flat_table(struct flat *f, int64_t table, int field);

/* A vector: position of its first item and the number of items, each of `bytes` bytes. */
int64_t flat_vector(struct flat *f, int64_t table, int field, int bytes, int64_t *n);

/* Item i of a vector of tables (4 bytes an item). */
int64_t flat_item(struct flat *f, int64_t vector, int64_t i);

/* A string and its length; "" when absent. */
const char *flat_text(struct flat *f, int64_t table, int field, int64_t *n);

/* Little-endian integer at a position, sign-extended. */
int64_t flat_at(struct flat *f, int64_t at, int bytes);

#endif
