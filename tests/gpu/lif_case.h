/* Random spiking nets with heavy-tailed degrees for the GPU tests and benches. */
#ifndef FASCICLE_LIF_CASE_H
#define FASCICLE_LIF_CASE_H

#include "contract/lif.h"

struct lif_case {
  lidx n;
  eidx edges;
  double sigma;
  int min_delay, max_delay, weight; /* weights uniform in [-weight, weight] */
  bool wide, mutes;
};

struct lif_data {
  struct lif_net net;
  eidx *out_ptr;
  struct lif_edge *out;
  nodeid *id;
  uint8_t *mute;
  lidx *all; /* every row, for stimuli */
};
void lif_data_init(const struct lif_case *c, struct lif_data *d);
void lif_data_free(struct lif_data *d);

/* What is run from step 5 on, with all counters 0 and nothing under way. */
struct lif_job {
  const struct lif_params *params;
  const struct lif_stimulus *stimulus;
  int n_stimuli;
  const int32_t *potential;
  int64_t steps;
  uint32_t trial;
  int n_threads;
  bool by_batches; /* by integrate and deliver, although the backend has `run` */
};

/* SHA-256 of spikes (step, row), then potentials, counters and sums at the end; 64 letters. */
struct lif_outcome {
  char digest[65];
  int64_t spikes;
  struct lif_fault fault;
  int64_t host_events; /* edges read from host memory */
};
struct lif_outcome lif_outcome(const struct lif_backend *be, const struct lif_data *d,
                               const struct lif_job *job);

/* The same for trials job->trial, + 1 .. at once. A trial that meets a fault, and those above it,
 * end there; the others go on. */
void lif_outcomes(const struct lif_backend *be, const struct lif_data *d, const struct lif_job *job,
                  int n_trials, struct lif_outcome *outcome);

#endif
