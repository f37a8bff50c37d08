/* A step of a linear model (contract/lif_model.h) for one block of neurons. */
#include "model_block.h"
#include "state.h"
#include "core/mem.h"
#include "core/rng.h"

#include <stdlib.h>
#include <string.h>

/* Room for one block. */
struct lif_model_work {
  int64_t next[LIF_MOST_COMPONENTS][LIF_BLOCK];
  int64_t current[LIF_BLOCK];    /* to v, with the update */
  int64_t synapse[2][LIF_BLOCK]; /* events: positive, negative */
  int64_t direct[LIF_BLOCK];     /* events onto v itself */
  int64_t bar[LIF_BLOCK];        /* what is added to the threshold */
  uint8_t rests[LIF_BLOCK], fired[LIF_BLOCK], lost[LIF_BLOCK];
};

/* A block at a step: where its neurons are, and what comes in. */
struct model_block {
  const struct lif_shape *shape;
  const struct lif_model *model;
  const uint16_t *class_of; /* [n] */
  int class;                /* of all, or -1 */
  lidx base, n;
  struct lif_model_work *w;
  bool has_current, has_synapse, has_direct, rests;
};

struct lif_model_work *lif_model_work_open(void) {
  return NEW_ZERO(struct lif_model_work, 1);
}

static int64_t *component_at(const struct lif_engine *s, int c, lidx base) {
  return s->component + ((int64_t)c * s->n_blocks) * LIF_BLOCK + base;
}

/* ---- stimuli ---- */

static int64_t *cleared(int64_t *sums, bool *has, lidx n) {
  if (!*has) memset(sums, 0, (size_t)n * sizeof *sums);
  *has = true;
  return sums;
}

static struct rng_block draw(const struct lif_engine *s, const struct lif_stimulus *stimulus,
                             lidx row, int64_t step) {
  const uint64_t id = (uint64_t)s->net->id[row];
  return rng_draw(s->seed, (uint32_t)id, (uint32_t)step,
                  (uint32_t)stimulus->index | (uint32_t)(id >> 32) << 16, s->trial);
}

static void add_current(const struct model_block *b, const struct lif_stimulus *stimulus,
                        const struct lif_touch *touch) {
  for (lidx i = touch->from; i < touch->to; i++) {
    const lidx at = stimulus->neuron[i] - b->base;
    b->w->current[at] += stimulus->amount_of[b->class_of[at]];
  }
}

static void add_noise(const struct lif_engine *s, const struct model_block *b,
                      const struct lif_stimulus *stimulus, const struct lif_touch *touch,
                      int64_t step) {
  for (lidx i = touch->from; i < touch->to; i++) {
    const lidx at = stimulus->neuron[i] - b->base;
    const int64_t quantile =
        stimulus->quantile[draw(s, stimulus, stimulus->neuron[i], step).v[0] >> 20];
    b->w->current[at] += (int64_t)((__int128)quantile * stimulus->amount_of[b->class_of[at]] >> 32);
  }
}

static void add_events(const struct lif_engine *s, const struct model_block *b,
                       const struct lif_stimulus *stimulus, const struct lif_touch *touch,
                       int64_t step, int64_t *sums) {
  for (lidx i = touch->from; i < touch->to; i++) {
    const struct rng_block r = draw(s, stimulus, stimulus->neuron[i], step);
    const uint64_t u = (((uint64_t)r.v[0] << 32) | r.v[1]) >> 11;
    int n = 0;
    while (n < stimulus->n_tails && u < stimulus->tail[n]) n++;
    if (n) sums[stimulus->neuron[i] - b->base] += n * stimulus->amount;
  }
}

static void add_stimulus(const struct lif_engine *s, struct model_block *b,
                         const struct lif_stimulus *stimulus, const struct lif_touch *touch,
                         int64_t step) {
  struct lif_model_work *w = b->w;
  if (stimulus->kind == LIF_CURRENT || stimulus->kind == LIF_NOISE)
    cleared(w->current, &b->has_current, b->n);
  if (stimulus->kind == LIF_CURRENT) add_current(b, stimulus, touch);
  if (stimulus->kind == LIF_NOISE) add_noise(s, b, stimulus, touch, step);
  if (stimulus->kind != LIF_POISSON) return;
  if (stimulus->into == LIF_INTO_V) {
    add_events(s, b, stimulus, touch, step, cleared(w->direct, &b->has_direct, b->n));
    return;
  }
  if (!b->has_synapse) memset(w->synapse, 0, sizeof w->synapse);
  b->has_synapse = true;
  add_events(s, b, stimulus, touch, step, w->synapse[stimulus->amount < 0]);
}

static void add_stimuli(const struct lif_engine *s, struct model_block *b,
                        const struct lif_arrival *a) {
  for (int64_t k = s->touch_now[a->block]; k < s->touch_ptr[a->block + 1]; k++) {
    const struct lif_touch *touch = &s->touch[k];
    const struct lif_stimulus *stimulus = &s->stimulus[touch->stimulus];
    if (stimulus->first_step > a->step) break;
    if (lif_stimulus_is_on(stimulus, a->step)) add_stimulus(s, b, stimulus, touch, a->step);
  }
}

/* Removed neurons get nothing from outside: their sums become 0. */
static void bar_removed(struct lif_engine *s, struct model_block *b, const struct lif_arrival *a) {
  struct lif_model_work *w = b->w;
  for (lidx i = 0; i < b->n; i++) {
    if (!(s->mute[b->base + i] & LIF_REMOVED)) continue;
    w->current[i] = w->synapse[0][i] = w->synapse[1][i] = w->direct[i] = 0;
    for (int r = 0; r < s->n_rings && a->arrives; r++) {
      const size_t at = (size_t)r * (size_t)s->n_blocks * LIF_BLOCK + (size_t)(b->base + i);
      if (s->net->wide)
        ((int64_t *)(void *)a->slot)[at] = 0;
      else
        ((int32_t *)(void *)a->slot)[at] = 0;
    }
  }
}

/* ---- the update ---- */

static const struct lif_class *class_at(const struct model_block *b, lidx i) {
  return &b->model->classes[b->class_of[i]];
}

static void accumulate(const struct model_block *b, int e, const int64_t *from) {
  int64_t *to = b->w->next[b->shape->entry[e].to];
  if (b->class >= 0)
    model_accumulate(to, from, b->n, b->model->classes[b->class].factor[e]);
  else
    model_accumulate_by_class(to, from, b->n, e, b->model->classes, b->class_of);
}

static void add_drive(const struct model_block *b) {
  int64_t *v = b->w->next[0];
  if (b->class >= 0 && b->model->classes[b->class].drive == 0) return;
  for (lidx i = 0; i < b->n; i++) v[i] += class_at(b, i)->drive;
}

/* w->next = the components after a step without arrivals. */
static void propagate(const struct lif_engine *s, const struct model_block *b) {
  const struct lif_shape *shape = b->shape;
  for (int c = 0; c < shape->n_components; c++) {
    const size_t bytes = (size_t)b->n * sizeof(int64_t);
    if (shape->keeps >> c & 1)
      memcpy(b->w->next[c], component_at(s, c, b->base), bytes);
    else
      memset(b->w->next[c], 0, bytes);
  }
  for (int e = 0; e < shape->n_entries; e++)
    accumulate(b, e, component_at(s, shape->entry[e].from, b->base));
  add_drive(b);
  if (b->has_current) model_add(b->w->next[0], b->w->current, NULL, b->n);
}

/* Sums of one ring and events of one sign into their component. */
static void add_ring(const struct lif_engine *s, const struct model_block *b,
                     const struct lif_arrival *a, int ring, int c, const uint8_t *lost) {
  const int64_t at = (int64_t)ring * s->n_blocks * LIF_BLOCK + b->base;
  if (!(b->shape->frozen >> c & 1)) lost = NULL;
  if (a->arrives && s->net->wide)
    model_add_counts64(b->w->next[c], (const int64_t *)(const void *)a->slot + at, lost, b->n);
  else if (a->arrives)
    model_add_counts32(b->w->next[c], (const int32_t *)(const void *)a->slot + at, lost, b->n);
}

static void add_arrivals(const struct lif_engine *s, const struct model_block *b,
                         const struct lif_arrival *a, const uint8_t *lost) {
  const int into[2] = {b->shape->plus, b->shape->minus};
  for (int r = 0; r < s->n_rings; r++) add_ring(s, b, a, r, into[r], lost);
  for (int sign = 0; sign < 2 && b->has_synapse; sign++)
    model_add(b->w->next[into[sign]], b->w->synapse[sign],
              b->shape->frozen >> into[sign] & 1 ? lost : NULL, b->n);
}

static const int64_t *threshold_bar(const struct model_block *b) {
  struct lif_model_work *w = b->w;
  if (!b->shape->raises && b->class >= 0) return NULL;
  const int64_t base = b->class >= 0 ? b->model->classes[b->class].threshold : 0;
  for (lidx i = 0; i < b->n; i++) {
    const struct lif_class *class = class_at(b, i);
    w->bar[i] = class->threshold - base + (class->raises ? w->next[b->shape->adaptation][i] : 0);
  }
  return w->bar;
}

/* part->fired; whether somebody fires. */
static bool find_fired(struct lif_engine *s, struct lif_part *part, const struct model_block *b,
                       const struct lif_arrival *a) {
  const int64_t threshold = b->class >= 0 ? b->model->classes[b->class].threshold : 0;
  bool any = model_fires(b->w->next[0], threshold, b->shape->strict, threshold_bar(b),
                         b->rests ? b->w->rests : NULL, b->n, part->fired);
  if (!any && a->n_forced) memset(part->fired, 0, (size_t)b->n);
  for (lidx i = 0; i < b->n && any && s->barred[a->block]; i++)
    part->fired[i] &= (uint8_t) !(s->mute[b->base + i] & LIF_REMOVED);
  for (lidx k = 0; k < a->n_forced; k++) part->fired[part->forced[k]] = 1;
  return any || a->n_forced;
}

static bool reset_fired(struct lif_engine *s, const struct lif_part *part,
                        const struct model_block *b) {
  const struct lif_shape *shape = b->shape;
  bool rests = false;
  for (lidx i = 0; i < b->n; i++) {
    if (!part->fired[i]) continue;
    const struct lif_class *class = class_at(b, i);
    for (int c = 0; c < shape->n_components; c++)
      if (shape->cleared >> c & 1) b->w->next[c][i] = 0;
    b->w->next[0][i] = class->reset;
    if (shape->adaptation >= 0) b->w->next[shape->adaptation][i] += class->jump;
    s->counter[b->base + i] = class->rest;
    rests |= class->rest > 0;
  }
  return rests;
}

/* ---- bounds ---- */

static int64_t sum_at(const struct lif_engine *s, const struct lif_arrival *a, int ring, lidx row) {
  const size_t at = (size_t)ring * (size_t)s->n_blocks * LIF_BLOCK + (size_t)row;
  return s->net->wide ? ((const int64_t *)(const void *)a->slot)[at]
                      : ((const int32_t *)(const void *)a->slot)[at];
}

static bool ring_fits(const struct lif_engine *s, const struct lif_arrival *a, int ring, lidx base,
                      lidx n) {
  const int64_t at = (int64_t)ring * s->n_blocks * LIF_BLOCK + base;
  return s->net->wide
             ? !model_exceeds((const int64_t *)(const void *)a->slot + at, LIF_MOST_ARRIVALS, n)
             : !model_exceeds32((const int32_t *)(const void *)a->slot + at,
                                (int32_t)LIF_MOST_ARRIVALS, n);
}

static bool sums_fit(const struct lif_engine *s, struct lif_part *part, const struct model_block *b,
                     const struct lif_arrival *a) {
  bool fit = true;
  for (int r = 0; r < s->n_rings && a->arrives; r++)
    for (lidx i = 0; i < b->n && !ring_fits(s, a, r, b->base, b->n); i++) {
      const int64_t sum = sum_at(s, a, r, b->base + i);
      if (llabs(sum) < LIF_MOST_ARRIVALS) continue;
      lif_cpu_report(s, &part->fault, a, LIF_INPUT, i, sum);
      fit = false;
    }
  return fit;
}

static bool values_fit(const struct lif_engine *s, struct lif_part *part,
                       const struct model_block *b, const struct lif_arrival *a) {
  bool fit = true;
  for (int c = 0; c < b->shape->n_components; c++) {
    const int64_t *x = b->w->next[c];
    if (!model_exceeds(x, LIF_MOST_VALUE, b->n)) continue;
    fit = false;
    for (lidx i = 0; i < b->n; i++)
      if (llabs(x[i]) >= LIF_MOST_VALUE)
        lif_cpu_report(s, &part->fault, a, LIF_INTEGRATE + c, i, x[i]);
  }
  return fit;
}

/* The new components take the place of the old; whether something changed. */
static bool store(const struct lif_engine *s, const struct model_block *b) {
  bool changed = false;
  for (int c = 0; c < b->shape->n_components; c++) {
    int64_t *x = component_at(s, c, b->base);
    if (!changed) changed = model_differs(x, b->w->next[c], b->n);
    memcpy(x, b->w->next[c], (size_t)b->n * sizeof *x);
  }
  return changed;
}

/* ---- a step ---- */

static void keep_frozen(const struct lif_engine *s, const struct model_block *b) {
  for (int c = 0; c < b->shape->n_components && b->rests; c++)
    if (b->shape->frozen >> c & 1)
      model_keep(b->w->next[c], component_at(s, c, b->base), b->w->rests, b->n);
}

/* Who loses what arrives late: neurons that rest or fired; NULL: nobody. */
static const uint8_t *losers(const struct lif_part *part, const struct model_block *b, bool fired) {
  if (!fired) return b->rests ? b->w->rests : NULL;
  if (!b->rests) return part->fired;
  for (lidx i = 0; i < b->n; i++) b->w->lost[i] = b->w->rests[i] | part->fired[i];
  return b->w->lost;
}

int lif_model_step(struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a,
                   bool *whole) {
  struct model_block b = {.shape = &s->params.model->shape,
                          .model = s->params.model,
                          .class = s->block_class[a->block],
                          .base = a->block * LIF_BLOCK,
                          .n = a->n,
                          .w = part->work};
  const bool alone = !a->arrives && !a->stimuli && !s->resting[a->block];
  *whole = true;
  if (alone && s->still[a->block]) return 0;
  b.class_of = b.model->class_of + b.base;
  if (s->resting[a->block]) b.rests = model_count_down(s->counter + b.base, b.w->rests, b.n);
  if (a->stimuli & LIF_ADDS) add_stimuli(s, &b, a);
  if (s->barred[a->block]) bar_removed(s, &b, a);
  propagate(s, &b);
  if (b.shape->arrivals_early) add_arrivals(s, &b, a, b.rests ? b.w->rests : NULL);
  keep_frozen(s, &b);
  const bool fired = find_fired(s, part, &b, a);
  const uint8_t *lost = losers(part, &b, fired);
  if (!b.shape->arrivals_early) add_arrivals(s, &b, a, lost);
  if (b.has_direct) model_add(b.w->next[0], b.w->direct, lost, b.n);
  const bool rests = (fired && reset_fired(s, part, &b)) || b.rests;
  *whole = sums_fit(s, part, &b, a) & values_fit(s, part, &b, a);
  s->still[a->block] = !store(s, &b) && alone && !fired;
  if (a->arrives) lif_cpu_clear(s, a);
  return (fired ? LIF_FIRED : 0) | (rests ? LIF_RESTING : 0);
}
