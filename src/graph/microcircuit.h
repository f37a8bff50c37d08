/* The cortical microcircuit (partition/microcircuit.h) as a graph, and the configuration of
 * `simulate` that drives it. Local: one rank. */
#ifndef FASCICLE_GRAPH_MICROCIRCUIT_H
#define FASCICLE_GRAPH_MICROCIRCUIT_H

#include "core/json.h"
#include "io/graph/connectome.h"
#include "partition/microcircuit.h"

/* Body ids 1, 2, 3 ... by population, and the node columns
 *   type   L23E, L23I, L4E ... L6I: the population
 *   layer  L23, L4, L5, L6
 *   sign   +1 excitatory, -1 inhibitory
 * 12 bytes an edge; no synapse counts. */
void microcircuit_make(const struct microcircuit *m, const char *population, struct connectome *g);

/* Keys as in jobs/conf/README.md, for this size of the network: neurons, initial potentials, and
 * Poisson background or the constant currents in place of it. A new reference. */
json_t *microcircuit_config(const struct microcircuit *m, bool poisson);

#endif
