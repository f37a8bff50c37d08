/* The network with its character model: forward, loss, backward, and the sums over ranks. */
#include "rnn.h"
#include "core/mem.h"
#include "recurrence.h"
#include "contract/transport.h"

#include <math.h>

void rnn_share(int64_t batch, const struct grid *grid, int64_t *first, int64_t *n) {
  *first = batch * grid->replica / grid->replicas;
  *n = batch * (grid->replica + 1) / grid->replicas - *first;
}

static struct recur_net recur_net_of(const struct network *network, const struct rnn_shape *shape) {
  return (struct recur_net){
      .graph = &network->graph,
      .n_in = network->input.n_own,
      .n_out = network->output.n_own,
      .in = network->input.own,
      .out = network->output.own,
      .shape = {.batch = shape->batch, .steps = shape->steps, .microsteps = shape->microsteps},
      .mixed = shape->mixed,
      .want_gradient = shape->want_gradient};
}

static struct model_shape model_shape_of(const struct network *network,
                                         const struct rnn_shape *shape) {
  return (struct model_shape){.vocabulary = shape->vocabulary,
                              .embedding = shape->embedding,
                              .batch = shape->batch,
                              .steps = shape->steps,
                              .n_edges = network_n_edges(network),
                              .n_own = network->graph.n_own,
                              .n_in = network->input.n_own,
                              .n_out = network->output.n_own,
                              .adds_bias = network->grid->part == 0};
}

struct status rnn_open(const struct backend *backend, const struct network *network,
                       const struct rnn_shape *shape, int n_threads, struct rnn *rnn) {
  const struct recur_net net = recur_net_of(network, shape);
  const struct model_shape model = model_shape_of(network, shape);
  *rnn = (struct rnn){.backend = backend,
                      .grid = network->grid,
                      .network = network,
                      .shape = *shape,
                      .at = model_layout_of(&model),
                      .cold = true};
  const struct comm *replica = &network->grid->replica_comm;
  TRY(agree(replica, backend->recur->open(&net, n_threads, &rnn->recur)));
  return agree(replica, backend->model->open(&model, shape->want_gradient, n_threads, &rnn->model));
}

void rnn_close(struct rnn *rnn) {
  if (rnn->recur) rnn->backend->recur->close(rnn->recur);
  if (rnn->model) rnn->backend->model->close(rnn->model);
  mem_free(rnn->rows);
  *rnn = (struct rnn){0};
}

int64_t rnn_bytes(const struct backend *backend, const struct network *network,
                  const struct rnn_shape *shape) {
  const struct recur_net net = recur_net_of(network, shape);
  const struct model_shape model = model_shape_of(network, shape);
  return backend->recur->bytes(&net) + backend->model->bytes(&model, shape->want_gradient);
}

/* ---- parameters ---- */

struct scales {
  const struct network *network;
  float *scale;
};

/* c_e = in_degree(target)^(-1/2) */
static void scale_edge(void *self, eidx at, lidx source, lidx target, eidx in_file) {
  const struct scales *s = self;
  (void)source, (void)in_file;
  s->scale[at] = (float)(1 / sqrt((double)s->network->in_degree[s->network->graph.first + target]));
}

void rnn_set_scale(struct rnn *rnn, bool normalize) {
  const eidx n = network_n_edges(rnn->network);
  struct scales s = {rnn->network, NEW(float, n)};
  for (eidx e = 0; e < n; e++) s.scale[e] = 1;
  if (normalize) network_edges(rnn->network, scale_edge, &s);
  rnn->backend->model->set_scale(rnn->model, s.scale);
  mem_free(s.scale);
}

void rnn_refresh(struct rnn *rnn) {
  const struct recur_backend *be = rnn->backend->recur;
  rnn->backend->model->load_core(rnn->model, be->value(rnn->recur), be->leak(rnn->recur),
                                 be->bias(rnn->recur));
}

bool rnn_is_frozen(const struct rnn *rnn, int block) {
  return rnn->shape.frozen && block <= MODEL_BIAS;
}

/* ---- start states ---- */

static int64_t state_floats(const struct rnn *rnn) {
  return (int64_t)rnn->network->graph.n_own * rnn->shape.batch;
}

static float *host_rows(struct rnn *rnn) {
  if (!rnn->rows) rnn->rows = NEW(float, state_floats(rnn));
  return rnn->rows;
}

void rnn_set_start(struct rnn *rnn, const float *state) {
  rnn->backend->put(rnn->backend->recur->state(rnn->recur, 0), state,
                    (size_t)state_floats(rnn) * sizeof *state);
  rnn->cold = false;
}

void rnn_get_start(struct rnn *rnn, float *state) {
  rnn->backend->get(state, rnn->backend->recur->state(rnn->recur, 0),
                    (size_t)state_floats(rnn) * sizeof *state);
}

/* With all states saved a window leaves state 0 as it was. */
void rnn_cold(struct rnn *rnn) {
  if (rnn->cold) return;
  float *rows = host_rows(rnn);
  for (int64_t i = 0; i < state_floats(rnn); i++) rows[i] = 0;
  rnn_set_start(rnn, rows);
  rnn->cold = true;
}

void rnn_carry(struct rnn *rnn) {
  rnn->cold = false;
  rnn->backend->recur->carry(rnn->recur);
}

/* ---- one window ---- */

static struct recurrence recurrence_of(struct rnn *rnn) {
  return (struct recurrence){.backend = rnn->backend->recur,
                             .state = rnn->recur,
                             .graph = &rnn->network->graph,
                             .shape = {.batch = rnn->shape.batch,
                                       .steps = rnn->shape.steps,
                                       .microsteps = rnn->shape.microsteps}};
}

static int64_t logit_floats(const struct rnn *rnn) {
  return (int64_t)rnn->shape.steps * rnn->shape.vocabulary * rnn->shape.batch;
}

void rnn_forward(struct rnn *rnn, const int32_t *token) {
  const struct comm *replica = &rnn->grid->replica_comm;
  const struct model_backend *ops = rnn->backend->model;
  const struct recur_backend *be = rnn->backend->recur;
  struct recurrence r = recurrence_of(rnn);
  ops->drive(rnn->model, token, be->drive(rnn->recur));
  recurrence_forward(&r, replica);
  if (!rnn->shape.want_gradient) rnn->cold = false;
  ops->readout(rnn->model, be->output(rnn->recur));
  if (replica->size > 1) replica->via->sum(replica, ops->logit(rnn->model), logit_floats(rnn));
}

void rnn_loss(struct rnn *rnn, const int32_t *target, double scale) {
  rnn->backend->model->loss(rnn->model, target, scale);
}

double rnn_nats(struct rnn *rnn) {
  return rnn->backend->model->nats(rnn->model);
}

static void sum_gradient(struct rnn *rnn) {
  const struct comm *replica = &rnn->grid->replica_comm, *part = &rnn->grid->part_comm;
  float *gradient = rnn->backend->model->array(rnn->model, MODEL_GRADIENT);
  if (replica->size > 1)
    replica->via->sum(replica, gradient + rnn->at.at[MODEL_EMBEDDING],
                      rnn->at.at[MODEL_EMBEDDING + 1] - rnn->at.at[MODEL_EMBEDDING]);
  if (part->size == 1) return;
  const int64_t first = rnn->shape.frozen ? rnn->at.at[MODEL_EMBEDDING] : 0;
  part->via->sum(part, gradient + first, rnn->at.at[MODEL_BLOCKS] - first);
}

void rnn_backward(struct rnn *rnn) {
  const struct model_backend *ops = rnn->backend->model;
  const struct recur_backend *be = rnn->backend->recur;
  struct recurrence r = recurrence_of(rnn);
  ops->readout_gradient(rnn->model, be->output(rnn->recur), be->d_output(rnn->recur));
  recurrence_backward(&r, &rnn->grid->replica_comm);
  ops->drive_gradient(rnn->model, be->d_drive(rnn->recur));
  ops->take_core(rnn->model, be->d_value(rnn->recur), be->d_leak(rnn->recur),
                 be->d_bias(rnn->recur));
  sum_gradient(rnn);
}

void rnn_logits(struct rnn *rnn, float *logit) {
  const int64_t n = (int64_t)rnn->shape.vocabulary * rnn->shape.batch;
  const float *all = rnn->backend->model->logit(rnn->model);
  rnn->backend->get(logit, all + (rnn->shape.steps - 1) * n, (size_t)n * sizeof *logit);
}

/* ---- figures ---- */

struct activity rnn_activity(struct rnn *rnn, const struct comm *world) {
  const float saturated = 0.95f;
  const struct recur_backend *be = rnn->backend->recur;
  const float *last = be->state(rnn->recur, rnn->shape.steps * rnn->shape.microsteps);
  const lidx n_own = rnn->network->graph.n_own;
  float *leak = NEW(float, n_own);
  rnn->backend->get(leak, be->leak(rnn->recur), (size_t)n_own * sizeof *leak);
  double sums[4] = {
      (double)rnn->backend->model->count_beyond(rnn->model, last, state_floats(rnn), saturated),
      (double)state_floats(rnn), 0, n_own};
  for (lidx i = 0; i < n_own; i++) sums[2] += (double)leak[i];
  mem_free(leak);
  comm_sum_f64(world, sums, 4);
  return (struct activity){.saturated = sums[1] > 0 ? sums[0] / sums[1] : 0,
                           .mean_leak = sums[3] > 0 ? sums[2] / sums[3] : 0};
}

int64_t rnn_sent_bytes(const struct rnn *rnn) {
  const struct halo *h = &rnn->network->graph.halo;
  const int64_t K = (int64_t)rnn->shape.steps * rnn->shape.microsteps;
  const int64_t row = rnn->shape.batch * (int64_t)sizeof(float);
  const int64_t rows = h->n_peers ? h->send_ptr[h->n_peers] + rnn->network->graph.n_halo : 0;
  int64_t floats = 0;
  if (rnn->grid->parts > 1)
    floats += logit_floats(rnn) + (int64_t)rnn->shape.vocabulary * rnn->shape.embedding;
  if (rnn->grid->replicas > 1) floats += rnn->at.at[MODEL_BLOCKS];
  return rows * row * K + floats * (int64_t)sizeof(float);
}
