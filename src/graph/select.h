/* How users name neurons. A SELECT is "all" or an object with one or more of
 *
 *   {"body_ids": [10001, "720575940661339777"], "names": ["AVAL"], "types": ["DNg13"],
 *    "indices": [0, 5], "superclass": ["motor", "descending"]}
 *
 * (their union). body_ids above 2^53 are written as strings; names are for graphs whose ids are
 * names; indices are canonical node ids; types are labels of the node column "type"; every other
 * key is a node column of the graph, its values labels of that column. */
#ifndef FASCICLE_SELECT_H
#define FASCICLE_SELECT_H

#include "io/graph/connectome.h"
#include "core/json.h"

/* What neurons are called: the same on every rank. */
struct neurons {
  char population[128];
  int64_t n;
  uint64_t *body_id;            /* [n] ascending */
  char **name;                  /* [n] in byte order, or NULL when ids are numbers */
  struct node_column type;      /* code and label, or neither when the graph has no types */
  char **column;                /* names of all columns of labels, NULL at the end; or NULL */
  char **number;                /* of all columns of numbers */
  struct connectome_file *file; /* from which other columns are read when a SELECT names them */
};
/* Local; free with neurons_free. The file must stay open while neurons are selected. */
void neurons_load(struct connectome_file *file, struct neurons *neurons);
void neurons_free(struct neurons *neurons);

/* What a neuron is called, for messages: "10001", or its name. `text` holds at least 64 bytes. */
void neurons_label(const struct neurons *neurons, nodeid node, char text[64]);

/* A set of neurons: node ids, ascending, each once. */
struct selection {
  int64_t n;
  nodeid *node;
};
void selection_free(struct selection *selection);

/* Names that no neuron has, collected over all selections of a configuration so
 * that one error lists them. */
struct unknown {
  int64_t n;
  char text[700]; /* the first of them: "type \"X\" (stimulus[0]), ..." */
};

/* Resolve one SELECT. Wrong form, or a column that the graph does not have: EXIT_USAGE naming
 * `where`. Names that no neuron has are added to `unknown` instead. Local. */
struct status select_neurons(const struct neurons *neurons, const json_t *select, const char *where,
                             struct unknown *unknown, struct selection *selection);

/* A column of the graph as numbers: value [n], NAN where it has none; labels are taken for the
 * numbers that they say. EXIT_USAGE naming `where` when there is no such column, or it holds other
 * labels. mem_free it. Local. */
struct status neurons_numbers(const struct neurons *neurons, const char *name, const char *where,
                              double **value);

/* The error for all unknown names, or fine. */
struct status unknown_status(const struct unknown *unknown, const char *source);

#endif
