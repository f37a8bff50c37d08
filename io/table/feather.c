/* Feather (Arrow IPC) as a table. Batches of few rows are decoded several at once, one thread per
 * column and batch; a batch of many rows is decoded in windows, one thread per column. The file is
 * mapped, and given back as it is used. */
#include "feather_column.h"
#include "core/mem.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  MOST_AT_ONCE = 16,
  PER_THREAD = 4
}; /* several each, so that threads seldom wait for one another */

/* One batch, or the window of a large one, on its way to the caller. */
struct slot {
  struct arrow_batch batch;
  int64_t number;              /* of the batch, from 1 */
  int64_t first_row, rows;     /* the window within the batch */
  bool last;                   /* it ends the batch */
  struct arrow_cursor *cursor; /* [n_wants] */
  struct arrow_room *room;     /* [n_wants] */
  struct arrow_fault *fault;   /* [n_wants] */
  struct table_column *column; /* [n_wants] */
};

struct feather {
  struct arrow_file file;
  int n_dictionaries;
  struct arrow_dictionary *dictionary;
  int64_t next_batch, end_batch; /* of this share */
  int n_slots, n_used, next_slot;
  struct slot *slot;
  struct sha256 sha;
  int64_t hashed, unmapped; /* bytes: used (and hashed) so far; when pages were last given back */
};

static bool feather_recognises(const char *head, int64_t n) {
  return n >= 6 && !memcmp(head, "ARROW1", 6);
}

static const char *codec_name(enum arrow_codec codec) {
  return codec == CODEC_LZ4 ? "LZ4" : codec == CODEC_ZSTD ? "ZSTD" : "not compressed";
}

static struct status describe(struct table *t, struct feather *x) {
  struct arrow_schema *s = &x->file.schema;
  t->n_columns = s->n_columns;
  t->name = NEW_ZERO(char *, t->n_columns);
  t->type = NEW_ZERO(char *, t->n_columns);
  t->has_header = true;
  for (int i = 0; i < t->n_columns; i++) {
    char type[64];
    arrow_type_name(&s->column[i], type);
    const struct span name =
        span_trim((struct span){s->column[i].name, (int64_t)strlen(s->column[i].name)});
    t->name[i] = NEW_ZERO(char, name.n + 1);
    memcpy(t->name[i], name.at, (size_t)name.n);
    t->type[i] = mem_string(type);
  }
  struct arrow_batch first = {0};
  if (x->file.n_batches)
    TRY(arrow_read_batch(&x->file, &x->file.batch[0], false, "record batch 1", &first));
  snprintf(t->facts.format, sizeof t->facts.format, "Feather (Arrow IPC), %s, %lld record batch%s",
           codec_name(first.codec), (long long)x->file.n_batches,
           x->file.n_batches == 1 ? "" : "es");
  return fine();
}

static struct status feather_open(struct table *t, const struct table_format *format) {
  (void)format;
  struct feather *x = t->state = NEW_ZERO(struct feather, 1);
  x->file.path = t->path, x->file.size = t->facts.bytes;
  void *at = mmap(NULL, (size_t)x->file.size, PROT_READ, MAP_PRIVATE, t->fd, 0);
  if (at == MAP_FAILED) return failure(EXIT_INPUT, "%s: cannot map: %s", t->path, strerror(errno));
  x->file.at = at;
  TRY(arrow_open(&x->file));
  return describe(t, x);
}

static bool feather_looks_numeric(const struct table *t, int column) {
  const struct feather *x = t->state;
  const enum arrow_type type = x->file.schema.column[column].value.type;
  return type == ARROW_INT || type == ARROW_FLOAT;
}

static bool feather_may_keep(const struct table *t, int column) {
  const struct feather *x = t->state;
  const enum arrow_type type = x->file.schema.column[column].value.type;
  return (arrow_is_text(type) || type == ARROW_INT || type == ARROW_FLOAT) &&
         !arrow_unreadable(&x->file.schema.column[column], TABLE_TEXT);
}

/* ---- choosing ---- */

static const struct arrow_dictionary *find_dictionary(const struct feather *x, int64_t id) {
  for (int i = 0; i < x->n_dictionaries; i++)
    if (x->dictionary[i].id == id) return &x->dictionary[i];
  return NULL;
}

/* The value type of a dictionary, by the first wanted column that uses it. */
static const struct arrow_column *user_of(const struct table *t, const struct feather *x,
                                          int64_t id) {
  for (int w = 0; w < t->n_wants; w++) {
    const struct arrow_column *c = &x->file.schema.column[t->wants[w].column];
    if (c->is_dictionary && c->dictionary_id == id) return c;
  }
  return NULL;
}

static struct status read_dictionary(struct table *t, struct feather *x, int64_t i) {
  char what[64];
  struct arrow_batch batch;
  snprintf(what, sizeof what, "dictionary batch %lld", (long long)i + 1);
  TRY(arrow_read_batch(&x->file, &x->file.dictionary[i], true, what, &batch));
  const struct arrow_column *user = user_of(t, x, batch.dictionary_id);
  if (!user) return fine();
  struct arrow_dictionary *d = (struct arrow_dictionary *)find_dictionary(x, batch.dictionary_id);
  if (d && !batch.is_delta)
    return failure(EXIT_INPUT,
                   "%s: %s replaces the dictionary of column '%s': this is not allowed in a file",
                   t->path, what, user->name);
  if (!d && batch.is_delta)
    return failure(EXIT_INPUT, "%s: %s adds to a dictionary of column '%s' that is not there",
                   t->path, what, user->name);
  if (!d) {
    x->dictionary = mem_grow(x->dictionary, x->n_dictionaries + 1, sizeof *x->dictionary);
    d = &x->dictionary[x->n_dictionaries++];
    *d = (struct arrow_dictionary){.id = batch.dictionary_id};
  }
  struct arrow_fault fault = {0};
  arrow_dictionary_append(d, &batch, user->value, &fault);
  return fault.found
             ? failure(EXIT_INPUT, "%s: %s, column '%s': %s", t->path, what, user->name, fault.what)
             : fine();
}

static struct status check_wants(const struct table *t, const struct feather *x) {
  for (int w = 0; w < t->n_wants; w++) {
    const struct arrow_column *c = &x->file.schema.column[t->wants[w].column];
    const char *wrong = arrow_unreadable(c, t->wants[w].kind);
    if (wrong)
      return failure(EXIT_INPUT, "%s: column '%s' is of type %s: %s", t->path, c->name,
                     table_column_type(t, t->wants[w].column), wrong);
  }
  return fine();
}

static struct status feather_select(struct table *t) {
  struct feather *x = t->state;
  TRY(check_wants(t, x));
  for (int64_t i = 0; i < x->file.n_dictionaries; i++) TRY(read_dictionary(t, x, i));
  const int wanted = PER_THREAD * omp_get_max_threads();
  x->n_slots = wanted < MOST_AT_ONCE ? wanted : MOST_AT_ONCE;
  x->slot = NEW_ZERO(struct slot, x->n_slots);
  for (int i = 0; i < x->n_slots; i++) {
    x->slot[i].cursor = NEW_ZERO(struct arrow_cursor, t->n_wants);
    x->slot[i].room = NEW_ZERO(struct arrow_room, t->n_wants);
    x->slot[i].fault = NEW_ZERO(struct arrow_fault, t->n_wants);
    x->slot[i].column = NEW_ZERO(struct table_column, t->n_wants);
  }
  const int64_t n = x->file.n_batches;
  x->next_batch = n * t->share / t->n_shares, x->end_batch = n * (t->share + 1) / t->n_shares;
  if (t->n_shares == 1) sha256_init(&x->sha);
  if (x->next_batch < n && t->share > 0) x->hashed = x->file.batch[x->next_batch].offset;
  return fine();
}

/* ---- reading ---- */

static struct status start_batch(struct feather *x, struct slot *s) {
  char what[64];
  snprintf(what, sizeof what, "record batch %lld", (long long)x->next_batch + 1);
  const struct arrow_block *block = &x->file.batch[x->next_batch];
  s->number = ++x->next_batch;
  s->first_row = s->rows = 0;
  s->last = false;
  return arrow_read_batch(&x->file, block, false, what, &s->batch);
}

/* Move a slot to its next window; without wanted columns nothing is decoded
 * and one window takes all. */
static void next_window(struct slot *s, int n_wants) {
  s->first_row += s->rows;
  const int64_t left = s->batch.rows - s->first_row;
  s->rows = left < ARROW_WINDOW || !n_wants ? left : ARROW_WINDOW;
  s->last = s->rows == left;
}

/* Fill the slots: the next window of a batch under way, or the next batches up to a large one. */
static struct status plan(struct feather *x, int n_wants) {
  struct slot *first = &x->slot[0];
  x->next_slot = 0;
  if (x->n_used && !first->last) {
    x->n_used = 1;
    next_window(first, n_wants);
    return fine();
  }
  x->n_used = 0;
  while (x->n_used < x->n_slots && x->next_batch < x->end_batch) {
    struct slot *s = &x->slot[x->n_used];
    TRY(start_batch(x, s));
    if (s->batch.rows > ARROW_WINDOW && x->n_used) {
      x->next_batch--; /* it comes alone */
      break;
    }
    next_window(s, n_wants);
    x->n_used++;
    if (!s->last) break;
  }
  return fine();
}

static void decode(const struct table *t, const struct feather *x, struct slot *s, int w) {
  const struct table_want *want = &t->wants[w];
  const struct arrow_column *c = &x->file.schema.column[want->column];
  struct arrow_cursor *cursor = &s->cursor[w];
  s->fault[w].found = false;
  if (s->first_row == 0)
    arrow_cursor_open(cursor, &s->batch, &x->file.schema, c,
                      c->is_dictionary ? find_dictionary(x, c->dictionary_id) : NULL, want->kind,
                      &s->fault[w]);
  arrow_room_reserve(&s->room[w], want->kind, s->rows);
  arrow_cursor_read(cursor, s->rows, &s->room[w], &s->fault[w]);
  if (s->last && !s->fault[w].found) arrow_cursor_finish(cursor, &s->fault[w]);
  if (s->last || s->fault[w].found) arrow_cursor_close(cursor);
  s->column[w] = s->room[w].column;
}

/* How far the file is used once the slots are read; within a large batch by its share of rows. */
static int64_t end_of_slots(const struct feather *x) {
  int64_t end = x->hashed;
  for (int i = 0; i < x->n_used; i++) {
    const struct slot *s = &x->slot[i];
    const struct arrow_block *b = &x->file.batch[s->number - 1];
    const double share = s->last ? 1 : (double)(s->first_row + s->rows) / (double)s->batch.rows;
    const int64_t last = b->offset + (int64_t)(share * (double)(b->metadata_bytes + b->body_bytes));
    if (last > end) end = last;
  }
  return end;
}

static void hash_to(struct feather *x, int64_t end) {
  if (x->sha.state) sha256_add(&x->sha, x->file.at + x->hashed, (size_t)(end - x->hashed));
  x->hashed = end;
}

/* Give mapped pages back, so that the file does not count as our memory; what is needed again, such
 * as the rest of a large batch, comes back from the page cache. */
static void unmap_used(struct feather *x) {
  enum { STEP = 32 << 20 };
  if (x->hashed - x->unmapped < STEP) return;
  madvise((void *)x->file.at, (size_t)x->file.size, MADV_DONTNEED);
  x->unmapped = x->hashed;
}

static void decode_slots(struct table *t, struct feather *x) {
  const int64_t end = end_of_slots(x);
  const int jobs = x->n_used * t->n_wants;
#pragma omp parallel for schedule(dynamic, 1)
  for (int j = -1; j < jobs; j++)
    if (j < 0)
      hash_to(x, end);
    else
      decode(t, x, &x->slot[j / t->n_wants], j % t->n_wants);
  unmap_used(x);
}

static struct status fault_line(const struct table *t, const struct slot *s, int w) {
  const char *name = t->name[t->wants[w].column];
  const struct arrow_fault *f = &s->fault[w];
  if (f->row < 0)
    return failure(EXIT_INPUT, "%s: record batch %lld, column '%s': %s", t->path,
                   (long long)s->number, name, f->what);
  return failure(EXIT_INPUT, "%s: row %lld (record batch %lld): column '%s' is %s", t->path,
                 (long long)(t->facts.rows + f->row + 1), (long long)s->number, name, f->what);
}

/* The first fault of a slot by row. */
static struct status check_slot(const struct table *t, const struct slot *s) {
  int first = -1;
  for (int w = 0; w < t->n_wants; w++)
    if (s->fault[w].found && (first < 0 || s->fault[w].row < s->fault[first].row)) first = w;
  return first < 0 ? fine() : fault_line(t, s, first);
}

static struct status feather_next(struct table *t, struct table_batch *batch) {
  struct feather *x = t->state;
  for (;;) {
    while (x->next_slot < x->n_used) {
      const struct slot *s = &x->slot[x->next_slot++];
      TRY(check_slot(t, s));
      if (!s->rows) continue;
      batch->n = s->rows;
      batch->column = s->column;
      t->done = x->hashed;
      return fine();
    }
    TRY(plan(x, t->n_wants));
    if (!x->n_used) break;
    decode_slots(t, x);
  }
  if (x->sha.state) {
    hash_to(x, x->file.size);
    sha256_end(&x->sha, t->facts.sha256);
  }
  t->done = t->facts.bytes;
  return fine();
}

static void feather_close(struct table *t) {
  struct feather *x = t->state;
  char unused[DIGEST_TEXT];
  if (x->sha.state) sha256_end(&x->sha, unused);
  for (int i = 0; i < x->n_slots; i++) {
    for (int w = 0; w < t->n_wants; w++)
      arrow_cursor_close(&x->slot[i].cursor[w]), arrow_room_free(&x->slot[i].room[w]);
    mem_free(x->slot[i].cursor), mem_free(x->slot[i].room);
    mem_free(x->slot[i].fault), mem_free(x->slot[i].column);
  }
  mem_free(x->slot);
  for (int i = 0; i < x->n_dictionaries; i++) arrow_dictionary_free(&x->dictionary[i]);
  mem_free(x->dictionary);
  arrow_close(&x->file);
  if (x->file.at) munmap((void *)x->file.at, (size_t)x->file.size);
  mem_free(x);
}

const struct table_reader feather_reader = {feather_recognises, feather_open, feather_looks_numeric,
                                            feather_select,     feather_next, feather_close,
                                            feather_may_keep};
