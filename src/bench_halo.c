/* Cases of what crosses between ranks when they share a graph, at the sizes of one microstep and one training
 * step:
 *
 *   exchange    halo rows of the states, forward          reduce     gradients of halo rows, home
 *   near        work on own edges alone                   overlapped near while an exchange is under way
 *   sum         one number an edge of the smallest share, over all ranks
 *
 * The floor of a transfer is its bytes over the bandwidth of the plan's machine and its latency; of work,
 * nothing is claimed (floor = measured); of `overlapped`, the larger of near and exchange. */
#include "bench.h"
#include "bench_graph.h"
#include "log.h"
#include "plan.h"
#include "recur_backend.h"
#include "transport.h"

#include <math.h>
#include <string.h>

enum { REPEATS = 50, BURST = 8 };

struct halo_bench {
  const struct bench_job *bench;
  const struct comm *comm;
  const struct graph *graph;
  const struct recur_backend *be;
  struct recur *state;
  const struct plan_machine *machine;
  int batch;
  int64_t edges;
  int64_t gradients; /* summed: as many as the smallest share has, the same on all ranks */
};

typedef void step_of(const struct halo_bench *h);

static void wait_for(const struct halo_bench *h) {
  float value;
  if (h->graph->n_own > 0) h->bench->job.backend->get(&value, h->be->state(h->state, 0), sizeof value);
}

/* Median over REPEATS of a burst of steps, per step, the slowest rank's. */
static double time_steps(const struct halo_bench *h, step_of *step) {
  double seconds[REPEATS];
  for (int i = -3; i < REPEATS; i++) {
    wait_for(h);
    comm_barrier(h->comm);
    const double start = seconds_now();
    for (int k = 0; k < BURST; k++) step(h);
    wait_for(h);
    const double each = bench_slowest(h->comm, seconds_now() - start) / BURST;
    if (i >= 0) seconds[i] = each;
  }
  return bench_median(seconds, REPEATS);
}

static void exchange(const struct halo_bench *h) {
  h->comm->via->exchange_begin(h->comm, &h->graph->halo, h->be->state(h->state, 0), h->graph->n_own,
                               (size_t)h->batch * sizeof(float));
  h->comm->via->exchange_end(h->comm, &h->graph->halo);
}

static void reduce(const struct halo_bench *h) {
  float *rows = h->be->d_state(h->state);
  h->comm->via->reduce_begin(h->comm, &h->graph->halo, rows, h->graph->n_own, h->batch);
  h->comm->via->reduce_end(h->comm, &h->graph->halo, rows, h->batch);
}

static void near(const struct halo_bench *h) {
  h->be->forward_near(h->state, 0);
}

static void overlapped(const struct halo_bench *h) {
  h->comm->via->exchange_begin(h->comm, &h->graph->halo, h->be->state(h->state, 0), h->graph->n_own,
                               (size_t)h->batch * sizeof(float));
  h->be->forward_near(h->state, 0);
  h->comm->via->exchange_end(h->comm, &h->graph->halo);
}

static void sum(const struct halo_bench *h) {
  h->comm->via->sum(h->comm, h->be->d_value(h->state), h->gradients);
}

static double transfer_floor(const struct halo_bench *h, double bytes) {
  return h->machine->latency + bytes / h->machine->bandwidth;
}

static void tell(const struct halo_bench *h, const char *name, double seconds, double floor_seconds,
                 double bytes) {
  const struct bench_line line = {.bench = "halo",
                                  .name = name,
                                  .nodes = h->graph->n_global,
                                  .edges = h->edges,
                                  .batch = h->batch,
                                  .seconds = seconds,
                                  .floor_seconds = floor_seconds,
                                  .bytes = (int64_t)bytes,
                                  .peak_bytes = h->bench->job.backend->peak(),
                                  .more = json_pack("{s:s, s:I, s:f}", "transport", h->comm->via->name,
                                                    "halo_rows", (json_int_t)h->graph->n_halo,
                                                    "bytes_per_second", seconds > 0 ? bytes / seconds : 0)};
  bench_print(h->comm, h->bench, &line);
}

static int64_t largest(const struct comm *comm, int64_t x) {
  comm_max_i64(comm, &x, 1);
  return x;
}

static void measure(const struct halo_bench *h) {
  const double row = 4.0 * h->batch;
  const double halo = row * (double)largest(h->comm, h->graph->n_halo);
  const double gradients = 4.0 * (double)h->gradients;
  const double share = 2.0 * (h->comm->size - 1) / h->comm->size;
  const double t_exchange = time_steps(h, exchange), t_near = time_steps(h, near);
  tell(h, "exchange", t_exchange, transfer_floor(h, halo), halo);
  tell(h, "reduce", time_steps(h, reduce), transfer_floor(h, halo), halo);
  tell(h, "near", t_near, t_near, row * (double)h->graph->near.n_edges);
  tell(h, "overlapped", time_steps(h, overlapped), fmax(t_exchange, t_near), halo);
  tell(h, "sum", time_steps(h, sum), transfer_floor(h, share * gradients), share * gradients);
}

static struct status run_graph(const struct halo_bench *setup, bool modular, bool ordered) {
  const struct bench_job *b = setup->bench;
  const struct generate_model model = {.n_nodes = b->nodes > 0 ? b->nodes : 211577,
                                       .n_edges = b->edges > 0 ? b->edges : 24680000,
                                       .seed = (uint64_t)b->seed,
                                       .modular = modular};
  struct bench_graph made;
  TRY(bench_graph_init(setup->comm, &model, ordered, b->job.n_threads, &made));
  struct halo_bench h = *setup;
  h.graph = &made.graph, h.edges = model.n_edges;
  h.gradients = made.graph.near.n_edges + made.graph.far.n_edges;
  comm_min_i64(h.comm, &h.gradients, 1);
  const lidx first = 0;
  const struct recur_net net = {.graph = &made.graph,
                                .n_in = made.graph.n_own > 0,
                                .n_out = made.graph.n_own > 0,
                                .in = &first,
                                .out = &first,
                                .shape = {h.batch, 1, 1},
                                .want_gradient = true};
  const struct status s = agree(h.comm, h.be->open(&net, b->job.n_threads, &h.state));
  if (!s.code) {
    if (!b->job.json) log_line("%s graph%s:", modular ? "modular" : "lognormal", ordered ? ", ordered" : "");
    h.be->forward_begin(h.state);
    measure(&h);
  }
  if (h.state) h.be->close(h.state);
  bench_graph_free(&made);
  return s;
}

static struct status run(const struct comm *world, const struct bench_job *bench) {
  struct comm comm = comm_split(world, 0, world->rank);
  struct status s = bench->job.via->open(&comm);
  const struct halo_bench setup = {
      .bench = bench,
      .comm = &comm,
      .be = bench->job.backend->recur,
      .machine = plan_machine_find(strcmp(bench->job.backend->name, "cpu") ? "h200" : "cpu"),
      .batch = bench->batch > 0 ? (int)bench->batch : 32};
  const bool modular = bench->model && !strcmp(bench->model, "modular");
  if (!s.code) s = run_graph(&setup, modular, modular);
  if (comm.via) comm.via->close(&comm);
  comm_free(&comm);
  return s;
}

const struct bench bench_halo = {
    "halo", "rows, gradients and sums between ranks, and how they overlap with work", run};
