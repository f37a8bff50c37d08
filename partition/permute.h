/* Random bijections without memory: a place in a shuffled row of n, computed alone. */
#ifndef FASCICLE_PERMUTE_H
#define FASCICLE_PERMUTE_H

#include "core/types.h"

/* Where i of 0 .. n - 1 goes in the permutation (seed, stream, part); part < 2^28, n <= 2^62. */
uint64_t permute(uint64_t seed, uint32_t stream, uint32_t part, uint64_t n, uint64_t i);

#endif
