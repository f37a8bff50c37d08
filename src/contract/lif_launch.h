/* How many steps a device makes at a time before the host takes their spikes, and the room that
 * this takes: for the backend that makes them and for who plans its memory. */
#ifndef FASCICLE_LIF_LAUNCH_H
#define FASCICLE_LIF_LAUNCH_H

#include "core/types.h"

enum { LIF_LAUNCHES = 2 }; /* one runs, one is taken */
enum {
  LIF_LAUNCH_ROWS = 1 << 25,
  LIF_LAUNCH_STEPS = 256
}; /* room for spikes, should everybody fire; steps */

/* Whole batches of min_delay steps, if it can be more than one; at least one step. */
static inline int lif_launch_steps(int64_t n_own, int n_trials, int min_delay) {
  const int64_t rows = n_own * n_trials;
  int steps =
      rows > LIF_LAUNCH_ROWS / LIF_LAUNCH_STEPS ? (int)(LIF_LAUNCH_ROWS / rows) : LIF_LAUNCH_STEPS;
  if (steps > min_delay) steps -= steps % min_delay;
  return steps < 1 ? 1 : steps;
}

#endif
