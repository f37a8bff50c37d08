/* Steps of a batch, block by block: a block goes through all of them while it is in cache. */
#include "draw.h"
#include "state.h"
#include "core/mem.h"

#include <math.h>
#include <string.h>

static const int32_t no_input[LIF_BLOCK];

static bool fits(int64_t x) {
  return x >= INT32_MIN && x <= INT32_MAX;
}

/* ---- stimuli ---- */

/* part->sum = what arrives, exactly. */
static void sum_arrivals(const struct lif_engine *s, struct lif_part *part,
                         const struct lif_arrival *a) {
  const lidx base = a->block * LIF_BLOCK;
  const int64_t *wide = (const int64_t *)(const void *)a->slot + base;
  const int32_t *narrow = (const int32_t *)(const void *)a->slot + base;
  for (lidx i = 0; i < a->n; i++)
    part->sum[i] = !a->arrives ? 0 : s->net->wide ? wide[i] : narrow[i];
}

/* part->sum, begun by the first that adds to it. */
static int64_t *begun(const struct lif_engine *s, struct lif_part *part, struct lif_arrival *a) {
  if (!a->summed) sum_arrivals(s, part, a);
  a->summed = true;
  return part->sum;
}

static void add_poisson(const struct lif_engine *s, struct lif_part *part, struct lif_arrival *a,
                        const struct lif_stimulus *stimulus, const struct lif_touch *touch) {
  const struct lif_draw draw = lif_draw_of(stimulus, s->seed, a->step, s->trial,
                                           (uint64_t)ceil(stimulus->probability * 0x1p53));
  struct lif_hits hits;
  lif_draw(&draw, touch->to - touch->from, stimulus->neuron + touch->from, s->net->id, &hits);
  if (hits.n == 0) return;
  int64_t *sum = begun(s, part, a);
  for (lidx i = 0; i < hits.n; i++) sum[hits.row[i] - a->block * LIF_BLOCK] += stimulus->value;
}

static void add_current(const struct lif_engine *s, struct lif_part *part, struct lif_arrival *a,
                        const struct lif_stimulus *stimulus, const struct lif_touch *touch) {
  int64_t *sum = begun(s, part, a);
  for (lidx i = touch->from; i < touch->to; i++)
    sum[stimulus->neuron[i] - a->block * LIF_BLOCK] += stimulus->value;
}

/* Currents and Poisson events onto part->sum; without any, the block's step is one of those that
 * have no stimulus. */
static void add_stimuli(const struct lif_engine *s, struct lif_part *part, struct lif_arrival *a) {
  for (int64_t k = s->touch_now[a->block]; k < s->touch_ptr[a->block + 1]; k++) {
    const struct lif_touch *touch = &s->touch[k];
    const struct lif_stimulus *stimulus = &s->stimulus[touch->stimulus];
    if (stimulus->first_step > a->step) break;
    if (!lif_stimulus_is_on(stimulus, a->step)) continue;
    if (stimulus->kind == LIF_POISSON) add_poisson(s, part, a, stimulus, touch);
    if (stimulus->kind == LIF_CURRENT) add_current(s, part, a, stimulus, touch);
  }
  if (!a->summed) a->stimuli &= ~LIF_ADDS;
}

/* ---- faults ---- */

static void report_sums(const struct lif_engine *s, struct lif_fault *fault,
                        const struct lif_arrival *a, const int64_t *sum) {
  for (lidx i = 0; i < a->n; i++)
    if (!fits(sum[i])) lif_cpu_report(s, fault, a, LIF_INPUT, i, sum[i]);
}

static void report_potentials(const struct lif_engine *s, struct lif_fault *fault,
                              const struct lif_arrival *a, const int32_t *input) {
  for (lidx i = 0; i < a->n; i++) {
    const int64_t v = (int64_t)s->potential[a->block * LIF_BLOCK + i] + input[i];
    if (!s->counter[a->block * LIF_BLOCK + i] && !fits(v))
      lif_cpu_report(s, fault, a, LIF_INTEGRATE, i, v);
  }
}

/* ---- input ---- */

static const uint8_t *mute_of(const struct lif_engine *s, lidx block) {
  return s->muted ? s->mute + block * LIF_BLOCK : s->mute;
}

/* Exact sums of everything, where there is more than int32 arrivals to add; NULL on a fault. */
static int32_t *summed_input(const struct lif_engine *s, struct lif_part *part,
                             const struct lif_arrival *a) {
  if (!a->summed) sum_arrivals(s, part, a);
  const uint8_t *mute = mute_of(s, a->block);
  for (lidx i = 0; i < a->n && s->barred[a->block]; i++)
    if (mute[i] & LIF_REMOVED) part->sum[i] = 0;
  if (block_narrow(part->sum, a->n, part->input)) return part->input;
  report_sums(s, &part->fault, a, part->sum);
  return NULL;
}

/* The block's input in int32, which with V is known to fit; NULL on a fault. Arrivals in int32 are
 * used where they stand: the slot is cleared after this step. */
static const int32_t *input_of(const struct lif_engine *s, struct lif_part *part,
                               const struct lif_arrival *a) {
  const lidx base = a->block * LIF_BLOCK;
  int32_t *input;
  if (a->stimuli & LIF_ADDS || (a->arrives && (s->net->wide || s->barred[a->block])))
    input = summed_input(s, part, a);
  else if (a->arrives)
    input = (int32_t *)(void *)a->slot + base;
  else
    return no_input;
  if (!input) return NULL;
  for (lidx i = 0; i < a->n_forced; i++) input[part->forced[i]] = 0;
  if (!block_overflows(s->potential + base, s->counter + base, input, a->n)) return input;
  report_potentials(s, &part->fault, a, input);
  return NULL;
}

/* ---- one step of one block ---- */

/* Listed spikes come whatever V and counter say. */
static int force(struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a) {
  const lidx base = a->block * LIF_BLOCK;
  for (lidx k = 0; k < a->n_forced; k++) {
    const lidx i = part->forced[k];
    part->fired[i] = 1;
    s->potential[base + i] = s->params.reset, s->counter[base + i] = s->params.refractory;
  }
  if (!a->n_forced) return 0;
  return s->params.refractory ? LIF_FIRED | LIF_RESTING : LIF_FIRED;
}

/* Nothing comes in and nobody rests. */
static int step_alone(struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a) {
  const lidx base = a->block * LIF_BLOCK;
  if (s->still[a->block]) return 0;
  const int found = block_leak(s->potential + base, a->n, &s->params);
  s->still[a->block] = !(found & (LIF_MOVED | LIF_FIRED));
  if (!(found & LIF_FIRED)) return 0;
  return block_fire(s->potential + base, s->counter + base, mute_of(s, a->block), a->n, &s->params,
                    part->fired);
}

static int step_with_input(struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a,
                           const int32_t *input) {
  const lidx base = a->block * LIF_BLOCK;
  int found = block_step(s->potential + base, s->counter + base, input, mute_of(s, a->block), a->n,
                         &s->params, part->fired);
  found |= force(s, part, a);
  if (a->arrives) lif_cpu_clear(s, a);
  s->still[a->block] = 0;
  return found;
}

/* A fault ends the block's batch: what comes after it has no meaning. */
static void run_block(struct lif_engine *s, struct lif_part *part, lidx block, int n) {
  for (int k = 0; k < n; k++) {
    struct lif_arrival a = {.block = block, .n = lif_block_size(s, block), .step = s->step + k};
    a.slot = lif_slot_at(s, a.step);
    a.arrives = lif_flags(s, a.slot)[block];
    a.stimuli = lif_stimuli_on(s, block, a.step);
    if (a.stimuli & LIF_FORCES) a.n_forced = lif_find_forced(s, part, &a);
    if (a.stimuli & LIF_ADDS) add_stimuli(s, part, &a);
    int found;
    if (!a.arrives && !a.stimuli && !s->resting[block]) {
      found = step_alone(s, part, &a);
    } else {
      const int32_t *input = input_of(s, part, &a);
      if (!input) return;
      found = step_with_input(s, part, &a, input);
    }
    s->resting[block] = (found & LIF_RESTING) != 0;
    if (found & LIF_FIRED) lif_cpu_collect(s, part, &a, k);
  }
}

static void run_part(struct lif_engine *s, struct lif_part *part, int n) {
  part->fault = (struct lif_fault){.step = LIF_NO_FAULT};
  for (int k = 0; k < n; k++) part->found[k].n = 0;
  for (lidx b = part->first_block; b < part->last_block; b++)
    if (s->params.model)
      lif_model_block(s, part, b, n);
    else
      run_block(s, part, b, n);
}

/* ---- the parts together ---- */

static void join_spikes(struct lif_engine *s, int n) {
  struct lif_spikes *mine = &s->mine;
  mine->n = 0, mine->n_steps = n;
  for (int k = 0; k < n; k++)
    for (int p = 0; p < s->n_parts; p++) mine->n += s->part[p].found[k].n;
  if (mine->n > s->mine_room) {
    mem_free(mine->row);
    s->mine_room = mine->n + mine->n / 2;
    mine->row = mem_alloc(s->mine_room, sizeof *mine->row);
  }
  int64_t at = 0;
  for (int k = 0; k < n; k++) {
    mine->step_ptr[k] = at;
    for (int p = 0; p < s->n_parts; p++) {
      const struct lif_found *found = &s->part[p].found[k];
      if (found->n) memcpy(mine->row + at, found->row, (size_t)found->n * sizeof *found->row);
      at += found->n;
    }
  }
  mine->step_ptr[n] = at;
}

static struct lif_fault least_fault(const struct lif_engine *s) {
  struct lif_fault least = s->part[0].fault;
  for (int p = 1; p < s->n_parts; p++) {
    const struct lif_fault f = s->part[p].fault;
    if (lif_fault_before(&f, &least)) least = f;
  }
  return least;
}

void lif_cpu_integrate(struct lif_engine *s, int n, struct lif_spikes *mine,
                       struct lif_fault *fault) {
#pragma omp parallel for schedule(static, 1) num_threads(s->n_parts) if (s->n_parts > 1)
  for (int p = 0; p < s->n_parts; p++) run_part(s, &s->part[p], n);
  join_spikes(s, n);
  *fault = least_fault(s);
  *mine = s->mine;
}
