/* fascicle convert, in parts: nodes, edges, signs and the account of every row. All ranks read the
 * edge table, rank 0 does the rest. */
#ifndef FASCICLE_CONVERT_H
#define FASCICLE_CONVERT_H

#include "io/graph/connectome.h"
#include "account.h"
#include "ids.h"
#include "core/log.h"
#include "run/options.h"
#include "signs.h"

struct convert_options {
  const char *edges, *nodes, *transmitters, *output, *population;
  const char *columns, *node_columns, *transmitter_columns;
  const char *delimiter, *node_delimiter, *transmitter_delimiter;
  const char *header, *node_header, *transmitter_header;
  const char *ids; /* auto, numbers, names */
  /* endpoints, listed, superclass, traced; NULL: listed with a node table, otherwise endpoints */
  const char *node_rule;
  const char *signs, *duplicates, *self_loops, *isolated, *zero_weights, *repeated_ids;
  const char *scale, *overflow, *underflow;
  const char *labels; /* all, named */
  struct texts where;
  int64_t delay, weight, min_weight, parts; /* weight, delay: 0 where not given */
  double watchdog;
  bool merge_kinds, no_order, streamable, packed, force, json;
};

/* What holds without options. */
struct convert_options convert_defaults(void);

/* All of it, from the tables to the file. Agreed. */
struct status convert_tables(const struct comm *comm, const struct convert_options *o);

/* The same from an .scx folder, which brings its own nodes, signs and delays. Local. */
struct status convert_scx(const struct convert_options *o);

/* ---- nodes ---- */

/* One column of labels: an enumeration in order of arrival; label 0 is "". Or of numbers: those
 * that nobody chose by --node-columns and that hold nothing else. */
struct node_labels {
  char *name;
  struct ids labels;
  int64_t n, capacity; /* values set: one per id so far */
  uint32_t *code;      /* [n] labels; else NULL */
  double *number;      /* [n] numbers, NAN: missing; else NULL */
};

struct nodes {
  struct ids ids;
  int n_columns;
  struct node_labels *column;
  bool *is_node; /* [n_flags] by the node rule */
  int64_t n_flags;
};

/* The column of this name, or NULL. */
struct node_labels *nodes_column(struct nodes *nodes, const char *name);

/* Read the node table into `nodes` (ids must be initialised) and apply the node rule. */
struct status nodes_read(const struct convert_options *o, struct nodes *nodes,
                         struct account *account);

/* Read the transmitter table: a column "transmitter" for all ids known so far. */
struct status transmitters_read(const struct convert_options *o, struct nodes *nodes,
                                struct account *account);

/* Give every id a flag and a code in each column: ids that edges brought
 * are nodes without labels. */
void nodes_fill(struct nodes *nodes);
void nodes_free(struct nodes *nodes);

/* ---- edges ---- */

/* Kept rows. source and target are indices of `ids` while rows are read, node ids
 * after edges_canonical. */
struct edges {
  int64_t n, capacity;
  uint32_t *source, *target;
  int32_t *weight;    /* as in the table, before sign and scale, in units of 10^-places */
  int places;         /* 0 unless the table has fractions */
  int64_t row_weight; /* what each row weighs where there is no weight column, otherwise 0 */
  uint16_t *delay;    /* NULL without a delay column; otherwise set on every rank, also on one that
                         has read no row */
};

/* Find out whether ids are numbers or names, from the options or the edge table. */
struct status edges_ids_are_names(const struct convert_options *o, bool *names);

/* Room for n edges, with or without delays. */
void edges_reserve(struct edges *edges, int64_t n, bool delay);

/* Stream the edge table; rows are kept or dropped for one reason each. The ranks share the table,
 * and must know the same nodes; what they read ends up on rank 0. Agreed. */
struct status edges_read(const struct comm *comm, const struct convert_options *o,
                         struct nodes *nodes, struct edges *edges, struct account *account);

/* Drop edges whose source has sign 0; `sign` [ids.n], `label` of each for the account. */
void edges_drop_excluded(struct edges *edges, struct nodes *nodes, const int8_t *sign,
                         struct account *account);

/* Sort by (target, source, delay) after renaming ends by node_of [ids.n]; adds the edges to
 * `progress` once for each of SORT_PASSES. */
enum { SORT_PASSES = 3 };
void edges_canonical(struct edges *edges, const uint32_t *node_of, int64_t n_nodes,
                     struct progress *progress);

/* Sum, keep or refuse repeated (source, target[, delay]); sorted edges. */
struct status edges_merge(const struct convert_options *o, struct edges *edges,
                          struct account *account, const uint32_t *index_of_node,
                          const struct ids *ids);

/* Drop edges whose weight is nearer to 0 than `least`. */
void edges_drop_weak(struct edges *edges, int64_t least, struct account *account);

void edges_free(struct edges *edges);

/* ---- numbers ---- */

struct scale {
  int64_t num, den;
};
struct status scale_parse(const char *text, struct scale *scale);

/* x * num / den, rounded half to even. Any int32 x, num in 1 .. 2^31, den below 2^61. */
int64_t scale_apply(struct scale scale, int64_t x);

/* Decimal places to which weights with fractions are read: as many as leave room in 32 bits for
 * whatever scales to an impulse of 16, so that one unit is at least 1/65536 of an impulse. */
int scale_places(struct scale scale);
/* 10^places */
int64_t scale_unit(int places);
/* A weight of this unit for a message: "-0.25". */
void weight_text(int64_t weight, int places, char text[32]);

/* A batch of a table. */
struct status next_batch(struct table *table, struct table_batch *batch, struct progress *progress);

/* ---- columns ---- */

/* "key=value" pairs of a column option over the defaults. */
struct column_choice {
  char *key;   /* "pre" */
  char *name;  /* of the column; NULL: none by default. A default may name several: "body_pre|pre",
                  in order */
  bool chosen; /* by the user: then it is one name, and must exist */
  bool number; /* its values must be numbers */
};
enum { MAX_CHOICES = 32 };
struct column_choices {
  int n;
  struct column_choice item[MAX_CHOICES];
  bool open; /* further keys are taken: they become node columns */
  const char *option;
};
void choices_free(struct column_choices *c);

/* The column of a role when the user names none: one of these names in a table with a header, this
 * position in one without; NULL: none. */
struct column_default {
  const char *key, *named, *placed;
  bool number;
};

/* One of the tables of a conversion. */
struct table_input {
  const char *path;
  struct table_format format;
  const char *option, *columns; /* "columns", and what it says, or NULL */
  const struct column_default *column;
  int n_columns;
  bool open; /* as in struct column_choices */
};

/* Open a table and settle the choices. Where columns are given by position, a first row that is
 * not all numbers may be data (names as ids): it is when the fields that must be numbers are;
 * where nothing tells, EXIT_USAGE asks for --header. The caller closes and frees both, also after
 * a failure. */
struct status table_open_input(const struct table_input *input, struct table **table,
                               struct column_choices *choices);

/* The column of a choice in a table: -1 when it is absent and was not chosen by the user. */
struct status choice_find(const struct column_choice *choice, const struct table *table,
                          const char *option, bool required, int *column);

#endif
