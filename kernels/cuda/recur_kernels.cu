/* The microstep kernels of the recurrence: one launch forward, one backward. */
#include "recur_device.h"
#include "recur_lanes.cuh"

#include <math.h>

using namespace recur;

namespace {

constexpr float SMALL_LEAK = 0.1f; /* RECUR_SMALL_LEAK of recur_backend.h, which C++ cannot include */

/* ---- forward ---- */

struct forward_args {
  columns cols;
  const recur_item *item;
  const void *col;
  const float *value, *state;
  float *next;
  const float *leak, *bias, *drive; /* the drive of this character */
  const int32_t *in_slot, *out_slot;
  float *output;   /* of this character; NULL before its last microstep */
  float *near_sum; /* NULL, or where the near part of z stands */
  bool near_only;  /* leave z there */
};

/* s_{k+1} = (1 - a) s_k + a tanh(z + d + b) */
template <class L>
__device__ __forceinline__ void finish_forward(const forward_args &a, int row, int lane, piece<L> z) {
  if (a.near_only) {
    store<L>(a.near_sum, row, lane, a.cols, z);
    return;
  }
  const piece<L> s = load<L>(a.state, row, lane, a.cols);
  const float leak = a.leak[row], bias = a.bias[row];
  const int in = a.in_slot[row], out = a.output ? a.out_slot[row] : -1;
  if (a.near_sum) {
    const piece<L> near = load<L>(a.near_sum, row, lane, a.cols);
#pragma unroll
    for (int i = 0; i < L::N; i++) z.x[i] += near.x[i];
  }
  if (in >= 0) {
    const piece<L> drive = load<L>(a.drive, in, lane, a.cols);
#pragma unroll
    for (int i = 0; i < L::N; i++) z.x[i] += drive.x[i];
  }
#pragma unroll
  for (int i = 0; i < L::N; i++) z.x[i] = (1 - leak) * s.x[i] + leak * tanhf(z.x[i] + bias);
  store<L>(a.next, row, lane, a.cols, z);
  if (out >= 0) store<L>(a.output, out, lane, a.cols, z);
}

template <class L, class INDEX>
__global__ void __launch_bounds__(RECUR_THREADS, L::BLOCKS)
    forward_kernel(const __grid_constant__ forward_args a) {
  const int group = threadIdx.x / L::G, lane = threadIdx.x % L::G;
  const recur_item *items = a.item + (int64_t)blockIdx.x * L::GROUPS;
  const recur_item item = items[group];
  const int most_shared = items[0].share, in_row = group & ((1 << item.share) - 1);
  walk<L, INDEX> w(item, in_row, lane, (const INDEX *)a.col, a.value);
  wait_for_previous_launch();
  let_next_launch_start();
  piece<L> z = nothing<L>();
  w.template run<false>(a.state, a.cols, lane, z, NULL, z);
  if (gather_groups<L>(item, most_shared, lane, z) && item.row >= 0 && in_row == 0)
    finish_forward<L>(a, item.row, lane, z);
}

/* ---- backward, elementwise ---- */

struct element_args {
  const float *before, *after; /* s_k, s_{k+1} */
  const float *leak, *bias, *drive;
  const int32_t *in_slot, *out_slot;
  const float *d_output; /* of this character; NULL before its last microstep */
  float *d_drive;        /* of this character */
  float *q, *d_state, *d_leak, *d_bias;
  bool last_microstep; /* of its character: the first that the backward pass meets */
  bool last_of_window;
  const uint32_t *near_ptr, *far_ptr; /* far_ptr: NULL without a halo */
  const void *near_col, *far_col;
  const float *near_value, *far_value;
};

template <class L, class INDEX>
__device__ void add_product(const uint32_t *ptr, const INDEX *col, const float *value, const float *x,
                            int row, int lane, columns c, piece<L> &z) {
#pragma unroll 4
  for (uint32_t e = ptr[row]; e < ptr[row + 1]; e++) {
    const piece<L> in = load<L>(x, col[e], lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) z.x[i] = fmaf(value[e], in.x[i], z.x[i]);
  }
}

/* p_k of a row whose leak is too small to win it back from two states. Rare: kept out of the kernels'
 * registers. */
template <class L, class INDEX>
__device__ __noinline__ piece<L> proposal_again(const element_args &a, int row, int lane, columns c) {
  piece<L> z = nothing<L>();
  add_product<L>(a.near_ptr, (const INDEX *)a.near_col, a.near_value, a.before, row, lane, c, z);
  if (a.far_ptr) add_product<L>(a.far_ptr, (const INDEX *)a.far_col, a.far_value, a.before, row, lane, c, z);
  if (a.in_slot[row] >= 0) {
    const piece<L> drive = load<L>(a.drive, a.in_slot[row], lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) z.x[i] += drive.x[i];
  }
#pragma unroll
  for (int i = 0; i < L::N; i++) z.x[i] = tanhf(z.x[i] + a.bias[row]);
  return z;
}

/* q = g a (1 - p^2), db += q, da += g (p - s), dd += q, g = (1 - a) g. All lanes of the warp take part; rows
 * that are not ours to write (`writes` false) are computed and dropped. */
template <class L, class INDEX>
__device__ __forceinline__ void finish_element(const element_args &a, columns c, int row, int lane,
                                               bool writes, piece<L> g, const piece<L> &after) {
  const piece<L> before = load<L>(a.before, row, lane, c);
  const float leak = a.leak[row], recovered = 1 / leak;
  const int in = a.in_slot[row], out = a.d_output ? a.out_slot[row] : -1;
  if (out >= 0) {
    const piece<L> d = load<L>(a.d_output, out, lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) g.x[i] += d.x[i];
  }
  piece<L> p, q;
#pragma unroll
  for (int i = 0; i < L::N; i++) p.x[i] = (after.x[i] - (1 - leak) * before.x[i]) * recovered;
  if (leak < SMALL_LEAK) p = proposal_again<L, INDEX>(a, row, lane, c);
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
  store<L>(a.q, row, lane, c, q);
  store<L>(a.d_state, row, lane, c, g);
  if (lane == 0) {
    const bool set = a.last_of_window && c.first == 0;
    a.d_bias[row] = set ? sum_bias : a.d_bias[row] + sum_bias;
    a.d_leak[row] = set ? sum_leak : a.d_leak[row] + sum_leak;
  }
  if (in < 0) return;
  if (!a.last_microstep) {
    const piece<L> sum = load<L>(a.d_drive, in, lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) q.x[i] += sum.x[i];
  }
  store<L>(a.d_drive, in, lane, c, q);
}

template <class L, class INDEX>
__global__ void __launch_bounds__(RECUR_THREADS)
    element_kernel(const __grid_constant__ element_args a, const columns c, const int n_own) {
  const int group = threadIdx.x / L::G, lane = threadIdx.x % L::G;
  const int at = blockIdx.x * L::GROUPS + group, row = min(at, n_own - 1);
  wait_for_previous_launch();
  let_next_launch_start();
  const piece<L> g = load<L>(a.d_state, row, lane, c), after = load<L>(a.after, row, lane, c);
  finish_element<L, INDEX>(a, c, row, lane, at < n_own, g, after);
}

/* ---- backward, transposed product and edge gradient ---- */

struct backward_args {
  columns cols;
  const recur_item *item;
  const void *col;
  const float *value;
  float *gradient;
  const float *q, *state; /* of microstep k */
  float *d_state;
  bool halo; /* rows of d_state are set, not added to */
  bool next; /* go on to q of microstep k - 1 */
};

template <class L, class INDEX>
__global__ void __launch_bounds__(RECUR_THREADS, L::BLOCKS)
    backward_kernel(const __grid_constant__ backward_args a, const __grid_constant__ element_args next) {
  const int group = threadIdx.x / L::G, lane = threadIdx.x % L::G;
  const recur_item *items = a.item + (int64_t)blockIdx.x * L::GROUPS;
  const recur_item item = items[group];
  const int most_shared = items[0].share, in_row = group & ((1 << item.share) - 1), row = max(item.row, 0);
  walk<L, INDEX> w(item, in_row, lane, (const INDEX *)a.col, a.value);
  wait_for_previous_launch();
  let_next_launch_start();
  const piece<L> own = load<L>(a.state, row, lane, a.cols);
  piece<L> g = nothing<L>();
  w.template run<true>(a.q, a.cols, lane, own, a.gradient, g);
  if (!gather_groups<L>(item, most_shared, lane, g)) return;
  const bool writes = item.row >= 0 && in_row == 0;
  if (!a.halo) {
    const piece<L> held = load<L>(a.d_state, row, lane, a.cols);
#pragma unroll
    for (int i = 0; i < L::N; i++) g.x[i] += held.x[i];
  }
  if (a.next)
    finish_element<L, INDEX>(next, a.cols, row, lane, writes, g, own);
  else if (writes)
    store<L>(a.d_state, row, lane, a.cols, g);
}

/* ---- edges between the caller's order and the order by source ---- */

__global__ void take_kernel(int64_t n, const uint32_t *edge, const float *value, float *out_value,
                            float *out_gradient) {
  const int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= n) return;
  out_value[e] = value[edge[e]];
  out_gradient[e] = 0;
}

__global__ void give_kernel(int64_t n, const uint32_t *edge, const float *out_gradient, float *d_value) {
  wait_for_previous_launch();
  const int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (e < n) d_value[edge[e]] = out_gradient[e];
}

/* ---- launching ---- */

template <class... P> void launch(void (*kernel)(P...), int64_t blocks, P... args) {
  if (blocks == 0) return;
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)blocks), config.blockDim = dim3(RECUR_THREADS);
  config.stream = gpu_stream();
  config.attrs = &early, config.numAttrs = 1;
  CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, args...));
}

template <class F, class L> void with_index(bool narrow, const F &f) {
  if (narrow)
    f.template run<L, uint16_t>();
  else
    f.template run<L, int32_t>();
}

/* Calls f.run<layout, index> for the layout of a batch. Four blocks of 256 threads leave 64 registers each,
 * enough for 8 rows of 128 bytes in flight; a small graph's backward pass does better with three
 * (VERSIONS.md). */
template <class F> void with_layout(int batch, bool narrow, bool roomy, const F &f) {
  switch (batch) {
  case 1: return with_index<F, layout<1, 1, 1, 8, 4>>(narrow, f);
  case 4: return with_index<F, layout<1, 1, 4, 8, 4>>(narrow, f);
  case 8: return with_index<F, layout<2, 1, 4, 8, 4>>(narrow, f);
  case 16: return with_index<F, layout<4, 1, 4, 8, 4>>(narrow, f);
  case 32:
    return roomy ? f.template run<layout<8, 1, 4, 8, 3>, uint16_t>()
                 : with_index<F, layout<8, 1, 4, 8, 4>>(narrow, f);
  case 40: return with_index<F, layout<2, 5, 4, 2, 2>>(narrow, f);
  case 64: return with_index<F, layout<8, 2, 4, 4, 2>>(narrow, f);
  case 128: return with_index<F, layout<8, 4, 4, 2, 2>>(narrow, f);
  default: return with_index<F, layout<8, 4, 1, 8, 4, true>>(narrow, f);
  }
}

/* Launches `once` for each tile of columns. */
template <class L, class F> void for_tiles(int batch, const F &once) {
  const int tile = L::G * L::N;
  for (int first = 0; first < batch; first += tile) once(columns{batch, first});
}

int64_t rows_bytes_free(const recur_device *d) {
  return ((int64_t)d->n_own + d->n_halo) * d->batch;
}

float *state_at(const recur_device *d, int k) {
  return d->states + (d->all_states ? k : k % 2) * rows_bytes_free(d);
}

float *q_at(const recur_device *d, int k) {
  return d->q + (k % 2) * (int64_t)d->n_own * d->batch;
}

bool ends_character(const recur_device *d, int k) {
  return (k + 1) % d->microsteps == 0;
}

element_args element_of(const recur_device *d, int k) {
  const int64_t t = k / d->microsteps, B = d->batch;
  element_args a = {};
  a.before = state_at(d, k), a.after = state_at(d, k + 1);
  a.leak = d->leak, a.bias = d->bias, a.drive = d->drive + t * d->n_in * B;
  a.in_slot = d->in_slot, a.out_slot = d->out_slot;
  a.d_output = ends_character(d, k) ? d->d_output + t * d->n_out * B : NULL;
  a.d_drive = d->d_drive + t * d->n_in * B;
  a.q = q_at(d, k), a.d_state = d->d_state, a.d_leak = d->d_leak, a.d_bias = d->d_bias;
  a.last_microstep = ends_character(d, k), a.last_of_window = k == d->steps * d->microsteps - 1;
  a.near_ptr = d->near_ptr, a.near_col = d->near_in.col, a.near_value = d->value;
  a.far_ptr = d->n_halo > 0 ? d->far_ptr : NULL, a.far_col = d->far_in.col,
  a.far_value = d->value + d->n_near;
  return a;
}

struct run_forward {
  const recur_device *d;
  const recur_walk *walk;
  forward_args args;
  template <class L, class INDEX> void run() const {
    for_tiles<L>(d->batch, [&](columns c) {
      forward_args a = args;
      a.cols = c;
      launch(forward_kernel<L, INDEX>, walk->n_blocks, a);
    });
  }
};

struct run_element {
  const recur_device *d;
  element_args args;
  template <class L, class INDEX> void run() const {
    for_tiles<L>(d->batch, [&](columns c) {
      launch(element_kernel<L, INDEX>, (d->n_own + L::GROUPS - 1) / L::GROUPS, args, c, d->n_own);
    });
  }
};

struct run_backward {
  const recur_device *d;
  const recur_walk *walk;
  backward_args args;
  element_args next;
  template <class L, class INDEX> void run() const {
    for_tiles<L>(d->batch, [&](columns c) {
      backward_args a = args;
      a.cols = c;
      launch(backward_kernel<L, INDEX>, walk->n_blocks, a, next);
    });
  }
};

struct find_shape {
  recur_shape_on_device *shape;
  template <class L, class INDEX> void run() const { shape->lanes = L::G, shape->turn = L::TURN; }
};

/* Few enough blocks that more of them at a time would only make an uneven end. */
bool is_small(const recur_walk *walk) {
  return walk->narrow && walk->n_blocks < 16 * gpu_processors();
}

void backward(const recur_device *d, int k, const recur_walk *walk, bool halo, bool next) {
  backward_args a = {};
  a.item = walk->item, a.col = walk->col, a.value = d->out_value, a.gradient = d->out_gradient;
  a.q = q_at(d, k), a.state = state_at(d, k), a.d_state = d->d_state;
  a.halo = halo, a.next = next;
  const element_args e = next ? element_of(d, k - 1) : element_args{};
  with_layout(d->batch, walk->narrow, is_small(walk), run_backward{d, walk, a, e});
}

int64_t edge_blocks(const recur_device *d) {
  return (d->n_near + d->n_far + RECUR_THREADS - 1) / RECUR_THREADS;
}

} // namespace

recur_shape_on_device recur_device_shape(int batch) {
  recur_shape_on_device shape = {};
  with_layout(batch, true, false, find_shape{&shape});
  return shape;
}

void recur_device_forward(const recur_device *d, int k, enum recur_part part) {
  const int64_t t = k / d->microsteps, B = d->batch;
  const recur_walk *walk = part == RECUR_FAR_LAST ? &d->far_in : &d->near_in;
  forward_args a = {};
  a.item = walk->item, a.col = walk->col, a.value = d->value + (part == RECUR_FAR_LAST ? d->n_near : 0);
  a.state = state_at(d, k), a.next = state_at(d, k + 1);
  a.leak = d->leak, a.bias = d->bias, a.drive = d->drive + t * d->n_in * B;
  a.in_slot = d->in_slot, a.out_slot = d->out_slot;
  a.output = ends_character(d, k) ? d->output + t * d->n_out * B : NULL;
  a.near_sum = part == RECUR_ALL ? NULL : d->near_sum, a.near_only = part == RECUR_NEAR_ONLY;
  with_layout(d->batch, walk->narrow, false, run_forward{d, walk, a});
}

void recur_device_take(const recur_device *d) {
  if (edge_blocks(d) == 0) return;
  take_kernel<<<(unsigned)edge_blocks(d), RECUR_THREADS, 0, gpu_stream()>>>(
      d->n_near + d->n_far, d->out_edge, d->value, d->out_value, d->out_gradient);
  CHECK_CUDA(cudaGetLastError());
}

void recur_device_give(const recur_device *d) {
  launch(give_kernel, edge_blocks(d), d->n_near + d->n_far, d->out_edge, (const float *)d->out_gradient,
         d->d_value);
}

void recur_device_elementwise(const recur_device *d, int k) {
  with_layout(d->batch, d->near_in.narrow, false, run_element{d, element_of(d, k)});
}

void recur_device_transposed(const recur_device *d, int k, bool next) {
  backward(d, k, &d->near_out, false, next);
}

void recur_device_transposed_halo(const recur_device *d, int k) {
  backward(d, k, &d->far_out, true, false);
}
