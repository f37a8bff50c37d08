/* The metadata of an Arrow IPC file: schema, footer, record batches. Layout: Schema.fbs,
 * Message.fbs, File.fbs of the Arrow columnar format (arrow.apache.org/docs/format). */
#ifndef FASCICLE_FEATHER_SCHEMA_H
#define FASCICLE_FEATHER_SCHEMA_H

#include "core/fail.h"
#include "feather_flat.h"

enum arrow_type {
  ARROW_NONE,
  ARROW_NULL,
  ARROW_INT,
  ARROW_FLOAT,
  ARROW_BINARY,
  ARROW_UTF8,
  ARROW_BOOL,
  ARROW_DECIMAL,
  ARROW_DATE,
  ARROW_TIME,
  ARROW_TIMESTAMP,
  ARROW_INTERVAL,
  ARROW_LIST,
  ARROW_STRUCT,
  ARROW_UNION,
  ARROW_FIXED_BINARY,
  ARROW_FIXED_LIST,
  ARROW_MAP,
  ARROW_DURATION,
  ARROW_LARGE_BINARY,
  ARROW_LARGE_UTF8,
  ARROW_LARGE_LIST,
  ARROW_RUN_END,
  ARROW_BINARY_VIEW,
  ARROW_UTF8_VIEW,
  ARROW_LIST_VIEW,
  ARROW_LARGE_LIST_VIEW,
  N_ARROW_TYPES
};

/* What one value looks like. */
struct arrow_value {
  enum arrow_type type;
  int bytes;      /* ints and floats: 1, 2, 4, 8 */
  bool is_signed; /* ints */
};

struct arrow_column {
  char *name;
  struct arrow_value value; /* of a dictionary: of its values */
  bool is_dictionary;
  int64_t dictionary_id;
  struct arrow_value index;    /* of a dictionary: the index type */
  int64_t first_node, n_nodes; /* places in arrow_schema.part; the column itself comes first */
};

/* A field, nested ones included, in the order in which batches list them. */
struct arrow_part {
  uint8_t n_buffers;
  bool is_view; /* has as many buffers more as the batch's next variadic count says */
};

struct arrow_schema {
  int n_columns;
  struct arrow_column *column;
  int64_t n_parts, part_capacity;
  struct arrow_part *part;
};

/* Where a message stands. */
struct arrow_block {
  int64_t offset, metadata_bytes, body_bytes;
};

/* A file in memory: [size] bytes that begin and end with "ARROW1". */
struct arrow_file {
  const char *path;
  const uint8_t *at;
  int64_t size;
  struct arrow_schema schema;
  int64_t n_dictionaries, n_batches;
  struct arrow_block *dictionary, *batch;
};

enum arrow_codec { CODEC_NONE, CODEC_LZ4, CODEC_ZSTD };

/* The metadata of one record batch, pointing into the file. */
struct arrow_batch {
  int64_t rows;
  struct flat flat;
  int64_t nodes, n_nodes, buffers, n_buffers, variadic, n_variadic; /* positions in flat, counts */
  enum arrow_codec codec;
  const uint8_t *body;
  int64_t body_bytes;
  bool is_delta; /* dictionary batches */
  int64_t dictionary_id;
};

/* Where a column's parts begin in a batch. */
struct arrow_position {
  int64_t node, buffer, n_views; /* n_views: data buffers of a view column */
};

/* A buffer of a batch: bytes inside the body. */
struct arrow_buffer {
  const uint8_t *at;
  int64_t bytes;
};

/* Reads footer and schema; refuses what is not an Arrow IPC file, other
 * endianness, old versions. */
struct status arrow_open(struct arrow_file *file);
void arrow_close(struct arrow_file *file);

/* The message of a block. `what` names it in errors, such as "record batch 3". */
struct status arrow_read_batch(const struct arrow_file *file, const struct arrow_block *block,
                               bool dictionary, const char *what, struct arrow_batch *batch);

/* NULL when fine, otherwise what is wrong. */
const char *arrow_find(struct arrow_batch *batch, const struct arrow_schema *schema,
                       const struct arrow_column *column, struct arrow_position *place);
const char *arrow_node(struct arrow_batch *batch, int64_t node, int64_t *rows, int64_t *nulls);
const char *arrow_buffer(struct arrow_batch *batch, int64_t i, struct arrow_buffer *buffer);

/* "int64", "dictionary of utf8", "list" ...; `text` holds at least 64 bytes. */
void arrow_type_name(const struct arrow_column *column, char *text);
bool arrow_is_text(enum arrow_type type);

#endif
