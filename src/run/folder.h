/* The folder of a run, the same for every verb that makes one:
 *
 *   config.json                    the configuration as it was used
 *   metrics.jsonl                  one JSON object a line; "record": "run" lines say where others
 *                                  come from
 *   log.txt                        what was said
 *   checkpoints/step_00001000.h5   the last K, and the best; `latest` and `best` hold a file's name
 *   lock                           while a run works here (runlock.h)
 *   again                          the run was asked to stop and can go on: run the same command
 *                                  again
 *
 * All ranks hold the struct; rank 0 of the communicator touches the files. A folder that holds a
 * run is refused unless it is to be resumed, or removed by --force. */
#ifndef FASCICLE_RUNDIR_H
#define FASCICLE_RUNDIR_H

#include "io/files/files.h"
#include "job.h"

#include <stdio.h>

enum { METRICS_SCHEMA = 1 };

struct rundir {
  char path[FILE_PATH - 256]; /* room for names below it */
  bool leader;                /* rank 0: the one that writes */
  bool resumed;               /* a run was here before and --resume was given */
  int64_t keep;
  int lock; /* the leader's, -1: none; a folder below another touches the lock of that one */
  bool owns_lock;
  double touched; /* when the lock was, seconds_now() */
  FILE *metrics;  /* the leader's, open while the run goes on */
};

/* Make or take over job->output, lock it, make checkpoints/, open log.txt, remove `again`: it
 * stays removed when the resume is refused further on, so that a job script does not queue
 * what cannot go on. EXIT_USAGE without an output, EXIT_OUTPUT when the folder holds a run or
 * other files, or a run works in it, EXIT_USAGE when --force would remove a file that is read,
 * EXIT_INPUT when a file to go on from is missing: then nothing is made. Agreed. */
struct status rundir_open(const struct comm *comm, const struct job *job, struct rundir *dir);

/* A folder below for a part of the run (one trial), with checkpoints and metrics of its own; comm
 * may be a part of the run's. Agreed over comm. */
struct status rundir_below(const struct comm *comm, const struct rundir *above, const char *name,
                           struct rundir *dir);

/* Whether a folder holds a run of ours, or a trial of one. Local. */
bool rundir_is(const char *folder);

/* Close metrics, unlock. log.txt stays open for the program's last words. Accepts
 * a zeroed struct; local. */
void rundir_close(struct rundir *dir);

/* "DIR/NAME" into a caller's buffer; DIEs when it does not fit. */
void rundir_file(const struct rundir *dir, const char *name, char path[FILE_PATH]);

/* Write config.json. Agreed. */
struct status rundir_config(const struct comm *comm, const struct rundir *dir,
                            const json_t *config);

/* ---- metrics ---- */

/* Open metrics.jsonl; lines of steps after `step` are dropped first, since they will be made
 * again. Then write a line {"record": "run", "schema": 1, "step": step, ...facts}. `facts`
 * stays the caller's. Agreed. */
struct status rundir_metrics(const struct comm *comm, struct rundir *dir, int64_t step,
                             const json_t *facts);

/* Append one line; takes the reference of `record`. It should have "record" (its kind) and "step"
 * (steps done when it was made). Also a sign of life for the lock. Local: the leader writes. */
void rundir_record(struct rundir *dir, json_t *record);

/* ---- checkpoints ---- */

void rundir_checkpoint_path(const struct rundir *dir, int64_t step, char path[FILE_PATH]);

/* The checkpoint of `step` is complete: point `latest` at it, remove what is older than the last K
 * except the best. Agreed. */
struct status rundir_checkpoint_written(const struct comm *comm, struct rundir *dir, int64_t step);

/* Point `best` at the checkpoint of `step`, which rotation then spares. Agreed. */
struct status rundir_best(const struct comm *comm, struct rundir *dir, int64_t step);

/* The checkpoint to go on from: job->resume if it is a file, else what `latest` names, else
 * the newest there; path[0] = 0 when there is none to go on from. Agreed: EXIT_INPUT when a
 * named file is missing. */
struct status rundir_find_checkpoint(const struct comm *comm, const struct rundir *dir,
                                     const char *resume, char path[FILE_PATH]);

/* The step of the newest complete checkpoint in a run's folder, by its `latest`;
 * -1 without one. Local. */
int64_t rundir_latest(const char *folder);

/* The checkpoints in a run's folder: how many, and the steps of `latest` and `best`, -1 without.
 * Local. */
struct rundir_saved {
  int64_t n, latest, best;
};
struct rundir_saved rundir_saved(const char *folder);

/* For the message that a checkpoint is damaged: the newest one before `path` in its
 * folder, or "" . Local. */
void rundir_checkpoint_before(const char *path, char before[FILE_PATH]);

/* After going back to `step`: checkpoints of later steps are renamed to NAME.aside, so that they
 * are neither rotated nor resumed from by mistake. If `best` names one of them, it names that of
 * step `best` (-1: none) again where that still stands, else it goes. Agreed. */
struct status rundir_rewind(const struct comm *comm, struct rundir *dir, int64_t step,
                            int64_t best);

/* ---- the end ---- */

/* Leave DIR/again, for job scripts; rank 0 of `comm`, any part of the run, writes. Agreed. */
struct status rundir_again(const struct comm *comm, const struct rundir *dir, int64_t step);

#endif
