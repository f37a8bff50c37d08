/* bench lif: time per step of the simulation engine, all ranks sharing one graph, rows in id order.
 *
 *   quiet        nothing to do: every potential is 0 (what a sleeping network costs)
 *   idle         every potential is non-zero and leaks at each step; nobody fires and no block is skipped
 *   active_p     p % of the node ids, drawn anew for each step, are made to fire and go through the full
 * step: input, leak, threshold, refractory counters, delivery along every out-edge
 *
 * With --graph FILE, a graph that has its edges by source too, each but the quiet case is measured again with
 * the edges left in the file and a tenth of their bytes held by each rank (NAME_streamed).
 *
 * The floor counts the bytes that any such step must move: idle 8 a neuron (V in and out); active 20 a neuron
 * (V in and out, counter in and out, input in and cleared) and 16 an event (the edge in, its sum in and out).
 */
#include "backends.h"
#include "bench.h"
#include "generate.h"
#include "lif.h"
#include "load.h"
#include "log.h"
#include "mem.h"
#include "rng.h"

#include <stdio.h>
#include <string.h>

enum { NODES = 211577, EDGES = 24678466, STEPS = 200, WARM_UP = 20, LOW_DELAY = 1, HIGH_DELAY = 8 };
enum { HELD_SHARE = 10 }; /* of streamed edges one in so many is held */
enum { IDLE_SHIFT = 8, ACTIVE_SHIFT = 4, REFRACTORY = 2 };

struct bed {
  const struct comm *comm;
  const struct bench_job *bench;
  struct lif_net net, streamed; /* the second only from a file that is streamable, else zeroed */
  gidx *first_of_rank;
  int64_t steps;
  double rate; /* bytes per second of memory, all ranks */
};

/* ---- graph ---- */

/* Four in five neurons excite. */
static void fill_weights(const struct bed *bed, eidx n, const uint32_t *source, const uint32_t *target,
                         int16_t *weight, uint16_t *delay) {
  const uint64_t seed = (uint64_t)bed->bench->seed;
  const uint16_t low = (uint16_t)(bed->bench->low_delay ? bed->bench->low_delay : LOW_DELAY);
  const uint16_t high = (uint16_t)(bed->bench->high_delay ? bed->bench->high_delay : HIGH_DELAY);
#pragma omp parallel for num_threads(bed->bench->job.n_threads)
  for (eidx e = 0; e < n; e++) {
    const int count = (int)generate_count(seed, source[e], target[e]);
    weight[e] = (int16_t)(source[e] % 5 ? count : -count);
    delay[e] = generate_delay(seed, source[e], target[e], low, high);
  }
}

static void build_net(struct bed *bed, const struct generate_model *model) {
  const eidx n = model->n_edges;
  uint32_t *source = NEW(uint32_t, n), *target = NEW(uint32_t, n);
  int16_t *weight = NEW(int16_t, n);
  uint16_t *delay = NEW(uint16_t, n);
  generate_edges(model, bed->bench->job.n_threads, source, target);
  fill_weights(bed, n, source, target, weight, delay);
  const struct lif_edges edges = {.n_nodes = model->n_nodes,
                                  .n_edges = n,
                                  .source = source,
                                  .target = target,
                                  .weight = weight,
                                  .delay = delay};
  lif_net_build(&edges, bed->first_of_rank[bed->comm->rank], bed->first_of_rank[bed->comm->rank + 1],
                &bed->net);
  mem_free(source), mem_free(target), mem_free(weight), mem_free(delay);
}

static struct status make_synthetic(struct bed *bed) {
  const struct bench_job *bench = bed->bench;
  const struct generate_model model = {.n_nodes = bench->nodes ? bench->nodes : NODES,
                                       .n_edges = bench->edges ? bench->edges : EDGES,
                                       .seed = (uint64_t)bench->seed,
                                       .modular = bench->model && !strcmp(bench->model, "modular")};
  TRY(generate_check(&model));
  const int ranks = bed->comm->size;
  for (int r = 0; r <= ranks; r++) bed->first_of_rank[r] = model.n_nodes * r / ranks;
  build_net(bed, &model);
  return fine();
}

static struct status load_file(struct bed *bed) {
  const struct comm *comm = bed->comm;
  struct connectome_file *file;
  TRY(connectome_open(comm, bed->bench->graph, &file));
  load_split(comm, file, comm->size, bed->first_of_rank);
  const gidx first = bed->first_of_rank[comm->rank], last = bed->first_of_rank[comm->rank + 1];
  const struct connectome_facts *facts = connectome_facts(file);
  lif_net_load(file, first, last, &bed->net);
  if (facts->streamable && bed->bench->job.backend == &backend_cpu)
    lif_net_stream(file, first, last, facts->n_edges * (int64_t)sizeof(struct lif_edge) / HELD_SHARE,
                   &bed->streamed);
  connectome_close(file);
  return fine();
}

static struct status make_bed(const struct comm *comm, const struct bench_job *bench, struct bed *bed) {
  const struct backend *backend = bench->job.backend;
  *bed = (struct bed){.comm = comm, .bench = bench, .steps = bench->steps ? bench->steps : STEPS};
  bed->first_of_rank = NEW(gidx, comm->size + 1);
  bed->rate =
      backend->copy_rate ? backend->copy_rate() * comm->size : bench_memory_rate(comm, bench->job.n_threads);
  TRY(bench->graph ? load_file(bed) : make_synthetic(bed));
  int64_t n_edges = bed->net.n_edges;
  comm_sum_i64(comm, &n_edges, 1);
  log_line("graph of %lld neurons and %lld edges; memory moves %.1f GB/s", (long long)bed->net.n_global,
           (long long)n_edges, bed->rate * 1e-9);
  return fine();
}

/* ---- who fires ---- */

/* Exactly `n` of all nodes, drawn for step t; mark [n_nodes] becomes 1 for them. The same on every rank. */
static void draw_nodes(const struct bed *bed, int64_t t, int64_t n, uint8_t *mark) {
  memset(mark, 0, (size_t)bed->net.n_global);
  uint32_t at = 0;
  while (n > 0) {
    const struct rng_block r = rng_draw((uint64_t)bed->bench->seed, at++, (uint32_t)t, 0, 1);
    const uint64_t node = rng_below(r.v[0], r.v[1], (uint64_t)bed->net.n_global);
    n -= !mark[node], mark[node] = 1;
  }
}

/* One list of own neurons for every step. */
static struct lif_stimulus *draw_spikes(const struct bed *bed, int64_t n_steps, double percent) {
  const int64_t n = (int64_t)((double)bed->net.n_global * percent / 100 + 0.5);
  struct lif_stimulus *stimulus = NEW_ZERO(struct lif_stimulus, n_steps);
  uint8_t *mark = NEW(uint8_t, bed->net.n_global);
  for (int64_t t = 0; t < n_steps; t++) {
    draw_nodes(bed, t, n, mark);
    const uint8_t *own = mark + bed->net.first;
    int64_t *step = NEW(int64_t, 1);
    lidx found = 0, at = 0;
    for (lidx i = 0; i < bed->net.n_own; i++) found += own[i];
    lidx *neuron = NEW(lidx, found);
    for (lidx i = 0; i < bed->net.n_own; i++)
      if (own[i]) neuron[at++] = i;
    *step = t;
    stimulus[t] = (struct lif_stimulus){.kind = LIF_SPIKES,
                                        .first_step = t,
                                        .last_step = t,
                                        .n = found,
                                        .neuron = neuron,
                                        .n_steps = 1,
                                        .step = step};
  }
  mem_free(mark);
  return stimulus;
}

/* ---- cases ---- */

struct measured {
  double seconds, best;  /* per step: the median, and the quickest step */
  double events, spikes; /* per step, all ranks */
  int64_t held_bytes;    /* of the rank that holds most, as the last step ended */
};

/* Batches as long as the engine makes them; the first WARM_UP steps are not counted. */
static void time_steps(const struct bed *bed, struct lif_run *run, int64_t n_steps, struct measured *m) {
  double *seconds = NEW(double, n_steps);
  int64_t n = 0, counts[2] = {0, 0}, steps = 0;
  comm_barrier(bed->comm);
  while (run->step < n_steps) {
    struct lif_batch batch;
    const double before = seconds_now();
    lif_batch(run, bed->comm, (run->step < WARM_UP ? WARM_UP : n_steps) - run->step, REQUEST_NONE, &batch);
    if (batch.fault.step != LIF_NO_FAULT)
      DIE(EXIT_RUNTIME, "bench lif: %s", lif_fault_status(&batch.fault, NULL).text);
    if (batch.step < WARM_UP) continue;
    seconds[n++] = (seconds_now() - before) / batch.n_steps;
    counts[0] += batch.events, counts[1] += batch.own->n, steps += batch.n_steps;
  }
  m->seconds = bench_slowest(bed->comm, bench_median(seconds, n));
  m->best = bench_slowest(bed->comm, seconds[0]);
  m->held_bytes = mem_held();
  comm_sum_i64(bed->comm, counts, 2), comm_max_i64(bed->comm, &m->held_bytes, 1);
  m->events = (double)counts[0] / (double)steps, m->spikes = (double)counts[1] / (double)steps;
  mem_free(seconds);
}

/* Potentials of 2^29 to 2^30 and both signs: under a shift of 8 they still leak after thousands of steps. */
static void fill_potentials(const struct bed *bed, int32_t *potential) {
  for (lidx i = 0; i < bed->net.n_own; i++) {
    const int32_t v = (1 << 29) + (int32_t)((uint32_t)bed->net.id[i] * 2654435761u >> 3);
    potential[i] = i % 2 ? v : -v;
  }
}

/* The idle case is only worth its name if everybody still has something to leak. */
static void check_alive(const struct bed *bed, const struct lif_run *run, struct lif_state *state) {
  lif_read(run, state);
  for (lidx i = 0; i < bed->net.n_own; i++)
    if (state->potential[i] >> IDLE_SHIFT == 0)
      DIE(EXIT_RUNTIME, "bench lif: a potential has stopped to leak");
}

static struct status run_case(const struct bed *bed, bool alive, double percent, struct measured *m) {
  const int64_t n_steps = bed->steps + WARM_UP;
  const int n_stimuli = percent > 0 ? (int)n_steps : 0;
  struct lif_stimulus *stimulus = n_stimuli ? draw_spikes(bed, n_steps, percent) : NULL;
  const struct lif_setup setup = {.backend = bed->bench->job.backend->lif,
                                  .net = &bed->net,
                                  .first_of_rank = bed->first_of_rank,
                                  .stimulus = stimulus,
                                  .n_stimuli = n_stimuli,
                                  .params = {.threshold = INT32_MAX,
                                             .refractory = REFRACTORY,
                                             .n_shifts = 1,
                                             .shift = {percent > 0 ? ACTIVE_SHIFT : IDLE_SHIFT}},
                                  .n_threads = bed->bench->job.n_threads};
  struct lif_run *run;
  struct lif_state state;
  TRY(lif_open(bed->comm, &setup, &run));
  lif_state_init(&bed->net, &state);
  if (alive) fill_potentials(bed, state.potential);
  TRY(lif_write(run, bed->comm, &state, 0));
  lif_state_free(&state);
  time_steps(bed, run, n_steps, m);
  lif_state_init(&bed->net, &state);
  if (alive) check_alive(bed, run, &state);
  lif_state_free(&state);
  lif_close(run);
  for (int k = 0; k < n_stimuli; k++) lif_stimulus_free(&stimulus[k]);
  mem_free(stimulus);
  return fine();
}

static struct status bench_case(const struct bed *bed, const char *name, bool alive, double percent) {
  struct measured m;
  TRY(run_case(bed, alive, percent, &m));
  const double n = (double)bed->net.n_global;
  const double bytes = percent > 0 ? 20 * n + 16 * m.events : 8 * n;
  eidx n_edges = bed->net.n_edges;
  const struct backend *backend = bed->bench->job.backend;
  /* On a CPU the process also held the generator and the memory sweep: what counts is the simulation. */
  int64_t peak = backend == &backend_cpu ? m.held_bytes : backend->peak();
  comm_sum_i64(bed->comm, &n_edges, 1), comm_max_i64(bed->comm, &peak, 1);
  struct bench_line line = {.bench = "lif",
                            .name = name,
                            .nodes = bed->net.n_global,
                            .edges = n_edges,
                            .seconds = m.seconds,
                            .floor_seconds = bytes / bed->rate,
                            .bytes = (int64_t)bytes,
                            .peak_bytes = peak};
  line.more = json_pack("{s:f, s:f, s:f, s:f, s:I, s:f}", "best_seconds", m.best, "spikes_per_step", m.spikes,
                        "events_per_step", m.events, "events_per_second", m.events / m.seconds, "held_bytes",
                        (json_int_t)m.held_bytes, "memory_bytes_per_second", bed->rate);
  if (!bed->bench->job.json && percent > 0)
    log_line("%s: %.0f spikes and %.0f events a step, %.3g events/s (best step %.3g); %.1f MB held by a rank",
             name, m.spikes, m.events, m.events / m.seconds, m.events / m.best, (double)m.held_bytes * 1e-6);
  bench_print(bed->comm, bed->bench, &line);
  return fine();
}

/* Resident, and if there is such a net streamed, one after the other. */
static struct status bench_both(const struct bed *bed, const char *name, bool alive, double percent) {
  TRY(bench_case(bed, name, alive, percent));
  if (!bed->streamed.stream) return fine();
  struct bed other = *bed;
  char streamed[64];
  other.net = bed->streamed;
  snprintf(streamed, sizeof streamed, "%s_streamed", name);
  return bench_case(&other, streamed, alive, percent);
}

static struct status run_on(const struct comm *comm, const struct bench_job *bench) {
  struct bed bed;
  TRY(make_bed(comm, bench, &bed));
  TRY(bench_case(&bed, "quiet", false, 0));
  TRY(bench_both(&bed, "idle", true, 0));
  TRY(bench_both(&bed, "active_1pct", false, 1));
  TRY(bench_both(&bed, "active_10pct", false, 10));
  lif_net_free(&bed.net), lif_net_free(&bed.streamed), mem_free(bed.first_of_rank);
  return fine();
}

static struct status run(const struct comm *world, const struct bench_job *bench) {
  struct grid grid;
  if (!bench->job.backend->lif)
    return failure(EXIT_DEVICE, "bench lif: the %s backend does not simulate; use --device cpu",
                   bench->job.backend->name);
  TRY(job_grid(world, &bench->job, world->size, &grid));
  const struct status s = run_on(&grid.replica_comm, bench);
  job_grid_close(&grid);
  return s;
}

const struct bench bench_lif = {"lif", "time per simulated step", run};
