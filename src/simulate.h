/* What the files of the verb simulate share: the whole run, and one trial of it. */
#ifndef FASCICLE_SIMULATE_H
#define FASCICLE_SIMULATE_H

#include "job.h"
#include "lif.h"
#include "lif_config.h"
#include "rundir.h"
#include "trace_dir.h"

struct simulation {
  struct job job;
  int64_t steps, trials;
  const char *graph;

  struct connectome_file *file;
  struct neurons neurons;
  json_t *json, *digests; /* the resolved configuration, and the digests of its keys */
  struct lif_config config;
  struct grid grid;
  gidx *first; /* [parts + 1] */
  struct lif_net net;
  struct lif_stimulus *stimulus; /* [config.n_inputs] */
  struct rundir dir;
  json_t *facts; /* provenance */
};

/* How a trial ended. */
struct trial_result {
  bool stopped; /* on request, with a checkpoint */
  int64_t step; /* steps done */
  int64_t made; /* of these by this run */
  double seconds;
  int64_t events;
  bool merged; /* then spikes.h5 is complete */
  struct trace_merged trace;
};

/* Collective over the ranks of a replica: one trial from its start or checkpoint to its end. A fault is
 * EXIT_RUNTIME, with everything before it on disk and merged. Agreed over the replica. */
struct status simulate_trial(struct simulation *sim, int64_t trial, struct trial_result *result);

#endif
