/* One training step: what `train` runs and `bench recurrence` times. */
#ifndef FASCICLE_TRAIN_STEP_H
#define FASCICLE_TRAIN_STEP_H

#include "optim.h"

struct train_step {
  const int32_t *token, *target; /* [T][batch], the same on all parts of a replica */
  int64_t batch;                 /* windows over all replicas: the loss is their mean */
  int64_t step, last_step;       /* of the learning rate: this one from 0, and how many there are */
  const struct optim_config *optimizer;
  bool carry_state; /* start from the last step's end, not from zeros */
};

/* Give a step to the backend, which may work on it while the host goes on: forward, loss, backward,
 * norm, update; its figures are noted, to be read by model_backend.figures. Collective over the
 * world. */
void train_step_queue(struct rnn *rnn, const struct train_step *step);

#endif
