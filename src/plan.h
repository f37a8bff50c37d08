/* What a job will take before it starts: bytes of a rank by item, bytes that travel, time of a step.
 * `fascicle plan` prints it; a run compares its measured peak with it at the end. Pure arithmetic on counts:
 * no graph need exist. */
#ifndef FASCICLE_PLAN_H
#define FASCICLE_PLAN_H

#include "backend.h"
#include "connectome.h"
#include "model_backend.h"
#include "recur_backend.h"

/* One rank's share of a split graph. */
struct plan_share {
  gidx n_own;
  int64_t n_halo; /* distinct sources on other ranks */
  eidx near, far; /* edges by where their source is */
};

/* The whole graph, split. */
struct plan_graph {
  int64_t n_nodes;
  eidx n_edges;
  int min_delay, max_delay;
  bool wide; /* LIF sums in int64 */
  bool real; /* counted on a file, not estimated */
  int parts;
  struct plan_share *share; /* [parts]; [1] when all parts are estimated alike */
  int n_shares;
};

/* Count a file's split over `parts`: one pass over the edges. `alone` is a group of this one rank. */
void plan_count(const struct comm *alone, struct connectome_file *file, int parts, struct plan_graph *graph);
/* Estimate a graph that does not exist: sources drawn at random, so halo rows are at their most. */
void plan_guess(int64_t n_nodes, eidx n_edges, int min_delay, int max_delay, int parts,
                struct plan_graph *graph);
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
  int64_t total; /* counted through core/mem.h: libraries and the program itself, some 40 MB, come on top */
};

/* `recorded`: bytes of spikes held until a segment is closed, at most RECORD_BYTES (lif_record.h). */
struct plan_memory plan_simulate_memory(const struct plan_graph *graph, const struct plan_share *share,
                                        int64_t recorded);

/* The same with edges that stay in the file, `held` bytes of them in memory at a time. */
struct plan_memory plan_streamed_memory(const struct plan_graph *graph, const struct plan_share *share,
                                        int64_t recorded, int64_t held);
/* How many bytes of edges a rank that may use `limit` holds: all of its own if they fit, and at least
 * PLAN_LEAST_HELD. */
enum { PLAN_LEAST_HELD = 4 << 20 };
int64_t plan_held(const struct plan_graph *graph, const struct plan_share *share, int64_t recorded,
                  int64_t limit);

struct plan_training {
  struct recur_shape shape; /* this replica's */
  int vocabulary, embedding;
  int64_t n_input, n_output; /* over all parts */
  int replicas;
  int64_t characters; /* of the text */
};
struct plan_memory plan_train_memory(const struct backend *backend, const struct plan_graph *graph,
                                     const struct plan_share *share, const struct plan_training *training);

/* At the end of a run on the CPU: warns when the measured peak is more than a tenth off. `spare`: bytes that
 * may or may not have been in use. Peaks under PLAN_CHECKED bytes are left alone: fixed buffers outweigh the
 * graph there. */
enum { PLAN_CHECKED = 128 << 20 };
void plan_check(const struct plan_memory *predicted, int64_t spare, int64_t measured);

/* ---- traffic and time ---- */

/* What a machine does, measured by `fascicle bench` where `origin` says. */
struct plan_machine {
  const char *name, *origin;
  double gather_forward, gather_backward; /* bytes of state rows a second and thread */
  double lif_neuron, lif_event;           /* seconds for a neuron that leaks, for an event, one thread */
  double latency, bandwidth;              /* seconds, bytes a second of one exchange between ranks */
  int64_t memory;                         /* bytes of a rank; 0: not known */
};
const struct plan_machine *plan_machine_find(const char *name);
const char *plan_machine_names(void);

/* The least time for so many bytes between two ranks. */
double plan_transfer_floor(const struct plan_machine *machine, double bytes);

struct plan_step {
  int64_t bytes_sent;              /* by the largest share */
  double compute, exchange, total; /* seconds */
};
/* One LIF step with `active` of the neurons firing. */
struct plan_step plan_simulate_step(const struct plan_graph *graph, const struct plan_machine *machine,
                                    int threads, double active);
/* One training step: forward and backward over a window, gradients summed over the replicas. */
struct plan_step plan_train_step(const struct plan_graph *graph, const struct plan_machine *machine,
                                 int threads, const struct plan_training *training);

#endif
