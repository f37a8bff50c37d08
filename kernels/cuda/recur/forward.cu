/* The forward microstep of the recurrence: one launch. */
#include "launch.cuh"
#include "walk.cuh"

#include <math.h>

using namespace recur_kernels;

namespace {

struct forward_args {
  columns cols;
  const recur_item *item;
  const void *col;
  const float *value;
  const void *gathered; /* s_k as the walk reads it: state, or its rounded copy */
  const float *state;
  float *next;
  __half *next_rounded; /* NULL in fp32 */
  const float2 *pair;   /* leak and bias */
  const float *drive;   /* of this character */
  const int32_t *in_slot, *out_slot;
  float *output;   /* of this character; NULL before its last microstep */
  float *near_sum; /* NULL, or where the near part of z stands */
  bool near_only;  /* leave z there */
};

/* s_{k+1} = (1 - a) s_k + a tanh(z + d + b) */
template <class L>
__device__ __forceinline__ void finish_forward(const forward_args &a, const recur_item &item,
                                               int lane, lane_values<L> z) {
  const int row = item.row;
  if (a.near_only) {
    store<L>(a.near_sum, row, lane, a.cols, z);
    return;
  }
  const lane_values<L> s = load<L>(a.state, row, lane, a.cols);
  const float2 pair = a.pair[row];
  const float leak = pair.x, bias = pair.y;
  const int in = item.slots & RECUR_HAS_IN ? a.in_slot[row] : -1,
            out = a.output && item.slots & RECUR_HAS_OUT ? a.out_slot[row] : -1;
  if (a.near_sum) {
    const lane_values<L> near = load<L>(a.near_sum, row, lane, a.cols);
#pragma unroll
    for (int i = 0; i < L::N; i++) z.x[i] += near.x[i];
  }
  if (in >= 0) {
    const lane_values<L> drive = load<L>(a.drive, in, lane, a.cols);
#pragma unroll
    for (int i = 0; i < L::N; i++) z.x[i] += drive.x[i];
  }
#pragma unroll
  for (int i = 0; i < L::N; i++) z.x[i] = (1 - leak) * s.x[i] + leak * tanhf(z.x[i] + bias);
  store<L>(a.next, row, lane, a.cols, z);
  if (a.next_rounded) store<L>(a.next_rounded, row, lane, a.cols, z);
  if (out >= 0) store<L>(a.output, out, lane, a.cols, z);
}

template <class L, class INDEX, class T>
__global__ void __launch_bounds__(RECUR_THREADS, L::BLOCKS)
    forward_kernel(const __grid_constant__ forward_args a) {
  const int group = threadIdx.x / L::G, lane = threadIdx.x % L::G;
  const recur_item *items = a.item + (int64_t)blockIdx.x * L::GROUPS;
  const recur_item item = items[group];
  const int most_shared = items[0].share, in_row = group & ((1 << item.share) - 1);
  walk<L, INDEX, T> w(item, in_row, lane, (const INDEX *)a.col, a.value);
  wait_for_previous_launch();
  let_next_launch_start();
  lane_values<L> z = nothing<L>();
  w.template run<false>((const T *)a.gathered, a.cols, lane, z, NULL, z);
  if (gather_groups<L>(item, most_shared, lane, z) && item.row >= 0 && in_row == 0)
    finish_forward<L>(a, item, lane, z);
}

/* ---- before a window ---- */

constexpr int COPY_LANES = WARP; /* that share a row */

/* Values of a row, and in lines its columns, into padded places. */
template <bool LINES>
__global__ void values_kernel(int n_rows, const uint32_t *ptr, const uint32_t *padded,
                              const int32_t *col, const float *value, float *in_value) {
  const int row = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / COPY_LANES);
  if (row >= n_rows) return;
  const uint32_t first = ptr[row], edges = ptr[row + 1] - first, to = padded[row];
#pragma unroll 4
  for (uint32_t e = threadIdx.x % COPY_LANES; e < edges; e += COPY_LANES)
    put_edge<LINES>(in_value, to + e, LINES ? col[to + e] : 0, value[first + e]);
}

void copy_values(gpu_queue *queue, const recur_device *d, const recur_rows *rows) {
  if (!rows->ptr || d->n_own == 0) return;
  const int64_t blocks = ((int64_t)d->n_own * COPY_LANES + RECUR_THREADS - 1) / RECUR_THREADS;
  const auto kernel = d->lines ? values_kernel<true> : values_kernel<false>;
  kernel<<<(unsigned)blocks, RECUR_THREADS, 0, queue->stream>>>(
      d->n_own, rows->ptr, rows->padded, (const int32_t *)d->near_in.col, d->value, d->in_value);
  gpu_queue_note(queue, cudaGetLastError());
}

__global__ void pair_kernel(int n, const float *leak, const float *bias, float2 *pair) {
  const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (row < n) pair[row] = make_float2(leak[row], bias[row]);
}

__global__ void round_kernel(int64_t n, const float *x, __half *rounded) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) rounded[i] = narrow(x[i], __half());
}

/* ---- launching ---- */

struct run_forward {
  gpu_queue *queue;
  const recur_device *d;
  const recur_walk *walk;
  forward_args args;
  template <class L, class INDEX, bool MIXED> void run() const {
    typedef typename std::conditional<MIXED, __half, float>::type T;
    for_tiles<L>(d->batch, [&](columns c) {
      forward_args a = args;
      a.cols = c;
      launch(queue, forward_kernel<L, INDEX, T>, walk->n_blocks, a);
    });
  }
};

struct find_shape {
  recur_shape_on_device *shape;
  template <class L, class INDEX, bool MIXED> void run() const {
    shape->lanes = L::G, shape->round = L::ROUND, shape->lines = in_lines<L, INDEX>;
  }
};

} // namespace

recur_shape_on_device recur_device_shape(int batch, bool mixed, bool small, bool narrow) {
  recur_shape_on_device shape = {};
  with_layout(choice{batch, narrow, mixed, small, false}, find_shape{&shape});
  return shape;
}

void recur_device_take_values(gpu_queue *queue, const recur_device *d) {
  copy_values(queue, d, &d->near_rows), copy_values(queue, d, &d->far_rows);
  if (d->n_own == 0) return;
  pair_kernel<<<row_blocks(d), RECUR_THREADS, 0, queue->stream>>>(d->n_own, d->leak, d->bias,
                                                                  (float2 *)d->pair);
  gpu_queue_note(queue, cudaGetLastError());
}

void recur_device_round(gpu_queue *queue, const recur_device *d, int k, int first_row, int n_rows) {
  const int64_t n = (int64_t)n_rows * d->batch, first = (int64_t)first_row * d->batch;
  if (!d->rounded || n == 0) return;
  round_kernel<<<(unsigned)((n + RECUR_THREADS - 1) / RECUR_THREADS), RECUR_THREADS, 0,
                 queue->stream>>>(n, state_at(d, k) + first, rounded_at(d, k) + first);
  gpu_queue_note(queue, cudaGetLastError());
}

void recur_device_forward(gpu_queue *queue, const recur_device *d, int k,
                          enum recur_edge_set edges) {
  const int64_t t = k / d->microsteps, B = d->batch;
  const recur_walk *walk = edges == RECUR_FAR_EDGES ? &d->far_in : &d->near_in;
  forward_args a = {};
  a.item = walk->item, a.col = columns_of(d, walk, d->in_value),
  a.value = values_of(d, d->in_value);
  a.state = state_at(d, k), a.next = state_at(d, k + 1);
  a.gathered = d->rounded ? (const void *)rounded_at(d, k) : a.state;
  a.next_rounded = rounded_at(d, k + 1);
  a.pair = (const float2 *)d->pair, a.drive = d->drive + t * d->n_in * B;
  a.in_slot = d->in_slot, a.out_slot = d->out_slot;
  a.output = ends_character(d, k) ? d->output + t * d->n_out * B : NULL;
  a.near_sum = edges == RECUR_ALL_EDGES ? NULL : d->near_sum,
  a.near_only = edges == RECUR_NEAR_EDGES;
  with_layout(choice_of(d, walk), run_forward{queue, d, walk, a});
}
