/* The index types of the program. All are signed: differences and loops downwards are safe. */
#ifndef FASCICLE_TYPES_H
#define FASCICLE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A neuron: canonical id, rank of its body id in ascending order. The only key for random numbers,
 * ties, messages and outputs, so that no result depends on the order. */
typedef int64_t nodeid;
typedef int64_t gidx; /* a neuron's row in the ordered file: who owns it, where its edges stand */
typedef int32_t lidx; /* a neuron on this rank: owned rows first, then halo rows */
typedef int64_t eidx; /* an edge, and an offset into edge arrays */

#endif
