/* Checkpoints of a simulation: V, counters, the whole delay ring, the step, and what the
 * recorder needs. One file for every rank count, thread count and ordering: rows stand in
 * the order of the run that wrote it, with their node ids, and a run with another order
 * sorts them out on reading. */
#ifndef FASCICLE_LIF_SAVE_H
#define FASCICLE_LIF_SAVE_H

#include "io/graph/connectome.h"
#include "core/json.h"
#include "config.h"
#include "lif/run.h"

/* What a checkpoint says about itself besides the arrays. */
struct lif_point {
  int64_t step; /* the next step */
  int64_t trial;
  int64_t next_segment;
  const json_t *config; /* key -> digest of its resolved value (lif_config_digests); borrowed */
};

/* What the run is, for writing and for comparing. */
struct lif_place {
  struct connectome_file *file;
  const struct lif_net *net;
  const struct lif_model_kind *kind; /* NULL: lif_shift, as is model then */
  const struct lif_model *model;
  const gidx *first_of_rank; /* [size + 1] */
};

/* Key by key, the digests of a resolved configuration, and of the files that it names: a new
 * object. */
json_t *lif_config_digests(const json_t *json, const struct lif_config *config);

/* Collective over the ranks of a replica. `provenance` is borrowed. Agreed. */
struct status lif_save(const struct comm *comm, const char *path, const struct lif_place *place,
                       const struct lif_point *point, const struct lif_state *state,
                       const json_t *provenance);

/* Read a checkpoint: every checksum is verified, and graph, configuration and trial must be those
 * of this run (point->config and point->trial on entry). EXIT_INPUT when damaged (the message names
 * the one before it), another graph's or another file altogether; EXIT_USAGE names the key that
 * differs. `state` must be initialised. Agreed. */
struct status lif_restore(const struct comm *comm, const char *path, const struct lif_place *place,
                          struct lif_point *point, struct lif_state *state);

#endif
