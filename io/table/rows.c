/* Rows of delimited text into typed columns. Quotes follow RFC 4180: a field that begins with a
 * quote (blanks before it are skipped) ends at the next single quote; "" inside stands for one;
 * line ends inside belong to it. */
#include "text.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>

void row_free(struct row *row) {
  mem_free(row->field), mem_free(row->doubled);
  *row = (struct row){0};
}

static void add_field(struct row *row, const char *from, const char *to, bool doubled) {
  if (row->n == row->capacity) {
    row->capacity = row->capacity ? 2 * row->capacity : 16;
    row->field = mem_grow(row->field, row->capacity, sizeof *row->field);
    row->doubled = mem_grow(row->doubled, row->capacity, sizeof *row->doubled);
  }
  row->field[row->n] = (struct span){from, to - from};
  row->doubled[row->n++] = doubled;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

static const char *skip_blanks(char delimiter, const char *at, const char *end) {
  while (at < end && is_blank(*at) && *at != delimiter) at++;
  return at;
}

/* At a quote: takes the field; returns the byte after the closing quote and the blanks behind it,
 * NULL when it does not close. */
static const char *take_quoted(char delimiter, const char *at, const char *end, struct row *row) {
  const char *from = ++at;
  bool doubled = false;
  for (; at < end; at++) {
    if (*at == '\n') row->lines++;
    if (*at != '"') continue;
    if (at + 1 < end && at[1] == '"') {
      doubled = true, at++;
      continue;
    }
    add_field(row, from, at, doubled);
    return skip_blanks(delimiter, at + 1, end);
  }
  return NULL;
}

static const char *take_plain(char delimiter, const char *at, const char *end, struct row *row) {
  const char *from = at;
  if (delimiter == BLANKS)
    while (at < end && *at != '\n' && !is_blank(*at)) at++;
  else
    while (at < end && *at != '\n' && *at != delimiter) at++;
  const bool carriage = at > from && at[-1] == '\r' && (at == end || *at == '\n');
  if (delimiter != BLANKS || at - carriage > from) add_field(row, from, at - carriage, false);
  return at;
}

/* An empty line: "", "\r", and with blanks as delimiter also blanks. */
static const char *skip_empty(char delimiter, const char *at, const char *end) {
  if (delimiter == BLANKS) at = skip_blanks(BLANKS, at, end);
  if (at < end && *at == '\r' && (at + 1 == end || at[1] == '\n')) at++;
  return at == end || *at == '\n' ? at : NULL;
}

const char *row_split(char delimiter, const char *at, const char *end, bool last, struct row *row) {
  row->n = 0, row->lines = 1, row->fault = NULL;
  const char *empty = skip_empty(delimiter, at, end);
  if (empty) return empty < end ? empty + 1 : last ? end : NULL;
  for (;;) {
    const char *field = skip_blanks(delimiter, at, end);
    if (field < end && *field == '"') {
      at = take_quoted(delimiter, field, end, row);
      if (!at) {
        row->fault = "a quote is opened and never closed";
        return last ? end : NULL;
      }
      if (at < end && *at == '\r' && (at + 1 == end || at[1] == '\n')) at++;
    } else {
      at = take_plain(delimiter, delimiter == BLANKS ? field : at, end, row);
    }
    if (delimiter == BLANKS) at = skip_blanks(BLANKS, at, end);
    if (at == end) return last ? end : NULL;
    if (*at == '\n') return at + 1;
    if (delimiter == BLANKS) {
      if (at[-1] != '"') continue; /* after blanks, or at a lone '\r' */
      row->fault = "there is text right after a closing quote";
    } else if (*at == delimiter) {
      at++;
      continue;
    } else {
      row->fault = "there is text right after a closing quote";
    }
    at = memchr(at, '\n', (size_t)(end - at));
    return at ? at + 1 : last ? end : NULL;
  }
}

int64_t field_copy(struct span s, bool doubled, char *to) {
  if (!doubled) {
    memcpy(to, s.at, (size_t)s.n);
    return s.n;
  }
  int64_t n = 0;
  for (int64_t i = 0; i < s.n; i++) {
    to[n++] = s.at[i];
    if (s.at[i] == '"') i++;
  }
  return n;
}

/* ---- chunks ---- */

static void reserve_rows(struct text_chunk *p, const struct table *t, int64_t rows) {
  for (int w = 0; w < t->n_wants; w++) {
    struct table_column *c = &p->column[w];
    if (t->wants[w].kind == TABLE_ID) c->id = mem_grow(c->id, rows, sizeof *c->id);
    if (t->wants[w].kind == TABLE_COUNT) c->count = mem_grow(c->count, rows, sizeof *c->count);
    if (t->wants[w].kind == TABLE_TEXT) c->at = mem_grow(c->at, rows + 1, sizeof *c->at);
  }
  p->capacity = rows;
}

void text_chunk_init(struct text_chunk *p, const struct table *t, int64_t rows) {
  *p = (struct text_chunk){.column = NEW_ZERO(struct table_column, t->n_wants),
                           .text_capacity = NEW_ZERO(int64_t, t->n_wants)};
  reserve_rows(p, t, rows);
}

void text_chunk_free(struct text_chunk *p, int n_wants) {
  for (int w = 0; w < n_wants && p->column; w++) {
    mem_free(p->column[w].id), mem_free(p->column[w].count);
    mem_free(p->column[w].text), mem_free(p->column[w].at);
  }
  mem_free(p->column), mem_free(p->text_capacity);
  row_free(&p->row);
}

static const char *take_text(struct text_chunk *p, int want, struct span s, bool doubled) {
  struct table_column *c = &p->column[want];
  const int64_t at = c->at[p->rows];
  if (at + s.n > p->text_capacity[want]) {
    p->text_capacity[want] = 2 * (at + s.n) + 4096;
    c->text = mem_grow(c->text, p->text_capacity[want], 1);
  }
  c->at[p->rows + 1] = at + (s.n ? field_copy(s, doubled, c->text + at) : 0);
  return span_text(table_text(c, p->rows));
}

static void set_fault(struct text_chunk *p, const char *what) {
  p->fault.row = p->rows + 1, p->fault.line = p->lines + 1;
  snprintf(p->fault.what, sizeof p->fault.what, "%s", what);
}

static void take_value(struct text_chunk *p, const struct table *t, int want) {
  const struct table_want *w = &t->wants[want];
  const struct span s = p->row.field[w->column];
  const char *wrong = NULL;
  switch (w->kind) {
  case TABLE_ID: wrong = span_id(s, &p->column[want].id[p->rows]); break;
  case TABLE_COUNT: wrong = span_count(s, &p->column[want].count[p->rows]); break;
  case TABLE_TEXT: wrong = take_text(p, want, s, p->row.doubled[w->column]); break;
  }
  if (!wrong) return;
  const char *name = t->name[w->column];
  char what[sizeof p->fault.what];
  snprintf(what, sizeof what, "column %s is %s: %s",
           span_shown((struct span){name, (int64_t)strlen(name)}), span_shown(s), wrong);
  set_fault(p, what);
}

static void take_row(struct text_chunk *p, const struct table *t) {
  if (p->row.fault) {
    set_fault(p, p->row.fault);
  } else if (p->row.n != t->n_columns) {
    char what[160];
    snprintf(what, sizeof what,
             "%d fields where the first row has %d; is the delimiter right? See %s", p->row.n,
             t->n_columns, t->delimiter_option);
    set_fault(p, what);
  } else {
    if (p->rows == p->capacity) reserve_rows(p, t, 2 * p->capacity);
    for (int w = 0; w < t->n_wants && !p->fault.row; w++) take_value(p, t, w);
  }
}

void text_chunk_parse(struct text_chunk *p, const struct table *t, char delimiter, bool last,
                      bool partial) {
  p->rows = p->lines = 0;
  p->fault.row = 0;
  for (int w = 0; w < t->n_wants; w++)
    if (t->wants[w].kind == TABLE_TEXT) p->column[w].at[0] = 0;
  const char *at = p->from;
  while (at < p->to && !p->fault.row) {
    const char *next = row_split(delimiter, at, p->to, last || !partial, &p->row);
    if (!next) break;
    if (p->row.n || p->row.fault) {
      take_row(p, t);
      if (!p->fault.row) p->rows++;
    }
    p->lines += p->row.lines;
    at = next;
  }
  p->to = at;
}
