/* The partition ordering of a graph in memory, and a table of what it saves in communication.
 * Local: one rank. */
#ifndef FASCICLE_REORDER_H
#define FASCICLE_REORDER_H

#include "io/graph/connectome.h"
#include "core/json.h"
#include "partition/order.h"

enum { REORDER_PARTS = 64, REORDER_SEED = 1 };

/* Compute the ordering of `graph` for `parts` parts (a power of two) and put it there in place of
 * any other. The edges are put in the new order when the graph is written. */
struct status reorder_graph(struct connectome *graph, int parts, int seed);

/* {"method", "parts", "seed", "cut", "levels": [{"parts", "cut", "halo_rows", "halo_rows_max",
 * "gather_rows", "edge_balance", "node_balance"}, ...]} for 2, 4, 8 ... parts of an ordered
 * graph. A new reference. */
json_t *reorder_facts(const struct connectome *graph);

/* The same levels as a table for people, on stdout. */
void reorder_print(const json_t *facts, const struct connectome *graph);

#endif
