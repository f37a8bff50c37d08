/* One trial of a simulation from its start or checkpoint to its end, in the steps that a trial
 * alone (simulate/trial.c) and trials together (simulate/together.c) are made of. All collective
 * over the ranks of a replica. */
#ifndef FASCICLE_SIMULATE_TRIAL_H
#define FASCICLE_SIMULATE_TRIAL_H

#include "record.h"
#include "checkpoint.h"
#include "simulate.h"

struct trial {
  struct simulation *sim;
  const struct comm *comm;
  int64_t number;
  struct rundir below, *dir; /* &below, or the run's folder when there is one trial */
  json_t *facts;             /* the run's provenance and the trial's number */
  char *provenance;          /* as text */
  struct lif_run *run;       /* another's */
  struct lif_point point;    /* where it begins */
  struct lif_state state;
  struct lif_recorder recorder;

  /* Since the last metrics line: own shares. */
  int64_t line_step, spikes, events;
  int64_t all_events;
  double line_time, started;
  char shown[64]; /* rate and speed of the last line, for the progress */
};

/* What a backend is opened with for any trial. Outlived by `sim`. */
struct lif_setup trial_setup(const struct simulation *sim);

/* Its folder, and its state at its beginning or from its checkpoint (point.step, state). */
struct status trial_open(struct trial *t, struct simulation *sim, int64_t number);
void trial_close(struct trial *t);

/* The state goes into `run`, what an earlier run wrote behind it is removed, recording begins. */
struct status trial_start(struct trial *t, struct lif_run *run);

/* Steps until the end, a checkpoint or a potential that is to be recorded. */
int64_t trial_steps_left(const struct trial *t);

/* This rank's own request: a signal, the time, or another replica's stop.
 * `looked`: when it last looked. */
enum request trial_request(const struct trial *t, double *looked);

/* Records a batch. */
void trial_take(struct trial *t, const struct lif_batch *batch);

bool trial_save_due(const struct trial *t, enum request request);
struct status trial_save(struct trial *t);

/* After the last batch: merges what was recorded, or leaves it where the trial is stopped.
 * A fault is the status. */
struct status trial_end(struct trial *t, const struct lif_fault *fault, bool stopped,
                        struct trial_result *result);

#endif
