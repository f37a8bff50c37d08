/* The cortical microcircuit of Potjans and Diesmann (Cerebral Cortex 24, 785-806, 2014,
 * doi:10.1093/cercor/bhs358): 77,169 neurons under 1 mm2 of cortex in eight populations, 0.3 G
 * synapses; numbers as in NEST's own example of it (pynest/examples/Potjans_2014).
 *
 * Every draw is a pure function of the seed, the two populations and the number of the synapse
 * (core/rng.h), so the same graph comes out for any number of ranks and threads. */
#ifndef FASCICLE_MICROCIRCUIT_H
#define FASCICLE_MICROCIRCUIT_H

#include "core/fail.h"
#include "core/types.h"

enum { MICROCIRCUIT_POPULATIONS = 8 };
extern const char *const microcircuit_name[MICROCIRCUIT_POPULATIONS]; /* L23E, L23I, L4E ... */

struct microcircuit {
  double scale;   /* of the numbers of neurons, above 0 */
  double k_scale; /* of the in-degrees; weights go by 1 / sqrt(k_scale) */
  uint64_t seed;
  int64_t
      first[MICROCIRCUIT_POPULATIONS + 1]; /* population p: nodes first[p] .. first[p + 1] - 1 */
  /* [target][source]: exactly so many, each between two neurons drawn anew: pairs may repeat, and
   * a neuron may reach itself */
  eidx synapses[MICROCIRCUIT_POPULATIONS][MICROCIRCUIT_POPULATIONS];
  eidx n_edges;
  double weight_pa; /* of one count of an edge's weight: 0.02 pA / sqrt(k_scale) */
};

/* EXIT_USAGE where a scale leaves a population without neurons or has too many. */
struct status microcircuit_init(double scale, double k_scale, uint64_t seed,
                                struct microcircuit *m);

/* Of a node. */
int microcircuit_population(const struct microcircuit *m, nodeid node);
bool microcircuit_inhibitory(int population);

/* source, target, impulse, delay [n_edges], sorted by (target, source, delay, impulse): the order
 * of a graph file. Impulses in counts of weight_pa: normal, sd a tenth of the mean, redrawn while
 * the sign is wrong. Delays in steps of 0.1 ms: normal, sd half the mean, redrawn while below half
 * a step, then rounded. Local; uses `n_threads` threads and 8 bytes a node besides the arrays. */
void microcircuit_edges(const struct microcircuit *m, int n_threads, uint32_t *source,
                        uint32_t *target, int16_t *impulse, uint16_t *delay);

/* What drives a population: Poisson events of weight_pa into its synapses, and a constant current.
 * Without Poisson input the current stands for it. Where in-degrees are scaled, the current also
 * makes up for the part of the mean input that is lost, as at the full network's mean rates. */
struct microcircuit_input {
  double rate_hz, weight_pa, current_pa;
};
struct microcircuit_input microcircuit_input(const struct microcircuit *m, int population,
                                             bool poisson);

#endif
