/* One recurrent network with its character model, open for a batch and a window, on this rank of
 * the grid: forward, backward, and the sums over ranks that belong to them. The batch is split over
 * the replicas in contiguous shares, the neurons over the parts.
 *
 * Embedding and readout bias stand on every part; each part holds the projection rows of its own
 * input neurons and the readout rows of its own output neurons. Logits are summed over the parts,
 * gradients over the replicas. All sums run in rank order, so that a grid repeats its bits. */
#ifndef FASCICLE_RNN_H
#define FASCICLE_RNN_H

#include "contract/backend.h"
#include "contract/model.h"
#include "network.h"
#include "contract/recurrence.h"

struct rnn_shape {
  int batch; /* this replica's share; the same on all its parts */
  int steps, microsteps, vocabulary, embedding;
  bool want_gradient;
  bool mixed;  /* precision, see contract/recurrence.h */
  bool frozen; /* only the adapters are trained */
};

struct rnn {
  const struct backend *backend;
  const struct grid *grid;
  const struct network *network;
  struct rnn_shape shape;
  struct model_layout at;
  struct recur *recur;
  struct model *model;
  bool cold;   /* state 0 holds zeros */
  float *rows; /* [n_own][batch] of host memory, on demand */
};

/* This replica's share of a batch: samples [first, first + n). */
void rnn_share(int64_t batch, const struct grid *grid, int64_t *first, int64_t *n);

/* Local but for messages; parameters start at 0. */
struct status rnn_open(const struct backend *backend, const struct network *network,
                       const struct rnn_shape *shape, int n_threads, struct rnn *rnn);
void rnn_close(struct rnn *rnn);
/* What rnn_open will take on the device, without opening. */
int64_t rnn_bytes(const struct backend *backend, const struct network *network,
                  const struct rnn_shape *shape);

/* The scale c of every edge, in the order of the parameters:
 * in-degree^(-1/2) of the target, or 1. */
void rnn_set_scale(struct rnn *rnn, bool normalize);
/* Parameters have changed: the recurrence gets v = c theta, a = sigmoid(rho), b. */
void rnn_refresh(struct rnn *rnn);

/* Is this block left as it is by training? */
bool rnn_is_frozen(const struct rnn *rnn, int block);

/* ---- start states ---- */
void rnn_cold(struct rnn *rnn);
/* The last state of the window becomes the first of the next. */
void rnn_carry(struct rnn *rnn);
/* Own rows of the start state, [n_own][batch] of host memory. */
void rnn_get_start(struct rnn *rnn, float *state);
void rnn_set_start(struct rnn *rnn, const float *state);

/* ---- one window; token, target [T][batch], the same on all parts of a replica ---- */

/* Forward to the logits, summed over the parts. Collective over the replica. */
void rnn_forward(struct rnn *rnn, const int32_t *token);
/* The loss of this replica's share; a target of -1 is not counted. `scale` goes to the gradient. */
void rnn_loss(struct rnn *rnn, const int32_t *target, double scale);
/* Its sum in nats. Waits for the device. */
double rnn_nats(struct rnn *rnn);
/* From rnn_loss to the gradient of all parameters, summed over the grid.
 * Collective over the world. */
void rnn_backward(struct rnn *rnn);
/* The logits of the last character, [vocabulary][batch], into host memory. */
void rnn_logits(struct rnn *rnn, float *logit);

/* ---- figures ---- */

/* Share of |s| > 0.95 in the last state, over neurons and columns; mean leak.
 * Collective over the world. */
struct activity {
  double saturated, mean_leak;
};
struct activity rnn_activity(struct rnn *rnn, const struct comm *world);
/* Bytes that this rank sends in one training step. */
int64_t rnn_sent_bytes(const struct rnn *rnn);

#endif
