/* lif.json: what one simulation is. Its keys stand in tables (config.c, stimuli.c, classes.c,
 * src/models), which `fascicle simulate --keys` prints and jobs/conf/README.md repeats. */
#ifndef FASCICLE_LIF_CONFIG_H
#define FASCICLE_LIF_CONFIG_H

#include "contract/lif.h"
#include "core/digest.h"
#include "graph/select.h"
#include "models/models.h"
#include "run/config_keys.h"

struct lif_initial {
  struct selection neurons;
  int64_t potential;    /* lif_shift */
  double v_mv, v_sd_mv; /* a model: normal with this standard deviation; v_mv NAN: at rest */
  int64_t refractory;
};

struct lif_input {
  enum lif_kind kind;
  struct selection neurons;
  int64_t first_step, last_step; /* inclusive */
  int64_t value;                 /* lif_shift: current, or a Poisson event's weight */
  double rate_hz, probability;   /* Poisson: per step */
  int64_t n_steps;
  int64_t *step; /* LIF_SPIKES: [n_steps] */

  /* A model. */
  int into;                            /* enum lif_into */
  bool no_refractory;                  /* the neurons have no refractory time */
  double value_pa, sd_pa;              /* LIF_CURRENT, LIF_NOISE */
  double weight_pa, weight_mv, weight; /* LIF_POISSON: one of them; NAN: not given */
  int64_t amount;                      /* one event, 2^-32 units */
  int n_tails;
  uint64_t *tail;           /* [n_tails] as struct lif_stimulus */
  int64_t *amount_of;       /* [n_classes] current and noise */
  const char *file;         /* LIF_REPLAY; borrowed from the configuration */
  char digest[DIGEST_TEXT]; /* of its spikes */
  int64_t *node;            /* LIF_REPLAY: [n_steps] who fires at step[i], by step, then node */
};

struct lif_silence {
  struct selection neurons;
  int remove; /* else: the output is cut */
};

/* A node column that gives parameters. */
struct lif_column {
  char *name;
  double *value; /* while the configuration is read */
  char digest[DIGEST_TEXT];
};

/* Parameters of a linear model. */
struct lif_model_config {
  const struct lif_model_kind *kind; /* NULL: lif_shift */
  double weight;                     /* mV or pA of one count */
  int64_t delay;                     /* steps of every edge; 0: as the graph says */
  int n_classes;
  struct lif_neuron *neuron; /* [n_classes] */
  bool *bare;                /* [n_classes] without refractory time */
  int64_t n_nodes;
  uint16_t *class_of_node; /* [n_nodes] of the graph */
  struct lif_model model;  /* class_of is set once the own rows are known */
  struct lif_units units;
  int64_t *quantile; /* [LIF_QUANTILES] of the standard normal, or NULL: none are drawn */
  int n_columns;
  struct lif_column *column; /* [n_columns] that parameters name */
};

struct lif_config {
  struct lif_params params; /* model points to linear.model where there is one */
  struct lif_model_config linear;
  double dt_ms;
  uint64_t seed;
  int n_initial, n_inputs, n_silences;
  struct lif_initial *initial; /* later entries win */
  struct lif_input *input;     /* index = position in the file */
  struct lif_silence *silence;
  bool record_all;           /* spikes of all neurons, else of */
  struct selection spikes;   /* these */
  struct selection recorded; /* record potential, or variables, of these ... */
  int64_t recorded_every;    /* ... at steps n * every: the state after that update; 0: none */
  int n_variables;           /* of a model */
  int variable[LIF_MOST_COMPONENTS]; /* components */
};

/* Read everything; `source` names the file in messages. Defaults are written into `json`, so
 * that it then is the resolved configuration. EXIT_USAGE: key, value and what is allowed; names
 * that no neuron has are one error that lists them all. Local and pure, but for the files of
 * stimuli of kind replay; free with lif_config_free, also after a failure. `config` must not move
 * afterwards, and `json` must outlive it. */
struct status lif_config_read(json_t *json, const char *source, const struct neurons *neurons,
                              struct lif_config *config);
void lif_config_free(struct lif_config *config);

/* The model's class of each own row; id [n_own]. Before lif_open. */
void lif_config_own_classes(struct lif_config *config, lidx n_own, const nodeid *id);

/* All tables, for --help-keys: [*n], of this file. */
const struct config_table *lif_config_tables(int *n);

#endif
