/* A shuffled control of a graph: partition/shuffle.h, with synapse counts,
 * delays and signs. Local. */
#ifndef FASCICLE_SHUFFLED_H
#define FASCICLE_SHUFFLED_H

#include "io/graph/connectome.h"
#include "core/json.h"

struct shuffled {
  const char *path, *digest; /* the old graph's file and digest */
  const char *within;        /* a node column, or NULL */
  uint64_t seed;
};

/* Shuffle `graph`, as loaded from the file, in place. Counts, sizes of impulses and delays are
 * permuted together among the edges (with `within`: among edges whose targets are of one class).
 * The sign of an impulse is its new source's where every neuron of the old graph has one sign for
 * all its outputs (Dale's rule), otherwise it travels with its size. EXIT_USAGE when there is no
 * such column. Adds the object "shuffle" to `facts` and to the provenance; any ordering is removed,
 * since it was made for other edges. */
struct status shuffled_make(const struct shuffled *options, struct connectome *graph,
                            json_t *facts);

/* The "shuffle" of such facts as a line for people, on stdout. */
void shuffled_print(const json_t *facts);

#endif
