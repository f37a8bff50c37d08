/* What bench lif measures on: a graph, and neurons that are made to fire. */
#ifndef FASCICLE_BENCH_LIF_BED_H
#define FASCICLE_BENCH_LIF_BED_H

#include "bench.h"
#include "lif/run.h"

enum { LIF_BED_HELD = 10 }; /* of streamed edges one in so many is held, by a rank or on a GPU */

struct lif_bed {
  const struct comm *comm;
  const struct bench_job *bench;
  struct lif_net net, streamed; /* the second only from a file that is streamable, else zeroed */
  bool device;                  /* one GPU alone */
  gidx *first_of_rank;
  int64_t steps;
  double rate; /* bytes per second of memory, all ranks */
};

/* The graph of --graph, or a synthetic one, each rank its share of rows. Agreed;
 * lif_bed_free also after a failure. */
struct status lif_bed_init(const struct comm *comm, const struct bench_job *bench,
                           struct lif_bed *bed);
void lif_bed_free(struct lif_bed *bed);

/* [n_steps] one for each step: `percent` of all neurons, drawn anew, are made to fire in it. The
 * same neurons for any number of ranks. */
struct lif_stimulus *lif_bed_spikes(const struct lif_bed *bed, int64_t n_steps, double percent);

/* One for all steps: in each, a neuron gets an event of `value` with this probability. */
struct lif_stimulus *lif_bed_poisson(const struct lif_bed *bed, double probability, int value);

#endif
