/* The backward microstep of the recurrence: one launch. */
#include "launch.cuh"
#include "walk.cuh"

#include <math.h>

using namespace recur;

namespace {

constexpr float SMALL_LEAK =
    0.1f; /* RECUR_SMALL_LEAK of contract/recurrence.h, which C++ cannot include */

/* ---- backward, elementwise ---- */

struct element_args {
  const float *before, *after; /* s_k, s_{k+1} */
  const float2 *pair;          /* leak and bias */
  const float *drive;
  const int32_t *in_slot, *out_slot;
  const float *d_output; /* of this character; NULL before its last microstep */
  float *d_drive;        /* of this character */
  void *q;               /* float, or __nv_bfloat16 */
  float *d_state;
  float2 *d_pair;
  bool last_microstep; /* of its character: the first that the backward pass meets */
  bool last_of_window;
  recur_rows near, far; /* far: NULLs without a halo */
  const void *in_col;
  const float *in_value;
};

template <bool MIXED> using seen_state = typename std::conditional<MIXED, __half, float>::type;
template <bool MIXED> using seen_q = typename std::conditional<MIXED, __nv_bfloat16, float>::type;

/* S: how the forward pass saw the states: float, or rounded to __half. */
template <class L, class INDEX, class S>
__device__ void add_product(const recur_rows &rows, const element_args &a, int row, int lane,
                            columns c, piece<L> &z) {
  const uint32_t first = rows.padded[row], end = first + rows.ptr[row + 1] - rows.ptr[row];
#pragma unroll 4
  for (uint32_t e = first; e < end; e++) {
    const int64_t at = edge_place<in_lines<L, INDEX>>(e);
    const piece<L> in = load<L>(a.before, ((const INDEX *)a.in_col)[at], lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) z.x[i] = fmaf(a.in_value[at], rounded<S>(in.x[i]), z.x[i]);
  }
}

/* p_k of a row whose leak is too small to win it back from two states. Rare: kept out of
 * the kernels' registers. */
template <class L, class INDEX, class S>
__device__ __noinline__ piece<L> proposal_again(const element_args &a, int row, int lane,
                                                columns c) {
  piece<L> z = nothing<L>();
  add_product<L, INDEX, S>(a.near, a, row, lane, c, z);
  if (a.far.ptr) add_product<L, INDEX, S>(a.far, a, row, lane, c, z);
  if (a.in_slot[row] >= 0) {
    const piece<L> drive = load<L>(a.drive, a.in_slot[row], lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) z.x[i] += drive.x[i];
  }
#pragma unroll
  for (int i = 0; i < L::N; i++) z.x[i] = tanhf(z.x[i] + a.pair[row].y);
  return z;
}

/* q = g a (1 - p^2), db += q, da += g (p - s), dd += q, g = (1 - a) g. All lanes of the
 * warp take part; rows that are not ours to write (`writes` false) are computed and
 * dropped. slots: RECUR_HAS_.. */
template <class L, class INDEX, bool MIXED>
__device__ __forceinline__ void finish_element(const element_args &a, columns c, int row, int slots,
                                               int lane, bool writes, piece<L> g,
                                               const piece<L> &after) {
  const piece<L> before = load<L>(a.before, row, lane, c);
  const float leak = a.pair[row].x, recovered = 1 / leak;
  const int in = slots & RECUR_HAS_IN ? a.in_slot[row] : -1,
            out = a.d_output && slots & RECUR_HAS_OUT ? a.out_slot[row] : -1;
  if (out >= 0) {
    const piece<L> d = load<L>(a.d_output, out, lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) g.x[i] += d.x[i];
  }
  piece<L> p, q;
#pragma unroll
  for (int i = 0; i < L::N; i++) p.x[i] = (after.x[i] - (1 - leak) * before.x[i]) * recovered;
  if (leak < SMALL_LEAK) p = proposal_again<L, INDEX, seen_state<MIXED>>(a, row, lane, c);
  float sum_bias = 0, sum_leak = 0;
#pragma unroll
  for (int i = 0; i < L::N; i++) {
    q.x[i] = g.x[i] * leak * fmaxf(0.0f, 1 - p.x[i] * p.x[i]);
    sum_bias += q.x[i];
    sum_leak += g.x[i] * (p.x[i] - before.x[i]);
    g.x[i] *= 1 - leak;
  }
  sum_bias = group_sum<L>(sum_bias), sum_leak = group_sum<L>(sum_leak);
  if (!writes) return;
  store<L>((seen_q<MIXED> *)a.q, row, lane, c, q);
  store<L>(a.d_state, row, lane, c, g);
  if (lane == 0) {
    if (a.last_of_window && c.first == 0)
      a.d_pair[row] = make_float2(sum_leak, sum_bias);
    else
      add_floats<2>(&a.d_pair[row].x, few_floats<2>{{sum_leak, sum_bias}});
  }
  if (in < 0) return;
  if (!a.last_microstep) {
    const piece<L> sum = load<L>(a.d_drive, in, lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) q.x[i] += sum.x[i];
  }
  store<L>(a.d_drive, in, lane, c, q);
}

template <class L, class INDEX, bool MIXED>
__global__ void __launch_bounds__(RECUR_THREADS)
    element_kernel(const __grid_constant__ element_args a, const columns c, const int n_own) {
  const int group = threadIdx.x / L::G, lane = threadIdx.x % L::G;
  const int at = blockIdx.x * L::GROUPS + group, row = min(at, n_own - 1);
  wait_for_previous_launch();
  let_next_launch_start();
  const piece<L> g = load<L>(a.d_state, row, lane, c), after = load<L>(a.after, row, lane, c);
  finish_element<L, INDEX, MIXED>(a, c, row, RECUR_HAS_IN | RECUR_HAS_OUT, lane, at < n_own, g,
                                  after);
}

/* ---- backward, transposed product and edge gradient ---- */

struct backward_args {
  columns cols;
  const recur_item *item;
  const void *col;
  const float *value;
  float *gradient;
  const void *q; /* of microstep k: float, or __nv_bfloat16 */
  const float *state;
  float *d_state;
  bool halo; /* rows of d_state are set, not added to */
  bool next; /* go on to q of microstep k - 1 */
};

template <class L, class INDEX, bool MIXED>
__global__ void __launch_bounds__(RECUR_THREADS, L::BLOCKS)
    backward_kernel(const __grid_constant__ backward_args a,
                    const __grid_constant__ element_args next) {
  const int group = threadIdx.x / L::G, lane = threadIdx.x % L::G;
  const recur_item *items = a.item + (int64_t)blockIdx.x * L::GROUPS;
  const recur_item item = items[group];
  const int most_shared = items[0].share, in_row = group & ((1 << item.share) - 1),
            row = max(item.row, 0);
  walk<L, INDEX, seen_q<MIXED>> w(item, in_row, lane, (const INDEX *)a.col, a.value);
  wait_for_previous_launch();
  let_next_launch_start();
  const piece<L> own = load<L>(a.state, row, lane, a.cols);
  piece<L> seen = own, g = nothing<L>();
#pragma unroll
  for (int i = 0; i < L::N; i++) seen.x[i] = rounded<seen_state<MIXED>>(own.x[i]);
  w.template run<true>((const seen_q<MIXED> *)a.q, a.cols, lane, seen, a.gradient, g);
  if (!gather_groups<L>(item, most_shared, lane, g)) return;
  const bool writes = item.row >= 0 && in_row == 0;
  if (!a.halo) {
    const piece<L> held = load<L>(a.d_state, row, lane, a.cols);
#pragma unroll
    for (int i = 0; i < L::N; i++) g.x[i] += held.x[i];
  }
  if (a.next)
    finish_element<L, INDEX, MIXED>(next, a.cols, row, item.slots, lane, writes, g, own);
  else if (writes)
    store<L>(a.d_state, row, lane, a.cols, g);
}

/* ---- edges between the caller's order and the order by source ---- */

template <bool LINES>
__global__ void take_kernel(int64_t n, const uint32_t *edge, const int32_t *col, const float *value,
                            float *out_value, float *out_gradient) {
  const int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= n) return;
  put_edge<LINES>(out_value, (uint32_t)e, LINES ? col[e] : 0,
                  edge[e] == RECUR_NO_EDGE ? 0 : value[edge[e]]);
  out_gradient[e] = 0;
}

__global__ void give_kernel(int64_t n, const uint32_t *place, const float *out_gradient,
                            float *d_value) {
  wait_for_previous_launch();
  const int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (e < n) d_value[e] = out_gradient[place[e]];
}

__global__ void give_pair_kernel(int n, const float2 *d_pair, float *d_leak, float *d_bias) {
  const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (row < n) d_leak[row] = d_pair[row].x, d_bias[row] = d_pair[row].y;
}

/* ---- launching ---- */

void *q_at(const recur_device *d, int k) {
  const int64_t floats = (k % 2) * (int64_t)d->n_own * d->batch;
  return d->rounded ? (void *)((__nv_bfloat16 *)d->q + floats) : (void *)((float *)d->q + floats);
}

element_args element_of(const recur_device *d, int k) {
  const int64_t t = k / d->microsteps, B = d->batch;
  element_args a = {};
  a.before = state_at(d, k), a.after = state_at(d, k + 1);
  a.pair = (const float2 *)d->pair, a.drive = d->drive + t * d->n_in * B;
  a.in_slot = d->in_slot, a.out_slot = d->out_slot;
  a.d_output = ends_character(d, k) ? d->d_output + t * d->n_out * B : NULL;
  a.d_drive = d->d_drive + t * d->n_in * B;
  a.q = q_at(d, k), a.d_state = d->d_state, a.d_pair = (float2 *)d->d_pair;
  a.last_microstep = ends_character(d, k), a.last_of_window = k == d->steps * d->microsteps - 1;
  a.near = d->near_rows, a.far = d->far_rows;
  a.in_col = columns_of(d, &d->near_in, d->in_value), a.in_value = values_of(d, d->in_value);
  return a;
}

struct run_element {
  const recur_device *d;
  element_args args;
  template <class L, class INDEX, bool MIXED> void run() const {
    for_tiles<L>(d->batch, [&](columns c) {
      launch(element_kernel<L, INDEX, MIXED>, (d->n_own + L::GROUPS - 1) / L::GROUPS, args, c,
             d->n_own);
    });
  }
};

struct run_backward {
  const recur_device *d;
  const recur_walk *walk;
  backward_args args;
  element_args next;
  template <class L, class INDEX, bool MIXED> void run() const {
    for_tiles<L>(d->batch, [&](columns c) {
      backward_args a = args;
      a.cols = c;
      launch(backward_kernel<L, INDEX, MIXED>, walk->n_blocks, a, next);
    });
  }
};

void backward(const recur_device *d, int k, const recur_walk *walk, bool halo, bool next) {
  backward_args a = {};
  a.item = walk->item, a.col = columns_of(d, walk, d->out_value),
  a.value = values_of(d, d->out_value);
  a.gradient = d->out_gradient;
  a.q = q_at(d, k), a.state = state_at(d, k), a.d_state = d->d_state;
  a.halo = halo, a.next = next;
  const element_args e = next ? element_of(d, k - 1) : element_args{};
  choice c = choice_of(d, walk);
  c.backward = true;
  with_layout(c, run_backward{d, walk, a, e});
}

int64_t edge_blocks(int64_t edges) {
  return (edges + RECUR_THREADS - 1) / RECUR_THREADS;
}

} // namespace

void recur_device_take(const recur_device *d) {
  if (d->n_out_edges == 0) return;
  const auto kernel = d->lines ? take_kernel<true> : take_kernel<false>;
  kernel<<<(unsigned)edge_blocks(d->n_out_edges), RECUR_THREADS, 0, gpu_stream()>>>(
      d->n_out_edges, d->out_edge, (const int32_t *)d->near_out.col, d->value, d->out_value,
      d->out_gradient);
  CHECK_CUDA(cudaGetLastError());
}

void recur_device_give(const recur_device *d) {
  const int64_t edges = d->n_near + d->n_far;
  launch(give_kernel, edge_blocks(edges), edges, d->out_place, (const float *)d->out_gradient,
         d->d_value);
  if (d->n_own == 0) return;
  give_pair_kernel<<<row_blocks(d), RECUR_THREADS, 0, gpu_stream()>>>(
      d->n_own, (const float2 *)d->d_pair, d->d_leak, d->d_bias);
  CHECK_CUDA(cudaGetLastError());
}

void recur_device_elementwise(const recur_device *d, int k) {
  with_layout(choice_of(d, &d->near_in), run_element{d, element_of(d, k)});
}

void recur_device_transposed(const recur_device *d, int k, bool next) {
  backward(d, k, &d->near_out, false, next);
}

void recur_device_transposed_halo(const recur_device *d, int k) {
  backward(d, k, &d->far_out, true, false);
}
