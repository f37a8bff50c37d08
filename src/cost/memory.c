/* Counts the bytes of a rank, item by item. Each item says which arrays it stands for; tests hold
 * the sums against measured peaks. */
#include "kernels/interface/backends.h"
#include "kernels/interface/gpu_bytes.h"
#include "contract/lif.h"
#include "contract/lif_launch.h"
#include "contract/lif_pace.h"
#include "core/log.h"
#include "core/numbers.h"
#include "cost.h"

static void add(struct plan_memory *m, const char *name, int64_t bytes) {
  if (bytes <= 0) return;
  ASSERT(m->n < PLAN_ITEMS);
  m->item[m->n++] = (struct plan_item){name, bytes};
  m->total += bytes;
}

/* n of them, in bytes. */
#define BYTES(type, n) ((int64_t)sizeof(type) * (n))

/* A neuron's potential or components, and its refractory counter. */
static int64_t state_bytes(const struct plan_graph *g) {
  const int64_t values = g->components ? BYTES(int64_t, g->components) : (int64_t)sizeof(int32_t);
  return values + (int64_t)sizeof(uint16_t);
}

static const char *state_name(const struct plan_graph *g) {
  return g->components ? "components and counter" : "potential and counter";
}

static int64_t rings(const struct plan_graph *g) {
  return g->components ? g->rings : 1;
}

static int64_t sum_bytes(bool wide) {
  return wide ? sizeof(int64_t) : sizeof(int32_t);
}

/* What does not depend on where the edges are. `loading`: bytes held only until the net is there.
 */
static void add_neurons(struct plan_memory *m, const struct plan_graph *g,
                        const struct plan_share *s, int64_t recorded, int64_t loading) {
  const int64_t n = g->n_nodes, own = s->n_own, ring = rings(g) * g->max_delay * own;
  const int64_t state = state_bytes(g) * own;
  add(m, "neuron table", /* body ids, codes of types, ids of own rows */
      BYTES(uint64_t, n) + BYTES(uint32_t, n) + BYTES(nodeid, own));
  add(m, state_name(g), state);
  if (g->components)
    add(m, "classes of neurons, who is at rest", /* class of every node, and of own rows; a bit */
        BYTES(uint16_t, n) + BYTES(uint16_t, own) + own / 8);
  add(m, "delay ring", sum_bytes(g->wide) * ring);
  /* A checkpoint's state while it is sent, its sums in 64 bits, by node id. */
  const int64_t moving = state + BYTES(int64_t, ring) + BYTES(nodeid, own) + BYTES(uint32_t, own);
  add(m, "recorded spikes", recorded);
  add(m, "loading or checkpoint, whichever is larger",
      most_i64(loading - state - BYTES(int32_t, ring), moving));
}

struct plan_memory plan_simulate_memory(const struct plan_graph *g, const struct plan_share *s,
                                        int64_t recorded) {
  enum { SLICE = 1 << 20 }; /* edges read at a time */
  const int64_t n = g->n_nodes, own = s->n_own;
  const int64_t slices =
      BYTES(uint32_t, SLICE) + BYTES(int16_t, SLICE) + BYTES(uint16_t, SLICE); /* of a file */
  struct plan_memory m = {0};
  add(&m, "edges by source", BYTES(struct lif_edge, s->near + s->far));
  add(&m, "offsets by source", BYTES(eidx, n + 2)); /* of every neuron anywhere */
  add_neurons(&m, g, s, recorded,                   /* row_of_node and row_ptr beside the slices */
              BYTES(uint32_t, n) + slices + BYTES(eidx, own));
  return m;
}

struct plan_memory plan_streamed_memory(const struct plan_graph *g, const struct plan_share *s,
                                        int64_t recorded, int64_t held) {
  const int64_t n = g->n_nodes, own = s->n_own;
  struct plan_memory m = {0};
  add(&m, "edges held at a time", held);
  add(&m, "offsets by source", /* of every neuron anywhere: in the file, and where held, how many */
      BYTES(eidx, n + 1) + 2 * BYTES(int64_t, n));
  add(&m, "in-edges of own rows", BYTES(eidx, own + 1)); /* by which threads share the work */
  add_neurons(&m, g, s, recorded,                        /* node_of_row, and a check of it */
              BYTES(uint32_t, n) + BYTES(uint8_t, n));
  return m;
}

int64_t plan_held(const struct plan_graph *g, const struct plan_share *s, int64_t recorded,
                  int64_t limit) {
  const int64_t left = limit - plan_streamed_memory(g, s, recorded, 0).total;
  const int64_t all = BYTES(struct lif_edge, s->near + s->far) + PLAN_LEAST_HELD;
  return most_i64(left < all ? left : all, PLAN_LEAST_HELD);
}

struct plan_memory plan_device_memory(const struct plan_graph *g, const struct plan_share *s,
                                      int trials, int64_t edge_bytes) {
  enum { MASK_BITS = 32 }; /* neurons of one uint32_t of who fired */
  const int64_t n = g->n_nodes, own = s->n_own,
                all_edges = BYTES(struct lif_edge, s->near + s->far);
  const int64_t masks = (own + MASK_BITS - 1) / MASK_BITS;
  const int64_t width = trials == 1 ? own : MASK_BITS * masks * trials; /* neurons of all trials */
  const int64_t steps =
      LIF_LAUNCHES * (int64_t)lif_launch_steps(own, trials, g->min_delay) * trials;
  struct plan_memory m = {0};
  if (edge_bytes < 0)
    add(&m, "edges by source", all_edges);
  else
    add(&m, "edges kept on the device", edge_bytes < all_edges ? edge_bytes : all_edges);
  add(&m, "offsets by source", BYTES(eidx, n + 1));
  if (edge_bytes >= 0) add(&m, "where kept rows are", BYTES(eidx, n));
  add(&m, "ids of own rows", BYTES(int64_t, own));
  add(&m, state_name(g), state_bytes(g) * width);
  if (g->components) add(&m, "classes of neurons", BYTES(uint16_t, own));
  add(&m, "delay ring",
      sum_bytes(g->wide) * rings(g) * lif_pace_slots(g->min_delay, g->max_delay) * width);
  add(&m, "who fired, step by step", /* bit masks, lists, counts */
      steps * (BYTES(uint32_t, masks) + BYTES(uint32_t, own) + (int64_t)sizeof(int32_t)));
  if (g->parts > 1) /* a mask and its step in 64 bits */
    add(&m, "words from other ranks",
        BYTES(uint64_t, g->parts * masks) * lif_pace_window(g->min_delay));
  return m;
}

/* The share of the input (or output) neurons: even, rounded up. */
static lidx part_of(int64_t total, int parts) {
  return (lidx)((total + parts - 1) / parts);
}

/* The share's graph in counts. */
static struct graph graph_of(const struct plan_graph *g, const struct plan_share *s) {
  const lidx own = (lidx)s->n_own;
  return (struct graph){.n_global = g->n_nodes,
                        .n_own = own,
                        .n_halo = (lidx)s->n_halo,
                        .near = {.n_rows = own, .n_edges = s->near},
                        .far = {.n_rows = own, .n_edges = s->far}};
}

static struct recur_net net_of(const struct plan_graph *g, const struct graph *graph,
                               const struct plan_training *t) {
  return (struct recur_net){.graph = graph,
                            .n_in = part_of(t->n_input, g->parts),
                            .n_out = part_of(t->n_output, g->parts),
                            .shape = t->shape,
                            .mixed = t->mixed,
                            .want_gradient = true};
}

/* Where the work is done: a backend that this build leaves out is a GPU's, counted without it. */
static void add_recurrence(struct plan_memory *m, const struct backend *backend,
                           const struct plan_graph *g, const struct plan_share *s,
                           const struct plan_training *t) {
  const struct graph graph = graph_of(g, s);
  const struct recur_net net = net_of(g, &graph, t);
  const struct model_shape model = {.vocabulary = t->vocabulary,
                                    .embedding = t->embedding,
                                    .batch = t->shape.batch,
                                    .steps = t->shape.steps,
                                    .n_edges = s->near + s->far,
                                    .n_own = graph.n_own,
                                    .n_in = net.n_in,
                                    .n_out = net.n_out,
                                    .adds_bias = true};
  const int64_t kept = (int64_t)t->shape.steps * t->shape.microsteps + 1;
  const int64_t row = BYTES(float, t->shape.batch);
  const int64_t states = kept * s->n_own * row, halo_states = kept * s->n_halo * row;
  add(m, "saved states, own rows", states);
  add(m, "saved states, halo rows", halo_states);
  add(m, "edges, values, gradients of the recurrence",
      (backend->is_built ? backend->recur->bytes : gpu_recur_bytes)(&net) - states - halo_states);
  add(m, "parameters, gradients, moments",
      (backend->is_built ? backend->model->bytes : gpu_model_bytes)(&model, true));
}

/* Where the graph is read and checkpoints are written. */
static void add_reading(struct plan_memory *m, const struct plan_graph *g,
                        const struct plan_share *s, const struct plan_training *t) {
  const int64_t edges = s->near + s->far, own = s->n_own;
  add(m, "graph by target, places in the file", /* struct graph, and what its halo sends */
      BYTES(lidx, edges) + BYTES(eidx, edges) + 2 * BYTES(eidx, own + 1) + BYTES(gidx, s->n_halo) +
          BYTES(lidx, s->n_halo));
  add(m, "neuron tables", /* order and degrees of all; node and first edge of own rows */
      BYTES(uint32_t, g->n_nodes) + 2 * BYTES(int32_t, g->n_nodes) + BYTES(uint32_t, own) +
          BYTES(eidx, own));
  add(m, "text and window", /* tokens; inputs and targets */
      BYTES(int32_t, t->characters) + 2 * BYTES(int32_t, t->shape.batch) * t->shape.steps);
}

struct plan_memory plan_train_memory(const struct backend *backend, const struct plan_graph *g,
                                     const struct plan_share *s, const struct plan_training *t) {
  struct plan_memory m = {0};
  add_recurrence(&m, backend, g, s, t);
  add_reading(&m, g, s, t);
  add(&m, "a checkpoint's array in transit", 2 * BYTES(float, s->near + s->far));
  return m;
}

struct plan_memory plan_train_device_memory(const struct backend *backend,
                                            const struct plan_graph *g, const struct plan_share *s,
                                            const struct plan_training *t) {
  const int64_t row = BYTES(float, t->shape.batch);
  struct plan_memory m = {0};
  add_recurrence(&m, backend, g, s, t);
  add(&m, "rows in transit between parts",
      (g->all ? 1 : 2) * row * s->n_halo + BYTES(lidx, s->n_halo));
  if (t->replicas > 1) add(&m, "sums over replicas", BYTES(float, s->near + s->far));
  return m;
}

struct plan_memory plan_train_host_memory(const struct plan_graph *g, const struct plan_share *s,
                                          const struct plan_training *t) {
  const struct graph graph = graph_of(g, s);
  const struct recur_net net = net_of(g, &graph, t);
  struct plan_memory m = {0};
  add_reading(&m, g, s, t);
  add(&m, "tables being made for the GPU", gpu_recur_host_bytes(&net));
  return m;
}

void plan_check(const struct plan_memory *predicted, int64_t spare, int64_t measured) {
  const double low = 0.9 * (double)(predicted->total - spare),
               high = 1.1 * (double)(predicted->total + spare);
  if (measured < PLAN_CHECKED) return;
  if ((double)measured >= low && (double)measured <= high) return;
  log_warning("memory: the peak of this rank was %lld bytes, `fascicle plan` says %lld",
              (long long)measured, (long long)predicted->total);
}
