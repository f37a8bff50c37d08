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
static void fill_weights(const struct lif_bed *bed, eidx n, const uint32_t *source,
                         const uint32_t *target, int16_t *weight, uint16_t *delay) {
  const uint64_t seed = (uint64_t)bed->bench->seed;
  const uint16_t low = (uint16_t)(bed->bench->low_delay ? bed->bench->low_delay : LOW_DELAY);
  const uint16_t high = (uint16_t)(bed->bench->high_delay ? bed->bench->high_delay : HIGH_DELAY);
  const int inhibition = bed->bench->neurons ? 5 : 1;
#pragma omp parallel for num_threads(bed->bench->job.n_threads)
  for (eidx e = 0; e < n; e++) {
    const int count = (int)generate_count(seed, source[e], target[e]);
    weight[e] = (int16_t)(source[e] % 5 ? count : -inhibition * count);
    delay[e] = generate_delay(seed, source[e], target[e], low, high);
  }
}

static void build_net(struct lif_bed *bed, const struct generate_model *model) {
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
  lif_net_build(&edges, bed->first_of_rank[bed->comm->rank],
                bed->first_of_rank[bed->comm->rank + 1], &bed->net);
  mem_free(source), mem_free(target), mem_free(weight), mem_free(delay);
}

static struct status make_synthetic(struct lif_bed *bed) {
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

static struct status load_file(struct lif_bed *bed) {
  const struct comm *comm = bed->comm;
  struct connectome_file *file;
  TRY(connectome_open(comm, bed->bench->graph, &file));
  load_split(comm, file, comm->size, bed->first_of_rank);
  const gidx first = bed->first_of_rank[comm->rank], last = bed->first_of_rank[comm->rank + 1];
  const struct connectome_facts *facts = connectome_facts(file);
  lif_net_load(file, first, last, &bed->net);
  if (facts->streamable && bed->bench->job.backend == &backend_cpu)
    lif_net_stream(file, first, last,
                   facts->n_edges * (int64_t)sizeof(struct lif_edge) / LIF_BED_HELD,
                   bed->bench->job.n_readers, &bed->streamed);
  connectome_close(file);
  return fine();
}

struct status lif_bed_init(const struct comm *comm, const struct bench_job *bench,
                           struct lif_bed *bed) {
  const struct backend *backend = bench->job.backend;
  *bed =
      (struct lif_bed){.comm = comm, .bench = bench, .steps = bench->steps ? bench->steps : STEPS};
  bed->first_of_rank = NEW(gidx, comm->size + 1);
  bed->device = comm->size == 1 && backend->lif->together && !bench->plain;
  bed->rate = backend->own_memory ? backend->copy_rate() * comm->size
                                  : bench_memory_rate(comm, bench->job.n_threads);
  TRY(bench->graph ? load_file(bed) : make_synthetic(bed));
  int64_t n_edges = bed->net.n_edges;
  comm_sum_i64(comm, &n_edges, 1);
  log_line("graph of %lld neurons and %lld edges; memory moves %.1f GB/s",
           (long long)bed->net.n_global, (long long)n_edges, bed->rate * 1e-9);
  return fine();
}

void lif_bed_free(struct lif_bed *bed) {
  lif_net_free(&bed->net), lif_net_free(&bed->streamed), mem_free(bed->first_of_rank);
  *bed = (struct lif_bed){0};
}

/* ---- who fires ---- */

/* Exactly `n` of all nodes, drawn for step t; mark [n_nodes] becomes 1 for them.
 * The same on every rank. */
static void draw_nodes(const struct lif_bed *bed, int64_t t, int64_t n, uint8_t *mark) {
  memset(mark, 0, (size_t)bed->net.n_global);
  uint32_t at = 0;
  while (n > 0) {
    const struct rng_block r = rng_draw((uint64_t)bed->bench->seed, at++, (uint32_t)t, 0, 1);
    const uint64_t node = rng_below(r.v[0], r.v[1], (uint64_t)bed->net.n_global);
    n -= !mark[node], mark[node] = 1;
  }
}

struct lif_stimulus *lif_bed_spikes(const struct lif_bed *bed, int64_t n_steps, double percent) {
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

struct lif_stimulus *lif_bed_poisson(const struct lif_bed *bed, double probability, int value) {
  struct lif_stimulus *stimulus = NEW_ZERO(struct lif_stimulus, 1);
  lidx *neuron = NEW(lidx, bed->net.n_own);
  for (lidx i = 0; i < bed->net.n_own; i++) neuron[i] = i;
  *stimulus = (struct lif_stimulus){.kind = LIF_POISSON,
                                    .last_step = INT64_MAX,
                                    .value = value,
                                    .probability = probability,
                                    .n = bed->net.n_own,
                                    .neuron = neuron};
  return stimulus;
}
