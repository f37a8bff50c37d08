/* LIF nets and jobs for the GPU tests, and the digest of what a backend makes of them. */
#include "lif_case.h"
#include "core/digest.h"
#include "core/mem.h"
#include "core/rng.h"
#include "synthetic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The transposed rows of a synthetic graph are lognormal both ways as well:
 * rows are taken as sources. */
static struct lif_edge random_edge(const struct lif_case *c, lidx target, eidx e) {
  const struct rng_block b = rng_draw(77, (uint32_t)e, (uint32_t)(e >> 32), 0, 0);
  const int span = 2 * c->weight + 1, delays = c->max_delay - c->min_delay + 1;
  return (struct lif_edge){(uint32_t)target, (int16_t)((int)(b.v[0] % (uint32_t)span) - c->weight),
                           (uint16_t)(c->min_delay + (int)(b.v[1] % (uint32_t)delays))};
}

static uint8_t *random_mutes(lidx n) {
  uint8_t *mute = NEW(uint8_t, n);
  for (lidx i = 0; i < n; i++)
    mute[i] = (uint8_t)(rng_draw(78, (uint32_t)i, 0, 0, 0).v[0] % 8 < 4 ? i % 4 : 0);
  return mute;
}

void lif_data_init(const struct lif_case *c, struct lif_data *d) {
  struct graph g = synthetic_graph(c->n, c->edges, c->sigma, 3);
  const eidx n_edges = g.near.n_edges;
  *d = (struct lif_data){.out_ptr = g.near.row_ptr,
                         .out = NEW(struct lif_edge, n_edges),
                         .id = NEW(nodeid, c->n),
                         .all = NEW(lidx, c->n)};
#pragma omp parallel for
  for (eidx e = 0; e < n_edges; e++) d->out[e] = random_edge(c, g.near.col[e], e);
  mem_free(g.near.col);
  for (lidx i = 0; i < c->n; i++) d->id[i] = (nodeid)c->n - 1 - i, d->all[i] = i;
  if (c->mutes) d->mute = random_mutes(c->n);
  d->net = (struct lif_net){.n_global = c->n,
                            .n_own = c->n,
                            .n_edges = n_edges,
                            .out_ptr = d->out_ptr,
                            .out = d->out,
                            .id = d->id,
                            .mute = d->mute,
                            .min_delay = c->min_delay,
                            .max_delay = c->max_delay,
                            .wide = c->wide};
}

void lif_data_free(struct lif_data *d) {
  mem_free(d->out_ptr), mem_free(d->out), mem_free(d->id), mem_free(d->mute), mem_free(d->all);
}

static void hash_spikes(struct sha256 *hash, const struct lif_spikes *mine, int64_t step,
                        int64_t until, int64_t *n) {
  for (int k = 0; k < mine->n_steps && step + k < until; k++) {
    const int64_t t = step + k, from = mine->step_ptr[k], count = mine->step_ptr[k + 1] - from;
    if (count == 0) continue;
    sha256_add(hash, &t, sizeof t),
        sha256_add(hash, mine->row + from, (size_t)count * sizeof *mine->row);
    *n += count;
  }
}

/* The state of one trial, or of the only one (k < 0). */
static void hash_state(struct sha256 *hash, const struct lif_backend *be, struct lif_engine *state,
                       int k, const struct lif_net *net) {
  const int64_t n = net->n_own, sums = n * net->max_delay;
  int32_t *potential = NEW(int32_t, n);
  uint16_t *counter = NEW(uint16_t, n);
  int64_t *ring = NEW(int64_t, sums);
  struct lif_state values = {.potential = potential, .counter = counter, .ring = ring};
  if (k < 0)
    be->read(state, &values);
  else
    be->together->read(state, k, &values);
  sha256_add(hash, potential, (size_t)n * sizeof *potential),
      sha256_add(hash, counter, (size_t)n * sizeof *counter);
  sha256_add(hash, ring, (size_t)sums * sizeof *ring);
  mem_free(potential), mem_free(counter), mem_free(ring);
}

static void without_muted(const struct lif_net *net, struct lif_spikes *s) {
  int64_t n = 0;
  for (int k = 0; k < s->n_steps; k++) {
    const int64_t from = s->step_ptr[k];
    s->step_ptr[k] = n;
    for (int64_t at = from; at < s->step_ptr[k + 1]; at++)
      if (!net->mute || !(net->mute[s->row[at]] & LIF_MUTED)) s->row[n++] = s->row[at];
  }
  s->step_ptr[s->n_steps] = s->n = n;
}

enum { FIRST_STEP = 5, SEED = 9 };

struct lif_outcome lif_outcome(const struct lif_backend *be, const struct lif_data *d,
                               const struct lif_job *job) {
  struct lif_outcome o = {.fault = {.step = INT64_MAX}};
  struct lif_engine *state;
  const struct status s =
      be->open(&d->net, job->params, job->stimulus, job->n_stimuli, SEED, job->n_threads, &state);
  if (s.code) DIE(s.code, "%s", s.text);
  uint16_t *counter = NEW_ZERO(uint16_t, d->net.n_own);
  int64_t *ring = NEW_ZERO(int64_t, (int64_t)d->net.n_own * d->net.max_delay), step = FIRST_STEP;
  be->write(
      state, job->trial,
      &(struct lif_state){
          .step = step, .potential = (int32_t *)job->potential, .counter = counter, .ring = ring});
  struct sha256 hash;
  sha256_init(&hash);
  for (const int64_t end = step + job->steps; step < end && o.fault.step == INT64_MAX;) {
    struct lif_spikes mine;
    struct lif_tally tally = {0};
    const int n = (int)(end - step < d->net.min_delay ? end - step : d->net.min_delay);
    const bool alone = be->run && !job->by_batches;
    const int64_t made = alone ? be->run(state, end - step, &mine, &tally, &o.fault) : n;
    if (!alone) be->integrate(state, n, &mine, &o.fault);
    hash_spikes(&hash, &mine, step, o.fault.step, &o.spikes);
    if (!alone) without_muted(&d->net, &mine);
    if (!alone && o.fault.step == INT64_MAX) be->deliver(state, n, &mine);
    step += made, o.host_events += tally.host_events;
  }
  if (o.fault.step == INT64_MAX) hash_state(&hash, be, state, -1, &d->net);
  sha256_end(&hash, o.digest);
  be->close(state);
  mem_free(counter), mem_free(ring);
  return o;
}

enum { TRIALS = 64 };

void lif_outcomes(const struct lif_backend *be, const struct lif_data *d, const struct lif_job *job,
                  int n_trials, struct lif_outcome *outcome) {
  const struct lif_together *all = be->together;
  struct lif_engine *state;
  const struct status s =
      all->open(&d->net, job->params, job->stimulus, job->n_stimuli, SEED, n_trials, &state);
  if (s.code) DIE(s.code, "%s", s.text);
  uint16_t *counter = NEW_ZERO(uint16_t, d->net.n_own);
  int64_t *ring = NEW_ZERO(int64_t, (int64_t)d->net.n_own * d->net.max_delay), step = FIRST_STEP;
  struct sha256 hash[TRIALS];
  for (int k = 0; k < n_trials; k++) {
    all->write(state, k, job->trial + (uint32_t)k,
               &(struct lif_state){.step = step,
                                   .potential = (int32_t *)job->potential,
                                   .counter = counter,
                                   .ring = ring});
    outcome[k] = (struct lif_outcome){.fault = {.step = INT64_MAX}};
    sha256_init(&hash[k]);
  }
  int alive = n_trials;
  for (const int64_t end = step + job->steps; step < end && alive > 0;) {
    struct lif_spikes mine[TRIALS];
    struct lif_tally tally[TRIALS];
    struct lif_fault fault;
    int faulty = alive;
    const int64_t made = all->run(state, alive, end - step, mine, tally, &fault, &faulty);
    if (fault.step != INT64_MAX) outcome[faulty].fault = fault;
    for (int k = 0; k < alive; k++) {
      hash_spikes(&hash[k], &mine[k], step, outcome[k].fault.step, &outcome[k].spikes);
      outcome[k].host_events += tally[k].host_events;
    }
    step += made, alive = faulty;
  }
  for (int k = 0; k < n_trials; k++) {
    if (k < alive) hash_state(&hash[k], be, state, k, &d->net);
    sha256_end(&hash[k], outcome[k].digest);
  }
  be->close(state);
  mem_free(counter), mem_free(ring);
}
