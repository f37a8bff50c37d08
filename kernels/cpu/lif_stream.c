/* Delivery from edges that stay in the file: as lif_deliver.c, but a row is three runs (target, weight,
 * delay) in mapped pages, holds targets of all ranks, and is not to be trusted: what a damaged file says must
 * not reach memory that is not ours. */
#include "lif_state.h"

#include <string.h>

enum { AHEAD = 3, FAR_AHEAD = 12 }; /* spikes whose edges, and whose offsets, are fetched early */
enum { FETCHED = 256 };             /* edges of a row at most: the hardware has seen the pattern by then */
enum { EDGES_AHEAD = 24 };          /* edges whose sums are fetched early */
enum { LINE = 64 };
/* Once more than one spike in RARE had to wait for the disk, edges are asked for early for so many batches:
 * that costs three system calls a spike, wasted where the page cache has them. */
enum { RARE = 16, COLD = 16 };

/* What a thread needs to add one step's spikes. */
struct target {
  const struct lif_net *net;
  const struct lif_stream *from;
  char **slot; /* slot[d]: that of the arrivals after d steps */
  size_t flags_at;
  uint32_t first_row, last_row; /* own rows of this thread */
  bool whole;                   /* these are all rows of the graph */
};

/* The arrays lie at any byte of the file. */
static inline uint32_t target_at(const struct lif_stream *f, eidx e) {
  uint32_t x;
  memcpy(&x, f->target_row.at + e * (eidx)sizeof x, sizeof x);
  return x;
}

static inline int16_t weight_at(const struct lif_stream *f, eidx e) {
  int16_t x;
  memcpy(&x, f->weight.at + e * (eidx)sizeof x, sizeof x);
  return x;
}

static inline uint16_t delay_at(const struct lif_stream *f, eidx e) {
  uint16_t x;
  memcpy(&x, f->delay.at + e * (eidx)sizeof x, sizeof x);
  return x;
}

static _Noreturn void damaged(const struct target *w, eidx e) {
  DIE(EXIT_INPUT,
      "%s: damaged: /out, edge %lld: target row %lld and delay %d do not stand where they should; make the "
      "file again",
      w->from->path, (long long)e, (long long)target_at(w->from, e), (int)delay_at(w->from, e));
}

/* The first of the edges [from, to) whose target is not below `row` of the whole graph. */
static eidx first_from(const struct lif_stream *f, eidx from, eidx to, gidx row) {
  while (from < to) {
    const eidx middle = from + (to - from) / 2;
    if (target_at(f, middle) < row)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

static inline void fetch_run(const struct pages *pages, eidx from, eidx to, size_t bytes) {
  const char *end = pages->at + (size_t)to * bytes;
  for (const char *at = pages->at + (size_t)from * bytes; at < end; at += LINE) __builtin_prefetch(at);
}

/* Edges of a row on their way into the cache, as far as their pages are mapped: all of them, or where this
 * thread's share would be if targets were spread evenly. */
static inline void fetch_row(const struct target *w, uint32_t row) {
  eidx from = w->net->out_ptr[row], to = w->net->out_ptr[row + 1];
  if (!w->whole) {
    const eidx n = to - from;
    to = from + n * (w->net->first + w->last_row) / w->net->n_global;
    from += n * (w->net->first + w->first_row) / w->net->n_global;
  }
  if (to > from + FETCHED) to = from + FETCHED;
  fetch_run(&w->from->target_row, from, to, sizeof(uint32_t));
  fetch_run(&w->from->weight, from, to, sizeof(int16_t));
  fetch_run(&w->from->delay, from, to, sizeof(uint16_t));
}

/* The next three are always inlined, with `wide` and `mark` known. */
static inline __attribute__((always_inline)) void fetch_sum(const struct target *w, eidx e, bool wide) {
  const uint32_t row = target_at(w->from, e) - (uint32_t)w->net->first;
  const uint16_t delay = delay_at(w->from, e);
  if (delay <= w->net->max_delay)
    __builtin_prefetch(w->slot[delay] + (size_t)row * (wide ? sizeof(int64_t) : sizeof(int32_t)), 1);
}

/* ring[t + delay][target] += weight */
static inline __attribute__((always_inline)) void add_edge(const struct target *w, eidx e, bool wide,
                                                           bool mark) {
  const uint32_t row = target_at(w->from, e) - (uint32_t)w->net->first;
  const unsigned delay = delay_at(w->from, e);
  if (__builtin_expect(
          row - w->first_row >= w->last_row - w->first_row || delay - 1 >= (unsigned)w->net->max_delay, 0))
    damaged(w, e);
  char *at = w->slot[delay];
  if (wide)
    ((int64_t *)(void *)at)[row] += weight_at(w->from, e);
  else
    ((int32_t *)(void *)at)[row] += weight_at(w->from, e);
  if (mark) (at + w->flags_at)[row / LIF_BLOCK] = 1;
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
      from = first_from(w->from, from, to, w->net->first + w->first_row);
      to = first_from(w->from, from, to, w->net->first + w->last_row);
    }
    add_edges(w, from, to, wide, mark);
  }
}

static uint32_t least(int64_t a, int64_t b) {
  return (uint32_t)(a < b ? a : b);
}

void lif_cpu_stream(struct lif *s, const struct lif_part *part, int n, const struct lif_spikes *all,
                    bool mark) {
  if (part->first_block == part->last_block) return;
  const struct lif_net *net = s->net;
  struct target w = {.net = net,
                     .from = net->stream,
                     .flags_at = s->flags_at,
                     .first_row = (uint32_t)part->first_block * LIF_BLOCK,
                     .last_row = least((int64_t)part->last_block * LIF_BLOCK, net->n_own)};
  w.whole = w.last_row - w.first_row == net->n_global;
  for (int k = 0; k < n; k++) {
    const uint32_t *row = all->row + all->step_ptr[k];
    const int64_t count = all->step_ptr[k + 1] - all->step_ptr[k];
    w.slot = s->slot + (s->step + k) % net->max_delay;
    if (net->wide)
      add_spikes(&w, row, count, true, true);
    else if (mark)
      add_spikes(&w, row, count, false, true);
    else
      add_spikes(&w, row, count, false, false);
  }
}

/* ---- a file that is not in memory ---- */

void lif_cpu_stream_fetch(struct lif *s, const struct lif_spikes *all) {
  const struct lif_stream *f = s->net->stream;
  if (s->ahead == 0) return;
  s->ahead--;
  for (int64_t i = 0; i < all->n; i++) {
    const eidx from = s->net->out_ptr[all->row[i]], n = s->net->out_ptr[all->row[i] + 1] - from;
    pages_fetch(&f->target_row, from * (eidx)sizeof(uint32_t), n * (eidx)sizeof(uint32_t));
    pages_fetch(&f->weight, from * (eidx)sizeof(int16_t), n * (eidx)sizeof(int16_t));
    pages_fetch(&f->delay, from * (eidx)sizeof(uint16_t), n * (eidx)sizeof(uint16_t));
  }
}

void lif_cpu_stream_look(struct lif *s, const struct lif_spikes *all) {
  const int64_t waits = pages_waits();
  if ((waits - s->waits) * RARE > all->n) s->ahead = COLD;
  s->waits = waits;
}
