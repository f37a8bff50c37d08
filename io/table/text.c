/* Delimited text as a table. Blocks of the file are cut at row ends; where a block holds no quote
 * it is cut into one chunk per thread, otherwise one thread reads it. Each chunk becomes a batch.
 */
#include "text.h"
#include "core/mem.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4 << 20, LONGEST_ROW = 64 << 20, SNIFFED_ROWS = 50, ROWS_AT_FIRST = 1024 };

static const struct {
  const char *word;
  char delimiter;
} delimiters[] = {
    {"tab", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"pipe", '|'}, {"blank", BLANKS}};
enum { N_DELIMITERS = sizeof delimiters / sizeof *delimiters };

/* ---- blocks ---- */

/* Drop what was consumed and read on until the buffer is full or the file ends. */
static struct status fill(struct table *t, struct text *x) {
  memmove(x->buffer, x->buffer + x->start, (size_t)(x->have - x->start));
  x->have -= x->start, x->start = 0;
  x->fresh = x->have;
  if (x->have == x->capacity) {
    x->capacity *= 2;
    x->buffer = mem_grow(x->buffer, x->capacity, 1);
  }
  while (!x->ended && x->have < x->capacity) {
    const int64_t room = x->capacity - x->have;
    const ssize_t n = read(t->fd, x->buffer + x->have, (size_t)(room < x->left ? room : x->left));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failure(EXIT_INPUT, "%s: cannot read: %s", t->path, strerror(errno));
    x->ended = n == 0;
    x->have += n, x->left -= n;
  }
  if (memchr(x->buffer + x->fresh, 0, (size_t)(x->have - x->fresh)))
    return failure(EXIT_INPUT,
                   "%s: holds zero bytes: binary or UTF-16, not delimited text in UTF-8", t->path);
  return fine();
}

/* ---- opening: delimiter, header, names ---- */

/* Does this delimiter cut the first rows into equally many fields, at least two? */
static bool cuts_evenly(const struct text *x, char delimiter, bool all_rows) {
  struct row row = {0};
  const char *at = x->buffer + x->start, *end = x->buffer + x->have;
  int n_fields = 0, n_rows = 0;
  bool even = true;
  while (even && at && at < end && n_rows < (all_rows ? SNIFFED_ROWS : 1)) {
    at = row_split(delimiter, at, end, x->ended, &row);
    if (!at || (row.n == 0 && !row.fault)) continue;
    even = !row.fault && row.n >= 2 && (n_rows == 0 || row.n == n_fields);
    n_fields = row.n, n_rows++;
  }
  row_free(&row);
  return even && n_rows;
}

static struct status choose_delimiter(struct table *t, struct text *x, const char *word) {
  if (word && *word && !word[1]) {
    x->delimiter = *word == ' ' ? BLANKS : *word;
    return fine();
  }
  if (word && strcmp(word, "auto")) {
    for (int i = 0; i < N_DELIMITERS; i++)
      if (!strcmp(word, delimiters[i].word)) return x->delimiter = delimiters[i].delimiter, fine();
    return failure(EXIT_USAGE,
                   "%s %s: it must be auto, comma, tab, semicolon, pipe, blank or one character",
                   t->delimiter_option, word);
  }
  x->delimiter = ',';
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < N_DELIMITERS; i++)
      if (cuts_evenly(x, delimiters[i].delimiter, pass == 0))
        return x->delimiter = delimiters[i].delimiter, fine();
  return fine();
}

static bool all_numbers(const struct row *row) {
  for (int i = 0; i < row->n; i++)
    if (!span_is_number(row->field[i])) return false;
  return row->n > 0;
}

static void name_columns(struct table *t, const struct row *row) {
  t->n_columns = row->n;
  t->name = NEW_ZERO(char *, row->n);
  for (int i = 0; i < row->n; i++) {
    char number[16];
    snprintf(number, sizeof number, "%d", i + 1);
    struct span s = span_trim(row->field[i]);
    if (!t->has_header) s = (struct span){number, (int64_t)strlen(number)};
    t->name[i] = NEW_ZERO(char, s.n + 1);
    const int64_t n = field_copy(s, row->doubled[i] && t->has_header, t->name[i]);
    t->name[i][n] = 0;
  }
}

static void describe(struct table *t, const struct text *x) {
  char word[16] = {'\'', x->delimiter, '\'', 0};
  for (int i = 0; i < N_DELIMITERS; i++)
    if (delimiters[i].delimiter == x->delimiter)
      snprintf(word, sizeof word, "%s", delimiters[i].word);
  snprintf(t->facts.format, sizeof t->facts.format, "delimited text (%s, %s)", word,
           t->has_header ? "header" : "no header");
}

/* The first row that is not empty. */
static struct status first_row(struct table *t, struct text *x, struct row *row) {
  const char *at = x->buffer + x->start, *end = x->buffer + x->have;
  do {
    x->start = at - x->buffer;
    at = row_split(x->delimiter, at, end, x->ended, row);
    if (at) x->lines += row->lines;
  } while (at && at < end && row->n == 0 && !row->fault);
  if (at && row->fault) return failure(EXIT_INPUT, "%s: first row: %s", t->path, row->fault);
  if (!at || row->n == 0) return failure(EXIT_INPUT, "%s: no row of text was found", t->path);
  return fine();
}

static struct status read_head(struct table *t, struct text *x, const struct table_format *format,
                               struct row *row) {
  TRY(fill(t, x));
  if (x->have >= 3 && !memcmp(x->buffer, "\xef\xbb\xbf", 3)) x->start = 3;
  TRY(choose_delimiter(t, x, format->delimiter));
  TRY(first_row(t, x, row));
  const char *header = format->header ? format->header : "auto";
  t->has_header = !strcmp(header, "yes") || (strcmp(header, "no") && !all_numbers(row));
  t->header_guessed = t->has_header && strcmp(header, "yes");
  name_columns(t, row);
  const char *next =
      row_split(x->delimiter, x->buffer + x->start, x->buffer + x->have, x->ended, row);
  if (t->has_header)
    x->start = next - x->buffer;
  else
    x->lines -= row->lines;
  describe(t, x);
  return fine();
}

static struct status text_open(struct table *t, const struct table_format *format) {
  struct text *x = t->state = NEW_ZERO(struct text, 1);
  x->capacity = BLOCK;
  x->buffer = NEW(char, x->capacity);
  x->left = INT64_MAX;
  sha256_init(&x->sha);
  struct row row = {0};
  const struct status s = read_head(t, x, format, &row);
  row_free(&row);
  return s;
}

static bool text_looks_numeric(const struct table *t, int column) {
  const struct text *x = t->state;
  const char *at = x->buffer + x->start, *end = x->buffer + x->have;
  struct row row = {0};
  bool numeric = true;
  do at = row_split(x->delimiter, at, end, x->ended, &row);
  while (at && at < end && row.n == 0 && !row.fault);
  if (at && !row.fault && column < row.n) numeric = span_is_number(row.field[column]);
  row_free(&row);
  return numeric;
}

static bool text_recognises(const char *head, int64_t n) {
  return memchr(head, 0, (size_t)n) == NULL && !(n >= 6 && !memcmp(head, "ARROW1", 6));
}

/* ---- batches ---- */

/* The first byte at `at` or later that begins a line, if no quote is about. */
static struct status line_from(const struct table *t, int64_t first, int64_t at, int64_t *line) {
  char block[4096];
  *line = first;
  if (at <= first) return fine();
  for (at--; at < t->facts.bytes;) {
    const ssize_t n = pread(t->fd, block, sizeof block, at);
    if (n < 0) return failure(EXIT_INPUT, "%s: cannot read: %s", t->path, strerror(errno));
    const char *newline = memchr(block, '\n', (size_t)n);
    if (newline) return *line = at + (newline - block) + 1, fine();
    if (n == 0) break;
    at += n;
  }
  *line = t->facts.bytes;
  return fine();
}

/* Begin anew at this share's first line, and end before the next share's. */
static struct status seek_share(struct table *t, struct text *x) {
  char unused[DIGEST_TEXT];
  const int64_t first = lseek(t->fd, 0, SEEK_CUR) - (x->have - x->start),
                bytes = t->facts.bytes - first;
  int64_t from, to;
  TRY(line_from(t, first, first + bytes * t->share / t->n_shares, &from));
  TRY(line_from(t, first, first + bytes * (t->share + 1) / t->n_shares, &to));
  if (lseek(t->fd, from, SEEK_SET) < 0)
    return failure(EXIT_INPUT, "%s: cannot read: %s", t->path, strerror(errno));
  sha256_end(&x->sha, unused);
  x->start = x->have = x->fresh = 0;
  x->left = to - from, x->ended = false, x->primed = false;
  return fill(t, x);
}

static struct status text_select(struct table *t) {
  struct text *x = t->state;
  if (t->n_shares > 1) TRY(seek_share(t, x));
  x->max_chunks = omp_get_max_threads();
  x->chunk = NEW_ZERO(struct text_chunk, x->max_chunks);
  for (int i = 0; i < x->max_chunks; i++) text_chunk_init(&x->chunk[i], t, ROWS_AT_FIRST);
  return fine();
}

/* Cut [from, to) at row ends, one chunk per thread. */
static void cut(struct text *x, const char *from, const char *to) {
  x->n_chunks = 0;
  for (int i = 0; i < x->max_chunks && from < to; i++) {
    const char *end = from + (to - from) / (x->max_chunks - i);
    const char *newline = end < to ? memchr(end, '\n', (size_t)(to - end)) : NULL;
    end = newline ? newline + 1 : to;
    struct text_chunk *p = &x->chunk[x->n_chunks++];
    p->from = from, p->to = end;
    from = end;
  }
}

/* Parse the chunks, and hash what was read last, side by side. */
static void parse(struct table *t, struct text *x, bool partial) {
  const int n = x->n_chunks;
#pragma omp parallel for schedule(dynamic, 1)
  for (int i = 0; i <= n; i++)
    if (i == 0 && x->sha.state)
      sha256_add(&x->sha, x->buffer + x->fresh, (size_t)(x->have - x->fresh));
    else if (i > 0)
      text_chunk_parse(&x->chunk[i - 1], t, x->delimiter, x->ended, partial);
  x->fresh = x->have;
}

/* One block into chunks. */
static struct status next_block(struct table *t, struct text *x) {
  const char *from = x->buffer + x->start, *end = x->buffer + x->have;
  const bool quoted = memchr(from, '"', (size_t)(end - from)) != NULL;
  if (quoted && t->n_shares > 1)
    return failure(EXIT_INPUT, "%s: quotes: one rank must read it", t->path);
  const char *to = x->ended ? end : memrchr(from, '\n', (size_t)(end - from));
  if (!to)
    to = from;
  else if (!x->ended)
    to++;
  if (quoted) {
    x->chunk[0].from = from, x->chunk[0].to = end;
    x->n_chunks = 1;
  } else {
    cut(x, from, to);
  }
  parse(t, x, quoted && !x->ended);
  if (quoted) to = x->chunk[0].to;
  if (to == from && !x->ended && x->have == x->capacity && x->capacity >= LONGEST_ROW &&
      !x->chunk[0].fault.row)
    return failure(EXIT_INPUT,
                   "%s: the row after row %lld is longer than %d MiB: is a quote not closed?",
                   t->path, (long long)x->rows, LONGEST_ROW >> 20);
  x->start = to - x->buffer;
  x->next_chunk = 0;
  return fine();
}

static struct status fault_line(const struct table *t, const struct text *x,
                                const struct text_chunk *p) {
  return failure(EXIT_INPUT, "%s: row %lld (line %lld): %s", t->path,
                 (long long)(x->rows + p->fault.row), (long long)(x->lines + p->fault.line),
                 p->fault.what);
}

static struct status text_next(struct table *t, struct table_batch *batch) {
  struct text *x = t->state;
  for (;;) {
    while (x->next_chunk < x->n_chunks) {
      struct text_chunk *p = &x->chunk[x->next_chunk++];
      if (p->fault.row) return fault_line(t, x, p);
      x->rows += p->rows, x->lines += p->lines;
      t->done += p->to - p->from;
      if (!p->rows) continue;
      batch->n = p->rows;
      batch->column = p->column;
      return fine();
    }
    if (x->ended && x->start == x->have) break;
    if (x->primed) TRY(fill(t, x));
    x->primed = true;
    TRY(next_block(t, x));
  }
  if (x->sha.state) {
    sha256_add(&x->sha, x->buffer + x->fresh, (size_t)(x->have - x->fresh));
    sha256_end(&x->sha, t->facts.sha256);
  }
  t->done = t->facts.bytes;
  return fine();
}

static void text_close(struct table *t) {
  struct text *x = t->state;
  char unused[DIGEST_TEXT];
  if (x->sha.state) sha256_end(&x->sha, unused);
  for (int i = 0; i < x->max_chunks && x->chunk; i++) text_chunk_free(&x->chunk[i], t->n_wants);
  mem_free(x->chunk), mem_free(x->buffer), mem_free(x);
}

const struct table_reader text_reader = {
    text_recognises, text_open, text_looks_numeric, text_select, text_next, text_close, NULL};
