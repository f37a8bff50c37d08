/* A trained model, opened again: for evaluate, sample and export. */
#ifndef FASCICLE_TRAINED_H
#define FASCICLE_TRAINED_H

#include "run/job.h"
#include "checkpoint.h"

struct fields_file;

struct trained {
  const struct comm *world;
  const struct job *job;
  char path[4096]; /* the checkpoint */
  struct fields_file *file;
  struct train_meta meta;
  struct train_config config; /* that it was trained with */
  struct vocabulary vocabulary;
  struct grid grid;
  struct network network;
};

/* Can the chosen device train? EXIT_DEVICE says what to do. */
struct status trained_can(const struct job *job);

/* What the three verbs take besides their own options. */
struct trained_request {
  const char *source; /* a run's folder or a checkpoint */
  const char *which;  /* "best" or "latest", in a folder; best falls back to latest */
  const char *graph;  /* NULL: where the checkpoint says */
};

/* Rows for --graph and --which, and those of the shared options that make sense here. */
enum { TRAINED_OPTIONS = 9 };
int trained_options(struct trained_request *request, struct job *job, struct option *rows);

/* Checkpoint, vocabulary and network on a grid of `parts`. Close also after a failure. Agreed. */
struct status trained_open(const struct comm *world, const struct job *job,
                           const struct trained_request *request, int parts,
                           struct trained *trained);
void trained_close(struct trained *trained);

/* The model, forward only, for a global batch and windows of `steps`. EXIT_USAGE when a replica
 * would have nothing to do. Collective over the world. */
struct status trained_rnn(struct trained *trained, int64_t batch, int64_t steps, struct rnn *rnn);

#endif
