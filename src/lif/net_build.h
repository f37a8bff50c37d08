/* A net under construction, in two passes over its edges by ascending target: count, then scatter.
 * Used by lif/net.c and lif/load.c alone. */
#ifndef FASCICLE_LIF_BUILDING_H
#define FASCICLE_LIF_BUILDING_H

#include "net.h"

/* The net's arrays, still writable. ptr [n_nodes + 2]: while edges are counted, ptr[j + 2] is the
 * number of row j's; while they are scattered, ptr[j + 1] is where row j's next edge goes; so in
 * the end ptr is the offset table. */
struct lif_building {
  eidx *ptr;             /* zeroed by the caller */
  struct lif_edge *edge; /* taken by lif_building_scatter */
};

static inline void lif_building_count(struct lif_building *b, gidx source_row) {
  b->ptr[source_row + 2]++;
}

/* Between the passes. */
void lif_building_scatter(struct lif_building *b, gidx n_nodes, eidx n_edges);

static inline void lif_building_put(struct lif_building *b, gidx source_row, struct lif_edge edge) {
  b->edge[b->ptr[source_row + 1]++] = edge;
}

/* The net, which owns the arrays and `id`; delays, `wide` and `mute` are left to the caller. */
struct lif_net lif_building_end(const struct lif_building *b, gidx n_nodes, gidx first, lidx n_own,
                                eidx n_edges, const nodeid *id);

#endif
