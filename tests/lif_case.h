/* What the LIF tests share: one network, run in every variant that must not matter. */
#ifndef FASCICLE_LIF_CASE_H
#define FASCICLE_LIF_CASE_H

#include "kernels/interface/backends.h"
#include "check.h"
#include "core/digest.h"
#include "lif/run.h"
#include "core/mem.h"

/* A variant of a run: which loop, how many threads, which row each node has,
 * which rank owns which rows. */
struct variant {
  const struct lif_backend *backend;
  int threads;
  bool permuted; /* rows in another order than node ids */
  bool uneven;   /* the first rank owns nothing */
};

/* With TEST_DEVICE=cuda: on a GPU (tests/run_gpu.sh), beside the plain loop. */
static inline int gpu_variants(struct variant *variants) {
  static bool started;
  if (!started) CHECK_FINE(backend_cuda.start(0));
  started = true;
  variants[0] = (struct variant){&lif_plain, 1, false, false};
  variants[1] = (struct variant){backend_cuda.lif, 1, false, false};
  variants[2] = (struct variant){backend_cuda.lif, 1, true, false};
  return 3;
}

static inline int all_variants(struct variant *variants) {
  int n = 0;
  const char *device = getenv("TEST_DEVICE");
  if (device && !strcmp(device, "cuda")) return gpu_variants(variants);
  for (int permuted = 0; permuted < 2; permuted++) {
    variants[n++] = (struct variant){&lif_plain, 1, permuted, false};
    variants[n++] = (struct variant){backend_cpu.lif, 1, permuted, permuted};
    variants[n++] = (struct variant){backend_cpu.lif, 3, permuted, !permuted};
  }
  return n;
}

/* A network on this rank. */
struct test_net {
  struct lif_edges edges;
  gidx *first_of_rank;
  uint32_t *row_of_node;
  struct lif_net net;
};

static inline void test_net_init(struct test_net *p, const struct comm *comm,
                                 const struct lif_edges *edges, const struct variant *variant) {
  const gidx n = edges->n_nodes;
  const int idle = variant->uneven && comm->size > 1;
  p->edges = *edges;
  p->first_of_rank = NEW(gidx, comm->size + 1);
  for (int r = 0; r <= comm->size; r++)
    p->first_of_rank[r] = r < idle ? 0 : n * (r - idle) / (comm->size - idle);
  p->row_of_node = NULL;
  if (variant->permuted) p->edges.row_of_node = p->row_of_node = NEW(uint32_t, n);
  for (gidx i = 0; i < n && variant->permuted; i++)
    p->row_of_node[i] =
        (uint32_t)(i % 2 ? n - 1 - i / 2
                         : i / 2); /* even ids ascend, odd ids descend behind them */
  lif_net_build(&p->edges, p->first_of_rank[comm->rank], p->first_of_rank[comm->rank + 1], &p->net);
}

static inline void test_net_free(struct test_net *p) {
  lif_net_free(&p->net), mem_free(p->first_of_rank), mem_free(p->row_of_node);
}

static inline struct lif_run *open_run(const struct test_net *p, const struct comm *comm,
                                       const struct variant *variant,
                                       const struct lif_params *params,
                                       const struct lif_stimulus *stimulus, int n_stimuli,
                                       uint64_t seed) {
  const struct lif_setup setup = {.backend = variant->backend,
                                  .net = &p->net,
                                  .first_of_rank = p->first_of_rank,
                                  .stimulus = stimulus,
                                  .n_stimuli = n_stimuli,
                                  .params = *params,
                                  .seed = seed,
                                  .n_threads = variant->threads};
  struct lif_run *run;
  CHECK_FINE(lif_open(comm, &setup, &run));
  return run;
}

/* Own values placed at their node ids, then summed over ranks: the whole, on every rank. */
static inline void whole_spikes(const struct lif_run *run, const struct lif_batch *batch,
                                int64_t *fired) {
  const gidx n = run->setup.net->n_global;
  nodeid *id = NEW(nodeid, batch->own->n);
  memset(fired, 0, (size_t)(n * batch->n_steps) * sizeof *fired);
  lif_own_nodes(run, batch, id);
  for (int k = 0; k < batch->n_steps; k++)
    for (int64_t at = batch->own->step_ptr[k]; at < batch->own->step_ptr[k + 1]; at++)
      fired[k * n + id[at]]++;
  comm_sum_i64(&world, fired, n * batch->n_steps);
  mem_free(id);
}

struct whole_state {
  int64_t *potential, *counter; /* [n] by node id */
  int64_t *ring;                /* [n][max_delay] */
};

static inline void whole_init(const struct lif_net *net, struct whole_state *w) {
  w->potential = NEW(int64_t, net->n_global);
  w->counter = NEW(int64_t, net->n_global);
  w->ring = NEW(int64_t, net->n_global * net->max_delay);
}

static inline void whole_free(struct whole_state *w) {
  mem_free(w->potential), mem_free(w->counter), mem_free(w->ring);
}

static inline void whole_read(const struct lif_run *run, bool with_ring, struct whole_state *w) {
  const struct lif_net *net = run->setup.net;
  const int d = net->max_delay;
  struct lif_state own;
  lif_state_init(net, NULL, &own);
  lif_read(run, &own);
  memset(w->potential, 0, (size_t)net->n_global * sizeof *w->potential);
  memset(w->counter, 0, (size_t)net->n_global * sizeof *w->counter);
  memset(w->ring, 0, (size_t)(net->n_global * d) * sizeof *w->ring);
  for (lidx i = 0; i < net->n_own; i++) {
    w->potential[net->id[i]] = own.potential[i], w->counter[net->id[i]] = own.counter[i];
    memcpy(w->ring + net->id[i] * d, own.ring + (int64_t)i * d, (size_t)d * sizeof *own.ring);
  }
  comm_sum_i64(&world, w->potential, net->n_global),
      comm_sum_i64(&world, w->counter, net->n_global);
  if (with_ring) comm_sum_i64(&world, w->ring, net->n_global * d);
  lif_state_free(&own);
}

/* What a run leaves: sums over spikes and final state that no order of ranks, rows or
 * steps of a batch changes. */
struct trail {
  int64_t low, high, spikes, events;
};

static inline void trail_add(struct trail *trail, nodeid node, int64_t step, int64_t a, int64_t b) {
  const struct sum128 h = edge_hash(node, step, a, b);
  trail->low = (int64_t)((uint64_t)trail->low + h.low);
  trail->high = (int64_t)((uint64_t)trail->high + h.high);
}

static inline void trail_spikes(struct trail *trail, const struct lif_run *run,
                                const struct lif_batch *batch) {
  const struct lif_spikes *own = batch->own;
  nodeid *id = NEW(nodeid, own->n);
  lif_own_nodes(run, batch, id);
  for (int k = 0; k < own->n_steps; k++)
    for (int64_t at = own->step_ptr[k]; at < own->step_ptr[k + 1]; at++)
      trail_add(trail, id[at], batch->step + k, 1, 1);
  trail->spikes += own->n, trail->events += batch->events;
  mem_free(id);
}

static inline void trail_state(struct trail *trail, const struct lif_run *run) {
  const struct lif_net *net = run->setup.net;
  struct lif_state state;
  lif_state_init(net, NULL, &state);
  lif_read(run, &state);
  for (lidx i = 0; i < net->n_own; i++) {
    trail_add(trail, net->id[i], run->step, state.potential[i], state.counter[i]);
    for (int d = 0; d < net->max_delay; d++)
      trail_add(trail, net->id[i], run->step + d, state.ring[(int64_t)i * net->max_delay + d], 7);
  }
  lif_state_free(&state);
}

/* Over the ranks. */
static inline void trail_sum(struct trail *trail, const struct comm *comm) {
  comm_sum_i64(comm, &trail->low, sizeof *trail / sizeof trail->low);
}

/* Initial values by node id into a rank's state; NULL: zeros. */
static inline void start_from(struct lif_run *run, const struct comm *comm,
                              const int64_t *potential, const int64_t *counter, uint32_t trial) {
  const struct lif_net *net = run->setup.net;
  struct lif_state state;
  lif_state_init(net, NULL, &state);
  for (lidx i = 0; i < net->n_own; i++) {
    if (potential) state.potential[i] = (int32_t)potential[net->id[i]];
    if (counter) state.counter[i] = (uint16_t)counter[net->id[i]];
  }
  CHECK_FINE(lif_write(run, comm, &state, trial));
  lif_state_free(&state);
}

#endif
