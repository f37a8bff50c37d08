/* Cases of what crosses between ranks when they share a graph, at the sizes of one microstep and
 * one training step. Twice: with the halo that edges need, and with an all-gather.
 *
 *   exchange     all-gather        states of other ranks' rows, forward
 *   reduce       reduce-scatter    gradients of those rows, home
 *   there        there-all         forward work on own edges while the states are under way
 *   back         back-all          backward work on own edges while the gradients are under way
 *   near, near-back                that work alone
 *   all-reduce                     one number an edge of the smallest share, over all ranks
 *
 * The floor of a transfer is its bytes over the best rate of the plan's machine, and its
 * latency; of work, nothing is claimed (floor = measured); of work beside a transfer,
 * the larger of the two. */
#include "bench.h"
#include "graph.h"
#include "partition/halo.h"
#include "core/log.h"
#include "cost/machine.h"
#include "contract/recurrence.h"
#include "train/recurrence.h"
#include "contract/transport.h"

#include <math.h>
#include <string.h>

enum { REPEATS = 30, BURST = 8 };

struct halo_bench {
  const struct bench_job *bench;
  const struct comm *comm;
  const struct graph *graph;
  const struct recur_backend *be;
  struct recur *state;
  const struct link *link; /* of the machine whose best rate is the floor */
  int batch;
  int64_t edges;
  const char *name;  /* the graph's */
  int64_t gradients; /* summed: as many as the smallest share has, the same on all ranks */
};

typedef void step_of(const struct halo_bench *h);

static void wait_for(const struct halo_bench *h) {
  float value;
  if (h->graph->n_own > 0)
    h->bench->job.backend->get(&value, h->be->state(h->state, 0), sizeof value);
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

static void exchange_with(const struct halo_bench *h, bool work) {
  h->comm->via->exchange_begin(h->comm, &h->graph->halo, h->be->state(h->state, 0), h->graph->n_own,
                               (size_t)h->batch * sizeof(float));
  if (work) h->be->forward_near(h->state, 0);
  h->comm->via->exchange_end(h->comm, &h->graph->halo);
}

static void exchange(const struct halo_bench *h) {
  exchange_with(h, false);
}

static void there(const struct halo_bench *h) {
  exchange_with(h, true);
}

static void near(const struct halo_bench *h) {
  h->be->forward_near(h->state, 0);
}

static void reduce_with(const struct halo_bench *h, bool work) {
  float *rows = h->be->d_state(h->state);
  h->comm->via->reduce_begin(h->comm, &h->graph->halo, rows, h->graph->n_own, h->batch);
  if (work) h->be->backward_near(h->state, 0);
  h->comm->via->reduce_end(h->comm, &h->graph->halo, rows, h->batch);
}

static void reduce(const struct halo_bench *h) {
  reduce_with(h, false);
}

static void back(const struct halo_bench *h) {
  reduce_with(h, true);
}

static void near_back(const struct halo_bench *h) {
  h->be->backward_near(h->state, 0);
}

static void all_reduce(const struct halo_bench *h) {
  h->comm->via->sum(h->comm, h->be->d_value(h->state), h->gradients);
}

static void tell(const struct halo_bench *h, const char *name, double seconds, double floor_seconds,
                 double bytes) {
  const struct bench_line line = {
      .bench = "halo",
      .name = name,
      .nodes = h->graph->n_global,
      .edges = h->edges,
      .batch = h->batch,
      .seconds = seconds,
      .floor_seconds = floor_seconds,
      .bytes = (int64_t)bytes,
      .peak_bytes = h->bench->job.backend->peak(),
      .more = json_pack("{s:s, s:s, s:I, s:f}", "graph", h->name, "transport", h->comm->via->name,
                        "halo_rows", (json_int_t)h->graph->n_halo, "bytes_per_second",
                        seconds > 0 ? bytes / seconds : 0)};
  bench_print(h->comm, h->bench, &line);
}

static int64_t largest(const struct comm *comm, int64_t x) {
  comm_max_i64(comm, &x, 1);
  return x;
}

/* Bytes of states that the rank with most of them receives. */
static double bytes_in(const struct halo_bench *h) {
  return 4.0 * h->batch * (double)largest(h->comm, h->graph->n_halo);
}

static void measure_rows(const struct halo_bench *h) {
  const bool all = h->graph->halo.all;
  const double bytes = bytes_in(h), floor = link_floor(h->link, bytes);
  const double work = time_steps(h, near), work_back = time_steps(h, near_back);
  if (!all) tell(h, "near", work, work, 4.0 * h->batch * (double)h->graph->near.n_edges);
  if (!all)
    tell(h, "near-back", work_back, work_back, 4.0 * h->batch * (double)h->graph->near.n_edges);
  const double out = time_steps(h, exchange), home = time_steps(h, reduce);
  tell(h, all ? "all-gather" : "exchange", out, floor, bytes);
  tell(h, all ? "reduce-scatter" : "reduce", home, floor, bytes);
  tell(h, all ? "there-all" : "there", time_steps(h, there), fmax(work, out), bytes);
  tell(h, all ? "back-all" : "back", time_steps(h, back), fmax(work_back, home), bytes);
}

static void measure_sum(const struct halo_bench *h) {
  const double share = 2.0 * (h->comm->size - 1) / h->comm->size,
               bytes = share * 4.0 * (double)h->gradients;
  tell(h, "all-reduce", time_steps(h, all_reduce), link_floor(h->link, bytes), bytes);
}

static struct status run_kind(const struct halo_bench *setup, const struct graph *graph,
                              bool sums) {
  struct halo_bench h = *setup;
  const lidx first = 0;
  const struct recur_net net = {.graph = graph,
                                .n_in = graph->n_own > 0,
                                .n_out = graph->n_own > 0,
                                .in = &first,
                                .out = &first,
                                .shape = {h.batch, 1, 1},
                                .want_gradient = true};
  h.graph = graph;
  h.gradients = graph->near.n_edges + graph->far.n_edges;
  comm_min_i64(h.comm, &h.gradients, 1);
  const struct status s = agree(h.comm, h.be->open(&net, h.bench->job.n_threads, &h.state));
  if (!s.code) {
    h.be->forward_begin(h.state), h.be->backward_begin(h.state);
    measure_rows(&h);
    if (sums) measure_sum(&h);
  }
  if (h.state) h.be->close(h.state);
  return s;
}

static struct status run_graph(const struct halo_bench *setup) {
  const struct bench_job *b = setup->bench;
  const bool modular = b->model && !strcmp(b->model, "modular");
  struct bench_source from = {.path = b->graph,
                              .model = {.n_nodes = b->nodes > 0 ? b->nodes : 211577,
                                        .n_edges = b->edges > 0 ? b->edges : 24680000,
                                        .seed = (uint64_t)b->seed,
                                        .modular = modular},
                              .ordered = modular || b->ordered};
  struct halo_bench h = *setup;
  struct bench_graph made;
  TRY(bench_source_look(h.comm, &from));
  h.edges = from.n_edges, h.name = from.name;
  TRY(bench_graph_init(h.comm, &from, HALO_NEEDED, b->job.n_threads, &made));
  if (!b->job.json)
    log_line("%s graph of %lld neurons and %lld edges; batch %d:", from.name,
             (long long)from.n_nodes, (long long)from.n_edges, h.batch);
  recurrence_say_exchange(&made.graph, h.comm);
  struct status s = run_kind(&h, &made.graph, true);
  if (!s.code && h.comm->size > 1) {
    struct graph all;
    s = bench_graph_again(h.comm, &made, HALO_ALL, &all);
    if (!s.code) s = run_kind(&h, &all, false);
    graph_free(&all);
  }
  bench_graph_free(&made);
  return s;
}

static struct status run(const struct comm *world, const struct bench_job *bench) {
  const bool on_cpu = !strcmp(bench->job.backend->name, "cpu");
  struct machine machine;
  TRY(machine_find(on_cpu ? "cpu" : "h200", &machine));
  const struct link *link = machine_link(&machine, bench->job.via->name);
  struct comm comm = comm_split(world, 0, world->rank);
  struct status s = bench->job.via->open(&comm);
  const struct halo_bench setup = {.bench = bench,
                                   .comm = &comm,
                                   .be = bench->job.backend->recur,
                                   .link = link ? link : &machine.link[0],
                                   .batch = bench->batch > 0 ? (int)bench->batch : 32};
  if (!s.code) s = run_graph(&setup);
  if (comm.via) comm.via->close(&comm);
  comm_free(&comm);
  return s;
}

const struct bench bench_halo = {
    "halo", "states, gradients and sums between ranks, and how they overlap with work", run};
