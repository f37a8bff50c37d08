/* One window of the recurrence over the ranks of one replica: states of the halo travel before
 * each microstep, gradients of the halo's states travel home after it, both while own rows are
 * worked on. Halo states are kept with the others, because the gradients of edges from the halo
 * need them; they are not sent again. With one rank the whole window is one call of the backend.
 * The same grid repeats bit for bit. */
#ifndef FASCICLE_RECURRENCE_H
#define FASCICLE_RECURRENCE_H

#include "core/comm.h"
#include "contract/recurrence.h"

/* What a window works on; all of it belongs to the caller. */
struct recurrence {
  const struct recur_backend *backend;
  struct recur *state;
  const struct graph *graph;
  struct recur_shape shape;
};

/* Say on the log which rows travel between the ranks, and how many. */
void recurrence_say_exchange(const struct graph *graph, const struct comm *comm);

/* From value, leak, bias, drive and state(0) to output and the states. comm: the ranks that share
 * the graph, with a transport open when there are several. */
void recurrence_forward(const struct recurrence *r, const struct comm *comm);

/* From d_output to all gradients, after a forward pass with want_gradient. Each rank gets the
 * gradients of its own rows and of the edges into them: every edge has one owner, so nothing is
 * summed over the ranks of `comm`. */
void recurrence_backward(const struct recurrence *r, const struct comm *comm);

#endif
