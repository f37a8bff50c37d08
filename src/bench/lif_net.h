/* What bench lif measures on: a graph, and neurons that are made to fire. */
#ifndef FASCICLE_BENCH_LIF_BED_H
#define FASCICLE_BENCH_LIF_BED_H

#include "bench.h"
#include "lif/run.h"

enum { LIF_BED_HELD = 10 }; /* of streamed edges one in so many is held, by a rank or on a GPU */

struct lif_fixture {
  const struct comm *comm;
  const struct bench_job *bench;
  struct lif_net net, streamed; /* the second only from a file that is streamable, else zeroed */
  bool device;                  /* one GPU alone */
  gidx *first_of_rank;
  int64_t steps;
  double rate; /* bytes per second of memory, all ranks */
};

/* The graph of --graph, or a synthetic one, each rank its share of rows. Agreed;
 * lif_fixture_free also after a failure. */
struct status lif_fixture_init(const struct comm *comm, const struct bench_job *bench,
                               struct lif_fixture *fixture);
void lif_fixture_free(struct lif_fixture *fixture);

/* [n_steps] one for each step: `percent` of all neurons, drawn anew, are made to fire in it. The
 * same neurons for any number of ranks. */
struct lif_stimulus *lif_fixture_spikes(const struct lif_fixture *fixture, int64_t n_steps,
                                        double percent);

/* One for all steps: in each, a neuron gets an event of `value` with this probability. */
struct lif_stimulus *lif_fixture_poisson(const struct lif_fixture *fixture, double probability,
                                         int value);

#endif
