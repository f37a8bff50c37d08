/* How the blocks of joined devices pace their steps (kernels/cuda/lif/link.cu), for a shortest
 * delay of D steps.
 *
 * Own spikes of step t are sent in step t; words of other ranks of step t are heard, and their
 * spikes sent, in step t + 1 (late), where D = 1 in step t. All blocks of a rank meet every
 * `period` steps, and at the end of a launch, in whose last step nothing is left unheard. A block
 * may then make step t only when all blocks have sent what is due at t, never overwrites a word
 * that somebody has still to hear, nor a sum that somebody has still to take:
 * tests/unit/test_lif_pace.c plays it through. */
#ifndef FASCICLE_LIF_PACE_H
#define FASCICLE_LIF_PACE_H

#include <stdbool.h>

static inline bool lif_pace_late(int min_delay) {
  return min_delay > 1;
}

static inline int lif_pace_period(int min_delay) {
  return min_delay > 1 ? min_delay - 1 : 1;
}

/* Steps whose words an inbox holds: word q stands at q % window. */
static inline int lif_pace_window(int min_delay) {
  return 2 * min_delay;
}

/* Slots of the ring of sums. */
static inline int lif_pace_slots(int min_delay, int max_delay) {
  return max_delay + min_delay;
}

#endif
