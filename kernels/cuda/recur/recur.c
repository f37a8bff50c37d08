/* The recurrence on one GPU: what struct recur_backend promises, by the kernels of
 * kernels/cuda/recur/forward.cu and kernels/cuda/recur/backward.cu. A window is captured once in a
 * CUDA graph and replayed. */
#include "kernels/cuda/gpu/gpu.h"
#include "core/mem.h"
#include "contract/recurrence.h"
#include "device.h"
#include "persist_open.h"
#include "tables.h"

struct recur {
  struct recur_device d;
  bool want_gradient, persistent;
  struct persist_device persist;           /* where `persistent`: whole windows go this way */
  cudaGraphExec_t forward, backward;       /* NULL until first used */
  cudaGraphExec_t split[RECUR_DIRECTIONS]; /* passes over a split window, messages included */
  int split_made[RECUR_DIRECTIONS];        /* how many were made step by step */
};

/* ---- memory ---- */

struct sizes { /* in elements */
  int64_t own, edges, own_floats, states, in_floats, out_floats;
};

static struct sizes sizes_of(const struct recur_net *net) {
  const struct graph *g = net->graph;
  const int64_t B = net->shape.batch, T = net->shape.steps, K = T * net->shape.microsteps;
  return (struct sizes){.own = g->n_own,
                        .edges = g->near.n_edges + g->far.n_edges,
                        .own_floats = g->n_own * B,
                        .states =
                            (net->want_gradient ? K + 1 : 2) * ((int64_t)g->n_own + g->n_halo) * B,
                        .in_floats = T * net->n_in * B,
                        .out_floats = T * net->n_out * B};
}

static int64_t bytes(const struct recur_net *net) {
  const struct graph *g = net->graph;
  struct sizes n = sizes_of(net);
  if (persist_bytes(net) > 0) n.states = n.own_floats;
  const int64_t index = (int64_t)g->n_own + g->n_halo <= RECUR_NARROW ? 2 : 4, word = sizeof(float);
  const int64_t items = (int64_t)sizeof(struct recur_item) * (2 * n.own + n.edges / 64);
  const int64_t padded = n.edges + n.own * (RECUR_PAD - 1) / 2, half = sizeof(uint16_t);
  const int64_t line = recur_tables_shape(net).lines ? word : 0;
  int64_t sum = padded * (index + word + line) + n.edges * word + n.own * 8 * word + items +
                persist_bytes(net);
  if (net->mixed) sum += 2 * ((int64_t)g->n_own + g->n_halo) * net->shape.batch * half;
  sum += (n.states + n.in_floats + n.out_floats + (g->n_halo > 0 ? n.own_floats : 0)) * word;
  if (!net->want_gradient) return sum;
  sum += padded * (index + 3 * word + line) + 2 * n.edges * word + n.own * 4 * word + items;
  sum += (n.in_floats + n.out_floats + n.own_floats + (int64_t)g->n_halo * net->shape.batch) * word;
  return sum + 2 * n.own_floats * (net->mixed ? half : word);
}

static void arrays_to_device(struct recur_device *d, const struct recur_net *net, bool persistent) {
  const struct sizes n = sizes_of(net);
  const int words = d->lines ? 2 : 1;
  d->value = GPU_ZERO(float, n.edges), d->in_value = GPU_ZERO(float, words * d->n_in_edges);
  d->leak = GPU_ZERO(float, n.own), d->bias = GPU_ZERO(float, n.own);
  d->pair = GPU_ZERO(float, 2 * n.own);
  d->drive = GPU_ZERO(float, n.in_floats), d->output = GPU_ZERO(float, n.out_floats);
  d->states = GPU_ZERO(float, persistent ? n.own_floats : n.states);
  if (d->n_halo > 0) d->near_sum = GPU_ZERO(float, n.own_floats);
  if (net->mixed) d->rounded = GPU_ZERO(uint16_t, 2 * ((int64_t)d->n_own + d->n_halo) * d->batch);
  if (!net->want_gradient) return;
  d->d_value = GPU_ZERO(float, n.edges);
  d->d_leak = GPU_ZERO(float, n.own), d->d_bias = GPU_ZERO(float, n.own);
  d->d_pair = GPU_ZERO(float, 2 * n.own);
  d->d_drive = GPU_ZERO(float, n.in_floats), d->d_output = GPU_ZERO(float, n.out_floats);
  d->d_state = GPU_ZERO(float, n.own_floats + (int64_t)d->n_halo * d->batch);
  if (persistent) return;
  d->out_value = GPU_ZERO(float, words * d->n_out_edges);
  d->out_gradient = GPU_ZERO(float, d->n_out_edges);
  d->q = gpu_zero(2 * n.own_floats, net->mixed ? sizeof(uint16_t) : sizeof(float));
}

static struct status open(const struct recur_net *net, int n_threads, struct recur **state) {
  (void)n_threads;
  const struct graph *g = net->graph;
  const int64_t places =
      recur_places(g->near.n_edges + g->far.n_edges, 2 * (int64_t)g->n_own + g->n_halo);
  if (places > RECUR_MOST_EDGES)
    return failure(
        EXIT_RUNTIME,
        "--device cuda: %lld edges on one GPU, at most about %u; use more ranks with --parts",
        (long long)(g->near.n_edges + g->far.n_edges), RECUR_MOST_EDGES);
  struct recur *r = NEW_ZERO(struct recur, 1);
  r->want_gradient = net->want_gradient;
  r->d = (struct recur_device){.batch = net->shape.batch,
                               .microsteps = net->shape.microsteps,
                               .steps = net->shape.steps,
                               .n_own = g->n_own,
                               .n_halo = g->n_halo,
                               .n_in = net->n_in,
                               .n_out = net->n_out,
                               .n_near = g->near.n_edges,
                               .n_far = g->far.n_edges,
                               .all_states = net->want_gradient};
  recur_tables_make(&r->d, net);
  r->persistent = persist_open(net, &r->persist);
  arrays_to_device(&r->d, net, r->persistent);
  *state = r;
  return fine();
}

static void close(struct recur *r) {
  struct recur_device *d = &r->d;
  if (r->forward) CHECK_CUDA(cudaGraphExecDestroy(r->forward));
  if (r->backward) CHECK_CUDA(cudaGraphExecDestroy(r->backward));
  for (int direction = 0; direction < RECUR_DIRECTIONS; direction++)
    if (r->split[direction]) CHECK_CUDA(cudaGraphExecDestroy(r->split[direction]));
  recur_tables_free(d), persist_close(&r->persist);
  gpu_free(d->value), gpu_free(d->in_value), gpu_free(d->d_value);
  gpu_free(d->out_value), gpu_free(d->out_gradient);
  gpu_free(d->leak), gpu_free(d->bias), gpu_free(d->d_leak), gpu_free(d->d_bias);
  gpu_free(d->pair), gpu_free(d->d_pair);
  gpu_free(d->drive), gpu_free(d->d_drive), gpu_free(d->output), gpu_free(d->d_output);
  gpu_free(d->states), gpu_free(d->near_sum), gpu_free(d->d_state);
  gpu_free(d->rounded), gpu_free(d->q);
  mem_free(r);
}

/* ---- where things stand ---- */

static float *value(struct recur *r) {
  return r->d.value;
}

static float *leak(struct recur *r) {
  return r->d.leak;
}

static float *bias(struct recur *r) {
  return r->d.bias;
}

static float *drive(struct recur *r) {
  return r->d.drive;
}

static float *output(struct recur *r) {
  return r->d.output;
}

static float *d_value(struct recur *r) {
  return r->d.d_value;
}

static float *d_leak(struct recur *r) {
  return r->d.d_leak;
}

static float *d_bias(struct recur *r) {
  return r->d.d_bias;
}

static float *d_drive(struct recur *r) {
  return r->d.d_drive;
}

static float *d_output(struct recur *r) {
  return r->d.d_output;
}

static float *d_state(struct recur *r) {
  return r->d.d_state;
}

static float *state(struct recur *r, int k) {
  const int64_t rows = (int64_t)r->d.n_own + r->d.n_halo;
  if (r->persistent) return k == 0 ? r->d.states : r->persist.last;
  return r->d.states + (r->d.all_states ? k : k % 2) * rows * r->d.batch;
}

static void carry(struct recur *r) {
  const float *last = state(r, r->d.steps * r->d.microsteps);
  const size_t size = (size_t)r->d.n_own * (size_t)r->d.batch * sizeof *last;
  if (last != state(r, 0) && size > 0)
    CHECK_CUDA(cudaMemcpyAsync(state(r, 0), last, size, cudaMemcpyDeviceToDevice, gpu_stream()));
}

/* ---- microstep by microstep ---- */

static void forward_begin(struct recur *r) {
  recur_queue_values(&r->d);
}

static void forward_near(struct recur *r, int k) {
  recur_device_forward(&r->d, k, RECUR_NEAR_EDGES);
}

static void forward_far(struct recur *r, int k) {
  recur_device_round(&r->d, k, r->d.n_own, r->d.n_halo);
  recur_device_forward(&r->d, k, RECUR_FAR_EDGES);
}

static void backward_begin(struct recur *r) {
  recur_queue_start(&r->d);
}

static void backward_far(struct recur *r, int k) {
  recur_device_elementwise(&r->d, k);
  recur_device_transposed_halo(&r->d, k);
}

static void backward_near(struct recur *r, int k) {
  recur_device_transposed(&r->d, k, false);
}

static void backward_end(struct recur *r) {
  recur_device_give(&r->d);
}

/* ---- a split window, recorded ---- */

/* The first pass runs as it is made, so that the transport can set up its connections; the second
 * is recorded, the rest are replays. */
static bool replay(struct recur *r, enum recur_direction direction) {
  if (r->split[direction]) {
    gpu_replay(r->split[direction]);
    return true;
  }
  if (r->split_made[direction]++ == 1) gpu_capture_begin();
  return false;
}

static void recorded(struct recur *r, enum recur_direction direction) {
  if (r->split_made[direction] != 2) return;
  r->split[direction] = gpu_capture_end();
  gpu_replay(r->split[direction]);
}

/* ---- the whole window ---- */

static void queue_forward(struct recur *r) {
  if (r->persistent)
    persist_forward(&r->d, &r->persist);
  else
    recur_queue_forward(&r->d);
}

static void queue_backward(struct recur *r) {
  if (r->persistent)
    persist_backward(&r->d, &r->persist);
  else
    recur_queue_backward(&r->d);
}

static void window(struct recur *r, cudaGraphExec_t *graph, void (*queue)(struct recur *)) {
  if (!*graph) {
    gpu_capture_begin();
    queue(r);
    *graph = gpu_capture_end();
  }
  gpu_replay(*graph);
}

static void window_forward(struct recur *r) {
  window(r, &r->forward, queue_forward);
}

static void window_backward(struct recur *r) {
  window(r, &r->backward, queue_backward);
}

const struct recur_backend recur_cuda = {.open = open,
                                         .close = close,
                                         .bytes = bytes,
                                         .value = value,
                                         .leak = leak,
                                         .bias = bias,
                                         .drive = drive,
                                         .output = output,
                                         .d_value = d_value,
                                         .d_leak = d_leak,
                                         .d_bias = d_bias,
                                         .d_drive = d_drive,
                                         .d_output = d_output,
                                         .state = state,
                                         .carry = carry,
                                         .d_state = d_state,
                                         .forward_begin = forward_begin,
                                         .forward_near = forward_near,
                                         .forward_far = forward_far,
                                         .backward_begin = backward_begin,
                                         .backward_far = backward_far,
                                         .backward_near = backward_near,
                                         .backward_end = backward_end,
                                         .replay = replay,
                                         .recorded = recorded,
                                         .window_forward = window_forward,
                                         .window_backward = window_backward};
