/* How many parts a run needs, and whether it took what was foreseen. A GPU has memory of its own,
 * which is what counts where one computes. */
#include "core/log.h"
#include "cost/cost.h"
#include "train.h"

static struct plan_training plan_of(const struct training *t, int batch, int replicas) {
  const struct train_config *c = &t->config;
  return (struct plan_training){.shape = {.batch = batch,
                                          .steps = (int)c->steps_per_window,
                                          .microsteps = (int)c->microsteps},
                                .vocabulary = t->corpus.vocabulary.n,
                                .embedding = (int)c->embedding,
                                .n_input = c->n_input,
                                .n_output = c->n_output,
                                .replicas = replicas,
                                .characters = t->corpus.n_train + t->corpus.n_validation,
                                .mixed = c->precision == PRECISION_MIXED};
}

static struct plan_memory bytes_of(const struct training *t, const struct plan_graph *graph,
                                   const struct plan_share *share,
                                   const struct plan_training *training) {
  const struct backend *backend = t->job->backend;
  return backend->own_memory ? plan_train_device_memory(backend, graph, share, training)
                             : plan_train_memory(backend, graph, share, training);
}

static int64_t bytes_with(const struct training *t, const struct connectome_facts *facts,
                          int parts) {
  const int replicas = t->world->size / parts;
  const int batch = (int)((t->config.batch + replicas - 1) / replicas);
  const struct plan_training training = plan_of(t, batch, replicas);
  struct plan_graph graph = {.n_nodes = facts->n_nodes,
                             .n_edges = facts->n_edges,
                             .min_delay = 1,
                             .max_delay = 1,
                             .parts = parts,
                             .per_host = parts,
                             .far_share = -1};
  plan_guess(job_exchange(t->job), &graph);
  const struct plan_memory m = bytes_of(t, &graph, plan_largest(&graph), &training);
  plan_graph_free(&graph);
  return m.total;
}

struct status train_choose_parts(const struct training *t, const char *path, int *parts) {
  const int size = t->world->size;
  struct connectome_file *file;
  TRY(connectome_open(t->world, path, &file));
  const struct connectome_facts facts = *connectome_facts(file);
  connectome_close(file);
  int64_t memory = t->job->memory_bytes;
  comm_min_i64(t->world, &memory, 1);
  *parts = size;
  for (int p = size; p >= 1; p--)
    if (size % p == 0 && size / p <= t->config.batch && bytes_with(t, &facts, p) <= memory)
      *parts = p;
  return fine();
}

void train_check_memory(const struct training *t) {
  const struct graph *g = &t->network.graph;
  const struct plan_share share = {
      .n_own = g->n_own, .n_halo = g->n_halo, .near = g->near.n_edges, .far = g->far.n_edges};
  const struct plan_graph graph = {.n_nodes = g->n_global,
                                   .n_edges = t->network.facts.n_edges,
                                   .parts = t->grid.parts,
                                   .all = g->halo.all};
  const struct plan_training training = plan_of(t, t->rnn.shape.batch, t->grid.replicas);
  const struct plan_memory predicted = bytes_of(t, &graph, &share, &training);
  plan_check(&predicted, 0, t->job->backend->peak());
}
