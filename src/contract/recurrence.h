/* The recurrence of one rank, forward and backward: what every backend promises. Own rows i, B
 * columns, K = T M microsteps:
 *
 *   z_k = V s_k + d_t + b,  p_k = tanh(z_k),  s_{k+1} = (1 - a) s_k + a p_k,  t = floor(k / M)
 *
 * and backwards for k = K - 1 .. 0, with g = dL/ds_{k+1}, 0 behind the last microstep:
 *
 *   if (k + 1) % M == 0:  g += dL/dout_t  (output rows only)
 *   q = g a (1 - p_k^2);  db += q;  da += g (p_k - s_k);  dd_t += q  (input rows only)
 *   dv_e += q[dst] s_k[src];  g = (1 - a) g + V^T q
 *
 * Only states are saved. p_k is recovered from two of them, p_k = (s_{k+1} - (1 - a) s_k) / a; that
 * loses digits where a is small, so rows with a < RECUR_SMALL_LEAK form z_k and p_k again in the
 * backward pass. Mixed precision rounds what is read along edges, and nothing else: s_k in the sums
 * over edges (z_k, dv) to binary16, q in V^T q and dv to bfloat16, whose range the gradients need;
 * to nearest, ties to even. States, parameters, gradients and all sums stay fp32; db, da, dd and
 * p_k see s and q as they were.
 *
 * The same network, shape and graph split give the same bits in every run, for
 * any number of threads. */
#ifndef FASCICLE_RECUR_BACKEND_H
#define FASCICLE_RECUR_BACKEND_H

#include "core/fail.h"
#include "graph.h"
#include "core/types.h"

/* Below this leak p_k is recomputed: 0.1 keeps the error of a recovered p_k under 1e-6. */
#define RECUR_SMALL_LEAK 0.1f

struct recur_shape {
  int batch, steps, microsteps; /* B (this replica's share), T, M */
};

struct recur_net {
  const struct graph *graph;
  lidx n_in, n_out;
  const lidx *in, *out; /* own rows that take the drive / are read out, ascending */
  struct recur_shape shape;
  bool mixed; /* gathered rows are rounded to 16 bits; see above */
  bool
      want_gradient; /* else only two states are kept and the backward entries must not be called */
};

/* The edges that a forward microstep adds up: of the whole row; only those from own rows, the sum
 * then waits; those from the halo, added to the sum that waits. */
enum recur_edge_set { RECUR_ALL_EDGES, RECUR_NEAR_EDGES, RECUR_FAR_EDGES };

enum recur_direction { RECUR_FORWARD, RECUR_BACKWARD, RECUR_DIRECTIONS };

struct recur; /* the backend's state for one network and shape */

struct recur_backend {
  /* Local. The graph must outlive the state. All memory of a window is taken here; `bytes` predicts
   * it from the counts of the net alone (row_ptr and col are not read). Parameters, drive, state(0)
   * and d_output start as zeros. */
  struct status (*open)(const struct recur_net *net, int n_threads, struct recur **state);
  void (*close)(struct recur *state);
  int64_t (*bytes)(const struct recur_net *net);

  /* Parameters in the backend's memory, edge values in near-then-far order of the graph. Pointers
   * stay valid until close; the optimiser of the same backend works on them in place. */
  float *(*value)(struct recur *state);  /* [near.n_edges + far.n_edges] */
  float *(*leak)(struct recur *state);   /* [n_own] in (0, 1) */
  float *(*bias)(struct recur *state);   /* [n_own] */
  float *(*drive)(struct recur *state);  /* [T][n_in][B] */
  float *(*output)(struct recur *state); /* [T][n_out][B], filled by forward */

  /* Gradients of one window: complete after backward_end or window_backward
   * (not summed over windows). */
  float *(*d_value)(struct recur *state);
  float *(*d_leak)(struct recur *state);
  float *(*d_bias)(struct recur *state);
  float *(*d_drive)(struct recur *state);
  float *(*d_output)(struct recur *state); /* in: [T][n_out][B] */

  /* States s_k, [n_own + n_halo][B], 0 <= k <= K. state(0) is the caller's to fill (own rows; zeros
   * for a cold start) before each forward pass. Without want_gradient states k and k + 2 share
   * memory: then only the newest two are valid. After window_forward only states 0 and K may be
   * looked at: a backend may keep those between in an order of its own. */
  float *(*state)(struct recur *state, int k);
  /* Own rows of s_K become state(0), behind all work given so far; the host need not wait. */
  void (*carry)(struct recur *state);
  /* Gradient with respect to the state: [n_own + n_halo][B]; after backward,
   * own rows hold dL/ds_0. */
  float *(*d_state)(struct recur *state);

  /* One microstep on a split graph. near may run while the halo rows of state(k) travel; far
   * completes s_{k+1}, own rows. */
  void (*forward_begin)(struct recur *state);
  void (*forward_near)(struct recur *state, int k);
  void (*forward_far)(struct recur *state, int k);

  /* Backward: `far` makes q and the halo rows of V^T q in d_state, which are then sent to their
   * owners while `near` does the own rows; the transport's reduce_end adds what arrived to the own
   * rows of d_state. `end` after microstep 0. */
  void (*backward_begin)(struct recur *state);
  void (*backward_far)(struct recur *state, int k);
  void (*backward_near)(struct recur *state, int k);
  void (*backward_end)(struct recur *state);

  /* Where `records` is set and messages only queue work on the device (transport->queues), a pass
   * over a split window can be recorded, messages included, and replayed without the host. replay:
   * true when that did the whole pass; else the caller makes the pass step by step and ends it with
   * recorded. Both are NULL where `records` is not set. */
  bool records;
  bool (*replay)(struct recur *state, enum recur_direction direction);
  void (*recorded)(struct recur *state, enum recur_direction direction);

  /* The whole window at once; only where n_halo = 0. May be one persistent kernel. */
  void (*window_forward)(struct recur *state);
  void (*window_backward)(struct recur *state);
};

#endif
