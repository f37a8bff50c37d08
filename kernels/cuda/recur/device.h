/* What the kernels of the recurrence do with its arrays (kernels/cuda/layout/recur.h), each entry
 * queued on a stream. All pointers are device pointers. */
#ifndef FASCICLE_RECUR_DEVICE_H
#define FASCICLE_RECUR_DEVICE_H

#include "contract/recurrence.h"
#include "kernels/cuda/gpu/queue.h"
#include "kernels/cuda/layout/recur.h"
#include "kernels/cuda/layout/items.h"

#ifdef __cplusplus
extern "C" {
#endif

/* small: of struct recur_device; narrow: of struct recur_walk. */
struct recur_shape_on_device recur_device_shape(int batch, bool mixed, bool small, bool narrow);
/* The same for the batch of d. */
struct recur_shape_on_device recur_shape_of(const struct recur_device *d, bool mixed);

void recur_device_forward(struct gpu_queue *q, const struct recur_device *d, int k,
                          enum recur_edge_set edges);

/* Before a forward pass: values into padded rows, leaks and biases into pairs. */
void recur_device_take_values(struct gpu_queue *q, const struct recur_device *d);

/* Rows of s_k that others wrote, into the rounded copy; nothing in fp32. */
void recur_device_round(struct gpu_queue *q, const struct recur_device *d, int k, int first_row,
                        int n_rows);

/* Values into the order by source, gradients zeroed / handed back in the caller's order, and those
 * of pairs. */
void recur_device_take(struct gpu_queue *q, const struct recur_device *d);
void recur_device_give(struct gpu_queue *q, const struct recur_device *d);

/* q_k from g; then g (1 - a). */
void recur_device_elementwise(struct gpu_queue *q, const struct recur_device *d, int k);

/* V^T q_k into own rows (and with `next`, q_{k-1} of the row at once), or into the halo rows. */
void recur_device_transposed(struct gpu_queue *q, const struct recur_device *d, int k, bool next);
void recur_device_transposed_halo(struct gpu_queue *q, const struct recur_device *d, int k);

/* Only where n_halo = 0, a whole window; no host waits. queue_values is the beginning of any
 * forward pass: values into padded rows, state 0 rounded where that is asked for. queue_start is
 * that of any backward pass: gradients of the state zeroed, values into the order by source. */
void recur_queue_values(struct gpu_queue *q, const struct recur_device *d);
void recur_queue_start(struct gpu_queue *q, const struct recur_device *d);
void recur_queue_forward(struct gpu_queue *q, const struct recur_device *d);
void recur_queue_backward(struct gpu_queue *q, const struct recur_device *d);

#ifdef __cplusplus
}
#endif
#endif
