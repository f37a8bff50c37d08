/* The recurrence on one GPU: what struct recur_backend promises, by the kernels of
 * kernels/cuda/recur/forward.cu and kernels/cuda/recur/backward.cu. A window is captured once in a
 * CUDA graph and replayed. */
#include "contract/recurrence.h"
#include "core/mem.h"
#include "device.h"
#include "kernels/cuda/gpu/arrays.h"
#include "kernels/cuda/gpu/gpu.h"
#include "kernels/cuda/layout/tables.h"
#include "kernels/interface/recur_calls.h"
#include "persist.h"

struct recur {
  struct recur_device d;
  struct recur_sizes sizes;
  struct gpu_queue queue;
  struct recur_calls calls;
  struct persist_device persist;           /* where sizes.persistent: whole windows */
  cudaGraphExec_t forward, backward;       /* NULL until first used */
  cudaGraphExec_t split[RECUR_DIRECTIONS]; /* passes over a split window, messages included */
  int split_made[RECUR_DIRECTIONS];        /* how many were made step by step */
};

/* ---- memory ---- */

static int64_t bytes(const struct recur_net *net) {
  const bool persistent = persist_serves(net);
  return recur_expected_bytes(net, persistent) +
         (persistent ? persist_expected_bytes(net, gpu_processors()) : 0);
}

static void tables_to_device(struct recur *r, const struct recur_net *net,
                             enum recur_direction direction) {
  struct arrays from = {0}, to = {0};
  const struct recur_shape_on_device shape = recur_shape_of(&r->d, net->mixed);
  struct recur_device host = r->d;
  ASSERT(shape.lines == r->d.lines);
  if (!recur_make_tables(&host, &r->sizes, net, direction, shape, gpu_processors()))
    DIE(EXIT_RUNTIME, "out of memory: the tables of %lld edges",
        (long long)(r->d.n_near + r->d.n_far));
  r->d = host; /* for its counts */
  recur_list_tables(&from, &host, &r->sizes, direction);
  recur_list_tables(&to, &r->d, &r->sizes, direction);
  gpu_arrays_copy(&to, &from);
  recur_share_columns(&r->d);
  arrays_close(&from);
}

/* Everything that is held, but for the persistent window. */
static struct arrays arrays_of(struct recur *r) {
  struct arrays list = {0};
  recur_list_tables(&list, &r->d, &r->sizes, RECUR_FORWARD);
  recur_list_tables(&list, &r->d, &r->sizes, RECUR_BACKWARD);
  recur_list_window(&list, &r->d, &r->sizes);
  return list;
}

static struct status check_edges(const struct graph *g) {
  const eidx edges = g->near.n_edges + g->far.n_edges;
  const int64_t places = recur_places(edges, 2 * (int64_t)g->n_own + g->n_halo);
  if (places <= RECUR_MOST_EDGES) return fine();
  return failure(
      EXIT_RUNTIME,
      "--device cuda: %lld edges on one GPU, at most about %u; use more ranks with --parts",
      (long long)edges, RECUR_MOST_EDGES);
}

static struct status open(const struct recur_net *net, int n_threads, struct recur **state) {
  (void)n_threads;
  TRY(check_edges(net->graph));
  struct recur *r = NEW_ZERO(struct recur, 1);
  struct arrays window = {0};
  r->queue.stream = gpu_stream();
  r->calls = recur_calls_of(net);
  recur_set_counts(&r->d, &r->sizes, net);
  tables_to_device(r, net, RECUR_FORWARD);
  if (net->want_gradient) tables_to_device(r, net, RECUR_BACKWARD);
  r->sizes.persistent = persist_open(net, &r->d, &r->persist);
  recur_list_window(&window, &r->d, &r->sizes);
  gpu_arrays_open(&window);
  *state = r;
  return fine();
}

static void close(struct recur *r) {
  const struct arrays arrays = arrays_of(r);
  if (r->forward) CHECK_CUDA(cudaGraphExecDestroy(r->forward));
  if (r->backward) CHECK_CUDA(cudaGraphExecDestroy(r->backward));
  for (int direction = 0; direction < RECUR_DIRECTIONS; direction++)
    if (r->split[direction]) CHECK_CUDA(cudaGraphExecDestroy(r->split[direction]));
  gpu_arrays_close(&arrays);
  persist_close(&r->d, &r->persist);
  mem_free(r);
}

/* An error of what an entry has queued is fatal. */
static void check(const struct recur *r) {
  gpu_check_at(__FILE__, __LINE__, r->queue.error, "a kernel of the recurrence");
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
  ASSERT(k >= 0 && k <= r->calls.K);
  ASSERT(!r->sizes.persistent || k == 0 || k == r->calls.K);
  if (r->sizes.persistent) return k == 0 ? r->d.states : r->persist.last;
  return r->d.states + (r->d.all_states ? k : k % 2) * rows * r->d.batch;
}

static void carry(struct recur *r) {
  recur_calls_carry(&r->calls);
  const float *last = state(r, r->calls.K);
  const size_t size = (size_t)r->d.n_own * (size_t)r->d.batch * sizeof *last;
  if (last != state(r, 0) && size > 0)
    CHECK_CUDA(cudaMemcpyAsync(state(r, 0), last, size, cudaMemcpyDeviceToDevice, gpu_stream()));
}

/* ---- microstep by microstep ---- */

static void forward_begin(struct recur *r) {
  ASSERT(!r->sizes.persistent);
  recur_calls_forward_begin(&r->calls);
  recur_queue_values(&r->queue, &r->d);
  check(r);
}

static void forward_near(struct recur *r, int k) {
  recur_calls_forward_near(&r->calls, k);
  recur_device_forward(&r->queue, &r->d, k, RECUR_NEAR_EDGES);
  check(r);
}

static void forward_far(struct recur *r, int k) {
  recur_calls_forward_far(&r->calls, k);
  recur_device_round(&r->queue, &r->d, k, r->d.n_own, r->d.n_halo);
  recur_device_forward(&r->queue, &r->d, k, RECUR_FAR_EDGES);
  check(r);
}

static void backward_begin(struct recur *r) {
  recur_calls_backward_begin(&r->calls);
  recur_queue_start(&r->queue, &r->d);
  check(r);
}

static void backward_far(struct recur *r, int k) {
  recur_calls_backward_far(&r->calls, k);
  recur_device_elementwise(&r->queue, &r->d, k);
  recur_device_transposed_halo(&r->queue, &r->d, k);
  check(r);
}

static void backward_near(struct recur *r, int k) {
  recur_calls_backward_near(&r->calls, k);
  recur_device_transposed(&r->queue, &r->d, k, false);
  check(r);
}

static void backward_end(struct recur *r) {
  recur_calls_backward_end(&r->calls);
  recur_device_give(&r->queue, &r->d);
  check(r);
}

/* ---- a split window, recorded ---- */

/* The first pass runs as it is made, so that the transport can set up its connections; the second
 * is recorded, the rest are replays. */
static bool replay(struct recur *r, enum recur_direction direction) {
  if (r->split[direction]) {
    if (direction == RECUR_FORWARD)
      recur_calls_window_forward(&r->calls);
    else
      recur_calls_window_backward(&r->calls);
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
  if (r->sizes.persistent)
    persist_forward(&r->d, &r->persist);
  else
    recur_queue_forward(&r->queue, &r->d);
  check(r);
}

static void queue_backward(struct recur *r) {
  if (r->sizes.persistent)
    persist_backward(&r->d, &r->persist);
  else
    recur_queue_backward(&r->queue, &r->d);
  check(r);
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
  ASSERT(!r->calls.split);
  recur_calls_window_forward(&r->calls);
  window(r, &r->forward, queue_forward);
}

static void window_backward(struct recur *r) {
  ASSERT(!r->calls.split);
  recur_calls_window_backward(&r->calls);
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
                                         .records = true,
                                         .replay = replay,
                                         .recorded = recorded,
                                         .window_forward = window_forward,
                                         .window_backward = window_backward};
