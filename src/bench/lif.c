/* bench lif: time per step of the simulation engine, all ranks sharing one graph, rows in id order.
 *
 *   quiet        nothing to do: every potential is 0 (what a sleeping network costs)
 *   idle         every potential is non-zero and leaks at each step; nobody fires and no block is
 *                skipped
 *   poisson      as idle, and every neuron has a Poisson source of 0.01 Hz (at steps of 1 ms) whose
 *                events change next to nothing; draw_ns is the time beyond an idle step, a neuron
 *   poisson_5hz  the same at 5 Hz
 *   active_p     p % of the node ids, drawn anew for each step, are made to fire and go through the
 *                full step: input, leak, threshold, refractory counters, delivery along every
 *                out-edge
 *
 * On several ranks each also makes quiet steps of its share by itself: alone_seconds, and
 * exchange_seconds for the rest. With --graph FILE, a graph that has its edges by source too, each
 * but the quiet case is measured again with the edges left in the file and a tenth of their bytes
 * held by each rank (NAME_streamed). A GPU alone (without --plain) measures each again with the
 * edges in host memory and room on the device for a tenth of them (NAME_streamed), the active ones
 * without a word of who fired (NAME_unrecorded; all others hand out the spikes of every step), and
 * K trials together, each with spikes of its own (NAME_trialsK: time for a step of one trial).
 *
 * With --model NAME of a neuron model: neurons.c.
 *
 * The floor counts the bytes that any such step must move: idle 8 a neuron (V in and out); poisson
 * 8 more (the id that a draw is made for); active 20 a neuron (V in and out, counter in and out,
 * input in and cleared), 16 an event (the edge in, its sum in and out). */
#include "kernels/interface/backends.h"
#include "lif_time.h"
#include "neurons.h"
#include "core/log.h"
#include "core/mem.h"

#include <stdio.h>

enum { WARM_UP = 20, IDLE_SHIFT = 12, ACTIVE_SHIFT = 4, REFRACTORY = 2 };
enum { IDLE_REPEATS = 10 }; /* idle steps are quick: so many times more of them */
enum { KICK = 1 << 30 };    /* no other input comes near */

/* A way to measure. */
struct way {
  const char *name;
  bool alive;     /* potentials that leak */
  double poisson; /* events of a neuron and step; 0: none */
  double percent; /* of the neurons that fire */
  bool unrecorded;
  int trials;                 /* together; 0: one, not in a group */
  struct lif_stimulus *drawn; /* [steps] who fires, where that is drawn for each step */
};

/* Potentials of 2^29 to 2^30 and both signs: under a shift of 8 they still leak
 * after thousands of steps. */
static void fill_potentials(const struct lif_fixture *fixture, int32_t *potential) {
  for (lidx i = 0; i < fixture->net.n_own; i++) {
    const int32_t v = (1 << 29) + (int32_t)((uint32_t)fixture->net.id[i] * 2654435761u >> 3);
    potential[i] = i % 2 ? v : -v;
  }
}

/* The idle case is only worth its name if everybody still has something to leak. */
static void check_alive(const struct lif_fixture *fixture, const struct lif_run *run,
                        struct lif_state *state) {
  lif_read(run, state);
  for (lidx i = 0; i < fixture->net.n_own; i++)
    if (state->potential[i] >> IDLE_SHIFT == 0)
      DIE(EXIT_RUNTIME, "bench lif: a potential has stopped to leak");
}

static struct status run_alone(const struct lif_fixture *fixture, const struct lif_setup *setup,
                               const struct way *way, int64_t n_steps, struct lif_measured *m) {
  struct lif_run *run;
  struct lif_state state;
  TRY(lif_open(fixture->comm, setup, &run));
  lif_state_init(&fixture->net, NULL, &state);
  if (way->alive) fill_potentials(fixture, state.potential);
  TRY(lif_write(run, fixture->comm, &state, 0));
  lif_state_free(&state);
  lif_time_steps(fixture, run, WARM_UP, n_steps, m);
  lif_state_init(&fixture->net, NULL, &state);
  if (way->alive) check_alive(fixture, run, &state);
  lif_state_free(&state);
  lif_close(run);
  return fine();
}

static struct status run_trials(const struct lif_fixture *fixture, const struct lif_setup *setup,
                                const struct way *way, int64_t n_steps, struct lif_measured *m) {
  struct lif_group group;
  struct lif_state state;
  TRY(lif_group_open(setup, way->trials, &group));
  lif_state_init(&fixture->net, NULL, &state);
  if (way->alive) fill_potentials(fixture, state.potential);
  for (int k = 0; k < group.n; k++)
    TRY(lif_write(&group.run[k], fixture->comm, &state, (uint32_t)k));
  lif_state_free(&state);
  lif_group_start(&group, group.n);
  lif_time_trials(fixture, &group, WARM_UP, n_steps, m);
  lif_group_close(&group);
  return fine();
}

static struct status run_case(const struct lif_fixture *fixture, const struct way *way,
                              struct lif_measured *m) {
  const bool active = way->percent > 0;
  const int64_t n_steps = fixture->steps * (active ? 1 : IDLE_REPEATS) + WARM_UP;
  const bool kicked = active && way->trials, drawn = kicked || way->poisson > 0;
  struct lif_stimulus *stimulus = kicked  ? lif_fixture_poisson(fixture, way->percent / 100, KICK)
                                  : drawn ? lif_fixture_poisson(fixture, way->poisson, 1)
                                          : way->drawn;
  const struct lif_setup setup = {.backend = fixture->bench->job.backend->lif,
                                  .net = &fixture->net,
                                  .first_of_rank = fixture->first_of_rank,
                                  .stimulus = stimulus,
                                  .n_stimuli = drawn    ? 1
                                               : active ? (int)n_steps
                                                        : 0,
                                  .params = {.threshold = way->trials ? 1 << 29 : INT32_MAX,
                                             .refractory = active ? REFRACTORY : 0,
                                             .n_shifts = 1,
                                             .shift = {active ? ACTIVE_SHIFT : IDLE_SHIFT}},
                                  .n_threads = fixture->bench->job.n_threads,
                                  .unrecorded = way->unrecorded};
  const struct status s = way->trials ? run_trials(fixture, &setup, way, n_steps, m)
                                      : run_alone(fixture, &setup, way, n_steps, m);
  if (drawn) lif_stimulus_free(stimulus), mem_free(stimulus);
  return s;
}

/* ---- lines ---- */

static void say(const struct way *way, const char *name, const struct lif_measured *m) {
  if (way->percent > 0)
    log_line("%s: %.0f spikes and %.0f events a step, %.3g events/s (best step %.3g); %.1f MB held "
             "by a rank",
             name, m->spikes, m->events, m->events / m->seconds, m->events / m->best,
             (double)m->held_bytes * 1e-6);
}

/* What came over the bus, beside what a plain copy moves over it. */
static void add_bus(const struct lif_fixture *fixture, const char *name,
                    const struct lif_measured *m, json_t *more) {
  const double useful = m->host_events * sizeof(struct lif_edge) / m->seconds;
  const double copy = fixture->bench->job.backend->upload_rate();
  json_object_set_new(more, "host_edge_bytes_per_second", json_real(useful));
  json_object_set_new(more, "copy_bytes_per_second", json_real(copy));
  json_object_set_new(more, "share_of_copy", json_real(useful / copy));
  json_object_set_new(more, "device_edge_bytes", json_integer(fixture->net.device_room));
  if (!fixture->bench->job.json && m->host_events > 0)
    log_line("%s: %.2f GB/s of useful edges from host memory, %.2f GB/s by plain copies: %.0f %%",
             name, useful * 1e-9, copy * 1e-9, 100 * useful / copy);
}

/* A quiet step of each rank's share by itself, and so what telling the others costs. */
static void add_exchange(const struct lif_fixture *fixture, const struct way *way,
                         const struct lif_measured *m, json_t *more) {
  struct comm alone = comm_split(fixture->comm, fixture->comm->rank, 0);
  struct lif_fixture own = *fixture;
  struct lif_measured by_itself;
  own.comm = &alone;
  const struct status s = run_case(&own, way, &by_itself);
  if (s.code) DIE(s.code, "%s", s.text);
  comm_free(&alone);
  const double seconds = bench_slowest(fixture->comm, by_itself.seconds);
  json_object_set_new(more, "alone_seconds", json_real(seconds));
  json_object_set_new(more, "exchange_seconds", json_real(m->seconds - seconds));
  if (!fixture->bench->job.json)
    log_line("%s: %.2f us a step, %.2f us without the exchange", way->name, m->seconds * 1e6,
             seconds * 1e6);
}

/* What the draws add to an idle step, a neuron. */
static struct status add_draws(const struct lif_fixture *fixture, const struct lif_measured *m,
                               json_t *more) {
  const struct way idle = {.name = "idle", .alive = true};
  struct lif_measured without;
  TRY(run_case(fixture, &idle, &without));
  const double n = (double)fixture->net.n_global / fixture->comm->size;
  const double median = (m->seconds - without.seconds) / n, best = (m->best - without.best) / n;
  json_object_set_new(more, "draw_ns", json_real(median * 1e9));
  json_object_set_new(more, "draw_best_ns", json_real(best * 1e9));
  if (!fixture->bench->job.json)
    log_line("%.2f ns a draw (best %.2f) beyond the idle step", median * 1e9, best * 1e9);
  return fine();
}

static struct status bench_way(const struct lif_fixture *fixture, const struct way *way,
                               const char *suffix) {
  struct lif_measured m;
  char name[64];
  snprintf(name, sizeof name, "%s%s", way->name, suffix);
  TRY(run_case(fixture, way, &m));
  const double n = (double)fixture->net.n_global;
  const double bytes = way->percent > 0   ? 20 * n + 16 * m.events
                       : way->poisson > 0 ? 16 * n
                                          : 8 * n;
  eidx n_edges = fixture->net.n_edges;
  const struct backend *backend = fixture->bench->job.backend;
  /* On a CPU the process also held the generator and the memory sweep: what
   * counts is the simulation. */
  int64_t peak = backend == &backend_cpu ? m.held_bytes : backend->peak();
  comm_sum_i64(fixture->comm, &n_edges, 1), comm_max_i64(fixture->comm, &peak, 1);
  struct bench_line line = {.bench = "lif",
                            .name = name,
                            .nodes = fixture->net.n_global,
                            .edges = n_edges,
                            .seconds = m.seconds,
                            .floor_seconds = bytes / fixture->rate,
                            .bytes = (int64_t)bytes,
                            .peak_bytes = peak};
  line.more = json_pack("{s:f, s:f, s:f, s:f, s:I, s:f, s:b, s:i}", "best_seconds", m.best,
                        "spikes_per_step", m.spikes, "events_per_step", m.events,
                        "events_per_second", m.events / m.seconds, "held_bytes",
                        (json_int_t)m.held_bytes, "memory_bytes_per_second", fixture->rate,
                        "recorded", !way->unrecorded, "trials", way->trials ? way->trials : 1);
  if (!fixture->bench->job.json) say(way, name, &m);
  char delays[32];
  snprintf(delays, sizeof delays, "%d:%d", fixture->net.min_delay, fixture->net.max_delay);
  json_object_set_new(line.more, "delays", json_string(delays));
  if (fixture->comm->size > 1)
    json_object_set_new(line.more, "transport", json_string(fixture->comm->via->name));
  if (fixture->comm->size > 1 && !way->alive && way->percent == 0)
    add_exchange(fixture, way, &m, line.more);
  if (way->poisson > 0) TRY(add_draws(fixture, &m, line.more));
  if (fixture->net.on_host) add_bus(fixture, name, &m, line.more);
  bench_print(fixture->comm, fixture->bench, &line);
  return fine();
}

/* The edges elsewhere: in the file, if there is such a net, or in host memory. */
static struct status bench_streamed(const struct lif_fixture *fixture, const struct way *way) {
  struct lif_fixture other = *fixture;
  if (fixture->device) {
    other.net.on_host = true;
    other.net.device_room = fixture->net.n_edges * (eidx)sizeof(struct lif_edge) / LIF_BED_HELD;
  } else if (fixture->streamed.stream)
    other.net = fixture->streamed;
  else
    return fine();
  return bench_way(&other, way, "_streamed");
}

static struct status bench_trials(const struct lif_fixture *fixture, const struct way *way) {
  static const int trials[] = {1, 4, 8, 16};
  for (int i = 0; i < (int)(sizeof trials / sizeof *trials); i++) {
    struct way together = *way;
    char suffix[32];
    together.trials = trials[i];
    snprintf(suffix, sizeof suffix, "_trials%d", trials[i]);
    TRY(bench_way(fixture, &together, suffix));
  }
  return fine();
}

static struct status bench_ways(const struct lif_fixture *fixture, const struct way *way) {
  struct way unrecorded = *way;
  unrecorded.unrecorded = true;
  TRY(bench_way(fixture, way, ""));
  if (fixture->device) TRY(bench_way(fixture, &unrecorded, "_unrecorded"));
  TRY(bench_streamed(fixture, way));
  return fixture->device ? bench_trials(fixture, way) : fine();
}

static struct status bench_active(const struct lif_fixture *fixture, const char *name,
                                  double percent) {
  const int64_t n_steps = fixture->steps + WARM_UP;
  const struct way way = {
      .name = name, .percent = percent, .drawn = lif_fixture_spikes(fixture, n_steps, percent)};
  const struct status s = bench_ways(fixture, &way);
  for (int64_t k = 0; k < n_steps; k++) lif_stimulus_free(&way.drawn[k]);
  mem_free(way.drawn);
  return s;
}

static struct status bench_all(const struct lif_fixture *fixture) {
  const struct way quiet = {.name = "quiet"}, idle = {.name = "idle", .alive = true};
  TRY(bench_way(fixture, &quiet, ""));
  TRY(bench_way(fixture, &idle, ""));
  TRY(bench_streamed(fixture, &idle));
  if (fixture->device) TRY(bench_trials(fixture, &idle));
  const struct way poisson = {.name = "poisson", .alive = true, .poisson = 1e-5};
  const struct way often = {.name = "poisson_5hz", .alive = true, .poisson = 5e-3};
  TRY(bench_way(fixture, &poisson, ""));
  TRY(bench_way(fixture, &often, ""));
  TRY(bench_active(fixture, "active_1pct", 1));
  return bench_active(fixture, "active_10pct", 10);
}

static struct status run(const struct comm *world, const struct bench_job *bench) {
  struct grid grid;
  if (!bench->job.backend->is_built)
    return failure(EXIT_DEVICE, "bench lif: the %s backend does not simulate; use --device cpu",
                   bench->job.backend->name);
  struct bench_job job = *bench;
  if (bench->model) TRY(neurons_choose(&job));
  TRY(job_grid(world, &job.job, world->size, &grid));
  struct lif_fixture fixture;
  struct status s = lif_fixture_init(&grid.replica_comm, &job, &fixture);
  if (!s.code) s = job.neurons ? neurons_bench(&fixture) : bench_all(&fixture);
  lif_fixture_free(&fixture);
  job_grid_close(&grid);
  return s;
}

const struct bench bench_lif = {"lif", "time per simulated step", run};
