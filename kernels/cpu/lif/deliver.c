/* Spikes go out along their edges. Each thread adds only what lands in its own rows: a row of edges
 * is sorted by target, so its share is found by binary search. */
#include "state.h"

#include <string.h>

enum { AHEAD = 2, FAR_AHEAD = 12 }; /* spikes whose edges, and whose offsets, are fetched early */
enum { FETCHED = 32 }; /* lines of a row at most: longer rows are fetched by the hardware by then */
enum { EDGES_AHEAD = 24 }; /* edges whose sums are fetched early */
enum { EDGES_IN_LINE = 8 };

/* Where arrivals leave a mark. */
enum mark { NOWHERE, BLOCKS, LINES };

/* What a thread needs to add one step's spikes. */
struct target {
  const struct lif_net *net;
  const struct lif_row *held; /* of this step's spikes, where edges are streamed; NULL: resident */
  char **slot;                /* slot[d]: that of the arrivals after d steps */
  size_t flags_at;
  uint32_t negatives;           /* sums before the ring of negative weights; 0: one ring */
  uint32_t first_row, last_row; /* own rows of this thread */
  bool whole;                   /* these are all rows */
};

/* The edges of spike i. */
static inline struct lif_row row_at(const struct target *w, const uint32_t *row, int64_t i) {
  if (w->held) return w->held[i];
  const eidx from = w->net->out_ptr[row[i]];
  return (struct lif_row){w->net->out + from, w->net->out_ptr[row[i] + 1] - from};
}

/* Edges of a row on their way into the cache: all of them, or where this thread's share would be if
 * targets were spread evenly. */
static inline void fetch_row(const struct target *w, struct lif_row r) {
  eidx from = 0, to = r.n;
  if (!w->whole) to = r.n * w->last_row / w->net->n_own, from = r.n * w->first_row / w->net->n_own;
  if (to > from + FETCHED * EDGES_IN_LINE) to = from + FETCHED * EDGES_IN_LINE;
  for (; from < to; from += EDGES_IN_LINE) __builtin_prefetch(&r.at[from]);
}

/* The next are always inlined, with `wide` and `mark` known. */
static inline __attribute__((always_inline)) size_t sum_of(const struct target *w,
                                                           struct lif_edge x) {
  return x.target + (size_t)(x.weight < 0 ? w->negatives : 0);
}

static inline __attribute__((always_inline)) void fetch_sum(const struct target *w,
                                                            struct lif_edge x, bool wide) {
  __builtin_prefetch(w->slot[x.delay] + sum_of(w, x) * (wide ? sizeof(int64_t) : sizeof(int32_t)),
                     1);
}

/* ring[t + delay][target] += weight */
static inline __attribute__((always_inline)) void
add_edge(const struct target *w, struct lif_edge x, bool wide, enum mark mark) {
  char *at = w->slot[x.delay];
  if (wide)
    ((int64_t *)(void *)at)[sum_of(w, x)] += x.weight;
  else
    ((int32_t *)(void *)at)[sum_of(w, x)] += x.weight;
  if (mark == BLOCKS) (at + w->flags_at)[x.target / LIF_BLOCK] = 1;
  if (mark == LINES)
    ((uint64_t *)(void *)(at + w->flags_at))[x.target / LIF_BLOCK] |=
        1ull << (x.target % LIF_BLOCK / LIF_LINE);
}

static inline __attribute__((always_inline)) void
add_edges(const struct target *w, const struct lif_edge *edge, eidx n, bool wide, enum mark mark) {
  eidx e = 0;
  for (; e < n - EDGES_AHEAD; e++) {
    fetch_sum(w, edge[e + EDGES_AHEAD], wide);
    add_edge(w, edge[e], wide, mark);
  }
  for (; e < n; e++) add_edge(w, edge[e], wide, mark);
}

static inline __attribute__((always_inline)) void
add_spikes(const struct target *w, const uint32_t *row, int64_t n, bool wide, enum mark mark) {
  for (int64_t i = 0; i < n; i++) {
    if (i + FAR_AHEAD < n && !w->held) __builtin_prefetch(&w->net->out_ptr[row[i + FAR_AHEAD]]);
    if (i + AHEAD < n) fetch_row(w, row_at(w, row, i + AHEAD));
    struct lif_row r = row_at(w, row, i);
    if (!w->whole) {
      const eidx from = lif_first_from(r.at, r.n, w->first_row);
      r = (struct lif_row){r.at + from, lif_first_from(r.at + from, r.n - from, w->last_row)};
    }
    add_edges(w, r.at, r.n, wide, mark);
  }
}

#define ADD_SPIKES(name, wide, mark)                                                               \
  static void name(const struct target *w, const uint32_t *row, int64_t n) {                       \
    add_spikes(w, row, n, wide, mark);                                                             \
  }
ADD_SPIKES(add_narrow, false, NOWHERE)
ADD_SPIKES(add_narrow_by_block, false, BLOCKS)
ADD_SPIKES(add_narrow_by_line, false, LINES)
ADD_SPIKES(add_wide, true, NOWHERE)
ADD_SPIKES(add_wide_by_block, true, BLOCKS)
ADD_SPIKES(add_wide_by_line, true, LINES)

/* [wide][mark] */
static void (*const add_spikes_by[2][3])(const struct target *, const uint32_t *, int64_t) = {
    {add_narrow, add_narrow_by_block, add_narrow_by_line},
    {add_wide, add_wide_by_block, add_wide_by_line}};

static int64_t within(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

/* One thread's share of the spikes [from, to) of a batch of n steps. held [to - from], or NULL. */
static void deliver_part(struct lif_engine *s, const struct lif_part *part, int n,
                         const struct lif_spikes *all, int64_t from, int64_t to,
                         const struct lif_row *held, enum mark mark) {
  if (part->first_block == part->last_block) return;
  struct target w = {.net = s->net,
                     .flags_at = s->flags_at,
                     .negatives = s->n_rings == 2 ? (uint32_t)(s->n_blocks * LIF_BLOCK) : 0,
                     .first_row = (uint32_t)part->first_block * LIF_BLOCK,
                     .last_row = (uint32_t)part->last_block * LIF_BLOCK,
                     .whole = part->first_block == 0 && part->last_block == s->n_blocks};
  for (int k = 0; k < n; k++) {
    const int64_t first = within(all->step_ptr[k], from, to);
    const int64_t count = within(all->step_ptr[k + 1], from, to) - first;
    w.slot = s->slot + (s->step + k) % s->net->max_delay;
    w.held = held ? held + (first - from) : NULL;
    add_spikes_by[s->net->wide][mark](&w, all->row + first, count);
  }
}

/* Many events: every block, or line, of every slot is taken to have arrivals, which costs less than
 * a mark for each. */
static enum mark worth_marking(const struct lif_engine *s, const struct lif_spikes *all) {
  const double events = (double)all->n * (double)s->net->n_edges / (double)(s->net->n_global + 1);
  const double slots = (double)s->n_blocks * s->net->max_delay;
  if (s->params.model) return s->net->wide || events < LIF_LINE * slots ? LINES : NOWHERE;
  return s->net->wide || events < 2 * slots ? BLOCKS : NOWHERE;
}

/* Rows that stay in the file are added as they come. */
static void deliver_streamed(struct lif_engine *s, const struct lif_part *part, int n,
                             const struct lif_spikes *all, enum mark mark) {
  struct lif_held held = {0};
  while (lif_rows_next(s->rows, &held))
    deliver_part(s, part, n, all, held.from, held.to, held.row, mark);
}

void lif_cpu_deliver(struct lif_engine *s, int n, const struct lif_spikes *all) {
  const enum mark mark = worth_marking(s, all);
  for (int64_t from = 0, to; from < all->n; from = to) {
    to = s->rows ? lif_rows_begin(s->rows, all, from) : all->n;
#pragma omp parallel for schedule(static, 1) num_threads(s->n_parts) if (s->n_parts > 1)
    for (int p = 0; p < s->n_parts; p++)
      if (s->rows)
        deliver_streamed(s, &s->part[p], n, all, mark);
      else
        deliver_part(s, &s->part[p], n, all, from, to, NULL, mark);
  }
  const int all_set = s->params.model ? 0xff : 1;
  for (int d = 0; d < s->net->max_delay && mark == NOWHERE && all->n; d++)
    memset(lif_flags(s, s->slot[d]), all_set, lif_flag_bytes(s));
  s->step += n;
}
