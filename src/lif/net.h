/* A rank's share of a connectome as the LIF simulation wants it: for every source anywhere, the
 * edges into our own rows; and the tables that turn what users name (node ids) into own rows. */
#ifndef FASCICLE_LIF_NET_H
#define FASCICLE_LIF_NET_H

#include "io/graph/connectome.h"
#include "contract/lif.h"

/* Local: the share of rows [first, last), in two passes over this rank's run of edges (count, then
 * scatter). Peak memory: the net itself (8 bytes an edge, 8 a node of the whole graph, 8 a row) and
 * a few MB. Values that would break the net are fatal with EXIT_INPUT. Free with lif_net_free. */
void lif_net_load(struct connectome_file *file, gidx first, gidx last, struct lif_net *net);

/* Local: the same share with its edges left in the file's source-major copy; a run holds up
 * to `held_bytes` of them at a time, or the longest row, and reads with n_readers threads
 * beside those that compute (0: the latter read by themselves). The file must be streamable,
 * and may be closed before the net. Memory: 8 bytes a node of the whole graph, 16 a row; a
 * run on it 16 a node more. */
void lif_net_stream(struct connectome_file *file, gidx first, gidx last, int64_t held_bytes,
                    int n_readers, struct lif_net *net);

/* A whole graph in arrays, for tests, benches and generated graphs. */
struct lif_edges {
  gidx n_nodes;
  eidx n_edges;
  const uint32_t *source, *target; /* [n_edges] node ids, any order */
  const int16_t *weight;           /* [n_edges] */
  const uint16_t *delay;           /* [n_edges] steps >= 1, or NULL: all 1 */
  const uint32_t *row_of_node;     /* [n_nodes], or NULL: row = node */
};

/* Local: the same share from arrays. */
void lif_net_build(const struct lif_edges *edges, gidx first, gidx last, struct lif_net *net);

/* Frees the net's arrays; accepts a zeroed net. */
void lif_net_free(struct lif_net *net);

/* Silence own rows: `bits` LIF_MUTED (the spikes go nowhere) or LIF_REMOVED (receives nothing,
 * never fires), added to what is set. row [n], any order. Before lif_open. */
void lif_net_silence(struct lif_net *net, lidx n, const lidx *row, int bits);

/* The own rows among `n` node ids (any order, repeats allowed), ascending, each once; mem_free
 * *row. Returns their number. A node that another rank owns is left out. */
lidx lif_own_rows(const struct lif_net *net, int64_t n, const nodeid *node, lidx **row);

/* Stimuli for own rows; node [n] as above. The arrays inside belong to the stimulus:
 * lif_stimulus_free. Intervals are inclusive; steps [n_steps] of `spikes` in any
 * order, repeats allowed. */
struct lif_stimulus lif_current(const struct lif_net *net, int index, int64_t n, const nodeid *node,
                                int64_t first_step, int64_t last_step, int32_t value);
struct lif_stimulus lif_poisson(const struct lif_net *net, int index, int64_t n, const nodeid *node,
                                int64_t first_step, int64_t last_step, double probability,
                                int32_t weight);
struct lif_stimulus lif_listed(const struct lif_net *net, int index, int64_t n, const nodeid *node,
                               int64_t n_steps, const int64_t *step);
/* Node who[i] fires at step[i], i < n_events, any order; node [n]: all that may. */
struct lif_stimulus lif_replay(const struct lif_net *net, int index, int64_t n, const nodeid *node,
                               int64_t n_events, const int64_t *step, const nodeid *who);
void lif_stimulus_free(struct lif_stimulus *stimulus);

/* Every edge of the net has this delay from now on, whatever the graph says. Before lif_open. */
void lif_net_delay(struct lif_net *net, int delay);

/* The parameters of a run as integers from a configuration, before their ranges
 * are known to be right. */
struct lif_numbers {
  int64_t threshold, reset, refractory_steps;
  int64_t n_shifts;
  const int64_t *decay_shifts; /* [n_shifts] */
};

/* Check the ranges (threshold and reset int32, refractory_steps 0..65535, 256 shifts of 0..31 at
 * most) and fill `params`. EXIT_USAGE names `where` (the configuration file), key, value and range.
 * Local and pure. */
struct status lif_params_from(const char *where, const struct lif_numbers *numbers,
                              struct lif_params *params);

/* Check one initial value: potential in int32, counter in 0..65535. `where` names the entry
 * ("lif.json: initial[2]"). */
struct status lif_initial_check(const char *where, int64_t potential, int64_t refractory);

#endif
