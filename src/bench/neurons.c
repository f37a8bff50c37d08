/* bench lif --model lif_delta|lif_exp|psc_exp|psc_alpha: time per step of neurons with published
 * parameters (Shiu et al. 2024; Potjans and Diesmann 2014; NEST's own values), steps of 0.1 ms.
 *
 *   quiet     every neuron is at rest
 *   idle      every component differs from rest at first, and potentials decay in all steps; nobody
 *             fires. At most 1,500 steps: later many would be at rest
 *   driven    some neurons fire by Poisson events onto v, --rate a second each, so many neurons
 *             that this makes --spikes a second; the spikes that they cause come on top
 *   poisson   every neuron has a source of its own: 7,500 events a second into the synapse, or,
 *             in models whose synapses are in mV, events onto v that make it fire 3.86 times a
 *             second (0.64 M spikes a second at MaleCNS' size)
 *
 * With --trials K each again as K trials together (NAME_trialsK: time for a step of one trial).
 *
 * The floor counts the bytes that any such step must move: all components and counters, in and out
 * once in as many steps as the shortest delay, and 16 an event (edge in, its sum in and out). */
#include "neurons.h"
#include "lif_time.h"
#include "models/models.h"
#include "core/log.h"
#include "core/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FLY_NODES = 138639, FLY_EDGES = 15100000, FLY_DELAY = 18 };
enum { IDLE_MOST = 1500 };
enum { STEPS = 2000, WARM_UP = 400, REFRACTORY_CLASS = 0, BARE_CLASS = 1, CLASSES = 2 };
static const double DT_MS = 0.1, BACKGROUND_HZ = 7500, FIRE_HZ = 3.86;

#define SHIU                                                                                       \
  .v_rest_mv = -52, .v_threshold_mv = -45, .v_reset_mv = -52, .tau_m_ms = 20, .refractory_ms = 2.2
#define CORTEX(rest, threshold)                                                                    \
  .v_rest_mv = rest, .v_threshold_mv = threshold, .v_reset_mv = rest, .tau_m_ms = 10,              \
  .c_m_pf = 250, .refractory_ms = 2
#define CURRENTS(tau) .tau_syn_ex_ms = tau, .tau_syn_in_ms = tau

/* What a count is worth is given in mV or pA, as the model has it. */
static const struct published {
  const struct lif_model_kind *kind;
  double weight, event; /* a count, an event of the background */
  struct lif_neuron neuron;
} published[LIF_MODELS] = {
    {&lif_model_delta, 0.1, 0, {CORTEX(-70, -55)}},
    {&lif_model_exp, 0.275, 0, {SHIU, .tau_syn_ms = 5, .c_m_pf = NAN}},
    {&lif_model_psc_exp, 20, 87.8, {CORTEX(-65, -50), CURRENTS(0.5)}},
    {&lif_model_psc_alpha, 2, 8, {CORTEX(-70, -55), CURRENTS(2)}},
};

/* A case. */
struct activity {
  const char *name;
  bool moved, driven, background;
};

/* What all cases share. */
struct population {
  const struct lif_fixture *fixture;
  const struct published *of;
  struct lif_model model;
  struct lif_units units;
  nodeid *driven; /* [n_driven] */
  int64_t n_driven;
};

struct status neurons_choose(struct bench_job *bench) {
  char names[128];
  if (!strcmp(bench->model, "lognormal") || !strcmp(bench->model, "modular")) return fine();
  bench->neurons = lif_model_find(bench->model);
  lif_model_names(names, sizeof names);
  if (!bench->neurons)
    return failure(EXIT_USAGE,
                   "bench lif --model %s: give a graph, \"lognormal\" or \"modular\", or a "
                   "neuron model: %s",
                   bench->model, names);
  if (bench->trials && !bench->job.backend->lif->together)
    return failure(EXIT_USAGE, "bench lif --trials: the %s backend runs one trial at a time",
                   bench->job.backend->name);
  if (!(bench->spikes > 0 && bench->rate > 0 && bench->rate <= 1000))
    return failure(EXIT_USAGE,
                   "bench lif: --spikes %g and --rate %g must be above 0, the rate at most "
                   "1000 Hz",
                   bench->spikes, bench->rate);
  bench->model = NULL;
  if (!bench->nodes && !bench->edges) bench->nodes = FLY_NODES, bench->edges = FLY_EDGES;
  if (!bench->low_delay) bench->low_delay = bench->high_delay = FLY_DELAY;
  if (!bench->steps) bench->steps = STEPS;
  return fine();
}

/* ---- neurons and their input ---- */

static bool in_currents(const struct population *p) {
  return !strcmp(p->of->kind->weight_key, "weight_pa");
}

/* Evenly over all nodes, as many as fire so often together. */
static void choose_driven(struct population *p) {
  const struct bench_job *bench = p->fixture->bench;
  const int64_t n = p->fixture->net.n_global;
  p->n_driven = llround(bench->spikes / bench->rate);
  if (p->n_driven < 1) p->n_driven = 1;
  if (p->n_driven > n) p->n_driven = n;
  p->driven = NEW(nodeid, p->n_driven);
  for (int64_t i = 0; i < p->n_driven; i++) p->driven[i] = i * n / p->n_driven;
}

/* Driven neurons have no refractory time, as in the fly's published simulations. */
static void set_classes(struct population *p) {
  uint16_t *class_of = NEW_ZERO(uint16_t, p->fixture->net.n_own);
  lidx *row, n = lif_own_rows(&p->fixture->net, p->n_driven, p->driven, &row);
  for (lidx i = 0; i < n; i++) class_of[row[i]] = BARE_CLASS;
  mem_free(row);
  p->model.class_of = class_of;
}

static struct status make_population(const struct lif_fixture *fixture, struct population *p) {
  *p = (struct population){.fixture = fixture, .of = published};
  while (p->of->kind != fixture->bench->neurons) p->of++;
  const struct lif_neuron neuron[CLASSES] = {p->of->neuron, p->of->neuron};
  const bool bare[CLASSES] = {false, true};
  TRY(lif_model_build(p->of->kind, neuron, bare, CLASSES, DT_MS, p->of->weight, "bench lif",
                      &p->model, &p->units));
  choose_driven(p);
  set_classes(p);
  return fine();
}

static void free_population(struct population *p) {
  lif_model_free(&p->model), mem_free(p->driven);
}

static struct lif_stimulus source(const struct population *p, int64_t n, const nodeid *node,
                                  double rate_hz, enum lif_into into, double units,
                                  uint64_t tail[LIF_MOST_EVENTS]) {
  const double mean = rate_hz * DT_MS / 1000;
  struct lif_stimulus s = lif_poisson(&p->fixture->net, 0, n, node, 0, INT64_MAX, mean, 0);
  s.into = into, s.amount = llround(units * 0x1p32);
  s.n_tails = lif_poisson_tails(mean, tail), s.tail = tail;
  return s;
}

/* An event onto v lifts it from rest to twice the threshold. */
static double lift(const struct population *p) {
  return 2 * (p->of->neuron.v_threshold_mv - p->of->neuron.v_rest_mv) / p->units.v_mv;
}

static struct lif_stimulus to_all(const struct population *p, uint64_t tail[LIF_MOST_EVENTS]) {
  const int64_t n = p->fixture->net.n_own;
  if (in_currents(p))
    return source(p, n, p->fixture->net.id, BACKGROUND_HZ, LIF_INTO_SYNAPSE,
                  p->of->event / p->of->weight, tail);
  return source(p, n, p->fixture->net.id, FIRE_HZ, LIF_INTO_V, lift(p), tail);
}

/* Potentials of either sign up to 0.9 of the threshold, and currents of up to a thousandth of that,
 * which decay for the whole case. */
static void fill(const struct population *p, struct lif_state *state) {
  const int64_t n = p->fixture->net.n_own, most = p->model.classes[0].threshold / 10 * 9;
  for (int c = 0; c < p->model.shape.n_components; c++)
    for (int64_t i = 0; i < n; i++) {
      const int64_t part = (int64_t)((uint32_t)(p->fixture->net.id[i] + c) * 2654435761u >> 8);
      const int64_t x = (most >> 24) * part / (c ? 1000 : 1) + 1;
      state->component[c * n + i] = i % 2 ? x : -x;
    }
}

/* ---- cases ---- */

static struct status run_alone(const struct population *p, const struct lif_setup *setup,
                               struct lif_state *state, int64_t n_steps, struct lif_measured *m) {
  struct lif_run *run;
  TRY(lif_open(p->fixture->comm, setup, &run));
  const struct status s = lif_write(run, p->fixture->comm, state, 0);
  if (!s.code) lif_time_steps(p->fixture, run, WARM_UP, n_steps, m);
  lif_close(run);
  return s;
}

static struct status run_together(const struct population *p, const struct lif_setup *setup,
                                  struct lif_state *state, int64_t n_steps,
                                  struct lif_measured *m) {
  struct lif_group group;
  TRY(lif_group_open(setup, (int)p->fixture->bench->trials, &group));
  struct status s = fine();
  for (int k = 0; k < group.n && !s.code; k++)
    s = lif_write(&group.run[k], p->fixture->comm, state, (uint32_t)k);
  lif_group_start(&group, group.n);
  if (!s.code) lif_time_trials(p->fixture, &group, WARM_UP, n_steps, m);
  lif_group_close(&group);
  return s;
}

static struct status measure(const struct population *p, const struct activity *a, bool together,
                             struct lif_measured *m) {
  uint64_t tail[LIF_MOST_EVENTS];
  struct lif_stimulus stimulus = {0};
  struct lif_state state;
  if (a->driven)
    stimulus =
        source(p, p->n_driven, p->driven, p->fixture->bench->rate, LIF_INTO_V, lift(p), tail);
  if (a->background) stimulus = to_all(p, tail);
  const struct lif_setup setup = {.backend = p->fixture->bench->job.backend->lif,
                                  .net = &p->fixture->net,
                                  .first_of_rank = p->fixture->first_of_rank,
                                  .stimulus = &stimulus,
                                  .n_stimuli = a->driven || a->background,
                                  .params = {.model = &p->model},
                                  .seed = (uint64_t)p->fixture->bench->seed,
                                  .n_threads = p->fixture->bench->job.n_threads};
  lif_state_init(&p->fixture->net, &p->model, &state);
  if (a->moved) fill(p, &state);
  const bool fewer = a->moved && p->fixture->steps > IDLE_MOST;
  const int64_t n_steps = WARM_UP + (fewer ? IDLE_MOST : p->fixture->steps);
  const struct status s = together ? run_together(p, &setup, &state, n_steps, m)
                                   : run_alone(p, &setup, &state, n_steps, m);
  lif_state_free(&state);
  lif_stimulus_free(&stimulus);
  return s;
}

static double floor_bytes(const struct population *p, const struct lif_measured *m) {
  const double state = 2.0 * (8.0 * p->model.shape.n_components + 2);
  return state * (double)p->fixture->net.n_global / p->fixture->net.min_delay + 16 * m->events;
}

static void print_line(const struct population *p, const char *name, int64_t trials,
                       const struct lif_measured *m) {
  const struct lif_fixture *fixture = p->fixture;
  const double bytes = floor_bytes(p, m), dt = DT_MS / 1000;
  eidx n_edges = fixture->net.n_edges;
  const struct backend *backend = fixture->bench->job.backend;
  int64_t peak = backend->own_memory ? backend->peak() : m->held_bytes;
  comm_sum_i64(fixture->comm, &n_edges, 1), comm_max_i64(fixture->comm, &peak, 1);
  struct bench_line line = {.bench = "lif",
                            .name = name,
                            .nodes = fixture->net.n_global,
                            .edges = n_edges,
                            .seconds = m->seconds,
                            .floor_seconds = bytes / fixture->rate,
                            .bytes = (int64_t)bytes,
                            .peak_bytes = peak};
  char delays[32];
  snprintf(delays, sizeof delays, "%d:%d", fixture->net.min_delay, fixture->net.max_delay);
  line.more = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:f, s:s}", "model",
                        p->of->kind->name, "dt_ms", DT_MS, "real_time", dt / m->seconds,
                        "ns_per_neuron_step", 1e9 * m->seconds / (double)fixture->net.n_global,
                        "spikes_per_second", m->spikes / dt, "spikes_per_step", m->spikes,
                        "events_per_step", m->events, "best_seconds", m->best, "held_bytes",
                        (json_int_t)m->held_bytes, "trials", (json_int_t)trials,
                        "memory_bytes_per_second", fixture->rate, "delays", delays);
  if (fixture->comm->size > 1)
    json_object_set_new(line.more, "transport", json_string(fixture->comm->via->name));
  if (!fixture->bench->job.json)
    log_line("%s: %.3g x real time, %.3g ns a neuron and step, %.0f spikes a second", name,
             dt / m->seconds, 1e9 * m->seconds / (double)fixture->net.n_global, m->spikes / dt);
  bench_print(fixture->comm, fixture->bench, &line);
}

static struct status bench_activity(const struct population *p, const struct activity *a) {
  struct lif_measured m;
  char name[64];
  TRY(measure(p, a, false, &m));
  print_line(p, a->name, 1, &m);
  if (!p->fixture->bench->trials) return fine();
  TRY(measure(p, a, true, &m));
  snprintf(name, sizeof name, "%s_trials%lld", a->name, (long long)p->fixture->bench->trials);
  print_line(p, name, p->fixture->bench->trials, &m);
  return fine();
}

struct status neurons_bench(const struct lif_fixture *fixture) {
  static const struct activity cases[] = {{.name = "quiet"},
                                          {.name = "idle", .moved = true},
                                          {.name = "driven", .driven = true},
                                          {.name = "poisson", .background = true}};
  struct population p;
  struct status s = make_population(fixture, &p);
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases) && !s.code; i++)
    s = bench_activity(&p, &cases[i]);
  free_population(&p);
  return s;
}
