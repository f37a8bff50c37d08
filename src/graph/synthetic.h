/* A synthetic connectome, complete: edges (partition/generate.h), body ids, types, transmitters,
 * signs, synapse counts, delays. Local: one rank; the same graph for any number of threads. */
#ifndef FASCICLE_SYNTHETIC_H
#define FASCICLE_SYNTHETIC_H

#include "io/graph/connectome.h"
#include "partition/generate.h"

struct synthetic {
  struct generate_model model;
  uint16_t min_delay, max_delay; /* steps, uniform between them */
  int types;                     /* cell types, from common to rare */
  const char *population;
};

/* Node columns:
 *   type         T0 .. T<types - 1>; type k has a share sqrt((k + 1) / K) - sqrt(k / K) of the
 *                neurons
 *   superclass   sensory (every 8th type, from T1), descending (every 8th, from T2), otherwise
 * intrinsic transmitter  by type: acetylcholine 72 %, gaba 15 %, glutamate 13 % of the neurons, or
 * nearly sign         +1 for acetylcholine, otherwise -1; impulse = sign of the source x synapse
 * count module       M0 .. (modular only)
 *
 * Body ids ascend from 10001 with gaps, so that they are not mistaken for node ids. */
void synthetic_make(const struct synthetic *options, struct connectome *graph);

#endif
