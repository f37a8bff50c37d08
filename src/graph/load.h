/* From the graph artifact to one rank's share. The file is ordered, so a share is one run of rows
 * and one run of edges; nothing is redistributed. */
#ifndef FASCICLE_LOAD_H
#define FASCICLE_LOAD_H

#include "io/graph/connectome.h"
#include "contract/graph.h"

/* Which rows each of `parts` ranks owns: first [parts + 1], the same on every rank. The cuts
 * fall on the stored blocks where their number is a multiple of `parts`, otherwise rows are
 * balanced by in-degree + 1. */
void load_split(const struct comm *comm, struct connectome_file *file, int parts, gidx *first);

/* Did nothing give signs to the edges, so that all are excitatory? As `convert` has recorded it in
 * the provenance; false for graphs that do not say. Local. */
bool load_is_unsigned(struct connectome_file *file);

/* Where a rank's share lies in the file. */
struct share {
  gidx first; /* rows [first, first + n_own) */
  lidx n_own;
  eidx first_edge,
      n_edges;   /* the run of edges: the range for connectome_counts, _impulses, _delays */
  eidx *row_ptr; /* [n_own + 1] offsets into the run, row_ptr[0] = 0 */
};

/* Local: the share of rows [first, last). Free with share_free. */
void share_load(struct connectome_file *file, gidx first, gidx last, struct share *share);
void share_free(struct share *share);

/* Collective over the ranks of one replica (size = parts): this rank's graph for training, halo
 * included. first_of_rank [size + 1] from load_split must outlive the graph. Agreed EXIT_INPUT when
 * the graph holds parallel edges: two weights of one (pre, post) pair would be one parameter in
 * some programs and two in others. Sources are read in slices: while the graph is built, 8 bytes an
 * edge are held besides it. Free with graph_free. */
struct status load_graph(const struct comm *comm, struct connectome_file *file,
                         const gidx *first_of_rank, enum halo_kind kind, struct graph *graph);

#endif
