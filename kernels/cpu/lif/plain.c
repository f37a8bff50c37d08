/* The specification: contract/lif.h read out one neuron at a time, in int64,
 * with no regard for speed. */
#include "kernels/interface/backends.h"
#include "contract/lif.h"
#include "core/mem.h"
#include "core/rng.h"

#include <stdlib.h>

struct lif {
  const struct lif_net *net;
  struct lif_params params;
  const struct lif_stimulus *stimulus;
  int n_stimuli;
  uint64_t seed;
  uint32_t trial;
  int64_t step;
  int32_t *potential; /* [n_own] */
  uint16_t *counter;  /* [n_own] */
  int64_t *ring;      /* [n_own][max_delay]: the sum due at t stands at t % max_delay */
  uint32_t *row;
  int64_t *step_ptr, room;
};

static struct status open_plain(const struct lif_net *net, const struct lif_params *params,
                                const struct lif_stimulus *stimulus, int n_stimuli, uint64_t seed,
                                int n_threads, struct lif **state) {
  (void)n_threads;
  struct lif *s = NEW_ZERO(struct lif, 1);
  s->net = net, s->params = *params, s->stimulus = stimulus, s->n_stimuli = n_stimuli,
  s->seed = seed;
  s->potential = NEW_ZERO(int32_t, net->n_own);
  s->counter = NEW_ZERO(uint16_t, net->n_own);
  s->ring = NEW_ZERO(int64_t, (int64_t)net->n_own * net->max_delay);
  s->room = (int64_t)net->n_own * net->min_delay;
  s->row = NEW(uint32_t, s->room);
  s->step_ptr = NEW(int64_t, net->min_delay + 1);
  *state = s;
  return fine();
}

static void close_plain(struct lif *s) {
  mem_free(s->potential), mem_free(s->counter), mem_free(s->ring), mem_free(s->row),
      mem_free(s->step_ptr);
  mem_free(s);
}

static int64_t *due_at(const struct lif *s, lidx i, int64_t step) {
  return &s->ring[(int64_t)i * s->net->max_delay + step % s->net->max_delay];
}

static void write_plain(struct lif *s, int64_t step, uint32_t trial, const int32_t *potential,
                        const uint16_t *counter, const int64_t *ring) {
  s->step = step, s->trial = trial;
  for (lidx i = 0; i < s->net->n_own; i++) {
    s->potential[i] = potential[i], s->counter[i] = counter[i];
    for (int d = 0; d < s->net->max_delay; d++)
      *due_at(s, i, step + d) = ring[(int64_t)i * s->net->max_delay + d];
  }
}

static void read_plain(struct lif *s, int32_t *potential, uint16_t *counter, int64_t *ring) {
  for (lidx i = 0; i < s->net->n_own; i++) {
    potential[i] = s->potential[i], counter[i] = s->counter[i];
    for (int d = 0; d < s->net->max_delay; d++)
      ring[(int64_t)i * s->net->max_delay + d] = *due_at(s, i, s->step + d);
  }
}

static int by_row(const void *a, const void *b) {
  return (*(const lidx *)a > *(const lidx *)b) - (*(const lidx *)a < *(const lidx *)b);
}

static bool has(const struct lif_stimulus *stimulus, lidx i) {
  if (!stimulus->n) return false;
  return bsearch(&i, stimulus->neuron, (size_t)stimulus->n, sizeof i, by_row) != NULL;
}

static bool poisson_hits(const struct lif *s, const struct lif_stimulus *stimulus, lidx i,
                         int64_t t) {
  const uint64_t id = (uint64_t)s->net->id[i];
  const uint32_t word = (uint32_t)stimulus->index | (uint32_t)(id >> 32) << 16;
  const struct rng_block r = rng_draw(s->seed, (uint32_t)id, (uint32_t)t, word, s->trial);
  return rng_unit(r.v[0], r.v[1]) < stimulus->probability;
}

/* What the stimuli do to neuron i at step t: the sum added to its input, and
 * whether it is made to fire. */
static int64_t stimuli_at(const struct lif *s, lidx i, int64_t t, bool *fires) {
  int64_t sum = 0;
  *fires = false;
  for (int k = 0; k < s->n_stimuli; k++) {
    const struct lif_stimulus *stimulus = &s->stimulus[k];
    if (t < stimulus->first_step || t > stimulus->last_step || !has(stimulus, i)) continue;
    if (stimulus->kind == LIF_CURRENT) sum += stimulus->value;
    if (stimulus->kind == LIF_POISSON && poisson_hits(s, stimulus, i, t)) sum += stimulus->value;
    if (stimulus->kind == LIF_SPIKES)
      for (int64_t j = 0; j < stimulus->n_steps; j++) *fires |= stimulus->step[j] == t;
  }
  return sum;
}

static bool fits(int64_t x) {
  return x >= INT32_MIN && x <= INT32_MAX;
}

static void report(const struct lif *s, struct lif_fault *fault, int64_t t, int phase, lidx i,
                   int64_t value) {
  const nodeid node = s->net->id[i];
  if (t > fault->step || (t == fault->step && phase > fault->phase)) return;
  if (t == fault->step && phase == fault->phase && node > fault->node) return;
  *fault = (struct lif_fault){t, phase, node, value};
}

/* One neuron, one step; true when it spikes. */
static bool step_neuron(struct lif *s, lidx i, int64_t t, struct lif_fault *fault) {
  const struct lif_params *p = &s->params;
  const bool removed = s->net->mute && s->net->mute[i] & LIF_REMOVED;
  bool fires;
  int64_t input = *due_at(s, i, t) + stimuli_at(s, i, t, &fires);
  *due_at(s, i, t) = 0;
  if (removed) input = 0, fires = false;
  if (!fits(input)) {
    report(s, fault, t, LIF_INPUT, i, input);
    return false;
  }
  if (!fires && s->counter[i] > 0) {
    s->potential[i] = p->reset, s->counter[i]--;
    return false;
  }
  if (!fires) {
    int64_t v = s->potential[i] + input;
    if (!fits(v)) {
      report(s, fault, t, LIF_INTEGRATE, i, v);
      return false;
    }
    for (int k = 0; k < p->n_shifts; k++) v -= v >> p->shift[k];
    s->potential[i] = (int32_t)v;
    fires = v >= p->threshold && !removed;
  }
  if (fires) s->potential[i] = p->reset, s->counter[i] = p->refractory;
  return fires;
}

static void integrate_plain(struct lif *s, int n, struct lif_spikes *mine,
                            struct lif_fault *fault) {
  *fault = (struct lif_fault){.step = INT64_MAX};
  int64_t found = 0;
  for (int k = 0; k < n; k++) {
    s->step_ptr[k] = found;
    for (lidx i = 0; i < s->net->n_own; i++)
      if (step_neuron(s, i, s->step + k, fault)) s->row[found++] = (uint32_t)(s->net->first + i);
  }
  s->step_ptr[n] = found;
  *mine = (struct lif_spikes){.n = found, .row = s->row, .n_steps = n, .step_ptr = s->step_ptr};
}

static void deliver_plain(struct lif *s, int n, const struct lif_spikes *all) {
  const struct lif_net *net = s->net;
  for (int k = 0; k < n; k++)
    for (int64_t at = all->step_ptr[k]; at < all->step_ptr[k + 1]; at++)
      for (eidx e = net->out_ptr[all->row[at]]; e < net->out_ptr[all->row[at] + 1]; e++)
        *due_at(s, (lidx)net->out[e].target, s->step + k + net->out[e].delay) += net->out[e].weight;
  s->step += n;
}

static void potentials_plain(struct lif *s, lidx n, const lidx *neuron, int32_t *potential) {
  for (lidx i = 0; i < n; i++) potential[i] = s->potential[neuron[i]];
}

const struct lif_backend lif_plain = {.open = open_plain,
                                      .close = close_plain,
                                      .write = write_plain,
                                      .read = read_plain,
                                      .integrate = integrate_plain,
                                      .deliver = deliver_plain,
                                      .potentials = potentials_plain};
