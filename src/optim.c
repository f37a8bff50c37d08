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

double optim_norm(struct rnn *rnn) {
  const struct model_backend *ops = rnn->backend->model;
  double squares = 0;
  for (int b = 0; b < MODEL_BLOCKS; b++)
    if (counts(rnn, b))
      squares += ops->sum_squares(rnn->model, rnn->at.at[b], rnn->at.at[b + 1] - rnn->at.at[b]);
  comm_sum_f64(&rnn->grid->replica_comm, &squares, 1);
  return sqrt(squares);
}

double optim_clip(const struct optim_config *config, double norm) {
  return config->clip > 0 && norm > config->clip ? config->clip / norm : 1;
}

void optim_update(struct rnn *rnn, const struct optim_config *config, int64_t step, int64_t total,
                  double norm) {
  const double factor = optim_factor(config, step, total);
  for (int b = 0; b < MODEL_BLOCKS; b++) {
    if (rnn_is_frozen(rnn, b)) continue;
    const bool core = b <= MODEL_BIAS;
    const struct adamw how = {.rate = factor * (core ? config->lr_edges : config->lr_adapters),
                              .decay = config->weight_decay,
                              .beta1 = config->beta1,
                              .beta2 = config->beta2,
                              .eps = config->eps,
                              .scale = optim_clip(config, norm),
                              .step = step + 1};
    rnn->backend->model->update(rnn->model, rnn->at.at[b], rnn->at.at[b + 1] - rnn->at.at[b], &how);
  }
  rnn_refresh(rnn);
}
