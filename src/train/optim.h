/* Learning rates, the clip of the gradient and the update of all parameters. */
#ifndef FASCICLE_OPTIM_H
#define FASCICLE_OPTIM_H

#include "rnn.h"
#include "config.h"

/* The factor on both learning rates at step `step` (0 for the first): linear warm-up (step + 1) /
 * warmup, then 1 or 0.5 (1 + cos(pi x)), x from 0 at the end of the warm-up to 1 at `total`. */
double optim_factor(const struct optim_config *config, int64_t step, int64_t total);

/* The squares of the gradient over all parameters, each counted once whatever the grid, into the
 * model. Collective over the ranks of each replica; replicas hold equal gradients, so all ranks get
 * the same bits. One rank alone does not wait for its device. */
void optim_norm(struct rnn *rnn);

/* One step of AdamW on this rank's parameters, clipped by what optim_norm found; frozen
 * cores are left alone, and everything is where that is not finite. The recurrence gets
 * the new values. Local. */
void optim_update(struct rnn *rnn, const struct optim_config *config, int64_t step, int64_t total);

#endif
