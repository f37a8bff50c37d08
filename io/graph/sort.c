/* Edges into file order: one scatter by row of target (counting sort), then each row by source
 * in cache (radix sort on the bytes that differ), by all threads. Room on top of the graph: 16
 * bytes an edge, 8 a node. */
#include "connectome.h"
#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_ROW = 24, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

struct record {
  uint32_t source, count; /* count: or, in a graph from .scx, the edge's place there */
  int16_t impulse;
  uint16_t delay;
};

/* Order of edges within a row. */
static int compare(const void *left, const void *right) {
  const struct record *a = left, *b = right;
  if (a->source != b->source) return a->source < b->source ? -1 : 1;
  if (a->delay != b->delay) return a->delay < b->delay ? -1 : 1;
  if (a->impulse != b->impulse) return a->impulse < b->impulse ? -1 : 1;
  return (a->count > b->count) - (a->count < b->count);
}

static void sort_small(struct record *r, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const struct record x = r[i];
    int64_t j = i;
    for (; j > 0 && compare(&r[j - 1], &x) > 0; j--) r[j] = r[j - 1];
    r[j] = x;
  }
}

/* Least significant digit first; digits in which all sources agree are skipped. */
static void sort_by_source(struct record *r, int64_t n, struct record *room) {
  uint32_t differ = 0;
  for (int64_t i = 1; i < n; i++) differ |= r[i].source ^ r[0].source;
  struct record *from = r, *to = room;
  for (int shift = 0; shift < 32; shift += DIGIT_BITS) {
    if (!(differ >> shift & (DIGITS - 1))) continue;
    int64_t at[DIGITS] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++) at[from[i].source >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
      const int64_t here = at[d];
      at[d] = sum, sum += here;
    }
    for (int64_t i = 0; i < n; i++) to[at[from[i].source >> shift & (DIGITS - 1)]++] = from[i];
    struct record *swap = from;
    from = to, to = swap;
  }
  if (from != r) memcpy(r, from, (size_t)n * sizeof *r);
}

/* Edges of the same pair stand together by now; there are few such runs. */
static void sort_ties(struct record *r, int64_t n) {
  for (int64_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && r[end].source == r[i].source;) end++;
    if (end - i > 1) qsort(r + i, (size_t)(end - i), sizeof *r, compare);
  }
}

static void sort_row(struct record *r, int64_t n, struct record *room) {
  if (n <= SMALL_ROW) {
    sort_small(r, n);
    return;
  }
  sort_by_source(r, n, room);
  sort_ties(r, n);
}

static uint32_t row_of(const struct connectome *g, uint32_t node) {
  return g->row_of_node ? g->row_of_node[node] : node;
}

static uint32_t *carried(const struct connectome *g) {
  return g->scx ? g->scx->place : g->count;
}

static struct record record_of(const struct connectome *g, eidx e) {
  const uint32_t *count = carried(g);
  return (struct record){.source = g->source[e],
                         .count = count ? count[e] : 0,
                         .impulse = g->impulse[e],
                         .delay = g->delay ? g->delay[e] : 0};
}

static bool is_sorted(const struct connectome *g) {
  for (eidx e = 1; e < g->n_edges; e++) {
    const uint32_t before = row_of(g, g->target[e - 1]), row = row_of(g, g->target[e]);
    if (before > row) return false;
    if (before < row || g->source[e - 1] < g->source[e]) continue;
    const struct record a = record_of(g, e - 1), b = record_of(g, e);
    if (compare(&a, &b) > 0) return false;
  }
  return true;
}

/* first[row] = where the row begins; [n_nodes + 1]. */
static eidx *row_starts(const struct connectome *g) {
  eidx *first = NEW_ZERO(eidx, g->n_nodes + 1);
  for (eidx e = 0; e < g->n_edges; e++) first[row_of(g, g->target[e]) + 1]++;
  for (int64_t i = 0; i < g->n_nodes; i++) first[i + 1] += first[i];
  return first;
}

static struct record *scatter(const struct connectome *g, const eidx *first) {
  struct record *r = NEW(struct record, g->n_edges);
  eidx *at = NEW(eidx, g->n_nodes);
  memcpy(at, first, (size_t)g->n_nodes * sizeof *at);
  for (eidx e = 0; e < g->n_edges; e++) r[at[row_of(g, g->target[e])]++] = record_of(g, e);
  mem_free(at);
  return r;
}

static void put_row(struct connectome *g, const struct record *r, eidx first, eidx end,
                    uint32_t target) {
  uint32_t *count = carried(g);
  for (eidx e = first; e < end; e++) {
    g->source[e] = r[e].source, g->target[e] = target, g->impulse[e] = r[e].impulse;
    if (count) count[e] = r[e].count;
    if (g->delay) g->delay[e] = r[e].delay;
  }
}

void connectome_sort(struct connectome *g) {
  if (g->n_edges < 2 || is_sorted(g)) return;
  eidx *first = row_starts(g), longest = 0;
  for (int64_t i = 0; i < g->n_nodes; i++)
    if (first[i + 1] - first[i] > longest) longest = first[i + 1] - first[i];
  struct record *r = scatter(g, first);
#pragma omp parallel
  {
    struct record *room = NEW(struct record, longest);
#pragma omp for schedule(dynamic, 256)
    for (int64_t i = 0; i < g->n_nodes; i++) {
      sort_row(r + first[i], first[i + 1] - first[i], room);
      put_row(g, r, first[i], first[i + 1], g->node_of_row ? g->node_of_row[i] : (uint32_t)i);
    }
    mem_free(room);
  }
  mem_free(r), mem_free(first);
}
