/* A training run: what it works on, and how far it is. train.c sets it up and takes it
 * down, train/loop.c runs it. */
#ifndef FASCICLE_TRAIN_H
#define FASCICLE_TRAIN_H

#include "corpus.h"
#include "run/job.h"
#include "run/folder.h"
#include "checkpoint.h"

struct training {
  const struct comm *world;
  struct job *job;
  struct grid grid;
  struct rundir dir;
  struct train_config config;
  struct corpus corpus;
  struct network network;
  struct rnn rnn;
  struct train_identity identity;
  struct progress_of_training done;
  int64_t queued; /* steps given to the backend, at most one more than done */
  json_t *provenance;

  int64_t first_sample;            /* ours: [first, first + rnn.shape.batch) */
  int32_t *token, *target;         /* [T][batch] */
  float *carried;                  /* [n_own][batch] with carry_state, else NULL */
  char last_checkpoint[FILE_PATH]; /* "" before the first */
  int64_t last_saved;              /* its step, -1 before the first */
  double recorded_at;              /* seconds_now() of the last record */
  int64_t recorded_step;
};

/* Steps until the end, a request to stop (EXIT_AGAIN, a checkpoint is written) or a loss that is
 * not finite (EXIT_RUNTIME). Agreed. */
struct status train_loop(struct training *t);

/* Without --parts: the fewest parts whose largest share fits what a rank may use, by the counts
 * that `plan` goes by; all ranks when none fits, so that the refusal names the least. Agreed. */
struct status train_choose_parts(const struct training *t, const char *graph, int *parts);

/* At the end: was the run as large as `plan` says? This rank's share. */
void train_check_memory(const struct training *t);

#endif
