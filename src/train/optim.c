/* One AdamW step over all parameters, with its learning rates and the clip of the norm. */
#include "optim.h"

#include <math.h>

double optim_factor(const struct optim_config *config, int64_t step, int64_t total) {
  const double pi = 3.141592653589793;
  if (step < config->warmup) return (double)(step + 1) / (double)config->warmup;
  if (config->schedule == SCHEDULE_CONSTANT || total <= config->warmup) return 1;
  const double x = (double)(step - config->warmup) / (double)(total - config->warmup);
  return 0.5 * (1 + cos(pi * (x < 1 ? x : 1)));
}

/* Embedding and readout bias stand on every part: the first part counts them. */
static bool counts(const struct rnn *rnn, int block) {
  const bool everywhere = block == MODEL_EMBEDDING || block == MODEL_READOUT_BIAS;
  return !rnn_is_frozen(rnn, block) && (!everywhere || rnn->grid->part == 0);
}

void optim_norm(struct rnn *rnn) {
  const struct model_backend *ops = rnn->backend->model;
  const int64_t *at = rnn->at.at;
  ops->squares_clear(rnn->model);
  int first = 0; /* of a run of blocks that count */
  for (int b = 0; b <= MODEL_BLOCKS; b++) {
    if (b < MODEL_BLOCKS && counts(rnn, b)) continue;
    if (first < b) ops->squares_add(rnn->model, at[first], at[b] - at[first]);
    first = b + 1;
  }
  if (rnn->grid->replica_comm.size == 1) return;
  double squares = ops->squares(rnn->model);
  comm_sum_f64(&rnn->grid->replica_comm, &squares, 1);
  ops->squares_set(rnn->model, squares);
}

static void update(struct rnn *rnn, int first, int end, const struct adamw *how) {
  const int64_t *at = rnn->at.at;
  rnn->backend->model->update(rnn->model, at[first], at[end] - at[first], how);
}

void optim_update(struct rnn *rnn, const struct optim_config *config, int64_t step, int64_t total) {
  const double factor = optim_factor(config, step, total);
  struct adamw how = {.rate = factor * config->lr_edges,
                      .decay = config->weight_decay,
                      .beta1 = config->beta1,
                      .beta2 = config->beta2,
                      .eps = config->eps,
                      .clip = config->clip,
                      .step = step + 1};
  if (!rnn_is_frozen(rnn, MODEL_EDGES)) update(rnn, MODEL_EDGES, MODEL_EMBEDDING, &how);
  how.rate = factor * config->lr_adapters;
  update(rnn, MODEL_EMBEDDING, MODEL_BLOCKS, &how);
  rnn_refresh(rnn);
}
