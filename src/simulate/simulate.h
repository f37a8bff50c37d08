/* What the files of the verb simulate share: the whole run, and one trial of it. */
#ifndef FASCICLE_SIMULATE_H
#define FASCICLE_SIMULATE_H

#include "run/job.h"
#include "lif/run.h"
#include "config.h"
#include "run/folder.h"
#include "trace/folder.h"

struct simulation {
  struct job job;
  int64_t steps, trials;
  const char *graph, *residency; /* "auto", "resident" or "streamed" */

  struct connectome_file *file;
  struct neurons neurons;
  json_t *json, *digests; /* the resolved configuration, and the digests of its keys */
  struct lif_config config;
  struct grid grid;
  gidx *first;         /* [parts + 1] */
  bool streamed;       /* the edges stay in the file, or in host memory where a GPU computes */
  int64_t held;        /* then: bytes of edges that are in memory at a time */
  int64_t device_room; /* or that the GPU may keep */
  int at_once;         /* trials that go together */
  struct lif_net net;
  struct lif_stimulus *stimulus; /* [config.n_inputs] */
  struct rundir dir;
  json_t *facts; /* provenance */
};

/* Choose where the edges are kept, and how many trials go together, from --residency, --memory and
 * what the file holds; says what was chosen. sim->file, grid and first are set. EXIT_USAGE when
 * this rank, or the file, cannot; an order is never replaced by another residency. Agreed. */
struct status simulate_residency(const struct comm *world, struct simulation *sim);

/* After a run: warns when it was not as large as `fascicle plan` says. This rank's
 * own share, on the host. */
void simulate_check_memory(const struct simulation *sim);

/* Writes the run folder's config.json and neurons.h5, by its leader; only when it is sure
 * that the run goes on with them: a refused resume leaves those of the run that is there.
 * Agreed over the replica. */
struct status simulate_describe(const struct comm *comm, const struct simulation *sim);

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

/* Collective over the ranks of a replica: one trial from its start or checkpoint to its end. A
 * fault is EXIT_RUNTIME, with everything before it on disk and merged. Agreed over the replica. */
struct status simulate_trial(struct simulation *sim, int64_t trial, struct trial_result *result);

/* The same for trials `first` and those after it of this replica, `room` at most, all at once: `n`
 * of them, those that are at the same step. result [room]. */
struct status simulate_together(struct simulation *sim, int64_t first, int room,
                                struct trial_result *result, int *n);

#endif
