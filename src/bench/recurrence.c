/* Cases forward, backward, total of one window on random graphs, and train_step: the whole step
 * around it.
 *
 * The floor of a pass on the cpu is the larger of its operations over the measured peak (2 E
 * B forward, 4 E B backward, each microstep) and its gathered bytes (4 E B each way) over the
 * measured rate of random gathers from an array of 4 N B bytes, by rows of 4 B bytes as the
 * recurrence makes them, but of 32 to 128: same run, same cores, all ranks at once. */
#include "kernels/interface/backends.h"
#include "bench.h"
#include "graph.h"
#include "train_step.h"
#include "core/log.h"
#include "core/mem.h"
#include "kernels/interface/recur_window.h"
#include "train/recurrence.h"
#include "core/rng.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { FORWARD, BACKWARD, TOTAL, CASES };
enum { LEAST_WIDTH = 8 }; /* floats: shorter rows take as long to gather */
static const char *const case_name[] = {"forward", "backward", "total"};

struct setup {
  const struct bench_job *bench;
  const struct backend *backend;
  const struct comm *world;
  const struct grid *grid; /* the ranks that share a graph: grid->replica_comm, "comm" below */
  struct bench_source from;
  int64_t nodes, edges;     /* the graph's */
  struct recur_shape shape; /* of one replica */
  bool mixed;
  int n_threads;
};

/* What was measured on one graph. Seconds of a window, the slowest rank's. */
struct findings {
  double median[CASES], best[CASES], floor[CASES];
  double peak_flops, gather_bytes; /* per second, all ranks together */
  int64_t bytes;
  const char *exchange; /* "none", "halo", "all-gather" */
};

/* ---- the machine ---- */

static volatile float sink; /* what the micro-benchmarks return, so that they must run */

/* Seconds for `rounds` of arithmetic on each thread of each rank: the best of several tries. */
static double time_flops(const struct comm *comm, const struct recur_isa *isa, int n_threads,
                         int64_t rounds) {
  double best = INFINITY;
  for (int i = 0; i < 9; i++) {
    comm_barrier(comm);
    const double start = seconds_now();
#pragma omp parallel num_threads(n_threads)
    sink = isa->bench_flops(rounds);
    best = fmin(best, bench_slowest(comm, seconds_now() - start));
  }
  return best;
}

/* Seconds for n gathers of `width` floats by the threads of each rank, from n_rows rows. */
static double time_gathers(const struct comm *comm, const struct recur_isa *isa, int n_threads,
                           int64_t n_rows, int width, int64_t n) {
  float *rows = NEW_ZERO(float, n_rows *width);
  lidx *row = NEW(lidx, n);
  for (int64_t i = 0; i < n; i++) {
    const struct rng_block b = rng_draw(1, (uint32_t)i, (uint32_t)(i >> 32), 0, 0);
    row[i] = (lidx)rng_below(b.v[0], b.v[1], (uint64_t)n_rows);
  }
  double best = INFINITY;
  for (int i = 0; i < 15; i++) {
    comm_barrier(comm);
    const double start = seconds_now();
#pragma omp parallel num_threads(n_threads)
    {
      const int64_t t = omp_get_thread_num(), threads = omp_get_num_threads();
      const int64_t first = n * t / threads, last = n * (t + 1) / threads;
      sink = isa->bench_gather(rows, width, row + first, last - first);
    }
    best = fmin(best, bench_slowest(comm, seconds_now() - start));
  }
  mem_free(rows), mem_free(row);
  return best;
}

static void measure_floor(const struct comm *comm, const struct setup *s, struct findings *found) {
  const struct recur_isa *isa = recur_isa_find(NULL);
  const int64_t rounds = 200000, batch = s->shape.batch;
  const double values = (double)s->edges * (double)batch; /* gathered in one microstep */
  const int width = batch < LEAST_WIDTH             ? LEAST_WIDTH
                    : batch < RECUR_GATHERED_FLOATS ? (int)batch
                                                    : RECUR_GATHERED_FLOATS;
  const int64_t rows = s->nodes * batch / width + 1,
                n = (int64_t)(fmax(values / width, (double)s->edges) / comm->size) + 1;
  const int threads = s->n_threads;
  found->peak_flops = (double)rounds * RECUR_FLOPS_PER_ROUND * threads * comm->size /
                      time_flops(comm, isa, threads, rounds);
  const double gather = time_gathers(comm, isa, threads, rows, width, n),
               K = (double)s->shape.steps * s->shape.microsteps;
  found->gather_bytes = values * sizeof(float) / gather;
  found->floor[FORWARD] = K * fmax(2 * values / found->peak_flops, gather);
  found->floor[BACKWARD] = K * fmax(4 * values / found->peak_flops, gather);
  found->floor[TOTAL] = found->floor[FORWARD] + found->floor[BACKWARD];
}

/* On a device each pass is bound by its gathers: the edge gradient shares those of
 * the transposed product. */
static void measure_device_floor(const struct comm *comm, const struct setup *s,
                                 struct findings *found) {
  const double values = (double)s->edges * (double)s->shape.batch,
               K = (double)s->shape.steps * s->shape.microsteps;
  const int64_t rows = s->nodes * s->shape.batch / RECUR_GATHERED_FLOATS + 1;
  found->gather_bytes = s->backend->gather_rate(rows) * comm->size;
  const double bytes = s->mixed ? sizeof(uint16_t) : sizeof(float);
  found->floor[FORWARD] = found->floor[BACKWARD] = K * values * bytes / found->gather_bytes;
  found->floor[TOTAL] = found->floor[FORWARD] + found->floor[BACKWARD];
}

/* ---- the network ---- */

static void put_normal(const struct backend *backend, float *there, int64_t n, uint64_t stream,
                       double mean, double deviation) {
  float *x = NEW(float, n);
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++)
    x[i] = (float)(mean + deviation *
                              rng_normal(rng_draw(stream, (uint32_t)i, (uint32_t)(i >> 32), 0, 0)));
  if (n > 0) backend->put(there, x, (size_t)n * sizeof *x);
  mem_free(x);
}

/* Non-zero random states, weights, drives and output gradients; values shrink with the in-degree,
 * leaks lie around one half. */
static void fill(const struct setup *s, const struct comm *comm, const struct recur_net *net,
                 struct recur *r) {
  const struct recur_backend *be = s->backend->recur;
  const struct graph *g = net->graph;
  const int64_t columns = (int64_t)s->shape.steps * s->shape.batch;
  const uint64_t stream = (uint64_t)comm->rank << 8;
  put_normal(s->backend, be->value(r), g->near.n_edges + g->far.n_edges, stream + 1, 0,
             1 / sqrt((double)s->edges / (double)s->nodes));
  put_normal(s->backend, be->leak(r), g->n_own, stream + 2, 0.5, 0.05);
  put_normal(s->backend, be->bias(r), g->n_own, stream + 3, 0, 0.1);
  put_normal(s->backend, be->drive(r), net->n_in * columns, stream + 4, 0, 1);
  put_normal(s->backend, be->d_output(r), net->n_out * columns, stream + 5, 0, 1);
  put_normal(s->backend, be->state(r, 0), (int64_t)g->n_own * s->shape.batch, stream + 6, 0, 0.3);
}

/* n rows spread evenly over the own ones */
static lidx *spread(lidx n_own, lidx n) {
  lidx *row = NEW(lidx, n);
  for (lidx i = 0; i < n; i++) row[i] = (lidx)((int64_t)i * n_own / n);
  return row;
}

/* ---- measuring ---- */

/* The device has done all it was told once a value has come back. */
static void wait_for(const struct backend *backend, const float *there, lidx n) {
  float value;
  if (n > 0) backend->get(&value, there, sizeof value);
}

/* One window there and back; seconds [CASES]. */
static void time_window(const struct comm *comm, const struct setup *s,
                        const struct recurrence *window, double *seconds) {
  const struct recur_backend *be = s->backend->recur;
  comm_barrier(s->world);
  const double start = seconds_now();
  recurrence_forward(window, comm);
  wait_for(s->backend, be->state(window->state, 0), window->graph->n_own);
  const double middle = seconds_now();
  recurrence_backward(window, comm);
  wait_for(s->backend, be->d_leak(window->state), window->graph->n_own);
  const double end = seconds_now();
  seconds[FORWARD] = bench_slowest(s->world, middle - start);
  seconds[BACKWARD] = bench_slowest(s->world, end - middle);
  seconds[TOTAL] = bench_slowest(s->world, end - start);
}

/* --seconds of windows after one that is not counted, but 10 to 100 of them. */
static void time_windows(const struct comm *comm, const struct setup *s,
                         const struct recurrence *window, struct findings *found) {
  double one[CASES], seconds[CASES][100];
  time_window(comm, s, window, one);
  const int n = (int)fmin(100, fmax(10, s->bench->seconds / one[TOTAL]));
  for (int i = 0; i < n; i++) {
    time_window(comm, s, window, one);
    for (int c = 0; c < CASES; c++) seconds[c][i] = one[c];
  }
  for (int c = 0; c < CASES; c++) {
    found->median[c] = bench_median(seconds[c], n);
    found->best[c] = seconds[c][0];
  }
}

/* ---- one graph ---- */

static void tell(const struct comm *comm, const struct setup *s, const char *graph,
                 const struct findings *f) {
  const struct recur_isa *isa = s->backend != &backend_cpu ? NULL
                                : s->mixed                 ? &recur_plain
                                                           : recur_isa_find(NULL);
  if (!s->bench->job.json)
    log_line("%s graph of %lld neurons and %lld edges; batch %d, %d steps of %d microsteps:", graph,
             (long long)s->nodes, (long long)s->edges, s->shape.batch * s->grid->replicas,
             s->shape.steps, s->shape.microsteps);
  for (int c = 0; c < CASES; c++) {
    json_t *more = json_pack(
        "{s:s, s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f}", "graph", graph, "precision",
        s->mixed ? "mixed" : "fp32", "replicas", s->grid->replicas, "transport", comm->via->name,
        "exchange", f->exchange, "simd", isa ? isa->name : "", "steps", s->shape.steps,
        "microsteps", s->shape.microsteps, "seconds_best", f->best[c], "edges_per_second",
        (double)s->edges * s->shape.steps * s->shape.microsteps / f->median[c], "peak_gflops",
        f->peak_flops / 1e9, "gather_gb_per_second", f->gather_bytes / 1e9);
    const struct bench_line line = {.bench = "recurrence",
                                    .name = case_name[c],
                                    .nodes = s->nodes,
                                    .edges = s->edges,
                                    .batch = s->shape.batch * s->grid->replicas,
                                    .seconds = f->median[c],
                                    .floor_seconds = f->floor[c],
                                    .bytes = f->bytes,
                                    .peak_bytes = s->backend->peak(),
                                    .more = more};
    bench_print(s->world, s->bench, &line);
  }
}

/* Its floor is the recurrence's own median in this run. */
static struct status run_train_step(const struct setup *s, const char *graph,
                                    const struct recur_net *net, const struct findings *f) {
  struct bench_train_step step;
  TRY(bench_train_step(s->world, s->grid, s->bench, net, &step));
  const struct bench_line line = {
      .bench = "recurrence",
      .name = "train_step",
      .nodes = s->nodes,
      .edges = s->edges,
      .batch = s->shape.batch * s->grid->replicas,
      .seconds = step.median,
      .floor_seconds = f->median[TOTAL],
      .bytes = step.bytes,
      .peak_bytes = s->backend->peak(),
      .more = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:f}", "graph", graph,
                        "precision", s->mixed ? "mixed" : "fp32", "replicas", s->grid->replicas,
                        "transport", s->grid->replica_comm.via->name, "exchange", f->exchange,
                        "floor", "total of the recurrence in this run", "steps", s->shape.steps,
                        "microsteps", s->shape.microsteps, "seconds_best", step.best)};
  bench_print(s->world, s->bench, &line);
  return fine();
}

static struct status run_network(const struct comm *comm, const struct setup *s, const char *name,
                                 const struct graph *graph, struct findings *found) {
  const struct recur_backend *be = s->backend->recur;
  const lidx n_in = (graph->n_own + 19) / 20, n_out = (graph->n_own + 9) / 10;
  lidx *in = spread(graph->n_own, n_in), *out = spread(graph->n_own, n_out);
  const struct recur_net net = {.graph = graph,
                                .n_in = n_in,
                                .n_out = n_out,
                                .in = in,
                                .out = out,
                                .shape = s->shape,
                                .mixed = s->mixed,
                                .want_gradient = true};
  struct recurrence window = {.backend = be, .graph = graph, .shape = s->shape};
  struct status status = agree(comm, be->open(&net, s->n_threads, &window.state));
  if (!status.code) {
    found->bytes = be->bytes(&net);
    found->exchange = comm->size == 1 ? "none" : graph->halo.all ? "all-gather" : "halo";
    fill(s, comm, &net, window.state);
    time_windows(comm, s, &window, found);
    tell(comm, s, name, found);
  }
  if (window.state) be->close(window.state);
  if (!status.code) status = run_train_step(s, name, &net, found);
  mem_free(in), mem_free(out);
  return status;
}

static struct status run_graph(const struct comm *comm, const struct setup *s, bool modular,
                               bool ordered, struct findings *found) {
  struct bench_source from = s->from;
  struct bench_graph made;
  from.model.modular = modular, from.ordered = ordered;
  TRY(bench_source_look(comm, &from));
  TRY(bench_graph_init(comm, &from, job_exchange(&s->bench->job), s->n_threads, &made));
  if (comm->size > 1) recurrence_say_exchange(&made.graph, comm);
  const struct status status = run_network(comm, s, from.name, &made.graph, found);
  bench_graph_free(&made);
  return status;
}

/* With --graph that one; with --model that one as drawn, or ordered with --ordered; else
 * both as drawn and ordered. */
static struct status run_graphs(const struct comm *comm, struct setup *s) {
  struct findings found = {0};
  TRY(bench_source_look(comm, &s->from));
  s->nodes = s->from.n_nodes, s->edges = s->from.n_edges;
  if (s->backend->own_memory)
    measure_device_floor(comm, s, &found);
  else
    measure_floor(comm, s, &found);
  const char *model = s->bench->model;
  if (model || s->from.path)
    return run_graph(comm, s, model && !strcmp(model, "modular"), s->bench->ordered, &found);
  for (int i = 0; i < 4; i++) TRY(run_graph(comm, s, i / 2 == 1, i % 2 == 1, &found));
  return fine();
}

static int given(int64_t asked, int otherwise) {
  return asked > 0 ? (int)asked : otherwise;
}

static struct status check_share(int batch, int replicas) {
  if (batch % replicas == 0) return fine();
  return failure(EXIT_USAGE, "--batch %d: it must be a multiple of --replicas %d", batch, replicas);
}

static struct status run_grid(const struct comm *world, const struct bench_job *bench,
                              const struct grid *grid) {
  const int batch = given(bench->batch, 32);
  TRY(check_share(batch, grid->replicas));
  struct setup s = {
      .bench = bench,
      .backend = bench->job.backend,
      .world = world,
      .grid = grid,
      .from = {.path = bench->graph,
               .model = {.n_nodes = bench->nodes > 0 ? bench->nodes : 5000,
                         .n_edges = bench->edges > 0 ? bench->edges : 524324,
                         .seed = (uint64_t)bench->seed}},
      .shape = {batch / grid->replicas, given(bench->steps, 64), given(bench->microsteps, 2)},
      .mixed = bench->precision && !strcmp(bench->precision, "mixed"),
      .n_threads = bench->job.n_threads};
  return run_graphs(&grid->replica_comm, &s);
}

static struct status run(const struct comm *world, const struct bench_job *bench) {
  const int replicas = given(bench->replicas, 1);
  if (world->size % replicas)
    return failure(EXIT_USAGE, "--replicas %d: it must divide the number of ranks, %d", replicas,
                   world->size);
  struct grid grid = {0};
  struct status status = job_grid(world, &bench->job, world->size / replicas, &grid);
  if (!status.code) status = run_grid(world, bench, &grid);
  job_grid_close(&grid);
  return status;
}

const struct bench bench_recurrence = {
    "recurrence", "one window of the recurrence, forward and backward, on random graphs", run};
