/* What a job will take before it starts: bytes of a rank by item, bytes that travel, time of a
 * step. `fascicle plan` prints it; a run compares its measured peak with it at the end. Pure
 * arithmetic on counts: no graph need exist. */
#ifndef FASCICLE_PLAN_H
#define FASCICLE_PLAN_H

#include "contract/backend.h"
#include "io/graph/connectome.h"
#include "machine.h"
#include "contract/model.h"
#include "contract/recurrence.h"

/* One rank's share of a split graph. */
struct plan_share {
  gidx n_own;
  int64_t n_halo;        /* rows of other ranks that it holds: those that edges need, or all */
  int64_t n_halo_host;   /* of those, owned on the same host */
  int peers, peers_host; /* ranks that own them; on the same host */
  eidx near, far;        /* edges by where their source is */
};

/* The whole graph, split. */
struct plan_graph {
  int64_t n_nodes;
  eidx n_edges;
  int min_delay, max_delay;
  bool wide;                /* LIF sums in int64 */
  int components, rings;    /* of a neuron model; 0: lif_shift */
  bool real;                /* counted on a file, not estimated */
  int parts, per_host;      /* parts of one replica that share a host */
  bool all;                 /* an all-gather instead of halos */
  double far_share;         /* plan_guess: edges from other parts; below 0: (parts - 1) / parts */
  int64_t needed;           /* halo rows that edges need, over all parts */
  struct plan_share *share; /* [parts]; [1] when all parts are estimated alike */
  int n_shares;
};

/* Count a file's split over `parts`, `per_host` of them on each host: one pass over
 * the edges. `alone` is a group of this one rank. */
void plan_count(const struct comm *alone, struct connectome_file *file, int parts, int per_host,
                enum halo_kind kind, struct plan_graph *graph);
/* Estimate a graph that does not exist: sources drawn at random, so halo rows are at their
 * most. n_nodes, n_edges, min_delay, max_delay, parts, per_host and far_share of *graph are
 * given, the rest is filled in. */
void plan_guess(enum halo_kind kind, struct plan_graph *graph);
void plan_graph_free(struct plan_graph *graph);
/* The share with the most edges: the one that must fit. */
const struct plan_share *plan_largest(const struct plan_graph *graph);

/* ---- memory ---- */

struct plan_item {
  const char *name;
  int64_t bytes;
};
enum { PLAN_ITEMS = 12 };
struct plan_memory {
  int n;
  struct plan_item item[PLAN_ITEMS];
  int64_t total; /* counted through core/mem.h: libraries and the program itself, some 40 MB, come
                    on top */
};

/* `recorded`: bytes of spikes held until a segment is closed, at most
 * RECORD_BYTES (simulate/record.h). */
struct plan_memory plan_simulate_memory(const struct plan_graph *graph,
                                        const struct plan_share *share, int64_t recorded);

/* The same with edges that stay in the file, `held` bytes of them in memory at once. */
struct plan_memory plan_streamed_memory(const struct plan_graph *graph,
                                        const struct plan_share *share, int64_t recorded,
                                        int64_t held);
/* How many bytes of edges a rank that may use `limit` holds: all of its own if they fit, and at
 * least PLAN_LEAST_HELD. */
enum { PLAN_LEAST_HELD = 4 << 20 };
int64_t plan_held(const struct plan_graph *graph, const struct plan_share *share, int64_t recorded,
                  int64_t limit);

/* What a GPU holds for a simulation of `trials` at once, with all edges or with room for
 * `edge_bytes` of them while they stay in host memory (< 0: all); stimuli and the driver's
 * own some 500 MB apart. */
struct plan_memory plan_device_memory(const struct plan_graph *graph,
                                      const struct plan_share *share, int trials,
                                      int64_t edge_bytes);

struct plan_training {
  struct recur_shape shape; /* this replica's */
  int vocabulary, embedding;
  int64_t n_input, n_output; /* over all parts */
  int replicas;
  int64_t characters; /* of the text */
  bool mixed;         /* precision */
};
struct plan_memory plan_train_memory(const struct backend *backend, const struct plan_graph *graph,
                                     const struct plan_share *share,
                                     const struct plan_training *training);
/* The same where a GPU computes: what it holds, and what the host does. `backend` is that of the
 * GPU, also of a program that was built without CUDA. */
struct plan_memory plan_train_device_memory(const struct backend *backend,
                                            const struct plan_graph *graph,
                                            const struct plan_share *share,
                                            const struct plan_training *training);
struct plan_memory plan_train_host_memory(const struct plan_graph *graph,
                                          const struct plan_share *share,
                                          const struct plan_training *training);

/* At the end of a run: warns when the measured peak is more than a tenth off. `spare`: bytes that
 * may or may not have been in use. Peaks under PLAN_CHECKED bytes are left alone: fixed buffers
 * outweigh the graph there. */
enum { PLAN_CHECKED = 128 << 20 };
void plan_check(const struct plan_memory *predicted, int64_t spare, int64_t measured);

/* ---- traffic and time ---- */

/* What a step runs on. */
struct plan_layout {
  const struct machine *machine;
  const struct link *host, *network; /* between ranks of a host, and of different hosts */
  const struct link *sums;           /* gradients of replicas within a host */
  const struct link *spikes;         /* lists of spikes: within a host, or before the network */
  int threads;                       /* of a rank; a GPU counts as one */
  int ranks_per_host;
  double host_edges; /* LIF: the share of events whose edges a GPU reads from host memory */
};

struct plan_step {
  int64_t bytes_host, bytes_network; /* that the share receives: from its host, from others */
  double compute;                    /* seconds of work, nothing else */
  double exchange;                   /* of exchanges with nothing beside them */
  double window;                     /* training: forward and backward, exchanges beside the work */
  double gradients;                  /* training: their sum over the replicas */
  double total;                      /* the whole step */
};
/* Of the share that takes longest. One LIF step with `active` of the neurons firing. */
struct plan_step plan_simulate_step(const struct plan_graph *graph,
                                    const struct plan_layout *layout, double active);
/* One training step: forward and backward over a window, gradients summed over the replicas, the
 * readout and the update. */
struct plan_step plan_train_step(const struct plan_graph *graph, const struct plan_layout *layout,
                                 const struct plan_training *training);

#endif
