/* What comes in at a step of a block of a model: arrivals, currents, events. */
#include "draw.h"
#include "model_work.h"
#include "model_block.h"
#include "core/rng.h"

#include <stdlib.h>
#include <string.h>

enum { MANY_LINES = 24 }; /* of 64: then all sums of a block are added as they stand */

static int64_t *zeroed(const struct lif_model_work *w, int64_t *sums, const int64_t **in) {
  if (!*in) memset(sums, 0, (size_t)(w->d.n + 7) / 8 * 8 * sizeof *sums);
  *in = sums;
  return sums;
}

/* ---- arrivals ---- */

static bool is_removed(const struct lif_engine *s, lidx block, lidx i) {
  return s->barred[block] && s->mute[block * LIF_BLOCK + i] & LIF_REMOVED;
}

/* Where the block's sums of a ring stand in a slot. */
static char *sums_at(const struct lif_engine *s, char *slot, lidx block, int ring) {
  const size_t width = s->net->wide ? sizeof(int64_t) : sizeof(int32_t);
  return slot + ((size_t)ring * (size_t)s->n_blocks + (size_t)block) * LIF_BLOCK * width;
}

static int64_t sum_of(const struct lif_engine *s, const char *sums, lidx i) {
  return s->net->wide ? ((const int64_t *)(const void *)sums)[i]
                      : ((const int32_t *)(const void *)sums)[i];
}

static void clear_sum(const struct lif_engine *s, char *sums, lidx i) {
  if (s->net->wide)
    ((int64_t *)(void *)sums)[i] = 0;
  else
    ((int32_t *)(void *)sums)[i] = 0;
}

/* Neurons of a line whose sum differs from 0. */
static unsigned in_line(const struct lif_engine *s, const char *sums, int line) {
  if (!s->net->wide) return model_line((const int32_t *)(const void *)sums + line * LIF_LINE);
  unsigned bits = 0;
  for (int i = 0; i < LIF_LINE; i++)
    bits |= (unsigned)(sum_of(s, sums, line * LIF_LINE + i) != 0) << i;
  return bits;
}

static void bar_removed(struct lif_engine *s, lidx block, char *slot) {
  for (lidx i = 0; i < lif_block_size(s, block); i++)
    for (int r = 0; r < s->n_rings && is_removed(s, block, i); r++)
      clear_sum(s, sums_at(s, slot, block, r), i);
}

bool lif_model_reached(struct lif_engine *s, lidx block, char *slot, uint64_t *bits) {
  const uint64_t lines = lif_lines(s, slot)[block];
  if (!lines) return false;
  if (s->barred[block]) bar_removed(s, block, slot);
  for (int r = 0; r < s->n_rings && ~lines; r++)
    for (uint64_t left = lines; left; left &= left - 1) {
      const int line = __builtin_ctzll(left);
      bits[line / 4] |= (uint64_t)in_line(s, sums_at(s, slot, block, r), line) << line % 4 * 16;
    }
  if (!~lines) memset(bits, 0xff, LIF_WORDS * sizeof *bits);
  return true;
}

static bool sums_fit(const struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a,
                     const char *sums) {
  bool fit = true;
  if (!s->net->wide &&
      !model_exceeds32((const int32_t *)(const void *)sums, (int32_t)LIF_MOST_ARRIVALS, LIF_BLOCK))
    return true;
  for (lidx i = 0; i < a->n; i++) {
    const int64_t sum = sum_of(s, sums, i);
    if (sum > -LIF_MOST_ARRIVALS && sum < LIF_MOST_ARRIVALS) continue;
    lif_cpu_report(s, &part->fault, a, LIF_INPUT, i, sum);
    fit = false;
  }
  return fit;
}

static void add_late(struct lif_model_work *w, int ring, lidx place, int64_t sum) {
  const lidx at = w->n_late[ring]++;
  w->late_place[ring][at] = (uint16_t)place, w->late_count[ring][at] = (int32_t)sum;
}

/* The sums of a ring that differ from 0, one by one: for the update, or for after it. */
static bool add_sums(const struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a,
                     const char *sums, int ring) {
  struct lif_model_work *w = part->work;
  int64_t *early =
      w->d.shape->arrivals_early ? zeroed(w, w->synapse[ring], &w->in.synapse[ring]) : NULL;
  bool fit = true;
  for (uint64_t left = lif_lines(s, a->slot)[a->block]; left; left &= left - 1) {
    const int line = __builtin_ctzll(left);
    unsigned bits = in_line(s, sums, line);
    w->arrived[line / 4] |= (uint64_t)bits << line % 4 * 16;
    for (; bits; bits &= bits - 1) {
      const lidx i = line * LIF_LINE + __builtin_ctz(bits), place = lif_place(w, i);
      const int64_t sum = sum_of(s, sums, i);
      fit &= sum > -LIF_MOST_ARRIVALS && sum < LIF_MOST_ARRIVALS;
      if (early)
        early[place] += (int64_t)((uint64_t)sum << 32);
      else
        add_late(w, ring, place, sum);
    }
  }
  return fit || sums_fit(s, part, a, sums);
}

void lif_model_add_late(struct lif_model_work *w) {
  const struct lif_shape *shape = w->d.shape;
  const int into[2] = {shape->plus, shape->minus};
  for (int sign = 0; sign < 2; sign++) {
    const bool loses = shape->frozen >> into[sign] & 1;
    int64_t *x = w->d.x[into[sign]];
    for (lidx k = 0; k < w->n_late[sign]; k++) {
      const lidx i = w->late_place[sign][k];
      if (loses && w->found.lost[i / 8] >> i % 8 & 1) continue;
      x[i] += w->late_count[sign][k] * ((int64_t)1 << 32);
      w->found.large |= llabs(x[i]) >= LIF_LARGE;
      w->found.exceeds |= llabs(x[i]) >= LIF_MOST_VALUE;
    }
  }
}

static bool take_arrivals(struct lif_engine *s, struct lif_part *part,
                          const struct lif_arrival *a) {
  struct lif_model_work *w = part->work;
  const int lines = __builtin_popcountll(lif_lines(s, a->slot)[a->block]);
  bool fit = true;
  for (int r = 0; r < s->n_rings; r++) {
    char *sums = sums_at(s, a->slot, a->block, r);
    if (w->gathered || s->net->wide || lines < MANY_LINES) {
      fit &= add_sums(s, part, a, sums, r);
      continue;
    }
    w->in.arrived[r] = (const int32_t *)(const void *)sums;
    memset(w->arrived, 0xff, sizeof w->arrived);
    fit &= sums_fit(s, part, a, sums);
  }
  return fit;
}

void lif_model_clear(struct lif_engine *s, const struct lif_arrival *a) {
  const size_t width = s->net->wide ? sizeof(int64_t) : sizeof(int32_t);
  uint64_t *lines = &lif_lines(s, a->slot)[a->block];
  for (int r = 0; r < s->n_rings; r++) {
    char *sums = sums_at(s, a->slot, a->block, r);
    for (uint64_t left = ~*lines ? *lines : 0; left; left &= left - 1)
      memset(sums + (size_t)__builtin_ctzll(left) * LIF_LINE * width, 0, LIF_LINE * width);
    if (!~*lines) memset(sums, 0, LIF_BLOCK * width);
  }
  *lines = 0;
}

/* ---- stimuli ---- */

bool lif_model_touched(struct lif_engine *s, struct lif_model_work *w, int64_t step, int n) {
  bool some = false;
  memset(w->touched, 0, sizeof w->touched);
  for (int64_t k = s->touch_now[w->block]; k < s->touch_ptr[w->block + 1]; k++) {
    const struct lif_touch *touch = &s->touch[k];
    const struct lif_stimulus *stimulus = &s->stimulus[touch->stimulus];
    if (stimulus->first_step >= step + n) break;
    if (stimulus->last_step < step) continue;
    some = true;
    for (lidx i = touch->from; i < touch->to; i++) {
      const lidx at = stimulus->neuron[i] - w->base;
      w->touched[at / 64] |= 1ull << at % 64;
    }
  }
  return some;
}

static struct rng_block draw(const struct lif_engine *s, const struct lif_stimulus *stimulus,
                             lidx row, int64_t step) {
  const uint64_t id = (uint64_t)s->net->id[row];
  return rng_draw(s->seed, (uint32_t)id, (uint32_t)step,
                  (uint32_t)stimulus->index | (uint32_t)(id >> 32) << 16, s->trial);
}

static void add_current(const struct lif_engine *s, const struct lif_model_work *w,
                        const struct lif_stimulus *stimulus, const struct lif_touch *touch,
                        int64_t *sums) {
  for (lidx i = touch->from; i < touch->to; i++) {
    const lidx row = stimulus->neuron[i];
    sums[lif_place(w, row - w->base)] += stimulus->amount_of[s->params.model->class_of[row]];
  }
}

static void add_noise(const struct lif_engine *s, const struct lif_model_work *w,
                      const struct lif_stimulus *stimulus, const struct lif_touch *touch,
                      int64_t step, int64_t *sums) {
  for (lidx i = touch->from; i < touch->to; i++) {
    const lidx row = stimulus->neuron[i];
    const int64_t amount = stimulus->amount_of[s->params.model->class_of[row]];
    const int64_t quantile = stimulus->quantile[draw(s, stimulus, row, step).v[0] >> 20];
    sums[lif_place(w, row - w->base)] += (int64_t)((__int128)quantile * amount >> 32);
  }
}

/* Events onto `array`, which is zeroed by the first. */
static void add_events(const struct lif_engine *s, struct lif_model_work *w,
                       const struct lif_stimulus *stimulus, const struct lif_touch *touch,
                       int64_t step, int64_t *array, const int64_t **in) {
  const struct lif_draw events = lif_draw_of(stimulus, s->seed, step, s->trial, stimulus->tail[0]);
  struct lif_hits hits;
  lif_draw(&events, touch->to - touch->from, stimulus->neuron + touch->from, s->net->id, &hits);
  if (hits.n == 0) return;
  int64_t *sums = zeroed(w, array, in);
  for (lidx i = 0; i < hits.n; i++) {
    int n = 1;
    while (n < stimulus->n_tails && hits.u[i] < stimulus->tail[n]) n++;
    sums[lif_place(w, hits.row[i] - w->base)] += n * stimulus->amount;
  }
}

static void add_stimulus(const struct lif_engine *s, struct lif_model_work *w,
                         const struct lif_stimulus *stimulus, const struct lif_touch *touch,
                         int64_t step) {
  const int sign = stimulus->amount < 0;
  if (stimulus->kind == LIF_CURRENT)
    add_current(s, w, stimulus, touch, zeroed(w, w->current, &w->in.current));
  if (stimulus->kind == LIF_NOISE)
    add_noise(s, w, stimulus, touch, step, zeroed(w, w->current, &w->in.current));
  if (stimulus->kind == LIF_POISSON && stimulus->into == LIF_INTO_V)
    add_events(s, w, stimulus, touch, step, w->direct, &w->in.direct);
  if (stimulus->kind == LIF_POISSON && stimulus->into != LIF_INTO_V)
    add_events(s, w, stimulus, touch, step, w->synapse[sign], &w->in.synapse[sign]);
}

static void add_stimuli(const struct lif_engine *s, struct lif_model_work *w,
                        const struct lif_arrival *a) {
  for (int64_t k = s->touch_now[a->block]; k < s->touch_ptr[a->block + 1]; k++) {
    const struct lif_touch *touch = &s->touch[k];
    const struct lif_stimulus *stimulus = &s->stimulus[touch->stimulus];
    if (stimulus->first_step > a->step) break;
    if (lif_stimulus_is_on(stimulus, a->step)) add_stimulus(s, w, stimulus, touch, a->step);
  }
}

/* Removed neurons get nothing from outside. */
static void bar_stimuli(const struct lif_engine *s, struct lif_model_work *w) {
  for (lidx i = 0; i < w->d.n; i++)
    if (is_removed(s, w->block, lif_position(w, i)))
      w->current[i] = w->synapse[0][i] = w->synapse[1][i] = w->direct[i] = 0;
}

bool lif_model_take(struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a) {
  struct lif_model_work *w = part->work;
  w->in = (struct model_inputs){0};
  w->n_late[0] = w->n_late[1] = 0;
  memset(w->arrived, 0, sizeof w->arrived);
  if (a->arrives && !take_arrivals(s, part, a)) return false;
  if (a->stimuli & LIF_ADDS) add_stimuli(s, w, a);
  if (a->stimuli && s->barred[a->block]) bar_stimuli(s, w);
  return true;
}
