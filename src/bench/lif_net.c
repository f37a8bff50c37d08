/* The net and the neurons that are made to fire in `bench lif`. */
#include "lif_net.h"
#include "kernels/interface/backends.h"
#include "partition/generate.h"
#include "graph/load.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/rng.h"

#include <string.h>

enum { NODES = 211577, EDGES = 24678466, STEPS = 200, LOW_DELAY = 1, HIGH_DELAY = 8 };

/* ---- graph ---- */

/* Four in five neurons excite; those of a model are held in check by five times stronger ones,
 * since there the graph's own activity counts. */
static void fill_weights(const struct lif_fixture *fixture, eidx n, const uint32_t *source,
                         const uint32_t *target, int16_t *weight, uint16_t *delay) {
  const uint64_t seed = (uint64_t)fixture->bench->seed;
  const uint16_t low =
      (uint16_t)(fixture->bench->low_delay ? fixture->bench->low_delay : LOW_DELAY);
  const uint16_t high =
      (uint16_t)(fixture->bench->high_delay ? fixture->bench->high_delay : HIGH_DELAY);
  const int inhibition = fixture->bench->neurons ? 5 : 1;
#pragma omp parallel for num_threads(fixture->bench->job.n_threads)
  for (eidx e = 0; e < n; e++) {
    const int count = (int)generate_count(seed, source[e], target[e]);
    weight[e] = (int16_t)(source[e] % 5 ? count : -inhibition * count);
    delay[e] = generate_delay(seed, source[e], target[e], low, high);
  }
}

static void build_net(struct lif_fixture *fixture, const struct generate_model *model) {
  const eidx n = model->n_edges;
  uint32_t *source = NEW(uint32_t, n), *target = NEW(uint32_t, n);
  int16_t *weight = NEW(int16_t, n);
  uint16_t *delay = NEW(uint16_t, n);
  generate_edges(model, fixture->bench->job.n_threads, source, target);
  fill_weights(fixture, n, source, target, weight, delay);
  const struct lif_edges edges = {.n_nodes = model->n_nodes,
                                  .n_edges = n,
                                  .source = source,
                                  .target = target,
                                  .weight = weight,
                                  .delay = delay};
  lif_net_build(&edges, fixture->first_of_rank[fixture->comm->rank],
                fixture->first_of_rank[fixture->comm->rank + 1], &fixture->net);
  mem_free(source), mem_free(target), mem_free(weight), mem_free(delay);
}

static struct status make_synthetic(struct lif_fixture *fixture) {
  const struct bench_job *bench = fixture->bench;
  const struct generate_model model = {.n_nodes = bench->nodes ? bench->nodes : NODES,
                                       .n_edges = bench->edges ? bench->edges : EDGES,
                                       .seed = (uint64_t)bench->seed,
                                       .modular = bench->model && !strcmp(bench->model, "modular")};
  TRY(generate_check(&model));
  const int ranks = fixture->comm->size;
  for (int r = 0; r <= ranks; r++) fixture->first_of_rank[r] = model.n_nodes * r / ranks;
  build_net(fixture, &model);
  return fine();
}

static struct status load_file(struct lif_fixture *fixture) {
  const struct comm *comm = fixture->comm;
  struct connectome_file *file;
  TRY(connectome_open(comm, fixture->bench->graph, &file));
  load_split(comm, file, comm->size, fixture->first_of_rank);
  const gidx first = fixture->first_of_rank[comm->rank],
             last = fixture->first_of_rank[comm->rank + 1];
  const struct connectome_facts *facts = connectome_facts(file);
  lif_net_load(file, first, last, &fixture->net);
  if (facts->streamable && fixture->bench->job.backend == &backend_cpu)
    lif_net_stream(file, first, last,
                   facts->n_edges * (int64_t)sizeof(struct lif_edge) / LIF_BED_HELD,
                   fixture->bench->job.n_readers, &fixture->streamed);
  connectome_close(file);
  return fine();
}

struct status lif_fixture_init(const struct comm *comm, const struct bench_job *bench,
                               struct lif_fixture *fixture) {
  const struct backend *backend = bench->job.backend;
  *fixture = (struct lif_fixture){
      .comm = comm, .bench = bench, .steps = bench->steps ? bench->steps : STEPS};
  fixture->first_of_rank = NEW(gidx, comm->size + 1);
  fixture->device = comm->size == 1 && backend->lif->together && !bench->plain;
  fixture->rate = backend->own_memory ? backend->copy_rate() * comm->size
                                      : bench_memory_rate(comm, bench->job.n_threads);
  TRY(bench->graph ? load_file(fixture) : make_synthetic(fixture));
  int64_t n_edges = fixture->net.n_edges;
  comm_sum_i64(comm, &n_edges, 1);
  log_line("graph of %lld neurons and %lld edges; memory moves %.1f GB/s",
           (long long)fixture->net.n_global, (long long)n_edges, fixture->rate * 1e-9);
  return fine();
}

void lif_fixture_free(struct lif_fixture *fixture) {
  lif_net_free(&fixture->net), lif_net_free(&fixture->streamed), mem_free(fixture->first_of_rank);
  *fixture = (struct lif_fixture){0};
}

/* ---- who fires ---- */

/* Exactly `n` of all nodes, drawn for step t; mark [n_nodes] becomes 1 for them.
 * The same on every rank. */
static void draw_nodes(const struct lif_fixture *fixture, int64_t t, int64_t n, uint8_t *mark) {
  memset(mark, 0, (size_t)fixture->net.n_global);
  uint32_t at = 0;
  while (n > 0) {
    const struct rng_block r = rng_draw((uint64_t)fixture->bench->seed, at++, (uint32_t)t, 0, 1);
    const uint64_t node = rng_below(r.v[0], r.v[1], (uint64_t)fixture->net.n_global);
    n -= !mark[node], mark[node] = 1;
  }
}

struct lif_stimulus *lif_fixture_spikes(const struct lif_fixture *fixture, int64_t n_steps,
                                        double percent) {
  const int64_t n = (int64_t)((double)fixture->net.n_global * percent / 100 + 0.5);
  struct lif_stimulus *stimulus = NEW_ZERO(struct lif_stimulus, n_steps);
  uint8_t *mark = NEW(uint8_t, fixture->net.n_global);
  for (int64_t t = 0; t < n_steps; t++) {
    draw_nodes(fixture, t, n, mark);
    const uint8_t *own = mark + fixture->net.first;
    int64_t *step = NEW(int64_t, 1);
    lidx found = 0, at = 0;
    for (lidx i = 0; i < fixture->net.n_own; i++) found += own[i];
    lidx *neuron = NEW(lidx, found);
    for (lidx i = 0; i < fixture->net.n_own; i++)
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

struct lif_stimulus *lif_fixture_poisson(const struct lif_fixture *fixture, double probability,
                                         int value) {
  struct lif_stimulus *stimulus = NEW_ZERO(struct lif_stimulus, 1);
  lidx *neuron = NEW(lidx, fixture->net.n_own);
  for (lidx i = 0; i < fixture->net.n_own; i++) neuron[i] = i;
  *stimulus = (struct lif_stimulus){.kind = LIF_POISSON,
                                    .last_step = INT64_MAX,
                                    .value = value,
                                    .probability = probability,
                                    .n = fixture->net.n_own,
                                    .neuron = neuron};
  return stimulus;
}
