/* Spikes go out along their edges. Each thread adds only what lands in its own rows: a row of edges is sorted
 * by target, so its share is found by binary search. */
#include "lif_state.h"

#include <string.h>

enum { AHEAD = 2, FAR_AHEAD = 12 }; /* spikes whose edges, and whose offsets, are fetched early */
enum { FETCHED = 32 };     /* lines of a row at most: longer rows are fetched by the hardware by then */
enum { EDGES_AHEAD = 24 }; /* edges whose sums are fetched early */
enum { EDGES_IN_LINE = 8 };

/* The first of the edges [from, to) whose target is not below `row`. */
static eidx first_from(const struct lif_edge *edge, eidx from, eidx to, uint32_t row) {
  while (from < to) {
    const eidx middle = from + (to - from) / 2;
    if (edge[middle].target < row)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

/* What a thread needs to add one step's spikes. */
struct target {
  const struct lif_net *net;
  char **slot; /* slot[d]: that of the arrivals after d steps */
  size_t flags_at;
  uint32_t first_row, last_row; /* own rows of this thread */
  bool whole;                   /* these are all rows */
};

/* Edges of a row on their way into the cache: all of them, or where this thread's share would be if targets
 * were spread evenly. */
static inline void fetch_row(const struct target *w, uint32_t row) {
  eidx from = w->net->out_ptr[row], to = w->net->out_ptr[row + 1];
  if (!w->whole) {
    const eidx n = to - from;
    to = from + n * w->last_row / w->net->n_own;
    from += n * w->first_row / w->net->n_own;
  }
  if (to > from + FETCHED * EDGES_IN_LINE) to = from + FETCHED * EDGES_IN_LINE;
  for (; from < to; from += EDGES_IN_LINE) __builtin_prefetch(&w->net->out[from]);
}

/* The next three are always inlined, with `wide` and `mark` known. */
static inline __attribute__((always_inline)) void fetch_sum(const struct target *w, eidx e, bool wide) {
  const struct lif_edge x = w->net->out[e];
  __builtin_prefetch(w->slot[x.delay] + x.target * (wide ? sizeof(int64_t) : sizeof(int32_t)), 1);
}

/* ring[t + delay][target] += weight */
static inline __attribute__((always_inline)) void add_edge(const struct target *w, eidx e, bool wide,
                                                           bool mark) {
  const struct lif_edge x = w->net->out[e];
  char *at = w->slot[x.delay];
  if (wide)
    ((int64_t *)(void *)at)[x.target] += x.weight;
  else
    ((int32_t *)(void *)at)[x.target] += x.weight;
  if (mark) (at + w->flags_at)[x.target / LIF_BLOCK] = 1;
}

static inline __attribute__((always_inline)) void add_edges(const struct target *w, eidx from, eidx to,
                                                            bool wide, bool mark) {
  eidx e = from;
  for (; e < to - EDGES_AHEAD; e++) {
    fetch_sum(w, e + EDGES_AHEAD, wide);
    add_edge(w, e, wide, mark);
  }
  for (; e < to; e++) add_edge(w, e, wide, mark);
}

static inline __attribute__((always_inline)) void add_spikes(const struct target *w, const uint32_t *row,
                                                             int64_t n, bool wide, bool mark) {
  for (int64_t i = 0; i < n; i++) {
    if (i + FAR_AHEAD < n) __builtin_prefetch(&w->net->out_ptr[row[i + FAR_AHEAD]]);
    if (i + AHEAD < n) fetch_row(w, row[i + AHEAD]);
    eidx from = w->net->out_ptr[row[i]], to = w->net->out_ptr[row[i] + 1];
    if (!w->whole) {
      from = first_from(w->net->out, from, to, w->first_row);
      to = first_from(w->net->out, from, to, w->last_row);
    }
    add_edges(w, from, to, wide, mark);
  }
}

/* One thread's share of one batch. */
static void deliver_part(struct lif *s, const struct lif_part *part, int n, const struct lif_spikes *all,
                         bool mark) {
  if (part->first_block == part->last_block) return;
  struct target w = {.net = s->net,
                     .flags_at = s->flags_at,
                     .first_row = (uint32_t)part->first_block * LIF_BLOCK,
                     .last_row = (uint32_t)part->last_block * LIF_BLOCK,
                     .whole = part->first_block == 0 && part->last_block == s->n_blocks};
  for (int k = 0; k < n; k++) {
    const uint32_t *row = all->row + all->step_ptr[k];
    const int64_t count = all->step_ptr[k + 1] - all->step_ptr[k];
    w.slot = s->slot + (s->step + k) % s->net->max_delay;
    if (s->net->wide)
      add_spikes(&w, row, count, true, true);
    else if (mark)
      add_spikes(&w, row, count, false, true);
    else
      add_spikes(&w, row, count, false, false);
  }
}

/* Many events: every block of every slot is taken to have arrivals, which costs less than a mark for each. */
static bool worth_marking(const struct lif *s, const struct lif_spikes *all) {
  const double events = (double)all->n * (double)s->net->n_edges / (double)(s->net->n_global + 1);
  return s->net->wide || events < 2.0 * s->n_blocks * s->net->max_delay;
}

void lif_cpu_deliver(struct lif *s, int n, const struct lif_spikes *all) {
  const bool mark = worth_marking(s, all);
  if (all->n > 0) {
    if (s->net->stream) lif_cpu_stream_fetch(s, all);
#pragma omp parallel for schedule(static, 1) num_threads(s->n_parts) if (s->n_parts > 1)
    for (int p = 0; p < s->n_parts; p++)
      if (s->net->stream)
        lif_cpu_stream(s, &s->part[p], n, all, mark);
      else
        deliver_part(s, &s->part[p], n, all, mark);
    if (s->net->stream) lif_cpu_stream_look(s, all);
    for (int d = 0; d < s->net->max_delay && !mark; d++)
      memset(lif_flags(s, s->slot[d]), 1, (size_t)s->n_blocks);
  }
  s->step += n;
}
