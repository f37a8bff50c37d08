/* recur_gpu.h: the kernels of the recurrence on a caller's arrays and stream. */
#include "kernels/interface/recur_gpu.h"
#include "edge_order.h"
#include "gpu_library.h"
#include "core/mem.h"
#include "kernels/cuda/recur/tables.h"

#include <stdlib.h>

struct recur_gpu {
  int device;
  bool want_gradient;
  struct recur_device d; /* tables only */
  uint32_t *caller;      /* [E] on the device */
};

struct recur_gpu_result recur_gpu_check(int device) {
  int n = 0;
  const int former = library_begin(device, NULL);
  CHECK_CUDA(cudaGetDeviceCount(&n));
  if (n > 0) CHECK_CUDA(cudaFree(NULL));
  return library_end(former);
}

/* ---- tables ---- */

/* Host bytes that recur_tables_make takes for a while, generously. */
static bool host_has_room(const struct graph *g) {
  void *room = malloc((size_t)g->near.n_edges * 24 + (size_t)g->n_own * 256 + 4096);
  free(room);
  return room != NULL;
}

static void fill(struct recur_gpu *t, const struct recur_net *net, const eidx *caller) {
  const struct graph *g = net->graph;
  const eidx n = g->near.n_edges;
  t->d = (struct recur_device){.batch = net->shape.batch,
                               .n_own = g->n_own,
                               .n_in = net->n_in,
                               .n_out = net->n_out,
                               .n_near = n};
  recur_tables_make(&t->d, net);
  uint32_t *narrow = NEW(uint32_t, n);
  for (eidx e = 0; e < n; e++) narrow[e] = (uint32_t)caller[e];
  t->caller = GPU_COPY_OF(uint32_t, narrow, n);
  mem_free(narrow);
}

struct recur_gpu_result recur_gpu_open(const struct recur_net *net, const eidx *caller, int device,
                                       struct recur_gpu **tables) {
  *tables = NULL;
  if (recur_places(net->graph->near.n_edges, net->graph->n_own) > RECUR_MOST_EDGES)
    return (struct recur_gpu_result){RECUR_GPU_ERROR, "about 2^32 edges or more on one GPU"};
  struct recur_gpu *t = calloc(1, sizeof *t);
  if (!t || !host_has_room(net->graph)) {
    free(t);
    return (struct recur_gpu_result){RECUR_GPU_NO_MEMORY,
                                     "no host memory for the tables of the graph"};
  }
  t->device = device, t->want_gradient = net->want_gradient;
  const int former = library_begin(device, NULL);
  fill(t, net, caller);
  CHECK_CUDA(cudaStreamSynchronize(NULL));
  const struct recur_gpu_result result = library_end(former);
  if (result.code)
    recur_gpu_close(t);
  else
    *tables = t;
  return result;
}

void recur_gpu_close(struct recur_gpu *t) {
  if (!t) return;
  const int former = library_begin(t->device, NULL);
  recur_tables_free(&t->d);
  gpu_free(t->caller);
  library_end(former);
  free(t);
}

/* ---- a window in the caller's workspace ---- */

struct room {
  char *memory; /* NULL: only the bytes are counted */
  int64_t used;
};

static float *take(struct room *room, int64_t n) {
  void *at = room->memory ? room->memory + room->used : NULL;
  room->used += (n * (int64_t)sizeof(float) + 255) / 256 * 256;
  return at;
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Where the arrays stand that nobody outside looks at; `spare` takes
 * gradients that are not wanted. */
static float *place(struct recur_device *d, const struct recur_gpu_window *w, struct room *room) {
  const int64_t B = w->batch, K = (int64_t)w->steps * w->microsteps, own = d->n_own * B;
  d->steps = w->steps, d->microsteps = w->microsteps, d->batch = w->batch,
  d->all_states = w->want_gradient;
  const int64_t places = recur_places(d->n_near, d->n_own), values = (d->lines ? 2 : 1) * places;
  d->value = take(room, d->n_near), d->in_value = take(room, values);
  d->output = take(room, d->n_out * B * w->steps), d->pair = take(room, 2 * (int64_t)d->n_own);
  d->states = take(room, (w->want_gradient ? K + 1 : 2) * own);
  if (!w->want_gradient) return NULL;
  d->d_output = d->output;
  d->out_value = take(room, values), d->out_gradient = take(room, places);
  d->d_value = take(room, d->n_near);
  d->d_pair = take(room, 2 * (int64_t)d->n_own);
  d->d_state = take(room, own), d->q = take(room, 2 * own);
  return take(room, larger(d->n_in * B * w->steps, 2 * (int64_t)d->n_own));
}

int64_t recur_gpu_workspace(const struct recur_net *net, const struct recur_gpu_window *shape) {
  struct recur_device d = {.n_own = net->graph->n_own,
                           .n_in = net->n_in,
                           .n_out = net->n_out,
                           .n_near = net->graph->near.n_edges,
                           .lines = recur_tables_shape(net).lines};
  struct room room = {0};
  place(&d, shape, &room);
  return room.used;
}

static struct recur_device window_of(const struct recur_gpu *t, const struct recur_gpu_window *w,
                                     float **spare) {
  struct recur_device d = t->d;
  struct room room = {.memory = w->workspace};
  *spare = place(&d, w, &room);
  d.leak = (float *)w->leak, d.bias = (float *)w->bias,
  d.drive = (float *)w->drives; /* only read */
  return d;
}

struct recur_gpu_result recur_gpu_forward(const struct recur_gpu *t,
                                          const struct recur_gpu_window *w) {
  float *spare;
  const struct recur_device d = window_of(t, w, &spare);
  const int64_t own = (int64_t)d.n_own * d.batch, last = (int64_t)d.steps * d.microsteps;
  const int former = library_begin(t->device, w->stream);
  edge_order_gather(d.value, w->edge_values, t->caller, d.n_near);
  if (w->state0)
    edge_order_flip(d.states, w->state0, 1, d.batch, d.n_own);
  else
    CHECK_CUDA(cudaMemsetAsync(d.states, 0, (size_t)own * sizeof(float), gpu_stream()));
  recur_queue_forward(&d);
  if (w->out) edge_order_flip(w->out, d.output, d.steps, d.n_out, d.batch);
  if (w->state_end)
    edge_order_flip(w->state_end, d.states + (d.all_states ? last : last % 2) * own, 1, d.n_own,
                    d.batch);
  return library_end(former);
}

struct recur_gpu_result recur_gpu_backward(const struct recur_gpu *t,
                                           const struct recur_gpu_window *w) {
  float *spare;
  struct recur_device d = window_of(t, w, &spare);
  d.d_leak = w->d_leak ? w->d_leak : spare;
  d.d_bias = w->d_bias ? w->d_bias : spare + d.n_own;
  d.d_drive = w->d_drives ? w->d_drives : spare;
  const int former = library_begin(t->device, w->stream);
  edge_order_flip(d.d_output, w->d_out, d.steps, d.batch, d.n_out);
  recur_queue_backward(&d);
  if (w->d_edge_values) edge_order_scatter(w->d_edge_values, d.d_value, t->caller, d.n_near);
  if (w->d_state0) edge_order_flip(w->d_state0, d.d_state, 1, d.n_own, d.batch);
  return library_end(former);
}
