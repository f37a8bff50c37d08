/* Learning rates, the clip of the gradient and the update of all parameters. */
#ifndef FASCICLE_OPTIM_H
#define FASCICLE_OPTIM_H

#include "rnn.h"
#include "train_config.h"

/* The factor on both learning rates at step `step` (0 for the first): linear warm-up (step + 1) / warmup,
 * then 1 or 0.5 (1 + cos(pi x)), x from 0 at the end of the warm-up to 1 at `total`. */
double optim_factor(const struct optim_config *config, int64_t step, int64_t total);

/* The norm of the gradient over all parameters, each counted once whatever the grid. Collective over the
 * ranks of each replica; replicas hold equal gradients, so all ranks get the same bits. Not finite when any
 * gradient is not. */
double optim_norm(struct rnn *rnn);

/* The factor that clips a norm: min(1, clip / norm); 1 when clip is 0. */
double optim_clip(const struct optim_config *config, double norm);

/* One step of AdamW on this rank's parameters; frozen cores are left alone. The recurrence gets the new
 * values. Local. */
void optim_update(struct rnn *rnn, const struct optim_config *config, int64_t step, int64_t total,
                  double norm);

#endif
