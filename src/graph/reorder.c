/* Rows of a graph put in the order that METIS finds, and what is said about it. */
#include "reorder.h"
#include "core/mem.h"

#include <stdio.h>

static struct order_input input_of(const struct connectome *g, int parts, int seed) {
  return (struct order_input){.n_nodes = g->n_nodes,
                              .n_edges = g->n_edges,
                              .source = g->source,
                              .target = g->target,
                              .parts = parts,
                              .seed = seed};
}

struct status reorder_graph(struct connectome *g, int parts, int seed) {
  const struct order_input input = input_of(g, parts, seed);
  struct order order;
  TRY(order_compute(&input, &order));
  mem_free(g->row_of_node), mem_free(g->node_of_row), mem_free(g->block);
  g->row_of_node = order.row_of_node, g->node_of_row = order.node_of_row;
  g->block = order.block, g->n_blocks = order.parts;
  g->order_cut = order.cut, g->order_seed = seed;
  snprintf(g->order_method, sizeof g->order_method, "%s", order.method);
  return fine();
}

static json_t *level_facts(const struct connectome *g, int parts) {
  const struct order_input input = input_of(g, parts, 0);
  gidx *first = NEW(gidx, parts + 1);
  for (int p = 0; p <= parts; p++) first[p] = g->block[g->n_blocks / parts * p];
  struct order_quality q;
  ASSERT(parts > 0 && g->n_blocks % parts == 0);
  order_quality(&input, g->row_of_node, first, parts, &q);
  mem_free(first);
  return json_pack("{s:i, s:I, s:I, s:I, s:I, s:f, s:f}", "parts", parts, "cut", (json_int_t)q.cut,
                   "halo_rows", (json_int_t)q.halo_rows, "halo_rows_max",
                   (json_int_t)q.halo_rows_max, "gather_rows", (json_int_t)q.gather_rows,
                   "edge_balance", q.edge_balance, "node_balance", q.node_balance);
}

json_t *reorder_facts(const struct connectome *g) {
  json_t *levels = json_array();
  for (int parts = 2; parts <= g->n_blocks && g->n_blocks % parts == 0; parts *= 2)
    json_array_append_new(levels, level_facts(g, parts));
  return json_pack("{s:s, s:i, s:i, s:I, s:o}", "method", g->order_method, "parts", g->n_blocks,
                   "seed", g->order_seed, "cut", (json_int_t)g->order_cut, "levels", levels);
}

static long long whole(const json_t *level, const char *key) {
  return (long long)json_integer_value(json_object_get(level, key));
}

static double percent(double part, double of) {
  return of > 0 ? 100 * part / of : 0;
}

void reorder_print(const json_t *facts, const struct connectome *g) {
  const json_t *levels = json_object_get(facts, "levels"), *level;
  size_t i;
  printf("%6s %16s %22s %12s %14s %13s %13s\n", "parts", "edges cut", "halo rows", "largest",
         "of all-gather", "edge balance", "node balance");
  json_array_foreach(levels, i, level) {
    const double cut = (double)whole(level, "cut"), halo = (double)whole(level, "halo_rows");
    printf("%6lld %15.1f%% %22lld %12lld %13.1f%% %13.3f %13.3f\n", whole(level, "parts"),
           percent(cut, (double)g->n_edges), whole(level, "halo_rows"),
           whole(level, "halo_rows_max"), percent(halo, (double)whole(level, "gather_rows")),
           json_real_value(json_object_get(level, "edge_balance")),
           json_real_value(json_object_get(level, "node_balance")));
  }
  printf(
      "halo rows: neurons that a part needs from others, summed over parts; largest: of one part;\n"
      "all-gather: every part gets every row; balance: largest part over mean\n");
}
