/* The fast LIF path of the cpu backend: its memory, and state in and out. */
#include "lif.h"
#include "state.h"
#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

static size_t in_lines(size_t bytes) {
  return (bytes + LINE - 1) / LINE * LINE;
}

static void take_ring(struct lif_engine *s) {
  const int d = s->net->max_delay;
  const size_t width = s->net->wide ? sizeof(int64_t) : sizeof(int32_t);
  s->flags_at = (size_t)s->n_rings * (size_t)s->n_blocks * LIF_BLOCK * width;
  s->slot_bytes =
      in_lines(s->flags_at + lif_flag_bytes(s) + 1); /* never empty, even without rows */
  s->ring = mem_zero(d, s->slot_bytes);
  s->slot = NEW(char *, 2 * (int64_t)d);
  for (int64_t i = 0; i < 2 * (int64_t)d; i++)
    s->slot[i] = s->ring + (size_t)(i % d) * s->slot_bytes;
}

/* ---- stimuli by block ---- */

static lidx touched_until(const struct lif_stimulus *stimulus, lidx from) {
  const lidx block = stimulus->neuron[from] / LIF_BLOCK;
  lidx to = from;
  while (to < stimulus->n && stimulus->neuron[to] / LIF_BLOCK == block) to++;
  return to;
}

struct start {
  int64_t first_step;
  int stimulus;
};

static int by_start(const void *a, const void *b) {
  const struct start *x = a, *y = b;
  if (x->first_step != y->first_step) return x->first_step < y->first_step ? -1 : 1;
  return x->stimulus - y->stimulus;
}

static struct start *stimuli_by_start(const struct lif_engine *s, int n_stimuli) {
  struct start *start = NEW(struct start, n_stimuli);
  for (int k = 0; k < n_stimuli; k++) start[k] = (struct start){s->stimulus[k].first_step, k};
  if (n_stimuli) qsort(start, (size_t)n_stimuli, sizeof *start, by_start);
  return start;
}

static void take_touches(struct lif_engine *s, int n_stimuli) {
  int64_t *ptr = s->touch_ptr = NEW_ZERO(int64_t, s->n_blocks + 2);
  for (int k = 0; k < n_stimuli; k++)
    for (lidx at = 0; at < s->stimulus[k].n; at = touched_until(&s->stimulus[k], at))
      ptr[s->stimulus[k].neuron[at] / LIF_BLOCK + 2]++;
  for (lidx b = 1; b <= s->n_blocks; b++) ptr[b + 1] += ptr[b];
  s->touch = NEW(struct lif_touch, ptr[s->n_blocks + 1]);
  s->touch_now = NEW(int64_t, s->n_blocks);
  struct start *start = stimuli_by_start(s, n_stimuli);
  for (int i = 0; i < n_stimuli; i++) {
    const struct lif_stimulus *stimulus = &s->stimulus[start[i].stimulus];
    for (lidx at = 0, to; at < stimulus->n; at = to) {
      to = touched_until(stimulus, at);
      s->touch[ptr[stimulus->neuron[at] / LIF_BLOCK + 1]++] =
          (struct lif_touch){start[i].stimulus, at, to};
    }
  }
  mem_free(start);
  for (lidx b = 0; b < s->n_blocks; b++) s->touch_now[b] = ptr[b];
}

/* ---- threads ---- */

/* Work of a block: its in-edges, and its neurons at about the cost of 8 edges each. */
static int64_t *block_work(const struct lif_engine *s) {
  int64_t *work = NEW_ZERO(int64_t, s->n_blocks + 1);
  const struct lif_stream *stream = s->net->stream;
  for (eidx e = 0; e < s->net->n_edges && !stream; e++) work[s->net->out[e].target / LIF_BLOCK]++;
  for (lidx i = 0; i < s->net->n_own && stream; i++)
    work[i / LIF_BLOCK] += stream->in_ptr[i + 1] - stream->in_ptr[i];
  for (lidx b = 0; b < s->n_blocks; b++) work[b] += 8 * LIF_BLOCK;
  return work;
}

/* Runs of blocks of about equal work. */
static void cut_parts(struct lif_engine *s) {
  if (s->n_parts == 1) {
    s->part[0].last_block = s->n_blocks;
    return;
  }
  int64_t *work = block_work(s), total = 0, done = 0;
  for (lidx b = 0; b < s->n_blocks; b++) total += work[b];
  lidx block = 0;
  for (int p = 0; p < s->n_parts; p++) {
    s->part[p].first_block = block;
    while (block < s->n_blocks &&
           (p == s->n_parts - 1 || (done + work[block] / 2) * s->n_parts < total * (p + 1)))
      done += work[block++];
    s->part[p].last_block = block;
  }
  mem_free(work);
}

/* ---- models ---- */

/* Whether an update by one class is that of the other: what a spike does may differ. */
static bool moves_alike(const struct lif_class *a, const struct lif_class *b) {
  for (int e = 0; e < LIF_MOST_ENTRIES; e++)
    if (a->factor[e].f != b->factor[e].f || a->factor[e].s != b->factor[e].s ||
        a->factor[e].sign != b->factor[e].sign)
      return false;
  return a->threshold == b->threshold && a->drive == b->drive && a->raises == b->raises;
}

/* A class by which all neurons of a block move, or -1. */
static int32_t class_of_block(const struct lif_engine *s, lidx block) {
  const struct lif_model *model = s->params.model;
  const uint16_t *class_of = model->class_of + block * LIF_BLOCK;
  for (lidx i = 1; i < lif_block_size(s, block); i++)
    if (class_of[i] != class_of[i - 1] &&
        !moves_alike(&model->classes[class_of[i]], &model->classes[class_of[0]]))
      return -1;
  return class_of[0];
}

static void take_values(struct lif_engine *s) {
  const struct lif_model *model = s->params.model;
  s->n_rings = lif_model_rings(model);
  if (!model) {
    s->potential = NEW_ZERO(int32_t, s->net->n_own);
    return;
  }
  s->component = NEW_ZERO(int64_t, (int64_t)model->shape.n_components * s->n_blocks * LIF_BLOCK);
  s->settled = NEW_ZERO(uint64_t, s->n_blocks * (LIF_BLOCK / 64));
  s->alone = NEW_ZERO(uint64_t, s->n_blocks * (LIF_BLOCK / 64));
  s->large = NEW_ZERO(uint8_t, s->n_blocks);
  s->block_class = NEW(int32_t, s->n_blocks);
  for (lidx b = 0; b < s->n_blocks; b++) s->block_class[b] = class_of_block(s, b);
}

static struct status open_lif(const struct lif_net *net, const struct lif_params *params,
                              const struct lif_stimulus *stimulus, int n_stimuli, uint64_t seed,
                              int n_threads, struct lif_engine **state) {
  struct lif_engine *s = NEW_ZERO(struct lif_engine, 1);
  s->net = net, s->params = *params, s->stimulus = stimulus, s->seed = seed;
  s->n_blocks = (net->n_own + LIF_BLOCK - 1) / LIF_BLOCK;
  take_values(s);
  s->counter = NEW_ZERO(uint16_t, s->n_blocks * LIF_BLOCK);
  s->muted = net->mute != NULL;
  s->mute = s->muted ? net->mute : NEW_ZERO(uint8_t, LIF_BLOCK);
  s->resting = NEW_ZERO(uint8_t, s->n_blocks);
  s->still = NEW_ZERO(uint8_t, s->n_blocks);
  s->barred = NEW_ZERO(uint8_t, s->n_blocks);
  for (lidx i = 0; i < net->n_own && s->muted; i++)
    s->barred[i / LIF_BLOCK] |= s->mute[i] & LIF_REMOVED;
  if (net->stream) s->rows = lif_rows_open(net);
  take_ring(s);
  take_touches(s, n_stimuli);
  s->n_parts = n_threads;
  s->part = NEW_ZERO(struct lif_part, n_threads);
  cut_parts(s);
  for (int p = 0; p < n_threads; p++) {
    s->part[p].found = NEW_ZERO(struct lif_found, net->min_delay);
    if (params->model) s->part[p].work = lif_model_work_open(params->model);
  }
  s->mine.step_ptr = NEW_ZERO(int64_t, net->min_delay + 1);
  *state = s;
  return fine();
}

static void close_lif(struct lif_engine *s) {
  for (int p = 0; p < s->n_parts; p++) {
    for (int k = 0; k < s->net->min_delay; k++) mem_free(s->part[p].found[k].row);
    mem_free(s->part[p].found), mem_free(s->part[p].work);
  }
  if (!s->muted) mem_free((void *)s->mute);
  mem_free(s->component), mem_free(s->block_class), mem_free(s->settled), mem_free(s->alone),
      mem_free(s->large);
  mem_free(s->potential), mem_free(s->counter), mem_free(s->ring), mem_free(s->slot);
  mem_free(s->resting), mem_free(s->still), mem_free(s->barred);
  mem_free(s->touch_ptr), mem_free(s->touch_now), mem_free(s->touch), mem_free(s->part);
  lif_rows_close(s->rows);
  mem_free(s->mine.row), mem_free(s->mine.step_ptr);
  mem_free(s);
}

/* ---- state in and out ---- */

/* Sum i of ring r in a slot. */
static int64_t sum_in(const struct lif_engine *s, const char *slot, int r, lidx i) {
  const int64_t at = (int64_t)r * s->n_blocks * LIF_BLOCK + i;
  return s->net->wide ? ((const int64_t *)(const void *)slot)[at]
                      : ((const int32_t *)(const void *)slot)[at];
}

static void set_sum(struct lif_engine *s, char *slot, int r, lidx i, int64_t sum) {
  const int64_t at = (int64_t)r * s->n_blocks * LIF_BLOCK + i;
  if (s->net->wide)
    ((int64_t *)(void *)slot)[at] = sum;
  else
    ((int32_t *)(void *)slot)[at] = (int32_t)sum;
  if (sum && s->params.model)
    lif_lines(s, slot)[i / LIF_BLOCK] |= 1ull << (i % LIF_BLOCK / LIF_LINE);
  else if (sum)
    lif_flags(s, slot)[i / LIF_BLOCK] = 1;
}

/* Where component c of neuron i is here. */
static int64_t *component_of(const struct lif_engine *s, int c, lidx i) {
  return &s->component[(int64_t)c * s->n_blocks * LIF_BLOCK + i];
}

static void write_lif(struct lif_engine *s, uint32_t trial, const struct lif_state *values) {
  const int64_t n = s->net->n_own, d = s->net->max_delay;
  const int n_components = s->params.model ? s->params.model->shape.n_components : 0;
  s->step = values->step, s->trial = trial;
  for (lidx b = 0; b < s->n_blocks; b++) s->resting[b] = s->still[b] = 0;
  if (s->large) memset(s->large, 1, (size_t)s->n_blocks);
  const size_t words = (size_t)s->n_blocks * (LIF_BLOCK / 64);
  if (s->settled) memset(s->settled, 0, words * sizeof *s->settled);
  if (s->alone) memset(s->alone, 0, words * sizeof *s->alone);
  for (lidx b = 0; b < s->n_blocks; b++) s->touch_now[b] = s->touch_ptr[b];
  for (int k = 0; k < d; k++) memset(lif_flags(s, s->slot[k]), 0, lif_flag_bytes(s));
  for (lidx i = 0; i < n; i++) {
    if (s->potential) s->potential[i] = values->potential[i];
    for (int c = 0; c < n_components; c++) *component_of(s, c, i) = values->component[c * n + i];
    s->counter[i] = values->counter[i];
    s->resting[i / LIF_BLOCK] |= values->counter[i] != 0;
    for (int r = 0; r < s->n_rings; r++)
      for (int k = 0; k < d; k++)
        set_sum(s, lif_slot_at(s, s->step + k), r, i, values->ring[(r * n + i) * d + k]);
  }
}

static void read_lif(struct lif_engine *s, struct lif_state *values) {
  const int64_t n = s->net->n_own, d = s->net->max_delay;
  const int n_components = s->params.model ? s->params.model->shape.n_components : 0;
  for (lidx i = 0; i < n; i++) {
    if (s->potential) values->potential[i] = s->potential[i];
    for (int c = 0; c < n_components; c++) values->component[c * n + i] = *component_of(s, c, i);
    values->counter[i] = s->counter[i];
    for (int r = 0; r < s->n_rings; r++)
      for (int k = 0; k < d; k++)
        values->ring[(r * n + i) * d + k] = sum_in(s, lif_slot_at(s, s->step + k), r, i);
  }
}

static void values_of(struct lif_engine *s, int component, lidx n, const lidx *neuron,
                      int64_t *value) {
  for (lidx i = 0; i < n; i++)
    value[i] = s->potential ? s->potential[neuron[i]] : *component_of(s, component, neuron[i]);
}

const struct lif_backend lif_cpu = {.open = open_lif,
                                    .close = close_lif,
                                    .write = write_lif,
                                    .read = read_lif,
                                    .integrate = lif_cpu_integrate,
                                    .deliver = lif_cpu_deliver,
                                    .values = values_of};
