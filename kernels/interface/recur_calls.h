/* The order in which the entries of struct recur_backend may be called, held by every backend in
 * checked builds: microsteps 0 .. K - 1 forward, near before far; then K - 1 .. 0 backward, far
 * before near. Beside that a bench may repeat the near half of a microstep, to time it alone. */
#ifndef FASCICLE_RECUR_CALLS_H
#define FASCICLE_RECUR_CALLS_H

#include "contract/recurrence.h"

struct recur_calls {
  int K;       /* microsteps of a window */
  int forward; /* how many microsteps of this window are complete: K before a backward pass */
  int left;    /* microsteps that the backward pass has still to make */
  bool split, want_gradient;
  bool half; /* the first entry of the current microstep has been called */
};

static inline bool recur_rows_ascend(const lidx *row, lidx n, lidx n_own) {
  for (lidx i = 0; i < n; i++)
    if (row[i] < 0 || row[i] >= n_own || (i > 0 && row[i] <= row[i - 1])) return false;
  return true;
}

/* Also checks the net. */
static inline struct recur_calls recur_calls_of(const struct recur_net *net) {
  const struct graph *g = net->graph;
  ASSERT(net->shape.batch >= 0 && net->shape.steps >= 1 && net->shape.microsteps >= 1);
  ASSERT(g->near.n_rows == g->n_own && g->near.row_ptr[g->n_own] == g->near.n_edges);
  ASSERT(g->n_halo == 0 || g->far.row_ptr[g->n_own] == g->far.n_edges);
  ASSERT(recur_rows_ascend(net->in, net->n_in, g->n_own));
  ASSERT(recur_rows_ascend(net->out, net->n_out, g->n_own));
  struct recur_calls calls = {
      net->shape.steps * net->shape.microsteps, 0, 0, g->n_halo > 0, net->want_gradient, false};
  return calls;
}

static inline void recur_calls_forward_begin(struct recur_calls *c) {
  c->forward = 0, c->half = false;
}

static inline void recur_calls_forward_near(struct recur_calls *c, int k) {
  ASSERT(k >= 0 && k < c->K);
  c->half = k == c->forward;
}

static inline void recur_calls_forward_far(struct recur_calls *c, int k) {
  ASSERT(k == c->forward && c->half);
  c->forward++, c->half = false;
}

static inline void recur_calls_backward_begin(struct recur_calls *c) {
  ASSERT(c->want_gradient);
  c->left = c->K, c->half = false;
}

static inline void recur_calls_backward_far(struct recur_calls *c, int k) {
  ASSERT(c->forward == c->K && k == c->left - 1 && !c->half);
  c->half = true;
}

static inline void recur_calls_backward_near(struct recur_calls *c, int k) {
  ASSERT(c->want_gradient && k >= 0 && k < c->K);
  if (k == c->left - 1 && c->half) c->left--;
  c->half = false;
}

static inline void recur_calls_backward_end(const struct recur_calls *c) {
  ASSERT(c->left == 0 && !c->half);
}

/* A whole window, or a replay of one. */
static inline void recur_calls_window_forward(struct recur_calls *c) {
  c->forward = c->K, c->half = false;
}

static inline void recur_calls_window_backward(const struct recur_calls *c) {
  ASSERT(c->want_gradient && c->forward == c->K && !c->half);
}

/* State 0 is overwritten: no backward pass over the last window any more. */
static inline void recur_calls_carry(struct recur_calls *c) {
  ASSERT(c->forward == c->K && !c->half);
  c->forward = 0;
}

#endif
