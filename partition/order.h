/* The partition ordering, computed once and stored in the artifact; METIS stays behind this file.
 * One nested recursive bisection: vertex weight = in-degree + 1, edge weight = number of directed
 * edges between the pair, self-loops left out, fixed seed. METIS counts cut edges, but what
 * travels is one row per (source, part that needs it): so each bisection is then refined greedily
 * for fewer such rows, at most 0.5 % out of balance a level (halo rows 10 % fewer on the larval
 * brain, 2 to 5 % on large modular graphs). Neurons of one part are adjacent, parts nest, so
 * that rows [first, last) of any power-of-two split up to `parts` are the parts of the coarser
 * level. Within a part: ascending node id. */
#ifndef FASCICLE_ORDER_H
#define FASCICLE_ORDER_H

#include "core/fail.h"
#include "core/types.h"

struct order_input {
  int64_t n_nodes;
  eidx n_edges;
  const uint32_t *source, *target; /* [n_edges] node ids, any order */
  int parts;                       /* a power of two, 1..65536 */
  int seed;
};

struct order {
  int parts;
  uint32_t *row_of_node, *node_of_row; /* [n_nodes] inverse of each other */
  gidx *block;                         /* [parts + 1] row boundaries of the parts */
  int64_t cut;     /* directed edges between different parts of the finest level */
  char method[64]; /* "METIS 5.1.0 nested bisection ...", or "balanced split k of n (METIS ...)" */
};

/* Local, on one rank; takes seconds to minutes. METIS' result is checked: where it leaves a side
 * empty or grossly unbalanced (path of 3 nodes, 2 parts), that bisection is a balanced split and
 * log_warning says so once. */
struct status order_compute(const struct order_input *input, struct order *order);
void order_free(struct order *order);

/* What a split of an ordered graph costs: one row per number of parts. */
struct order_quality {
  int parts;
  int64_t cut;                       /* directed edges between parts */
  int64_t halo_rows;                 /* sum over parts of distinct remote sources */
  int64_t halo_rows_max;             /* the largest part's */
  int64_t gather_rows;               /* what an all-gather would move: (parts - 1) * n_nodes */
  double edge_balance, node_balance; /* largest part over mean */
};
/* first [parts + 1] row boundaries; row_of_node may be NULL for the identity. */
void order_quality(const struct order_input *input, const uint32_t *row_of_node, const gidx *first,
                   int parts, struct order_quality *quality);

#endif
