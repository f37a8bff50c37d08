/* What the kernels of the recurrence need of a graph, in device memory, and a whole window on one
 * rank queued on gpu_stream(). Shared by the cuda backend and the public library. */
#ifndef FASCICLE_RECUR_TABLES_H
#define FASCICLE_RECUR_TABLES_H

#include "contract/recurrence.h"
#include "device.h"

enum { RECUR_NARROW = 65536 }; /* up to so many rows have 16-bit indices */

/* Fills the tables of d (walks, pointers, slots, order of edges) and n_in_edges,
 * n_out_edges, for the sizes that stand in it already. Without net->want_gradient what the
 * backward pass needs is left out. */
void recur_tables_make(struct recur_device *d, const struct recur_net *net);
void recur_tables_free(struct recur_device *d);

/* How the net's batch is laid out. */
struct recur_shape_on_device recur_tables_shape(const struct recur_net *net);

/* Edges of near and far by source, on the host: own sources, then the halo; within a
 * source by ascending target. */
struct recur_by_source {
  eidx *ptr; /* [n_own + n_halo + 1] */
  lidx *target;
  uint32_t *edge; /* position in near-then-far order */
};
struct recur_by_source recur_by_source(const struct graph *g);
void recur_by_source_free(struct recur_by_source *s);

/* Only where n_halo = 0; no host waits. queue_values is the beginning of any forward pass: values
 * into padded rows, state 0 rounded where that is asked for. queue_start is that of any backward
 * pass: gradients of the state zeroed, values into the order by source. */
void recur_queue_values(const struct recur_device *d);
void recur_queue_start(const struct recur_device *d);
void recur_queue_forward(const struct recur_device *d);
void recur_queue_backward(const struct recur_device *d);

#endif
