/* Steps of a linear model (contract/lif_model.h), a batch of them for one block: neurons that a
 * step cannot change, and that nothing reaches in the batch, are left where they are; the others
 * are gathered side by side if they are few. */
#include "model_work.h"
#include "model_block.h"
#include "core/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_ALONE = 6 }; /* steps for which it pays to look for potentials that decay alone */
enum { SETTLING = 128 };  /* steps between looks at who is at rest */
enum { MOVING = 4 }; /* gathering a neuron and putting it back costs about so many steps of it */

struct lif_model_work *lif_model_work_open(const struct lif_model *model) {
  struct lif_model_work *w = NEW_ZERO(struct lif_model_work, 1);
  w->step = model_fused_step(model), w->small = model_small_step(model);
  w->d.shape = &model->shape, w->d.model = model;
  return w;
}

/* ---- who is computed ---- */

static uint64_t *settled_of(const struct lif_engine *s, lidx block) {
  return s->settled + block * LIF_WORDS;
}

/* Who has to be computed in n steps; returns their number. */
static lidx find_active(struct lif_engine *s, struct lif_model_work *w, int n) {
  const uint64_t *settled = settled_of(s, w->block);
  bool some = false;
  memset(w->called, 0, sizeof w->called);
  for (int k = 0; k < n; k++)
    some |= lif_model_reached(s, w->block, lif_slot_at(s, s->step + k), w->called);
  some |= lif_model_touched(s, w, s->step, n);
  uint64_t any = 0;
  for (int i = 0; i < LIF_WORDS; i++) any |= ~settled[i];
  if (!some && !any) return 0;
  lidx number = 0;
  for (int i = 0; i < LIF_WORDS; i++) {
    const lidx left = w->n - 64 * i;
    const uint64_t here = left >= 64 ? ~0ull : left > 0 ? (1ull << left) - 1 : 0;
    w->called[i] |= w->touched[i];
    w->active[i] = (~settled[i] | w->called[i]) & here;
    number += __builtin_popcountll(w->active[i]);
  }
  return number;
}

static int64_t *component_at(const struct lif_engine *s, int c, lidx base) {
  return s->component + (int64_t)c * s->n_blocks * LIF_BLOCK + base;
}

static void set_class(const struct lif_engine *s, struct lif_model_work *w) {
  const int class = s->block_class[w->block];
  const struct lif_shape *shape = w->d.shape;
  w->d.class = class >= 0 ? &w->d.model->classes[class] : NULL;
  if (!w->d.class) return;
  for (int e = 0; e < shape->n_entries; e++)
    w->d.factor[shape->entry[e].to][shape->entry[e].from] = w->d.class->factor[e];
}

static void stay(const struct lif_engine *s, struct lif_model_work *w) {
  for (int c = 0; c < w->d.shape->n_components; c++) w->d.x[c] = component_at(s, c, w->base);
  w->d.counter = s->counter + w->base;
  w->d.class_of = w->d.model->class_of + w->base;
  w->d.n = w->n;
}

/* Up to the next multiple of 8 with neurons of zeros. */
static void gather(const struct lif_engine *s, struct lif_model_work *w) {
  lidx n = 0;
  for (int i = 0; i < LIF_WORDS; i++)
    for (uint64_t left = w->active[i]; left; left &= left - 1) {
      const lidx at = 64 * i + __builtin_ctzll(left);
      w->at[n] = (uint16_t)at, w->place[at] = (uint16_t)n++;
    }
  for (int c = 0; c < w->d.shape->n_components; c++) {
    const int64_t *from = component_at(s, c, w->base);
    for (lidx i = 0; i < n; i++) w->x[c][i] = from[w->at[i]];
    for (lidx i = n; i % 8; i++) w->x[c][i] = 0;
    w->d.x[c] = w->x[c];
  }
  for (lidx i = 0; i < n; i++) w->counter[i] = s->counter[w->base + w->at[i]];
  for (lidx i = n; i % 8; i++) w->counter[i] = 0;
  const uint16_t *class_of = w->d.model->class_of + w->base;
  for (lidx i = 0; i < n && !w->d.class; i++) w->class_of[i] = class_of[w->at[i]];
  w->d.counter = w->counter, w->d.class_of = w->class_of, w->d.n = n;
}

static void put_back(struct lif_engine *s, const struct lif_model_work *w) {
  for (int c = 0; c < w->d.shape->n_components; c++) {
    int64_t *to = component_at(s, c, w->base);
    for (lidx i = 0; i < w->d.n; i++) to[w->at[i]] = w->x[c][i];
  }
  for (lidx i = 0; i < w->d.n; i++) s->counter[w->base + w->at[i]] = w->counter[i];
}

/* After the last step: who is computed and would stay as it is without input. */
static void settle(struct lif_engine *s, const struct lif_model_work *w) {
  uint64_t *settled = settled_of(s, w->block), moves[LIF_WORDS] = {0};
  for (lidx i = 0; i < w->d.n; i++)
    if ((w->found.changed[i / 8] | (w->found.any ? w->found.fired[i / 8] : 0)) >> i % 8 & 1) {
      const lidx at = lif_position(w, i);
      moves[at / 64] |= 1ull << at % 64;
    }
  for (int i = 0; i < LIF_WORDS; i++)
    settled[i] |= w->active[i] & ~(moves[i] | w->touched[i] | w->arrived[i]);
}

/* ---- after the update ---- */

static const struct lif_class *class_at(const struct lif_model_work *w, lidx i) {
  return &w->d.model->classes[w->d.model->class_of[w->base + lif_position(w, i)]];
}

/* Removed neurons, and what stands behind the last one, do not fire. */
static void bar_fired(const struct lif_engine *s, struct lif_model_work *w) {
  for (lidx i = w->d.n; i % 8; i++) w->found.fired[i / 8] &= (uint8_t) ~(1 << i % 8);
  for (lidx i = 0; i < w->d.n && s->barred[w->block]; i++)
    if (s->mute[w->base + lif_position(w, i)] & LIF_REMOVED)
      w->found.fired[i / 8] &= (uint8_t) ~(1 << i % 8);
}

static void reset(struct lif_model_work *w, lidx i) {
  const struct lif_shape *shape = w->d.shape;
  const struct lif_class *class = class_at(w, i);
  for (int c = 0; c < shape->n_components; c++)
    if (shape->cleared >> c & 1) w->d.x[c][i] = 0;
  w->d.x[0][i] = class->reset;
  w->found.large |= llabs(class->reset) >= LIF_LARGE;
  if (shape->adaptation >= 0) {
    int64_t *jumped = &w->d.x[shape->adaptation][i];
    *jumped += class->jump;
    w->found.large |= llabs(*jumped) >= LIF_LARGE;
    w->found.exceeds |= llabs(*jumped) >= LIF_MOST_VALUE;
  }
  w->d.counter[i] = class->rest;
  w->d.rests |= class->rest > 0;
}

/* Who fired is reset and goes to the end of the step's list. */
static void fire(struct lif_engine *s, struct lif_model_work *w, struct lif_found *list) {
  uint32_t *row = lif_cpu_room(list);
  const uint32_t first = (uint32_t)(s->net->first + w->base);
  for (lidx i = 0; i < w->d.n; i += 8)
    for (unsigned left = w->found.fired[i / 8]; left; left &= left - 1) {
      const lidx at = i + __builtin_ctz(left);
      reset(w, at);
      *row++ = first + (uint32_t)lif_position(w, at);
    }
  list->n = row - list->row;
}

static bool values_fit(const struct lif_engine *s, struct lif_part *part,
                       const struct lif_arrival *a) {
  const struct lif_model_work *w = part->work;
  bool fit = true;
  for (int c = 0; c < w->d.shape->n_components && w->found.exceeds; c++)
    for (lidx i = 0; i < w->d.n; i++) {
      const int64_t x = w->d.x[c][i];
      if (llabs(x) < LIF_MOST_VALUE) continue;
      lif_cpu_report(s, &part->fault, a, LIF_INTEGRATE + c, lif_position(w, i), x);
      fit = false;
    }
  return fit;
}

/* ---- steps ---- */

static lidx forced_places(struct lif_engine *s, struct lif_part *part,
                          const struct lif_arrival *a) {
  const lidx n = a->stimuli & LIF_FORCES ? lif_find_forced(s, part, a) : 0;
  for (lidx i = 0; i < n; i++) part->forced[i] = (uint16_t)lif_place(part->work, part->forced[i]);
  return n;
}

/* False after a fault. */
static bool step(struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a,
                 struct lif_found *list) {
  struct lif_model_work *w = part->work;
  if (!lif_model_take(s, part, a)) return false;
  const lidx n_forced = forced_places(s, part, a);
  if (w->small && !w->found.large && w->d.class && !n_forced)
    w->small(&w->d, &w->in, &w->found);
  else if (w->step && w->d.class && !n_forced)
    w->step(&w->d, &w->in, &w->found);
  else
    lif_model_passes(w, n_forced, part->forced);
  w->d.rests = w->found.rests;
  lif_model_add_late(w);
  if (w->found.any) bar_fired(s, w), fire(s, w, list);
  if (a->arrives) lif_model_clear(s, a);
  return values_fit(s, part, a);
}

/* A fault ends the block's batch: what comes after it has no meaning. */
static bool run(struct lif_engine *s, struct lif_part *part, int n, bool settling) {
  struct lif_model_work *w = part->work;
  for (int k = 0; k < n; k++) {
    struct lif_arrival a = {.block = w->block, .n = w->n, .step = s->step + k};
    a.slot = lif_slot_at(s, a.step);
    a.arrives = lif_lines(s, a.slot)[a.block] != 0;
    a.stimuli = lif_stimuli_on(s, a.block, a.step);
    w->found.settling = settling && k == n - 1;
    if (!step(s, part, &a, &part->found[k])) return false;
  }
  return true;
}

/* ---- potentials that decay by themselves ---- */

/* A component c of this size, and so a smaller one, moves neither itself nor, by entry (to, c),
 * another. */
static bool is_still(const struct lif_model_work *w, int to, int c, int64_t size) {
  const int64_t product = lif_times(size, w->d.factor[to][c]);
  return product == (to == c && !(w->d.shape->keeps >> c & 1) ? size : 0);
}

/* The largest such size for one entry: about where the product is half a unit off. */
static int64_t stalls_at(const struct lif_model_work *w, int to, int c) {
  const struct lif_factor p = w->d.factor[to][c];
  const double factor = ldexp(p.f, -32 - p.s);
  const double off = to == c && !(w->d.shape->keeps >> c & 1) ? 1 - factor : factor;
  int64_t size = off > 0x1p-40 ? (int64_t)(0.5 / off) + 2 : (int64_t)1 << 39;
  while (size > 0 && !is_still(w, to, c, size)) size--;
  return size;
}

static void find_stalls(struct lif_model_work *w) {
  const struct lif_shape *shape = w->d.shape;
  if (w->stalls_of == w->d.class) return;
  w->stalls_of = w->d.class;
  for (int c = 1; c < shape->n_components; c++) w->stalls[c] = LIF_LARGE;
  for (int e = 0; e < shape->n_entries; e++) {
    const struct lif_entry at = shape->entry[e];
    const int64_t size = at.to ? stalls_at(w, at.to, at.from) : LIF_LARGE;
    if (size < w->stalls[at.from]) w->stalls[at.from] = size;
  }
  if (w->d.class->raises) w->stalls[shape->adaptation] = 0; /* it moves the threshold */
}

/* Its potential alone moves: what the others add to it is then the same in each step. */
static bool is_alone(const struct lif_engine *s, const struct lif_model_work *w, lidx i,
                     int64_t *drive) {
  if (s->counter[w->base + i]) return false;
  for (int c = 1; c < w->d.shape->n_components; c++) {
    const int64_t x = component_at(s, c, w->base)[i];
    if (llabs(x) > w->stalls[c]) return false;
    if (x) *drive += lif_times(x, w->d.factor[0][c]);
  }
  return true;
}

static uint64_t *alone_of(const struct lif_engine *s, lidx block) {
  return s->alone + block * LIF_WORDS;
}

/* Who is alone: w->at [returned n], w->x[0], w->current: what a step adds. Those that are known to
 * be, or, `looking`, all. */
static lidx gather_alone(const struct lif_engine *s, struct lif_model_work *w, bool looking) {
  uint64_t *alone = alone_of(s, w->block);
  lidx n = 0;
  for (int i = 0; i < LIF_WORDS; i++) {
    uint64_t left = w->active[i] & ~w->called[i] & (looking ? ~0ull : alone[i]);
    for (alone[i] = 0; left; left &= left - 1) {
      const lidx at = 64 * i + __builtin_ctzll(left);
      w->current[n] = w->d.class->drive;
      if (!is_alone(s, w, at, &w->current[n])) continue;
      alone[i] |= 1ull << at % 64;
      w->at[n] = (uint16_t)at, w->x[0][n++] = component_at(s, 0, w->base)[at];
    }
  }
  return n;
}

/* They make their steps and are no longer active; returns how many. */
static lidx run_alone(struct lif_engine *s, struct lif_model_work *w, int n_steps, bool looking) {
  const struct lif_class *class = w->d.class;
  const struct model_alone alone = {.n_steps = n_steps,
                                    .factor = w->d.factor[0][0],
                                    .keeps = w->d.shape->keeps & 1,
                                    .least = class->threshold + w->d.shape->strict};
  find_stalls(w);
  const lidx n = gather_alone(s, w, looking);
  if (!n || !model_run_alone(&alone, n, w->x[0], w->current, w->found.changed)) return 0;
  uint64_t *settled = settled_of(s, w->block);
  for (lidx i = 0; i < n; i++) {
    const lidx at = w->at[i];
    const uint64_t bit = 1ull << at % 64;
    component_at(s, 0, w->base)[at] = w->x[0][i];
    w->active[at / 64] &= ~bit;
    if (!(w->found.changed[i / 8] >> i % 8 & 1)) settled[at / 64] |= bit;
  }
  return n;
}

/* ---- a batch ---- */

static bool is_large(const struct lif_engine *s, const struct lif_model_work *w) {
  for (int c = 0; c < w->d.shape->n_components; c++)
    if (model_exceeds(component_at(s, c, w->base), LIF_LARGE, w->n)) return true;
  return false;
}

/* The active ones, `number` of them, side by side; or where they stand, with those that are at
 * rest, if `all` others are. */
static void run_active(struct lif_engine *s, struct lif_part *part, lidx number, bool all, int n,
                       bool settling) {
  struct lif_model_work *w = part->work;
  w->gathered = !all || (int64_t)number * (n + MOVING) < (int64_t)w->n * n;
  if (w->gathered)
    gather(s, w);
  else
    stay(s, w);
  if (!run(s, part, n, settling)) return;
  if (w->gathered) put_back(s, w);
  if (settling) settle(s, w);
}

void lif_model_block(struct lif_engine *s, struct lif_part *part, lidx block, int n) {
  struct lif_model_work *w = part->work;
  w->block = block, w->base = block * LIF_BLOCK, w->n = lif_block_size(s, block);
  lidx number = find_active(s, w, n);
  if (!number) return;
  set_class(s, w);
  const bool large = s->large[block] && is_large(s, w);
  const bool settling = s->step / SETTLING != (s->step + n) / SETTLING;
  lidx alone = 0;
  if (w->small && w->d.class && !large && n >= LEAST_ALONE) alone = run_alone(s, w, n, settling);
  number -= alone;
  for (int i = 0; i < LIF_WORDS; i++) settled_of(s, block)[i] &= ~w->active[i];
  w->d.rests = s->resting[block], w->found.large = large;
  if (number) run_active(s, part, number, !alone, n, settling);
  s->resting[block] = w->d.rests, s->large[block] = large || w->found.large;
}
