/* Columns of Arrow record batches, decoded in windows of rows. */
#include "feather_column.h"
#include "feather_value.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- room ---- */

void arrow_room_reserve(struct arrow_room *room, enum table_kind kind, int64_t rows) {
  if (rows < 8) rows = 8; /* so that a batch without rows has its arrays too */
  if (rows <= room->rows) return;
  struct table_column *c = &room->column;
  mem_free(room->values), mem_free(room->bits), mem_free(room->valid);
  mem_free(c->id), mem_free(c->count), mem_free(c->at);
  c->id = NULL, c->count = NULL;
  room->rows = rows;
  room->values = NEW(uint8_t, 16 * (rows + 1));
  room->bits = NEW(uint8_t, rows / 8 + 1);
  room->valid = NEW(uint8_t, rows);
  c->at = NEW(int64_t, rows + 1);
  if (kind == TABLE_ID) c->id = NEW(uint64_t, rows);
  if (kind == TABLE_COUNT) c->count = NEW(int64_t, rows);
}

void arrow_room_free(struct arrow_room *room) {
  mem_free(room->values), mem_free(room->bits), mem_free(room->valid);
  mem_free(room->column.id), mem_free(room->column.count), mem_free(room->column.at);
  mem_free(room->column.text);
  *room = (struct arrow_room){0};
}

static void text_room(struct arrow_room *room, int64_t bytes) {
  if (bytes <= room->text_bytes) return;
  room->text_bytes = bytes + bytes / 2 + 4096;
  room->column.text = mem_grow(room->column.text, room->text_bytes, 1);
}

static void append_text(struct arrow_room *room, int64_t row, const char *text, int64_t n) {
  struct table_column *c = &room->column;
  text_room(room, c->at[row] + n);
  if (n) memcpy(c->text + c->at[row], text, (size_t)n);
  c->at[row + 1] = c->at[row] + n;
}

static void set_fault(struct arrow_fault *fault, int64_t row, const char *what) {
  if (fault->found) return;
  fault->found = true, fault->row = row;
  snprintf(fault->what, sizeof fault->what, "%s", what);
}

/* ---- opening ---- */

const char *arrow_unreadable(const struct arrow_column *column, enum table_kind kind) {
  switch (column->value.type) {
  case ARROW_INT:
  case ARROW_FLOAT: return NULL;
  case ARROW_BOOL:
  case ARROW_NULL: return kind == TABLE_TEXT ? NULL : "it holds no numbers";
  default:
    return arrow_is_text(column->value.type)
               ? NULL
               : "only integers, floats, booleans, text and dictionaries of these can be read";
  }
}

/* View columns need their data buffers whole: values point anywhere into them. */
static const char *open_views(struct arrow_cursor *c, struct arrow_batch *batch,
                              const struct arrow_position *place) {
  enum { STEP = 1 << 20 };
  if (place->n_views > batch->n_buffers) return "one of its buffers is missing";
  c->n_views = place->n_views;
  c->view = NEW_ZERO(struct arrow_view, c->n_views);
  const char *wrong = NULL;
  for (int64_t i = 0; i < c->n_views && !wrong; i++) {
    struct stream s = {0};
    struct arrow_view *v = &c->view[i];
    wrong = stream_open(&s, batch, place->buffer + 2 + i);
    if (!wrong && s.codec == CODEC_NONE) {
      *v = (struct arrow_view){s.at, s.total, NULL};
      continue;
    }
    /* It grows with what really comes, not with what the file claims. */
    for (int64_t held = 0; !wrong && s.done < s.total;) {
      const int64_t n = s.total - s.done < STEP ? s.total - s.done : STEP;
      if (s.done + n > held) v->owned = mem_grow(v->owned, held = s.done + n + held, 1);
      wrong = stream_read(&s, (char *)v->owned + s.done, n);
    }
    if (!wrong) wrong = stream_finish(&s);
    v->at = v->owned, v->bytes = s.total;
    stream_close(&s);
  }
  return wrong;
}

static const char *open_buffers(struct arrow_cursor *c, struct arrow_batch *batch,
                                const struct arrow_position *place) {
  int64_t rows, nulls;
  const char *wrong = arrow_node(batch, place->node, &rows, &nulls);
  if (wrong) return wrong;
  if (c->value.type == ARROW_NULL) return rows > UINT32_MAX ? "an impossible number of rows" : NULL;
  if ((wrong = stream_open(&c->validity, batch, place->buffer))) return wrong;
  c->has_validity = c->validity.total > 0;
  if (nulls != 0 && !c->has_validity && rows > 0) return "it has nulls but no validity bitmap";
  if ((wrong = stream_open(&c->values, batch, place->buffer + 1))) return wrong;
  if (c->value.type == ARROW_UTF8_VIEW || c->value.type == ARROW_BINARY_VIEW)
    return open_views(c, batch, place);
  return arrow_is_text(c->value.type) ? stream_open(&c->text, batch, place->buffer + 2) : NULL;
}

void arrow_cursor_open(struct arrow_cursor *c, struct arrow_batch *batch,
                       const struct arrow_schema *schema, const struct arrow_column *column,
                       const struct arrow_dictionary *dictionary, enum table_kind kind,
                       struct arrow_fault *fault) {
  *c = (struct arrow_cursor){.value = column->is_dictionary ? column->index : column->value,
                             .dictionary = dictionary,
                             .kind = kind};
  struct arrow_position place;
  const char *wrong = arrow_find(batch, schema, column, &place);
  if (!wrong && column->is_dictionary && !dictionary) wrong = "its dictionary is missing";
  if (!wrong) wrong = open_buffers(c, batch, &place);
  if (wrong) set_fault(fault, -1, wrong);
}

void arrow_cursor_close(struct arrow_cursor *c) {
  stream_close(&c->validity), stream_close(&c->values), stream_close(&c->text);
  for (int64_t i = 0; i < c->n_views; i++) mem_free(c->view[i].owned);
  mem_free(c->view);
  *c = (struct arrow_cursor){0};
}

void arrow_cursor_finish(struct arrow_cursor *c, struct arrow_fault *fault) {
  struct stream *const streams[] = {&c->validity, &c->values, &c->text};
  for (int i = 0; i < 3 && !fault->found; i++) {
    const char *wrong = stream_finish(streams[i]);
    if (wrong) set_fault(fault, -1, wrong);
  }
}

/* ---- reading ---- */

static const char *read_valid(struct arrow_cursor *c, int64_t n, struct arrow_room *room) {
  if (!c->has_validity) return memset(room->valid, 1, (size_t)n), NULL;
  const char *wrong = stream_read(&c->validity, room->bits, (n + 7) / 8);
  for (int64_t i = 0; i < n && !wrong; i++) room->valid[i] = room->bits[i / 8] >> (i % 8) & 1;
  return wrong;
}

/* offsets -> at; the bytes between -> text. Null values are taken as empty whatever they hold. */
static const char *read_text(struct arrow_cursor *c, int64_t n, struct arrow_room *room) {
  enum { STEP = 1 << 24 };
  const int width =
      c->value.type == ARROW_LARGE_UTF8 || c->value.type == ARROW_LARGE_BINARY ? 8 : 4;
  const bool first = !c->started && n > 0;
  struct table_column *out = &room->column;
  const char *wrong = stream_read(&c->values, room->values, (n + first) * width);
  if (wrong || n == 0) return wrong;
  if (first) {
    c->offset = value_int(room->values, width);
    c->started = true;
    if ((wrong = stream_skip(&c->text, c->offset))) return "an offset lies outside of its text";
  }
  out->at[0] = 0;
  const int64_t start = c->offset;
  for (int64_t i = 0; i < n; i++) {
    const int64_t end = value_int(room->values + (i + first) * width, width);
    if (end < c->offset || end - start > c->text.total)
      return "its offsets go backwards or outside of its text";
    out->at[i + 1] = end - start;
    c->offset = end;
  }
  for (int64_t have = 0, all = out->at[n], step; have < all; have += step) {
    step = all - have < STEP ? all - have : STEP;
    text_room(room, have + step);
    if ((wrong = stream_read(&c->text, out->text + have, step))) return wrong;
  }
  return NULL;
}

/* Nulls out of the text. */
static void drop_null_text(int64_t n, struct arrow_room *room) {
  struct table_column *out = &room->column;
  int64_t to = 0, from = out->at[0];
  for (int64_t i = 0; i < n; i++) {
    const int64_t bytes = room->valid[i] ? out->at[i + 1] - from : 0;
    if (bytes && to != from) memmove(out->text + to, out->text + from, (size_t)bytes);
    from = out->at[i + 1];
    out->at[i] = to;
    to += bytes;
  }
  out->at[n] = to;
}

/* 16 bytes a value: length, then 12 bytes of text, or a prefix, the number of
 * a buffer and an offset. */
static const char *read_views(struct arrow_cursor *c, int64_t n, struct arrow_room *room) {
  enum { INLINE = 12 };
  const char *wrong = stream_read(&c->values, room->values, 16 * n);
  if (wrong) return wrong;
  room->column.at[0] = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint8_t *view = room->values + 16 * i;
    const int64_t bytes = room->valid[i] ? value_int(view, 4) : 0;
    const uint8_t *text = view + 4;
    if (bytes < 0) return "a view has a negative length";
    if (bytes > INLINE) {
      const int64_t buffer = value_int(view + 8, 4), offset = value_int(view + 12, 4);
      if (buffer < 0 || buffer >= c->n_views || offset < 0 || offset > c->view[buffer].bytes ||
          bytes > c->view[buffer].bytes - offset)
        return "a view points outside of its buffers";
      text = c->view[buffer].at + offset;
    }
    append_text(room, i, (const char *)text, bytes);
  }
  return NULL;
}

static const char *read_bools(struct arrow_cursor *c, int64_t n, struct arrow_room *room) {
  const char *wrong = stream_read(&c->values, room->bits, (n + 7) / 8);
  room->column.at[0] = 0;
  for (int64_t i = 0; i < n && !wrong; i++) {
    const bool yes = room->bits[i / 8] >> (i % 8) & 1;
    const char *word = !room->valid[i] ? "" : yes ? "true" : "false";
    append_text(room, i, word, (int64_t)strlen(word));
  }
  return wrong;
}

static void numbers_as_text(const struct arrow_cursor *c, int64_t n, struct arrow_room *room) {
  room->column.at[0] = 0;
  for (int64_t i = 0; i < n; i++) {
    char text[VALUE_TEXT] = "";
    if (room->valid[i]) value_text(&c->value, room->values + i * c->value.bytes, text);
    append_text(room, i, text, (int64_t)strlen(text));
  }
}

/* One integer or float as an id or a count; `at` NULL: it is null. */
static const char *take_number(const struct arrow_cursor *c, const uint8_t *at, int64_t i,
                               struct arrow_room *room) {
  if (!at) return "null: a number is missing";
  return c->kind == TABLE_ID ? value_id(&c->value, at, &room->column.id[i])
                             : value_count(&c->value, at, &room->column.count[i]);
}

static void number_fault(const struct arrow_cursor *c, const uint8_t *at, int64_t i,
                         const char *wrong, struct arrow_fault *fault) {
  char text[VALUE_TEXT] = "", what[240];
  if (at) value_text(&c->value, at, text);
  snprintf(what, sizeof what, "%s%s%s", text, at ? ": " : "", wrong);
  set_fault(fault, i, what);
}

static void take_numbers(const struct arrow_cursor *c, int64_t n, struct arrow_room *room,
                         struct arrow_fault *fault) {
  for (int64_t i = 0; i < n && !fault->found; i++) {
    const uint8_t *at = room->valid[i] ? room->values + i * c->value.bytes : NULL;
    const char *wrong = take_number(c, at, i, room);
    if (wrong) number_fault(c, at, i, wrong, fault);
  }
}

static const char *take_indices(const struct arrow_cursor *c, int64_t n, struct arrow_room *room,
                                int64_t *bad_row) {
  const struct arrow_dictionary *d = c->dictionary;
  room->column.at[0] = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t index = 0;
    if (!room->valid[i]) {
      append_text(room, i, "", 0);
      continue;
    }
    if (value_count(&c->value, room->values + i * c->value.bytes, &index) || index < 0 ||
        index >= d->n)
      return *bad_row = i, "the dictionary index is out of range";
    const struct span s = table_text(&d->values, index);
    append_text(room, i, s.at, s.n);
  }
  return NULL;
}

/* Text into ids or counts, where these are wanted. */
static void parse_text(const struct arrow_cursor *c, int64_t n, struct arrow_room *room,
                       struct arrow_fault *fault) {
  if (c->kind == TABLE_TEXT && c->dictionary) return; /* looked at when it was read */
  for (int64_t i = 0; i < n; i++) {
    const struct span s = table_text(&room->column, i);
    const char *wrong = c->kind == TABLE_ID      ? span_id(s, &room->column.id[i])
                        : c->kind == TABLE_COUNT ? span_count(s, &room->column.count[i])
                                                 : span_text(s);
    if (!wrong) continue;
    char what[sizeof fault->what];
    snprintf(what, sizeof what, "%s: %s", span_shown(s), wrong);
    set_fault(fault, i, what);
    return;
  }
}

/* 64-bit integers without nulls stand in the file as they are wanted. */
static bool is_straight(const struct arrow_cursor *c) {
  return !c->dictionary && !c->has_validity && c->value.type == ARROW_INT && c->value.bytes == 8 &&
         c->kind != TABLE_TEXT;
}

static void read_straight(struct arrow_cursor *c, int64_t n, struct arrow_room *room,
                          struct arrow_fault *fault) {
  const bool id = c->kind == TABLE_ID;
  void *to = id ? (void *)room->column.id : (void *)room->column.count;
  const char *wrong = stream_read(&c->values, to, 8 * n);
  if (wrong) set_fault(fault, -1, wrong);
  if (wrong || id != c->value.is_signed) return;
  /* Top bit: a negative id, or a count above 2^63. */
  const int64_t *x = to;
  for (int64_t i = 0; i < n && !fault->found; i++)
    if (x[i] < 0)
      number_fault(c, (const uint8_t *)&x[i], i, take_number(c, (const uint8_t *)&x[i], i, room),
                   fault);
}

static const char *read_rows(struct arrow_cursor *c, int64_t n, struct arrow_room *room,
                             int64_t *bad_row) {
  const struct arrow_value *v = &c->value;
  const char *wrong = read_valid(c, n, room);
  if (wrong) return wrong;
  switch (v->type) {
  case ARROW_NULL:
    memset(room->column.at, 0, (size_t)(n + 1) * sizeof *room->column.at);
    return NULL;
  case ARROW_BOOL: return read_bools(c, n, room);
  case ARROW_INT:
  case ARROW_FLOAT:
    wrong = stream_read(&c->values, room->values, n * v->bytes);
    if (!wrong && c->dictionary) return take_indices(c, n, room, bad_row);
    if (!wrong && c->kind == TABLE_TEXT) numbers_as_text(c, n, room);
    return wrong;
  case ARROW_UTF8_VIEW:
  case ARROW_BINARY_VIEW: return read_views(c, n, room);
  default: break;
  }
  wrong = read_text(c, n, room);
  if (!wrong && n && c->has_validity) drop_null_text(n, room);
  return wrong;
}

void arrow_cursor_read(struct arrow_cursor *c, int64_t n, struct arrow_room *room,
                       struct arrow_fault *fault) {
  if (fault->found) return;
  if (is_straight(c)) {
    read_straight(c, n, room, fault);
    return;
  }
  int64_t bad_row = -1;
  const char *wrong = read_rows(c, n, room, &bad_row);
  if (wrong)
    set_fault(fault, bad_row, wrong);
  else if (c->kind != TABLE_TEXT && (c->value.type == ARROW_INT || c->value.type == ARROW_FLOAT) &&
           !c->dictionary)
    take_numbers(c, n, room, fault);
  else
    parse_text(c, n, room, fault);
}

/* ---- dictionaries ---- */

static void append_values(struct arrow_dictionary *d, const struct table_column *c, int64_t n) {
  struct table_column *to = &d->values;
  if (d->n + n + 1 > d->rows_held)
    to->at = mem_grow(to->at, d->rows_held = 2 * (d->n + n + 1), sizeof *to->at);
  if (d->n == 0) to->at[0] = 0;
  const int64_t start = to->at[d->n], bytes = c->at[n];
  if (start + bytes > d->bytes_held)
    to->text = mem_grow(to->text, d->bytes_held = 2 * (start + bytes), 1);
  if (bytes) memcpy(to->text + start, c->text, (size_t)bytes);
  for (int64_t i = 0; i < n; i++) to->at[d->n + i + 1] = start + c->at[i + 1];
  d->n += n;
}

void arrow_dictionary_append(struct arrow_dictionary *d, struct arrow_batch *batch,
                             struct arrow_value value, struct arrow_fault *fault) {
  /* A schema of one column, which the dictionary batch has. */
  const bool view = value.type == ARROW_UTF8_VIEW || value.type == ARROW_BINARY_VIEW;
  struct arrow_part part = {0, view};
  struct arrow_column column = {.value = value, .n_nodes = 1};
  const struct arrow_schema schema = {
      .n_columns = 1, .column = &column, .n_parts = 1, .part = &part};
  struct arrow_cursor cursor;
  struct arrow_room room = {0};
  arrow_cursor_open(&cursor, batch, &schema, &column, NULL, TABLE_TEXT, fault);
  arrow_room_reserve(&room, TABLE_TEXT, batch->rows < ARROW_WINDOW ? batch->rows : ARROW_WINDOW);
  for (int64_t done = 0, n; done < batch->rows && !fault->found; done += n) {
    n = batch->rows - done < ARROW_WINDOW ? batch->rows - done : ARROW_WINDOW;
    arrow_cursor_read(&cursor, n, &room, fault);
    if (!fault->found) append_values(d, &room.column, n);
  }
  if (!fault->found) arrow_cursor_finish(&cursor, fault);
  arrow_cursor_close(&cursor);
  arrow_room_free(&room);
}

void arrow_dictionary_free(struct arrow_dictionary *d) {
  mem_free(d->values.text), mem_free(d->values.at);
  *d = (struct arrow_dictionary){0};
}
