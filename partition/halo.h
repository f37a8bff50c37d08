/* Which rows each rank needs from each other rank. */
#ifndef FASCICLE_HALO_H
#define FASCICLE_HALO_H

#include "core/comm.h"
#include "contract/graph.h"

/* Whether an all-gather is cheaper than a halo of this many rows, both summed over the ranks
 * (all-gather: (ranks - 1) x n_nodes). An all-gather sends rows in place; a halo packs them first,
 * which takes about an eighth of the exchange (H200, `bench halo`): so all-gather from 7/8 on. */
bool halo_takes_all(int64_t halo_rows, int64_t gather_rows);

/* Collective over the ranks of one replica (size = parts). Builds this rank's graph from its slice
 * of the file: row_ptr [n_own + 1] (offsets into the slice, row_ptr[0] = 0) and source [E_own], the
 * *row* of each edge's source, in file order. `kind` must be the same on all ranks; graph->halo.all
 * says what was taken. first_of_rank [size + 1] must outlive the graph. Checks that send and
 * receive lists match. Free with graph_free. */
void graph_build(const struct comm *comm, const gidx *first_of_rank, const eidx *row_ptr,
                 const gidx *source, enum halo_kind kind, struct graph *graph);
void graph_free(struct graph *graph);

#endif
