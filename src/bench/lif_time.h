/* Time for a step of a simulation, as every case of `bench lif` measures it. */
#ifndef FASCICLE_BENCH_LIF_TIME_H
#define FASCICLE_BENCH_LIF_TIME_H

#include "lif_net.h"
#include "lif/trials.h"

struct lif_measured {
  double seconds, best;               /* per step: the median, and the quickest step */
  double events, host_events, spikes; /* per step, all ranks */
  int64_t held_bytes;                 /* of the rank that holds most, as the last step ended */
};

/* Steps 0 .. n_steps - 1, in batches as long as the engine makes them; the first warm_up steps are
 * not counted. Collective. */
void lif_time_steps(const struct lif_fixture *fixture, struct lif_run *run, int64_t warm_up,
                    int64_t n_steps, struct lif_measured *m);

/* The same for trials together, a step of one trial counting as one. */
void lif_time_trials(const struct lif_fixture *fixture, struct lif_group *g, int64_t warm_up,
                     int64_t n_steps, struct lif_measured *m);

#endif
