/* What the files that read a simulation's configuration share. */
#ifndef FASCICLE_LIF_CONFIG_INSIDE_H
#define FASCICLE_LIF_CONFIG_INSIDE_H

#include "config.h"

struct lif_reader {
  const char *source;
  const struct neurons *neurons;
  struct unknown unknown;
  struct lif_config *config;
};

enum { LIF_WHERE = 320 };

/* NEURONS of an entry. */
struct status lif_take_neurons(struct lif_reader *r, const json_t *entry, const char *where,
                               struct selection *selection);

/* The list under `key`, its length in *n; NULL without one. */
struct status lif_take_list(const struct lif_reader *r, const json_t *json, const char *key,
                            json_t **list, int *n);

/* stimuli.c: config->input; with a model after its classes are known. */
struct status lif_read_inputs(struct lif_reader *r, const json_t *json);
struct status lif_finish_inputs(struct lif_reader *r);
void lif_input_free(struct lif_input *input);
/* Makes linear->quantile, unless it is there. */
void lif_need_quantiles(struct lif_model_config *linear);

/* A class of neurons in the making: that of `parent`, then what entry `entry` of `classes` says. */
struct lif_derived {
  int parent, entry;
  json_t *neuron; /* all keys */
  bool bare;
  bool empty;    /* no neuron is of it, and some of its keys have no number: it goes */
  char *columns; /* names of the columns that gave numbers, or NULL ... */
  nodeid node;   /* ... for this neuron, and others with the same */
};
struct lif_classes {
  int n, room;
  struct lif_derived *of;
};

/* Takes over what `d` points to, also when it fails. */
struct status lif_classes_add(struct lif_classes *c, const char *where, struct lif_derived d);
void lif_derived_free(struct lif_derived *d);

/* What messages call a class. */
void lif_class_where(const struct lif_reader *r, const struct lif_derived *d,
                     char where[LIF_WHERE]);

/* by_column.c: parameters {"column": NAME} become numbers, classes one for each set of values. */
struct status lif_split_by_columns(struct lif_reader *r, struct lif_classes *c);

/* classes.c: config->linear from the top-level keys of a model. */
struct status lif_read_classes(struct lif_reader *r, const json_t *json);
void lif_model_config_free(struct lif_model_config *linear);

/* The tables of either file, to be printed. */
enum { LIF_STIMULUS_TABLES = 8 };
extern const struct config_table *const lif_stimulus_tables[LIF_STIMULUS_TABLES];
extern const struct config_table lif_classes_table;

#endif
