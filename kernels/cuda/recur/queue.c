/* A whole window of the recurrence, microstep by microstep. */
#include "device.h"

struct recur_shape_on_device recur_shape_of(const struct recur_device *d, bool mixed) {
  return recur_device_shape(d->batch, mixed, d->small, d->near_in.narrow);
}

/* g starts at 0 behind the last microstep */
void recur_queue_start(struct gpu_queue *q, const struct recur_device *d) {
  const size_t size = ((size_t)d->n_own + (size_t)d->n_halo) * (size_t)d->batch * sizeof(float);
  if (size > 0) gpu_queue_note(q, cudaMemsetAsync(d->d_state, 0, size, q->stream));
  recur_device_take(q, d);
}

/* What a forward pass reads in the kernels' own form. */
void recur_queue_values(struct gpu_queue *q, const struct recur_device *d) {
  recur_device_take_values(q, d);
  recur_device_round(q, d, 0, 0, d->n_own);
}

void recur_queue_forward(struct gpu_queue *q, const struct recur_device *d) {
  recur_queue_values(q, d);
  for (int k = 0; k < d->steps * d->microsteps; k++) recur_device_forward(q, d, k, RECUR_ALL_EDGES);
}

void recur_queue_backward(struct gpu_queue *q, const struct recur_device *d) {
  const int last = d->steps * d->microsteps - 1;
  recur_queue_start(q, d);
  recur_device_elementwise(q, d, last);
  for (int k = last; k >= 0; k--) recur_device_transposed(q, d, k, k > 0);
  recur_device_give(q, d);
}
