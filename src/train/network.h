/* The network that a run works on: this rank's share of the graph, which neurons take
 * input and are read out, and what fixed numbers follow from the wiring. Loaded once; any
 * number of rnn stand on it. */
#ifndef FASCICLE_NETWORK_H
#define FASCICLE_NETWORK_H

#include "io/graph/connectome.h"
#include "partition/grid.h"
#include "graph/load.h"

/* Neurons with a role, of all parts and of ours. */
struct role {
  int64_t n;     /* over all parts */
  gidx *row;     /* [n] their rows, ascending */
  int64_t first; /* ours are row[first .. first + n_own) */
  lidx n_own;
  lidx *own; /* [n_own] as own rows, ascending */
};

struct network {
  const struct grid *grid;
  struct connectome_file *file;
  struct connectome_facts facts;
  gidx *first_of_rank;             /* [parts + 1] */
  struct share share;              /* this part's run of rows and edges */
  struct graph graph;              /* with its halo */
  uint32_t *node_of_row;           /* [n_nodes] */
  int32_t *in_degree, *out_degree; /* [n_nodes] by row; edges in the graph used, not synapses */
  struct role input, output;
};

/* Collective over the world. `n_input` neurons of highest out-degree take the input, `n_output` of
 * highest in-degree are read out; ties go to the smaller node id. Agreed: EXIT_INPUT for a file
 * that cannot be used, EXIT_USAGE when more neurons are wanted than there are. */
struct status network_open(const struct comm *world, const struct grid *grid, const char *path,
                           int64_t n_input, int64_t n_output, struct network *network);
void network_close(struct network *network);

/* The node id of a local row, own or halo. */
nodeid network_node(const struct network *network, lidx row);

/* Visit this part's edges in the order of the parameters (near, then far): local row of the source
 * (halo rows behind own ones), own row of the target, position in the file's edge arrays. */
typedef void network_edge(void *self, eidx at, lidx source, lidx target, eidx in_file);
void network_edges(const struct network *network, network_edge *visit, void *self);
eidx network_n_edges(const struct network *network);

#endif
