/* lif.json: what one simulation is. jobs/conf/README.md explains the keys. */
#ifndef FASCICLE_LIF_CONFIG_H
#define FASCICLE_LIF_CONFIG_H

#include "contract/lif.h"
#include "graph/select.h"

struct lif_initial {
  struct selection neurons;
  int32_t potential;
  uint16_t refractory;
};

struct lif_input {
  enum lif_kind kind;
  struct selection neurons;
  int64_t first_step, last_step; /* inclusive */
  int32_t value;                 /* current, or a Poisson event's weight */
  double probability;            /* Poisson: per step */
  int64_t n_steps;
  int64_t *step; /* LIF_SPIKES: [n_steps] */
};

struct lif_silence {
  struct selection neurons;
  bool remove; /* else: the output is cut */
};

struct lif_config {
  struct lif_params params;
  double dt_ms;
  uint64_t seed;
  int n_initial, n_inputs, n_silences;
  struct lif_initial *initial; /* later entries win */
  struct lif_input *input;     /* index = position in the file */
  struct lif_silence *silence;
  bool record_all;            /* spikes of all neurons, else of */
  struct selection spikes;    /* these */
  struct selection potential; /* record the potential of these ... */
  int64_t potential_every;    /* ... at steps n * every: the state after that update; 0: none */
};

/* Read everything; `source` names the file in messages. Defaults are written into `json`, so
 * that it then is the resolved configuration. EXIT_USAGE: key, value and what is allowed; names
 * that no neuron has are one error that lists them all. Local and pure; free with
 * lif_config_free, also after a failure. */
struct status lif_config_read(json_t *json, const char *source, const struct neurons *neurons,
                              struct lif_config *config);
void lif_config_free(struct lif_config *config);

#endif
