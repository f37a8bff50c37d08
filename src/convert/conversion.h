/* A conversion under way on rank 0, and what is said about it at the end. */
#ifndef FASCICLE_CONVERSION_H
#define FASCICLE_CONVERSION_H

#include "convert.h"

struct conversion {
  const struct convert_options *o;
  struct nodes nodes;
  struct edges edges;
  struct signs signs;
  bool has_signs;
  struct account account;
  struct scale scale;
  int8_t *sign; /* [ids.n], NULL without transmitters */
  int64_t n_nodes;
  uint32_t *index_of_node; /* [n_nodes] */
  struct connectome graph;
};

/* The provenance: program, inputs, rules, result. A new reference. */
json_t *conversion_facts(const struct conversion *conversion);

/* Warnings, then the account on stdout: for people, or with --json the facts, to which the output's
 * name is added. */
void conversion_report(const struct conversion *conversion, json_t *facts);

#endif
