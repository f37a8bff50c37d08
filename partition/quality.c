/* What a split of an ordered graph costs. */
#include "core/mem.h"
#include "order.h"

#include <string.h>

enum { GROUP = 64 }; /* parts looked at in one pass: a bit each */

/* part_of_node [n_nodes], from the row boundaries. */
static uint32_t *parts_of_nodes(int64_t n_nodes, const uint32_t *row_of_node, const gidx *first,
                                int parts) {
  uint32_t *part_of_row = NEW(uint32_t, n_nodes), *part_of_node = NEW(uint32_t, n_nodes);
  for (int p = 0; p < parts; p++)
    for (gidx row = first[p]; row < first[p + 1]; row++) part_of_row[row] = (uint32_t)p;
  for (int64_t v = 0; v < n_nodes; v++)
    part_of_node[v] = part_of_row[row_of_node ? row_of_node[v] : v];
  mem_free(part_of_row);
  return part_of_node;
}

/* Halo rows of the parts [low, low + GROUP): bit t of needed[s] says that part
 * low + t needs source s. */
static void count_halo(const struct order_input *in, const uint32_t *part, int low,
                       uint64_t *needed, int64_t *halo) {
  memset(needed, 0, (size_t)in->n_nodes * sizeof *needed);
  for (eidx e = 0; e < in->n_edges; e++) {
    const uint32_t s = part[in->source[e]], t = part[in->target[e]];
    if (s != t && t >= (uint32_t)low && t < (uint32_t)(low + GROUP))
      needed[in->source[e]] |= (uint64_t)1 << (t - (uint32_t)low);
  }
  for (int64_t v = 0; v < in->n_nodes; v++)
    for (uint64_t bits = needed[v]; bits; bits &= bits - 1) halo[low + __builtin_ctzll(bits)]++;
}

static int64_t largest(const int64_t *x, int n) {
  int64_t most = 0;
  for (int i = 0; i < n; i++)
    if (x[i] > most) most = x[i];
  return most;
}

void order_quality(const struct order_input *input, const uint32_t *row_of_node, const gidx *first,
                   int parts, struct order_quality *quality) {
  *quality = (struct order_quality){.parts = parts, .gather_rows = (parts - 1) * input->n_nodes};
  uint32_t *part = parts_of_nodes(input->n_nodes, row_of_node, first, parts);
  int64_t *edges = NEW_ZERO(int64_t, parts), *nodes = NEW_ZERO(int64_t, parts);
  int64_t *halo = NEW_ZERO(int64_t, parts + GROUP);
  uint64_t *needed = NEW(uint64_t, input->n_nodes);
  for (int p = 0; p < parts; p++) nodes[p] = first[p + 1] - first[p];
  for (eidx e = 0; e < input->n_edges; e++) {
    edges[part[input->target[e]]]++;
    quality->cut += part[input->source[e]] != part[input->target[e]];
  }
  for (int low = 0; low < parts && input->n_nodes; low += GROUP)
    count_halo(input, part, low, needed, halo);
  for (int p = 0; p < parts; p++) quality->halo_rows += halo[p];
  quality->halo_rows_max = largest(halo, parts);
  if (input->n_edges)
    quality->edge_balance = (double)largest(edges, parts) * parts / (double)input->n_edges;
  if (input->n_nodes)
    quality->node_balance = (double)largest(nodes, parts) * parts / (double)input->n_nodes;
  mem_free(part), mem_free(edges), mem_free(nodes), mem_free(halo), mem_free(needed);
}
