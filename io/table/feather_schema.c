/* Schema, footer and record batches of an Arrow IPC file, checked. */
#include "feather_schema.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 64, MOST_PARTS = 1 << 20, VERSION_4 = 3, VERSION_5 = 4, BLOCK_BYTES = 24 };
enum { HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
static const int64_t MOST_ROWS = INT64_C(1) << 48;

/* Buffers in a batch and the name of each type, by its number in the format. */
static const struct {
  const char *name;
  int n_buffers;
} types[N_ARROW_TYPES] = {
    [ARROW_NULL] = {"null", 0},
    [ARROW_INT] = {"int", 2},
    [ARROW_FLOAT] = {"float", 2},
    [ARROW_BINARY] = {"binary", 3},
    [ARROW_UTF8] = {"utf8", 3},
    [ARROW_BOOL] = {"bool", 2},
    [ARROW_DECIMAL] = {"decimal", 2},
    [ARROW_DATE] = {"date", 2},
    [ARROW_TIME] = {"time", 2},
    [ARROW_TIMESTAMP] = {"timestamp", 2},
    [ARROW_INTERVAL] = {"interval", 2},
    [ARROW_LIST] = {"list", 2},
    [ARROW_STRUCT] = {"struct", 1},
    [ARROW_UNION] = {"union", 1},
    [ARROW_FIXED_BINARY] = {"fixed_size_binary", 2},
    [ARROW_FIXED_LIST] = {"fixed_size_list", 1},
    [ARROW_MAP] = {"map", 2},
    [ARROW_DURATION] = {"duration", 2},
    [ARROW_LARGE_BINARY] = {"large_binary", 3},
    [ARROW_LARGE_UTF8] = {"large_utf8", 3},
    [ARROW_LARGE_LIST] = {"large_list", 2},
    [ARROW_RUN_END] = {"run_end_encoded", 0},
    [ARROW_BINARY_VIEW] = {"binary_view", 2},
    [ARROW_UTF8_VIEW] = {"utf8_view", 2},
    [ARROW_LIST_VIEW] = {"list_view", 3},
    [ARROW_LARGE_LIST_VIEW] = {"large_list_view", 3},
};

bool arrow_is_text(enum arrow_type type) {
  switch (type) {
  case ARROW_UTF8:
  case ARROW_LARGE_UTF8:
  case ARROW_UTF8_VIEW:
  case ARROW_BINARY:
  case ARROW_LARGE_BINARY:
  case ARROW_BINARY_VIEW: return true;
  default: return false;
  }
}

static void value_name(const struct arrow_value *v, char *text, size_t size) {
  if (v->type == ARROW_INT)
    snprintf(text, size, "%sint%d", v->is_signed ? "" : "u", 8 * v->bytes);
  else if (v->type == ARROW_FLOAT)
    snprintf(text, size, "%s", v->bytes == 8 ? "double" : v->bytes == 4 ? "float" : "halffloat");
  else
    snprintf(text, size, "%s", types[v->type].name);
}

void arrow_type_name(const struct arrow_column *column, char *text) {
  const int n = snprintf(text, 64, "%s", column->is_dictionary ? "dictionary of " : "");
  value_name(&column->value, text + n, 64 - (size_t)n);
}

/* ---- schema ---- */

static const char *read_int(struct flat *f, int64_t table, struct arrow_value *v) {
  const int64_t bits = flat_int(f, table, 0, 4, 0);
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return "an integer of a strange width";
  *v = (struct arrow_value){ARROW_INT, (int)(bits / 8), flat_int(f, table, 1, 1, 0) != 0};
  return NULL;
}

static const char *read_value(struct flat *f, int64_t field, struct arrow_value *v) {
  const int64_t type = flat_int(f, field, 2, 1, 0) & 0xff, table = flat_table(f, field, 3);
  if (type <= ARROW_NONE || type >= N_ARROW_TYPES) return "a column type that is not known";
  *v = (struct arrow_value){.type = (enum arrow_type)type};
  if (type == ARROW_INT) return read_int(f, table, v);
  if (type == ARROW_FLOAT) {
    const int64_t precision = flat_int(f, table, 0, 2, 0);
    if (precision < 0 || precision > 2) return "a float of a strange width";
    v->bytes = 2 << precision;
  }
  return NULL;
}

static const char *add_part(struct arrow_schema *s, int n_buffers, bool is_view) {
  if (s->n_parts == MOST_PARTS) return "a schema of too many fields";
  if (s->n_parts == s->part_capacity) {
    s->part_capacity = s->part_capacity ? 2 * s->part_capacity : 64;
    s->part = mem_grow(s->part, s->part_capacity, sizeof *s->part);
  }
  s->part[s->n_parts++] = (struct arrow_part){(uint8_t)n_buffers, is_view};
  return NULL;
}

/* Dense unions have offsets; before version 5 unions also had validity. */
static int buffers_of(struct flat *f, int64_t field, enum arrow_type type, int64_t version) {
  if (type != ARROW_UNION) return types[type].n_buffers;
  const bool dense = flat_int(f, flat_table(f, field, 3), 0, 2, 0) == 1;
  return 1 + dense + (version < VERSION_5);
}

/* A field and those below it. A dictionary's values are elsewhere: only the
 * index stands in batches. */
static const char *add_field(struct arrow_schema *s, struct flat *f, int64_t field, int64_t version,
                             int depth) {
  struct arrow_value v;
  if (depth > DEEPEST) return "a schema nested too deep";
  const char *wrong = read_value(f, field, &v);
  if (wrong) return wrong;
  const bool dictionary = flat_table(f, field, 4) != 0;
  const bool view = v.type == ARROW_UTF8_VIEW || v.type == ARROW_BINARY_VIEW;
  wrong = add_part(s, dictionary ? 2 : buffers_of(f, field, v.type, version), view && !dictionary);
  if (wrong || dictionary) return wrong;
  int64_t n;
  const int64_t children = flat_vector(f, field, 5, 4, &n);
  for (int64_t i = 0; i < n && !wrong; i++) {
    const int64_t child = flat_item(f, children, i);
    wrong = f->bad || !child ? "a damaged schema" : add_field(s, f, child, version, depth + 1);
  }
  return wrong;
}

static const char *read_column(struct arrow_schema *s, struct flat *f, int64_t field,
                               int64_t version) {
  struct arrow_column *c = &s->column[s->n_columns++];
  int64_t n;
  const char *name = flat_text(f, field, 0, &n);
  c->name = NEW_ZERO(char, n + 1);
  memcpy(c->name, name, (size_t)n);
  const char *wrong = read_value(f, field, &c->value);
  const int64_t dictionary = flat_table(f, field, 4);
  if (!wrong && dictionary) {
    c->is_dictionary = true;
    c->dictionary_id = flat_int(f, dictionary, 0, 8, 0);
    const int64_t index = flat_table(f, dictionary, 1);
    c->index = (struct arrow_value){ARROW_INT, 4, true};
    if (index) wrong = read_int(f, index, &c->index);
  }
  c->first_node = s->n_parts;
  if (!wrong) wrong = add_field(s, f, field, version, 0);
  c->n_nodes = s->n_parts - c->first_node;
  return wrong;
}

static const char *read_schema(struct arrow_schema *s, struct flat *f, int64_t table,
                               int64_t version) {
  if (!table) return "no schema";
  if (flat_int(f, table, 0, 2, 0) != 0)
    return "big-endian data; write it on a little-endian machine";
  int64_t n;
  const int64_t fields = flat_vector(f, table, 1, 4, &n);
  if (n > MOST_PARTS) return "a schema of too many fields";
  s->column = NEW_ZERO(struct arrow_column, n);
  const char *wrong = NULL;
  for (int64_t i = 0; i < n && !wrong; i++) {
    const int64_t field = flat_item(f, fields, i);
    wrong = f->bad || !field ? "a damaged schema" : read_column(s, f, field, version);
  }
  return wrong;
}

/* ---- footer ---- */

static const char *read_blocks(const struct arrow_file *file, struct flat *f, int64_t footer,
                               int field, int64_t *n, struct arrow_block **block) {
  const int64_t at = flat_vector(f, footer, field, BLOCK_BYTES, n);
  *block = NEW(struct arrow_block, *n);
  for (int64_t i = 0; i < *n; i++) {
    const int64_t here = at + BLOCK_BYTES * i;
    const struct arrow_block b = {flat_at(f, here, 8), flat_at(f, here + 8, 4),
                                  flat_at(f, here + 16, 8)};
    if (b.offset < 8 || b.metadata_bytes < 8 || b.body_bytes < 0 || b.offset > file->size ||
        b.metadata_bytes > file->size - b.offset ||
        b.body_bytes > file->size - b.offset - b.metadata_bytes)
      return "a batch outside of the file";
    (*block)[i] = b;
  }
  return NULL;
}

static const char *read_footer(struct arrow_file *file, struct flat *f) {
  const int64_t footer = flat_root(f), version = flat_int(f, footer, 0, 2, 0);
  if (f->bad) return "a damaged footer";
  if (version < VERSION_4)
    return "a metadata version before 4; write it again with a newer library";
  const char *wrong = read_schema(&file->schema, f, flat_table(f, footer, 1), version);
  if (!wrong) wrong = read_blocks(file, f, footer, 2, &file->n_dictionaries, &file->dictionary);
  if (!wrong) wrong = read_blocks(file, f, footer, 3, &file->n_batches, &file->batch);
  return wrong ? wrong : f->bad ? "a damaged footer" : NULL;
}

struct status arrow_open(struct arrow_file *file) {
  const struct status cut =
      failure(EXIT_INPUT,
              "%s: the end of the Feather file is missing (cut short?); fetch or write it again",
              file->path);
  if (file->size < 22 || memcmp(file->at + file->size - 6, "ARROW1", 6)) return cut;
  struct flat whole = {file->at, file->size, false};
  const int64_t bytes = flat_at(&whole, file->size - 10, 4);
  if (bytes < 8 || bytes > file->size - 18) return cut;
  struct flat f = {file->at + file->size - 10 - bytes, bytes, false};
  const char *wrong = read_footer(file, &f);
  return wrong
             ? failure(EXIT_INPUT, "%s: not readable as Feather (Arrow IPC): %s", file->path, wrong)
             : fine();
}

void arrow_close(struct arrow_file *file) {
  for (int i = 0; i < file->schema.n_columns; i++) mem_free(file->schema.column[i].name);
  mem_free(file->schema.column), mem_free(file->schema.part);
  mem_free(file->dictionary), mem_free(file->batch);
  file->schema = (struct arrow_schema){0};
  file->dictionary = file->batch = NULL;
}

/* ---- batches ---- */

static const char *read_message(const struct arrow_file *file, const struct arrow_block *block,
                                bool dictionary, struct arrow_batch *b) {
  struct flat prefix = {file->at + block->offset, block->metadata_bytes, false};
  /* 0xffffffff and the size; before version 0.15 of the format only the size. */
  const bool marked = flat_at(&prefix, 0, 4) == -1;
  const int64_t head = marked ? 8 : 4, size = flat_at(&prefix, marked ? 4 : 0, 4);
  if (size < 8 || size > block->metadata_bytes - head) return "a damaged message";
  b->flat = (struct flat){prefix.at + head, size, false};
  b->body = file->at + block->offset + block->metadata_bytes;
  b->body_bytes = block->body_bytes;
  struct flat *f = &b->flat;
  const int64_t message = flat_root(f), kind = flat_int(f, message, 1, 1, 0);
  int64_t table = flat_table(f, message, 2);
  if (kind != (dictionary ? HEADER_DICTIONARY : HEADER_BATCH) || !table)
    return "a message of another kind";
  if (dictionary) {
    b->dictionary_id = flat_int(f, table, 0, 8, 0);
    b->is_delta = flat_int(f, table, 2, 1, 0) != 0;
    table = flat_table(f, table, 1);
  }
  b->rows = flat_int(f, table, 0, 8, 0);
  b->nodes = flat_vector(f, table, 1, 16, &b->n_nodes);
  b->buffers = flat_vector(f, table, 2, 16, &b->n_buffers);
  const int64_t compression = flat_table(f, table, 3);
  b->variadic = flat_vector(f, table, 4, 8, &b->n_variadic);
  const int64_t codec = flat_int(f, compression, 0, 1, 0);
  if (f->bad || !table) return "a damaged message";
  if (compression && codec != 0 && codec != 1)
    return "compressed by a codec that is not built in (LZ4 and ZSTD are)";
  if (compression && flat_int(f, compression, 1, 1, 0) != 0)
    return "compressed by a method that is not known";
  b->codec = !compression ? CODEC_NONE : codec == 0 ? CODEC_LZ4 : CODEC_ZSTD;
  return b->rows < 0 || b->rows > MOST_ROWS ? "an impossible number of rows" : NULL;
}

struct status arrow_read_batch(const struct arrow_file *file, const struct arrow_block *block,
                               bool dictionary, const char *what, struct arrow_batch *batch) {
  *batch = (struct arrow_batch){0};
  const char *wrong = read_message(file, block, dictionary, batch);
  return wrong ? failure(EXIT_INPUT, "%s: %s: %s", file->path, what, wrong) : fine();
}

/* Counts the buffers of all parts before the column's; only views have a number that varies. */
const char *arrow_find(struct arrow_batch *b, const struct arrow_schema *s,
                       const struct arrow_column *column, struct arrow_position *place) {
  *place = (struct arrow_position){0};
  int64_t view = 0;
  for (int64_t i = 0; i <= column->first_node; i++) {
    int64_t more = 0;
    if (s->part[i].is_view) {
      if (view >= b->n_variadic) return "its variadic buffer counts are missing";
      more = flat_at(&b->flat, b->variadic + 8 * view++, 8);
      if (more < 0 || more > b->n_buffers) return "an impossible variadic buffer count";
    }
    if (i == column->first_node)
      place->n_views = more;
    else
      place->buffer += s->part[i].n_buffers + more;
  }
  place->node = column->first_node;
  return NULL;
}

const char *arrow_node(struct arrow_batch *b, int64_t node, int64_t *rows, int64_t *nulls) {
  if (node < 0 || node >= b->n_nodes) return "its field node is missing";
  *rows = flat_at(&b->flat, b->nodes + 16 * node, 8);
  *nulls = flat_at(&b->flat, b->nodes + 16 * node + 8, 8);
  return *rows != b->rows ? "its length is not the batch's" : NULL;
}

const char *arrow_buffer(struct arrow_batch *b, int64_t i, struct arrow_buffer *buffer) {
  if (i < 0 || i >= b->n_buffers) return "one of its buffers is missing";
  const int64_t offset = flat_at(&b->flat, b->buffers + 16 * i, 8);
  const int64_t bytes = flat_at(&b->flat, b->buffers + 16 * i + 8, 8);
  if (offset < 0 || bytes < 0 || offset > b->body_bytes || bytes > b->body_bytes - offset)
    return "one of its buffers lies outside of the batch";
  *buffer = (struct arrow_buffer){b->body + offset, bytes};
  return NULL;
}
