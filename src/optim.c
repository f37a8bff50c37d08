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

/* The end of the run of blocks from `b` on that are alike. */
static int run_end(const struct rnn *rnn, int b, bool (*alike)(const struct rnn *, int, int)) {
  int end = b + 1;
  while (end < MODEL_BLOCKS && alike(rnn, b, end)) end++;
  return end;
}

static bool counts_too(const struct rnn *rnn, int b, int other) {
  (void)b;
  return counts(rnn, other);
}

static bool moves_alike(const struct rnn *rnn, int b, int other) {
  (void)rnn;
  return (b <= MODEL_BIAS) == (other <= MODEL_BIAS);
}

void optim_norm(struct rnn *rnn) {
  const struct model_backend *ops = rnn->backend->model;
  ops->squares_clear(rnn->model);
  for (int b = 0, end; b < MODEL_BLOCKS; b = end) {
    end = counts(rnn, b) ? run_end(rnn, b, counts_too) : b + 1;
    if (counts(rnn, b)) ops->squares_add(rnn->model, rnn->at.at[b], rnn->at.at[end] - rnn->at.at[b]);
  }
  if (rnn->grid->replica_comm.size == 1) return;
  double squares = ops->squares(rnn->model);
  comm_sum_f64(&rnn->grid->replica_comm, &squares, 1);
  ops->squares_set(rnn->model, squares);
}

void optim_update(struct rnn *rnn, const struct optim_config *config, int64_t step, int64_t total) {
  const double factor = optim_factor(config, step, total);
  for (int b = 0, end; b < MODEL_BLOCKS; b = end) {
    end = run_end(rnn, b, moves_alike);
    if (rnn_is_frozen(rnn, b)) continue;
    const struct adamw how = {.rate = factor * (b <= MODEL_BIAS ? config->lr_edges : config->lr_adapters),
                              .decay = config->weight_decay,
                              .beta1 = config->beta1,
                              .beta2 = config->beta2,
                              .eps = config->eps,
                              .clip = config->clip,
                              .step = step + 1};
    rnn->backend->model->update(rnn->model, rnn->at.at[b], rnn->at.at[end] - rnn->at.at[b], &how);
  }
  rnn_refresh(rnn);
}
