/* The loops of the fast LIF path over one block of neurons: no branches inside, so that
 * compilers vectorise them, and no state beyond their arguments. kernels/cpu/lif/plain.c
 * is what they must equal. */
#ifndef FASCICLE_LIF_BLOCK_H
#define FASCICLE_LIF_BLOCK_H

#include "contract/lif.h"

enum {
  LIF_BLOCK = 1024
}; /* neurons: 4 kB of potentials, so a block's arrays stay in the first-level cache */

/* What a pass over a block found, as bits. */
enum {
  LIF_MOVED = 1,  /* some potential changed */
  LIF_FIRED = 2,  /* some potential reached the threshold */
  LIF_RESTING = 4 /* some counter is above 0 now */
};

/* A step without input where nobody rests: V = V - (V >> k) for each shift. LIF_MOVED,
 * LIF_FIRED; nobody is reset. */
int block_leak(int32_t *v, lidx n, const struct lif_params *p);

/* The rest of that step once block_leak saw LIF_FIRED: fired [n] = 0 or 1, V and counter of those.
 * Neurons whose `mute` has LIF_REMOVED never fire. LIF_FIRED, LIF_RESTING. */
int block_fire(int32_t *v, uint16_t *counter, const uint8_t *mute, lidx n,
               const struct lif_params *p, uint8_t *fired);

/* A whole step: input [n] in int32, with V + input known to fit. LIF_FIRED, LIF_RESTING. */
int block_step(int32_t *v, uint16_t *counter, const int32_t *input, const uint8_t *mute, lidx n,
               const struct lif_params *p, uint8_t *fired);

/* Does V + input leave int32 for a neuron that does not rest? */
bool block_overflows(const int32_t *v, const uint16_t *counter, const int32_t *input, lidx n);

/* input = sum; false when one does not fit. */
bool block_narrow(const int64_t *sum, lidx n, int32_t *input);

#endif
