/* Graphs for benchmarks: one rank's share of a lognormal or modular connectome made in memory, as
 * drawn or ordered by the partitioner, or of a graph file. */
#ifndef FASCICLE_BENCH_GRAPH_H
#define FASCICLE_BENCH_GRAPH_H

#include "core/comm.h"
#include "partition/generate.h"
#include "contract/graph.h"

/* Where a graph comes from. */
struct bench_source {
  const char *path; /* a file, or NULL: the model */
  struct generate_model model;
  bool ordered;
  char name[96]; /* "lognormal", "modular, ordered"; of a file that was not generated its name */
  int64_t n_nodes, n_edges;
};

/* Fills in name and sizes, from the file where there is one. Agreed. */
struct status bench_source_look(const struct comm *comm, struct bench_source *source);

struct bench_graph {
  const struct bench_source *from;
  gidx *first_of_rank;
  eidx *row_ptr; /* of a model: this rank's slice, as graph_build takes it */
  gidx *source;
  struct graph graph;
};

/* `kind`: which rows of others the graph's halo holds. Collective over the ranks that share the
 * graph, with a transport open. Of a model every rank draws the whole graph (8 bytes an edge, 32
 * while it is sorted) and keeps its share. `from` must outlive the graph. Agreed. */
struct status bench_graph_init(const struct comm *comm, const struct bench_source *from,
                               enum halo_kind kind, int n_threads, struct bench_graph *made);
/* The same share with another halo; free with graph_free. Agreed. */
struct status bench_graph_again(const struct comm *comm, const struct bench_graph *made,
                                enum halo_kind kind, struct graph *graph);
void bench_graph_free(struct bench_graph *made);

#endif
