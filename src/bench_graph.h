/* Synthetic graphs for benchmarks, made in memory: one rank's share of a lognormal or modular connectome, as
 * drawn or ordered by the partitioner. */
#ifndef FASCICLE_BENCH_GRAPH_H
#define FASCICLE_BENCH_GRAPH_H

#include "comm.h"
#include "generate.h"
#include "graph.h"

struct bench_graph {
  gidx *first_of_rank;
  eidx *row_ptr; /* this rank's slice, as graph_build takes it: for the same share with another halo */
  gidx *source;
  struct graph graph;
};

/* `kind`: which rows of others the graph's halo holds. Collective over the ranks that share the graph, with a
 * transport open. Every rank draws the whole graph (8 bytes an edge, 32 while it is sorted) and keeps its
 * share. Agreed. */
struct status bench_graph_init(const struct comm *comm, const struct generate_model *model, bool ordered,
                               enum halo_kind kind, int n_threads, struct bench_graph *made);
void bench_graph_free(struct bench_graph *made);

#endif
