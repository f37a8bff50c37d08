/* One column of one record batch, read in windows of rows into a table_column. */
#ifndef FASCICLE_FEATHER_COLUMN_H
#define FASCICLE_FEATHER_COLUMN_H

#include "feather_stream.h"
#include "reader.h"

/* Windows hold a multiple of 8 rows, but for a batch's last: bitmaps then begin at whole bytes. */
enum { ARROW_WINDOW = 1 << 17 };

/* What is wrong with a value or a buffer. */
struct arrow_fault {
  bool found;
  int64_t row; /* within the window, from 0; -1: not one row's fault */
  char what[400];
};

/* Room for a window, kept from batch to batch. */
struct arrow_room {
  struct table_column column;
  int64_t rows, text_bytes;
  uint8_t *values;       /* as they are in the file: [rows + 1] of at most 16 bytes */
  uint8_t *bits, *valid; /* [rows / 8 + 1], [rows] */
};
void arrow_room_reserve(struct arrow_room *room, enum table_kind kind, int64_t rows);
void arrow_room_free(struct arrow_room *room);

/* Values of a dictionary as text, whatever their type; null is empty. */
struct arrow_dictionary {
  int64_t id, n, rows_held, bytes_held;
  struct table_column values; /* .text, .at [n + 1] */
};

/* A data buffer of a view column, whole. */
struct arrow_view {
  const uint8_t *at;
  int64_t bytes;
  void *owned; /* NULL: it points into the file */
};

/* A column of a batch under way. */
struct arrow_cursor {
  struct arrow_value value; /* what stands in the batch: of a dictionary column, the index */
  const struct arrow_dictionary *dictionary; /* of a dictionary column */
  enum table_kind kind;
  bool has_validity;
  struct stream validity, values, text; /* values: also offsets and views */
  bool started;
  int64_t offset; /* where the next text begins in its buffer */
  int64_t n_views;
  struct arrow_view *view;
};

/* NULL when such a column can be read as that kind, otherwise why not. */
const char *arrow_unreadable(const struct arrow_column *column, enum table_kind kind);

/* Opens the column's buffers. A fault with row -1 is set when something is
 * wrong; then only close it. */
void arrow_cursor_open(struct arrow_cursor *cursor, struct arrow_batch *batch,
                       const struct arrow_schema *schema, const struct arrow_column *column,
                       const struct arrow_dictionary *dictionary, enum table_kind kind,
                       struct arrow_fault *fault);
/* The next n rows into room->column, which must have been reserved for them. */
void arrow_cursor_read(struct arrow_cursor *cursor, int64_t n, struct arrow_room *room,
                       struct arrow_fault *fault);
/* Content and frames of the buffers must end together. */
void arrow_cursor_finish(struct arrow_cursor *cursor, struct arrow_fault *fault);
/* Accepts a zeroed cursor. */
void arrow_cursor_close(struct arrow_cursor *cursor);

/* Appends the values of a dictionary batch, which are of this type. */
void arrow_dictionary_append(struct arrow_dictionary *dictionary, struct arrow_batch *batch,
                             struct arrow_value value, struct arrow_fault *fault);
void arrow_dictionary_free(struct arrow_dictionary *dictionary);

#endif
