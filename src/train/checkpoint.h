/* Checkpoints of training: parameters, both moments, progress, and what they belong to. Edge arrays
 * stand in file order, neuron arrays in row order, with node_of_row beside them, so that another
 * grid and another ordering of the same graph can go on from them. Another graph is refused. */
#ifndef FASCICLE_TRAIN_CHECKPOINT_H
#define FASCICLE_TRAIN_CHECKPOINT_H

#include "rnn.h"
#include "text.h"
#include "config.h"

#define TRAIN_CHECKPOINT "fascicle training checkpoint"

/* How far a run has come. */
struct progress_of_training {
  int64_t step; /* steps done */
  double best;  /* lowest validation loss so far, nats; infinite before the first */
  int64_t best_step;
  double loss_sum; /* since the last record */
  int64_t loss_steps;
};

/* What the meta text of a checkpoint holds besides. */
struct train_meta {
  char *text; /* the JSON itself; mem_free it */
  json_t *json;
  json_t *config; /* borrowed from json */
  const char *graph, *graph_digest, *order_digest, *corpus, *corpus_sha256;
  struct progress_of_training progress;
};

/* Facts that do not change during a run and go into every checkpoint. */
struct train_identity {
  const char *graph, *corpus; /* absolute paths, for evaluate and sample */
  const char *corpus_sha256;
  const struct vocabulary *vocabulary;
  const struct train_config *config;
  const json_t *provenance;
};

/* Collective over the world; agreed. `carried` [n_own][batch share] or NULL: the state
 * carried to the next window. */
struct status train_checkpoint_write(const struct comm *world, const char *path, struct rnn *rnn,
                                     const struct train_identity *identity,
                                     const struct progress_of_training *progress,
                                     const float *carried);

/* Open and read the meta text. Close with train_checkpoint_close. Agreed. */
struct fields_file;
struct status train_checkpoint_open(const struct comm *world, const char *path,
                                    struct fields_file **file, struct train_meta *meta);
void train_checkpoint_close(struct fields_file *file, struct train_meta *meta);

/* The vocabulary of a checkpoint. */
struct status train_checkpoint_vocabulary(const struct comm *world, struct fields_file *file,
                                          const struct train_meta *meta,
                                          struct vocabulary *vocabulary);

/* Parameters, and moments where the rnn wants gradients; carried [n_own][batch share]
 * where not NULL. EXIT_INPUT when the checkpoint belongs to another graph. Collective
 * over the world; agreed. */
struct status train_checkpoint_load(const struct comm *world, const char *path,
                                    struct fields_file *file, const struct train_meta *meta,
                                    struct rnn *rnn, int64_t batch, float *carried);

#endif
