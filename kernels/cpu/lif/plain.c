/* The specification: contract/lif.h read out one neuron at a time, in int64,
 * with no regard for speed. */
#include "kernels/interface/backends.h"
#include "contract/lif.h"
#include "core/mem.h"
#include "core/rng.h"

#include <stdlib.h>

struct lif_engine {
  const struct lif_net *net;
  struct lif_params params;
  const struct lif_stimulus *stimulus;
  int n_stimuli;
  uint64_t seed;
  uint32_t trial;
  int64_t step;
  int n_components, n_rings;
  int64_t *component; /* [n_components][n_own]; lif_shift: one, the potential */
  uint16_t *counter;  /* [n_own] */
  int64_t *ring;      /* [n_rings][n_own][max_delay]: the sum due at t stands at t % max_delay */
  uint32_t *row;
  int64_t *step_ptr, room;
};

static struct status open_plain(const struct lif_net *net, const struct lif_params *params,
                                const struct lif_stimulus *stimulus, int n_stimuli, uint64_t seed,
                                int n_threads, struct lif_engine **state) {
  (void)n_threads;
  struct lif_engine *s = NEW_ZERO(struct lif_engine, 1);
  s->net = net, s->params = *params, s->stimulus = stimulus, s->n_stimuli = n_stimuli,
  s->seed = seed;
  s->n_components = lif_model_components(params->model);
  s->n_rings = lif_model_rings(params->model);
  s->component = NEW_ZERO(int64_t, (int64_t)s->n_components * net->n_own);
  s->counter = NEW_ZERO(uint16_t, net->n_own);
  s->ring = NEW_ZERO(int64_t, (int64_t)s->n_rings * net->n_own * net->max_delay);
  s->room = (int64_t)net->n_own * net->min_delay;
  s->row = NEW(uint32_t, s->room);
  s->step_ptr = NEW(int64_t, net->min_delay + 1);
  *state = s;
  return fine();
}

static void close_plain(struct lif_engine *s) {
  mem_free(s->component), mem_free(s->counter), mem_free(s->ring), mem_free(s->row),
      mem_free(s->step_ptr);
  mem_free(s);
}

static int64_t *due_at(const struct lif_engine *s, int ring, lidx i, int64_t step) {
  return &s->ring[((int64_t)ring * s->net->n_own + i) * s->net->max_delay +
                  step % s->net->max_delay];
}

static int64_t *component_of(const struct lif_engine *s, int c, lidx i) {
  return &s->component[(int64_t)c * s->net->n_own + i];
}

static void write_plain(struct lif_engine *s, uint32_t trial, const struct lif_state *values) {
  const int64_t n = s->net->n_own, delays = s->net->max_delay;
  s->step = values->step, s->trial = trial;
  for (lidx i = 0; i < n; i++) {
    s->counter[i] = values->counter[i];
    for (int c = 0; c < s->n_components; c++)
      *component_of(s, c, i) =
          s->params.model ? values->component[c * n + i] : values->potential[i];
    for (int r = 0; r < s->n_rings; r++)
      for (int d = 0; d < delays; d++)
        *due_at(s, r, i, s->step + d) = values->ring[(r * n + i) * delays + d];
  }
}

static void read_plain(struct lif_engine *s, struct lif_state *values) {
  const int64_t n = s->net->n_own, delays = s->net->max_delay;
  for (lidx i = 0; i < n; i++) {
    values->counter[i] = s->counter[i];
    if (!s->params.model) values->potential[i] = (int32_t)*component_of(s, 0, i);
    for (int c = 0; c < s->n_components && s->params.model; c++)
      values->component[c * n + i] = *component_of(s, c, i);
    for (int r = 0; r < s->n_rings; r++)
      for (int d = 0; d < delays; d++)
        values->ring[(r * n + i) * delays + d] = *due_at(s, r, i, s->step + d);
  }
}

static int by_row(const void *a, const void *b) {
  return (*(const lidx *)a > *(const lidx *)b) - (*(const lidx *)a < *(const lidx *)b);
}

static bool has(const struct lif_stimulus *stimulus, lidx i) {
  if (!stimulus->n) return false;
  return bsearch(&i, stimulus->neuron, (size_t)stimulus->n, sizeof i, by_row) != NULL;
}

static struct rng_block draw(const struct lif_engine *s, const struct lif_stimulus *stimulus,
                             lidx i, int64_t t) {
  const uint64_t id = (uint64_t)s->net->id[i];
  const uint32_t word = (uint32_t)stimulus->index | (uint32_t)(id >> 32) << 16;
  return rng_draw(s->seed, (uint32_t)id, (uint32_t)t, word, s->trial);
}

static bool is_listed(const struct lif_stimulus *stimulus, lidx i, int64_t t) {
  for (int64_t j = 0; j < stimulus->n_steps; j++) {
    if (stimulus->kind == LIF_SPIKES && stimulus->step[j] == t) return true;
    if (stimulus->kind == LIF_REPLAY && stimulus->replayed[j].step == t &&
        stimulus->replayed[j].neuron == i)
      return true;
  }
  return false;
}

/* Whether stimulus k does something to neuron i at step t. */
static bool acts(const struct lif_engine *s, int k, lidx i, int64_t t) {
  const struct lif_stimulus *stimulus = &s->stimulus[k];
  return t >= stimulus->first_step && t <= stimulus->last_step && has(stimulus, i);
}

/* What the stimuli do to neuron i at step t: the sum added to its input, and
 * whether it is made to fire. */
static int64_t stimuli_at(const struct lif_engine *s, lidx i, int64_t t, bool *fires) {
  int64_t sum = 0;
  *fires = false;
  for (int k = 0; k < s->n_stimuli; k++) {
    const struct lif_stimulus *stimulus = &s->stimulus[k];
    if (!acts(s, k, i, t)) continue;
    const struct rng_block r = draw(s, stimulus, i, t);
    if (stimulus->kind == LIF_CURRENT) sum += stimulus->value;
    if (stimulus->kind == LIF_POISSON && rng_unit(r.v[0], r.v[1]) < stimulus->probability)
      sum += stimulus->value;
    *fires |= is_listed(stimulus, i, t);
  }
  return sum;
}

static bool fits(int64_t x) {
  return x >= INT32_MIN && x <= INT32_MAX;
}

static void report(const struct lif_engine *s, struct lif_fault *fault, int64_t t, int phase,
                   lidx i, int64_t value) {
  const struct lif_fault found = {t, phase, s->net->id[i], value};
  if (!lif_fault_before(fault, &found)) *fault = found;
}

/* lif_shift: one neuron, one step; true when it spikes. */
static bool step_shift(struct lif_engine *s, lidx i, int64_t t, struct lif_fault *fault) {
  const struct lif_params *p = &s->params;
  const bool removed = s->net->mute && s->net->mute[i] & LIF_REMOVED;
  int64_t *potential = component_of(s, 0, i);
  bool fires;
  int64_t input = *due_at(s, 0, i, t) + stimuli_at(s, i, t, &fires);
  *due_at(s, 0, i, t) = 0;
  if (removed) input = 0, fires = false;
  if (!fits(input)) {
    report(s, fault, t, LIF_INPUT, i, input);
    return false;
  }
  if (!fires && s->counter[i] > 0) {
    *potential = p->reset, s->counter[i]--;
    return false;
  }
  if (!fires) {
    int64_t v = *potential + input;
    if (!fits(v)) {
      report(s, fault, t, LIF_INTEGRATE, i, v);
      return false;
    }
    for (int k = 0; k < p->n_shifts; k++) v -= v >> p->shift[k];
    *potential = v;
    fires = v >= p->threshold && !removed;
  }
  if (fires) *potential = p->reset, s->counter[i] = p->refractory;
  return fires;
}

/* ---- linear models: contract/lif_model.h ---- */

/* What comes to a neuron in a step, in 2^-32 units. */
struct model_input {
  int64_t arrived[2]; /* counts: positive and negative sums, or one sum for both */
  int64_t current;    /* to v, with the update */
  int64_t synapse[2]; /* events: positive, negative */
  int64_t v;          /* events onto v itself */
  bool fires;
};

static int64_t events_at(const struct lif_stimulus *stimulus, struct rng_block r) {
  const uint64_t u = (((uint64_t)r.v[0] << 32) | r.v[1]) >> 11;
  int64_t n = 0;
  while (n < stimulus->n_tails && u < stimulus->tail[n]) n++;
  return n;
}

static void add_stimulus(const struct lif_engine *s, const struct lif_stimulus *stimulus, lidx i,
                         int64_t t, struct model_input *in) {
  const int class = s->params.model->class_of[i];
  const struct rng_block r = draw(s, stimulus, i, t);
  if (stimulus->kind == LIF_CURRENT) in->current += stimulus->amount_of[class];
  if (stimulus->kind == LIF_NOISE)
    in->current +=
        (int64_t)((__int128)stimulus->quantile[r.v[0] >> 20] * stimulus->amount_of[class] >> 32);
  if (stimulus->kind == LIF_POISSON) {
    const int64_t sum = events_at(stimulus, r) * stimulus->amount;
    *(stimulus->into == LIF_INTO_V ? &in->v : &in->synapse[sum < 0]) += sum;
  }
  in->fires |= is_listed(stimulus, i, t);
}

static struct model_input model_input(struct lif_engine *s, lidx i, int64_t t) {
  const bool removed = s->net->mute && s->net->mute[i] & LIF_REMOVED;
  struct model_input in = {0};
  for (int r = 0; r < s->n_rings; r++) {
    if (!removed) in.arrived[r] = *due_at(s, r, i, t);
    *due_at(s, r, i, t) = 0;
  }
  for (int k = 0; k < s->n_stimuli && !removed; k++)
    if (acts(s, k, i, t)) add_stimulus(s, &s->stimulus[k], i, t, &in);
  return in;
}

/* x' without input: [n_components]. */
static void propagate(const struct lif_shape *shape, const struct lif_class *class,
                      const int64_t *x, int64_t *next) {
  for (int c = 0; c < shape->n_components; c++) next[c] = shape->keeps >> c & 1 ? x[c] : 0;
  for (int e = 0; e < shape->n_entries; e++)
    next[shape->entry[e].to] += lif_times(x[shape->entry[e].from], class->factor[e]);
  next[0] += class->drive;
}

/* What arrived in both signs joins the components that take it, unless they lose it. */
static void add_arrivals(const struct lif_shape *shape, const struct model_input *in, bool loses,
                         int64_t *x) {
  const int64_t one = (int64_t)1 << 32;
  if (!(loses && shape->frozen >> shape->plus & 1))
    x[shape->plus] += in->arrived[0] * one + in->synapse[0];
  if (!(loses && shape->frozen >> shape->minus & 1))
    x[shape->minus] += in->arrived[1] * one + in->synapse[1];
}

static void check_bounds(const struct lif_engine *s, lidx i, int64_t t,
                         const struct model_input *in, const int64_t *x, struct lif_fault *fault) {
  for (int r = 0; r < s->n_rings; r++)
    if (llabs(in->arrived[r]) >= LIF_MOST_ARRIVALS)
      report(s, fault, t, LIF_INPUT, i, in->arrived[r]);
  for (int c = 0; c < s->n_components; c++)
    if (llabs(x[c]) >= LIF_MOST_VALUE) report(s, fault, t, LIF_INTEGRATE + c, i, x[c]);
}

/* One neuron of a model, one step; true when it spikes. */
static bool step_model(struct lif_engine *s, lidx i, int64_t t, struct lif_fault *fault) {
  const struct lif_shape *shape = &s->params.model->shape;
  const struct lif_class *class = &s->params.model->classes[s->params.model->class_of[i]];
  const bool removed = s->net->mute && s->net->mute[i] & LIF_REMOVED;
  const struct model_input in = model_input(s, i, t);
  int64_t x[LIF_MOST_COMPONENTS], next[LIF_MOST_COMPONENTS];
  for (int c = 0; c < shape->n_components; c++) x[c] = *component_of(s, c, i);
  const bool rests = s->counter[i] > 0;
  s->counter[i] -= rests;
  propagate(shape, class, x, next);
  next[0] += in.current;
  if (shape->arrivals_early) add_arrivals(shape, &in, rests, next);
  for (int c = 0; c < shape->n_components; c++)
    if (rests && shape->frozen >> c & 1) next[c] = x[c];
  const int64_t bar = class->threshold + (class->raises ? next[shape->adaptation] : 0);
  const bool fires =
      ((!rests && (shape->strict ? next[0] > bar : next[0] >= bar)) || in.fires) && !removed;
  if (!shape->arrivals_early) add_arrivals(shape, &in, rests || fires, next);
  if (!rests && !fires) next[0] += in.v;
  if (fires) {
    for (int c = 0; c < shape->n_components; c++)
      if (shape->cleared >> c & 1) next[c] = 0;
    next[0] = class->reset, s->counter[i] = class->rest;
    if (shape->adaptation >= 0) next[shape->adaptation] += class->jump;
  }
  for (int c = 0; c < shape->n_components; c++) *component_of(s, c, i) = next[c];
  check_bounds(s, i, t, &in, next, fault);
  return fires;
}

static bool step_neuron(struct lif_engine *s, lidx i, int64_t t, struct lif_fault *fault) {
  return s->params.model ? step_model(s, i, t, fault) : step_shift(s, i, t, fault);
}

/* ---- steps ---- */

static void integrate_plain(struct lif_engine *s, int n, struct lif_spikes *mine,
                            struct lif_fault *fault) {
  *fault = (struct lif_fault){.step = LIF_NO_FAULT};
  int64_t found = 0;
  for (int k = 0; k < n; k++) {
    s->step_ptr[k] = found;
    for (lidx i = 0; i < s->net->n_own; i++)
      if (step_neuron(s, i, s->step + k, fault)) s->row[found++] = (uint32_t)(s->net->first + i);
  }
  s->step_ptr[n] = found;
  *mine = (struct lif_spikes){.n = found, .row = s->row, .n_steps = n, .step_ptr = s->step_ptr};
}

static void deliver_plain(struct lif_engine *s, int n, const struct lif_spikes *all) {
  const struct lif_net *net = s->net;
  for (int k = 0; k < n; k++)
    for (int64_t at = all->step_ptr[k]; at < all->step_ptr[k + 1]; at++)
      for (eidx e = net->out_ptr[all->row[at]]; e < net->out_ptr[all->row[at] + 1]; e++) {
        const struct lif_edge edge = net->out[e];
        const int ring = s->n_rings == 2 && edge.weight < 0;
        *due_at(s, ring, (lidx)edge.target, s->step + k + edge.delay) += edge.weight;
      }
  s->step += n;
}

static void values_plain(struct lif_engine *s, int component, lidx n, const lidx *neuron,
                         int64_t *value) {
  for (lidx i = 0; i < n; i++) value[i] = *component_of(s, component, neuron[i]);
}

const struct lif_backend lif_plain = {.open = open_plain,
                                      .close = close_plain,
                                      .write = write_plain,
                                      .read = read_plain,
                                      .integrate = integrate_plain,
                                      .deliver = deliver_plain,
                                      .values = values_plain};
