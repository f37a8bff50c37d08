/* ranks: 1 3 */
/* seconds: 240 */
/* Linear models of every shape, run in every variant that must not matter: ranks, threads, loops,
 * row order. All against the plain loop on one rank. Time constants are short, so that neurons come
 * to rest, are left alone, and are woken again by all that can reach them. */
#include "lif_case.h"
#include "core/rng.h"
#include "models/models.h"

#include <math.h>

enum {
  N = 2600,
  DEGREE = 30,
  STEPS = 900,
  FIRST_OTHER = 2048,
  CLASSES = 3,
};
static const double DT_MS = 0.1;

/* A model, its delays, and whether sums are held in 64 bits; a strong current makes components
 * large. */
struct scene {
  const struct lif_model_kind *kind;
  bool adapts;
  double weight; /* mV or pA */
  int low_delay, high_delay;
  bool wide;
  double i_e_pa; /* of nodes from FIRST_OTHER on */
};

static const struct scene scenes[] = {{&lif_model_delta, false, 0.4, 18, 18, false, 20},
                                      {&lif_model_delta, true, 0.4, 1, 9, false, 20},
                                      {&lif_model_exp, false, 2, 18, 18, false, 20},
                                      {&lif_model_exp, false, 2, 1, 9, true, 20},
                                      {&lif_model_exp, false, 2, 18, 18, false, -1e9},
                                      {&lif_model_psc_exp, false, 150, 2, 4, false, -1e9},
                                      {&lif_model_exp, true, 2, 5, 7, false, 20},
                                      {&lif_model_psc_exp, false, 150, 18, 18, false, 20},
                                      {&lif_model_psc_exp, true, 150, 1, 9, false, 20},
                                      {&lif_model_psc_exp, false, 150, 4, 8, true, 20},
                                      {&lif_model_psc_alpha, false, 40, 18, 18, false, 20},
                                      {&lif_model_psc_alpha, true, 40, 2, 9, false, 20}};

/* ---- the net ---- */

static struct lif_edges make_edges(const struct scene *scene) {
  const eidx n = (eidx)N * DEGREE;
  uint32_t *source = NEW(uint32_t, n), *target = NEW(uint32_t, n);
  int16_t *weight = NEW(int16_t, n);
  uint16_t *delay = NEW(uint16_t, n);
  for (eidx e = 0; e < n; e++) {
    const struct rng_block r = rng_draw(6, (uint32_t)e, 0, 0, 0);
    source[e] = (uint32_t)(e / DEGREE), target[e] = (uint32_t)rng_below(r.v[0], r.v[1], N);
    weight[e] = (int16_t)(source[e] % 5 ? 1 + (int)(r.v[2] % 9) : -5 - (int)(r.v[2] % 40));
    delay[e] = (uint16_t)(scene->low_delay +
                          r.v[3] % (uint32_t)(scene->high_delay - scene->low_delay + 1));
  }
  return (struct lif_edges){.n_nodes = N,
                            .n_edges = n,
                            .source = source,
                            .target = target,
                            .weight = weight,
                            .delay = delay};
}

static void free_edges(const struct lif_edges *e) {
  mem_free((void *)e->source), mem_free((void *)e->target), mem_free((void *)e->weight),
      mem_free((void *)e->delay);
}

/* Nodes from FIRST_OTHER on move by another class; some of both have no refractory time. */
static void make_model(const struct scene *scene, const struct lif_net *net,
                       struct lif_model *model, struct lif_units *units) {
  struct lif_neuron neuron[CLASSES] = {{.v_rest_mv = -60,
                                        .v_threshold_mv = -52,
                                        .v_reset_mv = -61,
                                        .tau_m_ms = 2,
                                        .tau_syn_ms = 1,
                                        .tau_syn_ex_ms = 0.5,
                                        .tau_syn_in_ms = 1.5,
                                        .c_m_pf = 100,
                                        .refractory_ms = 1.1,
                                        .adapts = scene->adapts,
                                        .adaptation_tau_ms = 4,
                                        .adaptation_jump_mv = 1.5}};
  const bool bare[CLASSES] = {false, false, true};
  neuron[1] = neuron[2] = neuron[0];
  neuron[1].tau_m_ms = scene->i_e_pa < 0 ? 1 : 3, neuron[1].i_e_pa = scene->i_e_pa;
  neuron[1].adaptation_into = ADAPTATION_THRESHOLD;
  CHECK_FINE(lif_model_build(scene->kind, neuron, bare, CLASSES, DT_MS, scene->weight, "test",
                             model, units));
  uint16_t *class_of = NEW(uint16_t, net->n_own);
  for (lidx i = 0; i < net->n_own; i++)
    class_of[i] = net->id[i] >= FIRST_OTHER ? 1 : net->id[i] % 50 == 7 ? 2 : 0;
  model->class_of = class_of;
}

/* ---- input ---- */

static int64_t amounts[CLASSES], quantiles[LIF_QUANTILES];
static uint64_t rare[LIF_MOST_EVENTS], many[LIF_MOST_EVENTS];

static struct lif_stimulus events(const struct lif_net *net, int index, int64_t n,
                                  const nodeid *node, int64_t last, double mean, int64_t amount,
                                  enum lif_into into, uint64_t *tail) {
  struct lif_stimulus s = lif_poisson(net, index, n, node, 0, last, mean, 0);
  s.into = into, s.amount = amount, s.tail = tail, s.n_tails = lif_poisson_tails(mean, tail);
  return s;
}

/* Of every kind; neurons of one list are of several blocks. */
static int drive(const struct lif_net *net, const struct lif_units *units,
                 struct lif_stimulus *stimulus) {
  nodeid some[60], other[60];
  const int64_t big = lif_units_integer(units, 20), count = (int64_t)1 << 32;
  for (int i = 0; i < 60; i++) some[i] = 41 * i + 7, other[i] = 43 * i + 1;
  for (int k = 0; k < CLASSES; k++) amounts[k] = big / 30 * (k + 1);
  for (int k = 0; k < LIF_QUANTILES; k++)
    quantiles[k] = ((int64_t)k - LIF_QUANTILES / 2) * (1 << 21);
  stimulus[0] = events(net, 0, 30, some, INT64_MAX, 0.04, big, LIF_INTO_V, rare);
  stimulus[1] = events(net, 1, 60, other, 200, 2.5, 5 * count, LIF_INTO_SYNAPSE, many);
  stimulus[2] = events(net, 2, 40, some + 20, 300, 0.04, -30 * count, LIF_INTO_SYNAPSE, rare);
  stimulus[3] = lif_current(net, 3, 40, other, 500, 560, 0);
  stimulus[3].amount_of = amounts;
  stimulus[4] = lif_current(net, 4, 20, some + 5, 600, 640, 0);
  stimulus[4].kind = LIF_NOISE, stimulus[4].amount_of = amounts, stimulus[4].quantile = quantiles;
  stimulus[5] = lif_listed(net, 5, 50, other + 10, 4, (int64_t[]){0, 400, 401, 700});
  return 6;
}

static void silence(struct lif_net *net) {
  for (lidx i = 0; i < net->n_own; i++) {
    if (net->id[i] % 97 == 7) lif_net_silence(net, 1, &i, LIF_REMOVED);
    if (net->id[i] % 61 == 3) lif_net_silence(net, 1, &i, LIF_MUTED);
  }
}

/* ---- runs ---- */

static void add_state(struct trail *trail, const struct lif_run *run) {
  const struct lif_net *net = run->setup.net;
  const struct lif_model *model = run->setup.params.model;
  struct lif_state state;
  lif_state_init(net, model, &state);
  lif_read(run, &state);
  for (lidx i = 0; i < net->n_own; i++) {
    trail_add(trail, net->id[i], run->step, state.counter[i], 50);
    for (int c = 0; c < model->shape.n_components; c++)
      trail_add(trail, net->id[i], run->step, state.component[(int64_t)c * net->n_own + i], c);
    for (int64_t d = 0; d < net->max_delay; d++)
      for (int r = 0; r < lif_model_rings(model); r++)
        trail_add(trail, net->id[i], run->step + d,
                  state.ring[((int64_t)r * net->n_own + i) * net->max_delay + d], 60 + r);
  }
  lif_state_free(&state);
}

static struct trail run_scene(const struct scene *scene, const struct lif_edges *edges,
                              const struct comm *comm, const struct variant *variant) {
  struct test_net p;
  struct lif_model model;
  struct lif_units units;
  struct lif_stimulus stimulus[6];
  struct trail trail = {0};
  test_net_init(&p, comm, edges, variant);
  p.net.wide |= scene->wide;
  silence(&p.net);
  make_model(scene, &p.net, &model, &units);
  const int n = drive(&p.net, &units, stimulus);
  const struct lif_params params = {.model = &model};
  struct lif_run *run = open_run(&p, comm, variant, &params, stimulus, n, 99);
  struct lif_state state;
  lif_state_init(&p.net, &model, &state);
  CHECK_FINE(lif_write(run, comm, &state, 3));
  lif_state_free(&state);
  while (run->step < STEPS) {
    struct lif_batch batch;
    lif_batch(run, comm, (run->step / 100 + 1) * 100 - run->step, REQUEST_NONE, &batch);
    CHECK_EQ(batch.fault.step, LIF_NO_FAULT);
    trail_spikes(&trail, run, &batch);
    if (run->step % 100 == 0) add_state(&trail, run);
  }
  lif_close(run);
  for (int k = 0; k < n; k++) lif_stimulus_free(&stimulus[k]);
  lif_model_free(&model), test_net_free(&p);
  trail_sum(&trail, comm);
  return trail;
}

static void check_scene(const struct scene *scene, const struct comm *alone) {
  struct variant variants[8];
  const int n = all_variants(variants);
  const struct lif_edges edges = make_edges(scene);
  const struct trail wanted = run_scene(scene, &edges, alone, &variants[0]);
  CHECK(wanted.spikes > 1000);
  for (int k = 1; k < n; k++) {
    const struct trail got = run_scene(scene, &edges, &world, &variants[k]);
    CHECK_EQ(got.spikes, wanted.spikes);
    CHECK_EQ(got.events, wanted.events);
    CHECK_EQ(got.low, wanted.low);
    CHECK_EQ(got.high, wanted.high);
  }
  if (world.rank == 0)
    printf("%s%s, delays %d to %d: %lld spikes\n", scene->kind->name,
           scene->adapts ? " with adaptation" : "", scene->low_delay, scene->high_delay,
           (long long)wanted.spikes);
  free_edges(&edges);
}

/* ---- sums that are due after the end ---- */

enum { PARALLEL = 8200 }; /* edges of weight 32767: their sum is above LIF_MOST_ARRIVALS */

static struct lif_fault pending_fault(const struct variant *variant, int sign) {
  static uint32_t source[PARALLEL], target[PARALLEL];
  static int16_t weight[PARALLEL];
  static uint16_t delay[PARALLEL];
  for (int e = 0; e < PARALLEL; e++)
    source[e] = 0, target[e] = 2, delay[e] = 5, weight[e] = (int16_t)(sign * 32767);
  const struct lif_edges edges = {3, PARALLEL, source, target, weight, delay, NULL};
  const struct scene scene = {&lif_model_psc_exp, false, 1e-6, 5, 5, true, 0};
  struct test_net p;
  struct lif_model model;
  struct lif_units units;
  struct lif_fault fault;
  test_net_init(&p, &world, &edges, variant);
  p.net.wide = true;
  make_model(&scene, &p.net, &model, &units);
  struct lif_stimulus kick = lif_listed(&p.net, 0, 1, (nodeid[]){0}, 1, (int64_t[]){2});
  const struct lif_params params = {.model = &model};
  struct lif_run *run = open_run(&p, &world, variant, &params, &kick, 1, 1);
  struct lif_batch batch;
  while (run->step < 4) {
    lif_batch(run, &world, 4 - run->step, REQUEST_NONE, &batch);
    CHECK_EQ(batch.fault.step, LIF_NO_FAULT);
  }
  lif_final_check(run, &world, &fault);
  lif_close(run), lif_stimulus_free(&kick), lif_model_free(&model), test_net_free(&p);
  return fault;
}

static void check_pending(void) {
  struct variant variants[8];
  const int n = all_variants(variants);
  for (int k = 0; k < n; k++)
    for (int sign = -1; sign < 2; sign += 2) {
      const struct lif_fault fault = pending_fault(&variants[k], sign);
      CHECK_EQ(fault.step, 7);
      CHECK_EQ(fault.phase, LIF_INPUT);
      CHECK_EQ(fault.node, 2);
      CHECK_EQ(fault.value, (int64_t)sign * 32767 * PARALLEL);
    }
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  CHECK_FINE(transport_mpi.open(&world));
  struct comm alone = comm_split(&world, world.rank, 0);
  for (int i = 0; i < (int)(sizeof scenes / sizeof *scenes); i++) check_scene(&scenes[i], &alone);
  comm_free(&alone);
  check_pending();
  transport_mpi.close(&world);
  return test_end();
}
