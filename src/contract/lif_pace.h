/* How the blocks of joined devices pace their steps (kernels/cuda/lif/link.cu), for a shortest
 * delay of D steps.
 *
 * Own spikes of step t are sent in step t; messages of other ranks of step t are received, and
 * their spikes delivered, in step t + 1 (late), where D = 1 in step t. All blocks of a rank pass a
 * barrier every `period` steps, and at the end of a launch, in whose last step every message is
 * received. A block may then make step t only when all blocks have delivered what is due at t; it
 * never overwrites a message that a block has still to receive, nor a sum that a block has still to
 * take: tests/unit/test_lif_pace.c tries all schedules. */
#ifndef FASCICLE_LIF_PACE_H
#define FASCICLE_LIF_PACE_H

#include <stdbool.h>

static inline bool lif_pace_late(int min_delay) {
  return min_delay > 1;
}

static inline int lif_pace_period(int min_delay) {
  return min_delay > 1 ? min_delay - 1 : 1;
}

/* Steps whose messages an inbox holds: that of step q is at q % window. */
static inline int lif_pace_window(int min_delay) {
  return 2 * min_delay;
}

/* Slots of the ring of sums. */
static inline int lif_pace_slots(int min_delay, int max_delay) {
  return max_delay + min_delay;
}

#endif
