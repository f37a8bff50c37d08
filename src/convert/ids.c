/* Ids, numbers or names, in a hash table that gives them indices. */
#include "ids.h"
#include "core/mem.h"
#include "core/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slot {
  uint64_t id;
  uint32_t index; /* NO_INDEX: empty */
};

enum { FIRST_SLOTS = 1024, MIXED = 1u << 31, PARALLEL_ROWS = 4096, CHUNK = 2048, AHEAD = 12 };

static void fresh_slots(struct ids *ids, int64_t n) {
  ids->n_slots = n;
  ids->slot = NEW(struct slot, n);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++) ids->slot[i] = (struct slot){0, NO_INDEX};
}

void ids_init(struct ids *ids, bool names) {
  *ids = (struct ids){.names = names};
  fresh_slots(ids, FIRST_SLOTS);
}

void ids_free(struct ids *ids) {
  mem_free(ids->id), mem_free(ids->text), mem_free(ids->at), mem_free(ids->blanks),
      mem_free(ids->slot);
  *ids = (struct ids){0};
}

void ids_seal(struct ids *ids) {
  mem_free(ids->slot);
  ids->slot = NULL;
}

/* FNV-1a, then mixed. */
static uint64_t hash_text(const char *text, int64_t n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (int64_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
  return mix_u64(h);
}

static bool same_name(const struct ids *ids, uint32_t index, const char *text, int64_t n) {
  const int64_t at = ids->at[index];
  return ids->at[index + 1] - at == n && (n == 0 || !memcmp(ids->text + at, text, (size_t)n));
}

/* The slot of a key, or the empty one where it belongs. */
static struct slot *find(const struct ids *ids, uint64_t id, const char *text, int64_t n) {
  ASSERT(ids->slot); /* not after ids_seal */
  const uint64_t mask = (uint64_t)ids->n_slots - 1;
  for (uint64_t at = mix_u64(id) & mask;; at = (at + 1) & mask) {
    struct slot *s = &ids->slot[at];
    if (s->index == NO_INDEX) return s;
    if (s->id == id && (!ids->names || same_name(ids, s->index, text, n))) return s;
  }
}

static void grow_slots(struct ids *ids) {
  struct slot *old = ids->slot;
  const int64_t n_old = ids->n_slots;
  fresh_slots(ids, 2 * n_old);
  const uint64_t mask = (uint64_t)ids->n_slots - 1;
  for (int64_t i = 0; i < n_old; i++) {
    if (old[i].index == NO_INDEX) continue;
    uint64_t at = mix_u64(old[i].id) & mask;
    while (ids->slot[at].index != NO_INDEX) at = (at + 1) & mask;
    ids->slot[at] = old[i];
  }
  mem_free(old);
}

static void grow_lists(struct ids *ids) {
  ids->capacity = ids->capacity ? 2 * ids->capacity : 1024;
  ids->id = mem_grow(ids->id, ids->capacity, sizeof *ids->id);
  if (!ids->names) return;
  ids->at = mem_grow(ids->at, ids->capacity + 1, sizeof *ids->at);
  ids->blanks = mem_grow(ids->blanks, ids->capacity, sizeof *ids->blanks);
  if (ids->n == 0) ids->at[0] = 0;
}

static void keep_name(struct ids *ids, const char *text, int64_t n, uint32_t blanks) {
  const int64_t at = ids->at[ids->n];
  if (at + n > ids->text_bytes) {
    ids->text_bytes = 2 * (at + n) + 4096;
    ids->text = mem_grow(ids->text, ids->text_bytes, 1);
  }
  if (n) memcpy(ids->text + at, text, (size_t)n);
  ids->at[ids->n + 1] = at + n;
  ids->blanks[ids->n] = blanks;
}

static uint32_t add(struct ids *ids, struct slot *s, uint64_t id, const char *text, int64_t n,
                    uint32_t blanks) {
  if (ids->n == NO_INDEX)
    DIE(EXIT_INPUT, "more than %u distinct ids; a graph may have at most that many nodes",
        NO_INDEX);
  if (ids->n == ids->capacity) grow_lists(ids);
  const uint32_t index = (uint32_t)ids->n;
  *s = (struct slot){id, index};
  ids->id[index] = id;
  if (ids->names) keep_name(ids, text, n, blanks);
  ids->n++;
  if (3 * ids->n > 2 * ids->n_slots) grow_slots(ids);
  return index;
}

uint32_t ids_number(struct ids *ids, uint64_t id, bool may_add) {
  struct slot *s = find(ids, id, NULL, 0);
  return s->index == NO_INDEX && may_add ? add(ids, s, id, NULL, 0, 0) : s->index;
}

uint32_t ids_name(struct ids *ids, const char *text, int64_t n, bool may_add) {
  int64_t before = 0, after = 0;
  while (before < n && (text[before] == ' ' || text[before] == '\t')) before++;
  while (before + after < n && (text[n - 1 - after] == ' ' || text[n - 1 - after] == '\t')) after++;
  const uint32_t blanks = (uint32_t)(before & 0x7fff) << 16 | (uint32_t)(after & 0xffff);
  text += before, n -= before + after;
  const uint64_t id = hash_text(text, n);
  struct slot *s = find(ids, id, text, n);
  if (s->index == NO_INDEX) return may_add ? add(ids, s, id, text, n, blanks) : NO_INDEX;
  if (may_add && ids->blanks[s->index] != blanks) ids->blanks[s->index] |= MIXED;
  return s->index;
}

static uint32_t one(struct ids *ids, const struct table_column *c, int64_t i, bool may_add) {
  if (!ids->names) return ids_number(ids, c->id[i], may_add);
  return ids_name(ids, c->text + c->at[i], c->at[i + 1] - c->at[i], may_add);
}

/* Rows [first, end) of one column. Slots lie anywhere in a large table: they are
 * fetched some rows ahead. */
static void map_rows(struct ids *ids, const struct ids_column *c, int64_t first, int64_t end,
                     const bool *use, bool may_add) {
  for (int64_t i = first; i < end; i++) {
    if (!ids->names && i + AHEAD < end)
      __builtin_prefetch(
          &ids->slot[mix_u64(c->from->id[i + AHEAD]) & ((uint64_t)ids->n_slots - 1)]);
    if (!use || use[i]) c->index[i] = one(ids, c->from, i, may_add);
  }
}

void ids_map(struct ids *ids, const struct ids_column *column, int n_columns, int64_t n,
             const bool *use, bool may_add) {
  const int64_t n_chunks = (n + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(dynamic, 2) if (!may_add && n >= PARALLEL_ROWS)
  for (int64_t p = 0; p < n_columns * n_chunks; p++) {
    const int64_t first = p / n_columns * CHUNK, end = first + CHUNK < n ? first + CHUNK : n;
    map_rows(ids, &column[p % n_columns], first, end, use, may_add);
  }
}

uint32_t *ids_join(struct ids *ids, const struct ids *from) {
  uint32_t *index = NEW(uint32_t, from->n);
  for (int64_t i = 0; i < from->n; i++) {
    const char *text = from->names ? from->text + from->at[i] : NULL;
    const int64_t n = from->names ? from->at[i + 1] - from->at[i] : 0;
    struct slot *s = find(ids, from->id[i], text, n);
    const uint32_t blanks = from->names ? from->blanks[i] : 0;
    index[i] = s->index == NO_INDEX ? add(ids, s, from->id[i], text, n, blanks) : s->index;
    if (from->names && ids->blanks[index[i]] != blanks) ids->blanks[index[i]] |= MIXED;
  }
  return index;
}

char *ids_text(const struct ids *ids, uint32_t index) {
  ASSERT(index < ids->n);
  if (!ids->names) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, ids->id[index]);
    return mem_string(digits);
  }
  const int64_t n = ids->at[index + 1] - ids->at[index];
  char *text = NEW_ZERO(char, n + 1);
  if (n) memcpy(text, ids->text + ids->at[index], (size_t)n);
  return text;
}

int64_t ids_mixed_blanks(const struct ids *ids) {
  int64_t n = 0;
  for (int64_t i = 0; ids->names && i < ids->n; i++) n += (ids->blanks[i] & MIXED) != 0;
  return n;
}

/* ---- order ---- */

static const struct ids *compared;

static int by_name(const void *a, const void *b) {
  const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
  const int64_t *at = compared->at;
  const int64_t n = at[i + 1] - at[i], m = at[j + 1] - at[j];
  const int order = memcmp(compared->text + at[i], compared->text + at[j], (size_t)(n < m ? n : m));
  return order ? order : (n > m) - (n < m);
}

/* Least significant digit first, 11 bits a pass; passes in which all digits agree are skipped. */
static void sort_numbers(const uint64_t *id, uint32_t **list, int64_t n) {
  enum { BITS = 11, SIZE = 1 << BITS };
  uint32_t *from = *list, *to = NEW(uint32_t, n);
  for (int shift = 0; shift < 64; shift += BITS) {
    int64_t start[SIZE + 1] = {0};
    for (int64_t i = 0; i < n; i++) start[(id[from[i]] >> shift & (SIZE - 1)) + 1]++;
    if (n && start[(id[from[0]] >> shift & (SIZE - 1)) + 1] == n) continue;
    for (int d = 0; d < SIZE; d++) start[d + 1] += start[d];
    for (int64_t i = 0; i < n; i++) to[start[id[from[i]] >> shift & (SIZE - 1)]++] = from[i];
    uint32_t *swap = from;
    from = to, to = swap;
  }
  mem_free(to);
  *list = from;
}

uint32_t *ids_sorted(const struct ids *ids, const bool *keep, int64_t *n_kept) {
  uint32_t *list = NEW(uint32_t, ids->n);
  int64_t n = 0;
  for (int64_t i = 0; i < ids->n; i++)
    if (!keep || keep[i]) list[n++] = (uint32_t)i;
  *n_kept = n;
  compared = ids;
  if (!ids->names)
    sort_numbers(ids->id, &list, n);
  else if (n)
    qsort(list, (size_t)n, sizeof *list, by_name);
  return list;
}
