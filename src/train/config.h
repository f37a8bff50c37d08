/* The configuration of a training run. Defaults are the reference recipe: 64 characters a
 * window, 2 microsteps a character, 32 windows a step, AdamW with 3e-4 for the core and
 * 1e-3 for the adapters. */
#ifndef FASCICLE_TRAIN_CONFIG_H
#define FASCICLE_TRAIN_CONFIG_H

#include "core/json.h"
#include "core/types.h"
#include "run/config_keys.h"

enum schedule { SCHEDULE_CONSTANT, SCHEDULE_COSINE };

enum precision { PRECISION_FP32, PRECISION_MIXED }; /* mixed: see contract/recurrence.h */

struct optim_config {
  double lr_edges;    /* edges, leak, bias */
  double lr_adapters; /* embedding, projection, readout */
  double weight_decay, beta1, beta2, eps;
  double clip; /* of the global gradient norm; 0: none */
  enum schedule schedule;
  int64_t warmup; /* steps of linear rise */
};

struct train_config {
  int64_t batch; /* windows of one step, over all replicas */
  int64_t steps_per_window, microsteps;
  int64_t embedding, n_input, n_output;
  double init_scale, leak_init;
  bool normalize;
  struct optim_config optimizer;
  int64_t train_steps;
  int64_t eval_every, eval_windows; /* eval_every 0: never */
  int64_t checkpoint_every;         /* 0: at the end and on request */
  int64_t log_every;
  int64_t seed;
  bool frozen_edges, carry_state;
  enum precision precision;
  double validation_fraction;
  int64_t text_characters; /* use only the first so many; 0: all */
};

/* The keys with their ranges and defaults, over struct train_config. */
extern const struct config_table train_config_keys;

struct train_config train_config_defaults(void);

/* Read `json` over the defaults; unknown keys, wrong types and ranges are EXIT_USAGE. Local. */
struct status train_config_read(const json_t *json, const char *where, struct train_config *config);

/* All keys with their values: what config.json holds. A new reference. */
json_t *train_config_json(const struct train_config *config);

/* What a resumed run has changed against its checkpoint, both as train_config_json: EXIT_USAGE
 * where the parameters would not fit or mean something else, else each other change as "key: old
 * -> new" handed to `say`. */
struct status train_config_compare(const json_t *before, const json_t *now,
                                   void (*say)(const char *change));

#endif
