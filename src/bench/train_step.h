/* A whole training step beside the recurrence alone: what the character model
 * and the optimiser add. */
#ifndef FASCICLE_BENCH_TRAIN_STEP_H
#define FASCICLE_BENCH_TRAIN_STEP_H

#include "bench.h"
#include "partition/grid.h"
#include "contract/recurrence.h"

/* The reference's model: 65 tokens, 32 columns of embedding. `net` holds graph, roles and this
 * replica's shape; `grid` has its transports open; `bench` says how long. Median and best seconds
 * of a step from zero state to new parameters, in rows of steps whose results are read one step
 * later, the slowest rank's, and the bytes that it takes on the device. Agreed. */
struct bench_train_step {
  double median, best;
  int64_t bytes;
};
struct status bench_train_step(const struct comm *world, const struct grid *grid,
                               const struct bench_job *bench, const struct recur_net *net,
                               struct bench_train_step *found);

#endif
