/* recur_gpu.h: the kernels of the recurrence on a caller's arrays and stream. */
#include "kernels/interface/recur_gpu.h"
#include "core/arrays.h"
#include "device_call.h"
#include "edge_order.h"
#include "kernels/cuda/layout/tables.h"
#include "kernels/cuda/recur/device.h"

#include <stdlib.h>

enum { ALIGN = 256 }; /* of arrays in the workspace */

struct recur_gpu {
  int device;
  struct recur_device d; /* tables only */
  struct recur_sizes sizes;
  uint32_t *caller; /* [E] on the device: the caller's number of each edge */
};

struct recur_gpu_result recur_gpu_check(int device) {
  int n = 0;
  struct device_call call = call_begin(device, NULL);
  gpu_queue_note(&call.queue, cudaGetDeviceCount(&n));
  if (n > 0) gpu_queue_note(&call.queue, cudaFree(NULL));
  return call_end(&call);
}

/* ---- tables ---- */

/* Allocates `device` and fills it from the like list of host arrays; what could not be had stays
 * NULL. */
static void copy_arrays(struct gpu_queue *q, const struct arrays *device,
                        const struct arrays *host) {
  for (int i = 0; i < device->n; i++) {
    const size_t size = (size_t)device->array[i].n * device->array[i].bytes;
    void *array = NULL;
    if (size > 0 && q->error == cudaSuccess) gpu_queue_note(q, cudaMalloc(&array, size));
    if (array)
      gpu_queue_note(q, cudaMemcpy(array, arrays_get(host, i), size, cudaMemcpyHostToDevice));
    arrays_set(device, i, array);
  }
}

static void free_arrays(struct gpu_queue *q, const struct arrays *device) {
  for (int i = 0; i < device->n; i++) {
    if (arrays_get(device, i)) gpu_queue_note(q, cudaFree(arrays_get(device, i)));
    arrays_set(device, i, NULL);
  }
}

static void copy_tables(struct gpu_queue *q, struct recur_gpu *t, const struct recur_net *net,
                        enum recur_direction direction) {
  int processors = 1;
  gpu_queue_note(q, cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, t->device));
  struct recur_device host = t->d;
  struct arrays from = {0}, to = {0};
  if (!recur_make_tables(&host, &t->sizes, net, direction, recur_shape_of(&t->d, net->mixed),
                         processors)) {
    gpu_queue_note(q, cudaErrorMemoryAllocation);
    return;
  }
  t->d = host; /* for its counts */
  recur_list_tables(&from, &host, &t->sizes, direction);
  recur_list_tables(&to, &t->d, &t->sizes, direction);
  copy_arrays(q, &to, &from);
  recur_share_columns(&t->d);
  arrays_close(&from);
}

static void copy_order(struct gpu_queue *q, struct recur_gpu *t, eidx n, const eidx *caller) {
  uint32_t *narrow;
  struct arrays from = {0}, to = {0};
  ARRAY(&from, narrow, n), ARRAY(&to, t->caller, n);
  if (!arrays_try_open(&from)) {
    gpu_queue_note(q, cudaErrorMemoryAllocation);
    return;
  }
  for (eidx e = 0; e < n; e++) narrow[e] = (uint32_t)caller[e];
  copy_arrays(q, &to, &from);
  arrays_close(&from);
}

struct recur_gpu_result recur_gpu_open(const struct recur_net *net, const eidx *caller, int device,
                                       struct recur_gpu **tables) {
  *tables = NULL;
  if (recur_places(net->graph->near.n_edges, net->graph->n_own) > RECUR_MOST_EDGES)
    return (struct recur_gpu_result){RECUR_GPU_ERROR, "about 2^32 edges or more on one GPU"};
  struct recur_gpu *t = calloc(1, sizeof *t);
  if (!t)
    return (struct recur_gpu_result){RECUR_GPU_NO_MEMORY,
                                     "no host memory for the tables of the graph"};
  struct device_call call = call_begin(device, NULL);
  t->device = device;
  recur_set_counts(&t->d, &t->sizes, net);
  copy_tables(&call.queue, t, net, RECUR_FORWARD);
  if (net->want_gradient && !call.queue.error) copy_tables(&call.queue, t, net, RECUR_BACKWARD);
  if (!call.queue.error) copy_order(&call.queue, t, net->graph->near.n_edges, caller);
  gpu_queue_note(&call.queue, cudaStreamSynchronize(NULL));
  const struct recur_gpu_result result = call_end(&call);
  if (result.code)
    recur_gpu_close(t);
  else
    *tables = t;
  return result;
}

void recur_gpu_close(struct recur_gpu *t) {
  if (!t) return;
  struct device_call call = call_begin(t->device, NULL);
  struct arrays list = {0};
  recur_list_tables(&list, &t->d, &t->sizes, RECUR_FORWARD);
  recur_list_tables(&list, &t->d, &t->sizes, RECUR_BACKWARD);
  ARRAY(&list, t->caller, 0);
  free_arrays(&call.queue, &list);
  call_end(&call);
  free(t);
}

/* ---- a window in the caller's workspace ---- */

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* What nobody outside looks at; `spare` takes gradients that are not wanted. */
static void list_workspace(struct arrays *list, struct recur_device *d, float **spare) {
  const int64_t B = d->batch, K = (int64_t)d->steps * d->microsteps, own = d->n_own * B;
  const int64_t places = recur_places(d->n_near, d->n_own), values = (d->lines ? 2 : 1) * places;
  ARRAY(list, d->value, d->n_near), ARRAY(list, d->in_value, values);
  ARRAY(list, d->output, d->n_out * B * d->steps), ARRAY(list, d->pair, 2 * (int64_t)d->n_own);
  ARRAY(list, d->states, (d->all_states ? K + 1 : 2) * own);
  if (!d->all_states) return;
  ARRAY(list, d->out_value, values), ARRAY(list, d->out_gradient, places);
  ARRAY(list, d->d_value, d->n_near), ARRAY(list, d->d_pair, 2 * (int64_t)d->n_own);
  ARRAY(list, d->d_state, own);
  arrays_add(list, &d->q, 2 * own, sizeof(float), false);
  ARRAY(list, *spare, larger(d->n_in * B * d->steps, 2 * (int64_t)d->n_own));
}

/* Sets the arrays of a window in `workspace`, or only counts their bytes where that is NULL. */
static int64_t place_workspace(struct recur_device *d, const struct recur_gpu_window *w,
                               void *workspace, float **spare) {
  struct arrays list = {0};
  d->steps = w->steps, d->microsteps = w->microsteps, d->batch = w->batch;
  d->all_states = w->want_gradient;
  *spare = NULL;
  list_workspace(&list, d, spare);
  const int64_t bytes = arrays_place(&list, workspace, ALIGN);
  d->d_output = d->output;
  return bytes;
}

int64_t recur_gpu_workspace(const struct recur_net *net, const struct recur_gpu_window *shape) {
  struct recur_device d;
  struct recur_sizes sizes;
  float *spare;
  recur_set_counts(&d, &sizes, net);
  return place_workspace(&d, shape, NULL, &spare);
}

static struct recur_device window_of(const struct recur_gpu *t, const struct recur_gpu_window *w,
                                     float **spare) {
  struct recur_device d = t->d;
  place_workspace(&d, w, w->workspace, spare);
  d.leak = (float *)w->leak, d.bias = (float *)w->bias,
  d.drive = (float *)w->drives; /* only read */
  return d;
}

struct recur_gpu_result recur_gpu_forward(const struct recur_gpu *t,
                                          const struct recur_gpu_window *w) {
  float *spare;
  const struct recur_device d = window_of(t, w, &spare);
  const int64_t own = (int64_t)d.n_own * d.batch, last = (int64_t)d.steps * d.microsteps;
  struct device_call call = call_begin(t->device, w->stream);
  struct gpu_queue *q = &call.queue;
  edge_order_gather(q, d.value, w->edge_values, t->caller, d.n_near);
  if (w->state0)
    edge_order_flip(q, d.states, w->state0, 1, d.batch, d.n_own);
  else
    gpu_queue_note(q, cudaMemsetAsync(d.states, 0, (size_t)own * sizeof(float), q->stream));
  recur_queue_forward(q, &d);
  if (w->out) edge_order_flip(q, w->out, d.output, d.steps, d.n_out, d.batch);
  if (w->state_end)
    edge_order_flip(q, w->state_end, d.states + (d.all_states ? last : last % 2) * own, 1, d.n_own,
                    d.batch);
  return call_end(&call);
}

struct recur_gpu_result recur_gpu_backward(const struct recur_gpu *t,
                                           const struct recur_gpu_window *w) {
  float *spare;
  struct recur_device d = window_of(t, w, &spare);
  d.d_leak = w->d_leak ? w->d_leak : spare;
  d.d_bias = w->d_bias ? w->d_bias : spare + d.n_own;
  d.d_drive = w->d_drives ? w->d_drives : spare;
  struct device_call call = call_begin(t->device, w->stream);
  struct gpu_queue *q = &call.queue;
  edge_order_flip(q, d.d_output, w->d_out, d.steps, d.batch, d.n_out);
  recur_queue_backward(q, &d);
  if (w->d_edge_values) edge_order_scatter(q, w->d_edge_values, d.d_value, t->caller, d.n_near);
  if (w->d_state0) edge_order_flip(q, w->d_state0, d.d_state, 1, d.n_own, d.batch);
  return call_end(&call);
}
