/* What the backward pass does for each neuron after its gradient is known: by itself at the end of
 * a window (element.cu), else at the end of the transposed product (backward.cu). */
#ifndef FASCICLE_RECUR_ELEMENT_CUH
#define FASCICLE_RECUR_ELEMENT_CUH

#include "launch.cuh"
#include "walk.cuh"

#include <math.h>

namespace recur_kernels {

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
  const void *in_col;   /* uint16_t where narrow, else int32_t; in lines of both where lines */
  const float *in_value;
  bool narrow, lines;
};

template <bool MIXED> using seen_state = typename std::conditional<MIXED, __half, float>::type;
template <bool MIXED> using seen_q = typename std::conditional<MIXED, __nv_bfloat16, float>::type;

/* S: how the forward pass saw the states: float, or rounded to __half. */
template <class L, class S>
__device__ void add_product(const recur_rows &rows, const element_args &a, int row, int lane,
                            columns c, lane_values<L> &z) {
  const uint32_t first = rows.padded[row], end = first + rows.ptr[row + 1] - rows.ptr[row];
#pragma unroll 4
  for (uint32_t e = first; e < end; e++) {
    const int64_t at = a.lines ? edge_place<true>(e) : edge_place<false>(e);
    const int32_t col =
        a.narrow ? ((const uint16_t *)a.in_col)[at] : ((const int32_t *)a.in_col)[at];
    const lane_values<L> in = load<L>(a.before, col, lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) z.x[i] = fmaf(a.in_value[at], rounded<S>(in.x[i]), z.x[i]);
  }
}

/* p_k of a row whose leak is too small to recover it from two states. Rare: kept out of
 * the kernels' registers. */
template <class L, class S>
__device__ __noinline__ lane_values<L> proposal_again(const element_args &a, int row, int lane,
                                                      columns c) {
  lane_values<L> z = nothing<L>();
  add_product<L, S>(a.near, a, row, lane, c, z);
  if (a.far.ptr) add_product<L, S>(a.far, a, row, lane, c, z);
  if (a.in_slot[row] >= 0) {
    const lane_values<L> drive = load<L>(a.drive, a.in_slot[row], lane, c);
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
template <class L, bool MIXED>
__device__ __forceinline__ void finish_element(const element_args &a, columns c, int row, int slots,
                                               int lane, bool writes, lane_values<L> g,
                                               const lane_values<L> &after) {
  const lane_values<L> before = load<L>(a.before, row, lane, c);
  const float leak = a.pair[row].x, recovered = 1 / leak;
  const int in = slots & RECUR_HAS_IN ? a.in_slot[row] : -1,
            out = a.d_output && slots & RECUR_HAS_OUT ? a.out_slot[row] : -1;
  if (out >= 0) {
    const lane_values<L> d = load<L>(a.d_output, out, lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) g.x[i] += d.x[i];
  }
  lane_values<L> p, q;
#pragma unroll
  for (int i = 0; i < L::N; i++) p.x[i] = (after.x[i] - (1 - leak) * before.x[i]) * recovered;
  if (leak < RECUR_SMALL_LEAK) p = proposal_again<L, seen_state<MIXED>>(a, row, lane, c);
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
    const lane_values<L> sum = load<L>(a.d_drive, in, lane, c);
#pragma unroll
    for (int i = 0; i < L::N; i++) q.x[i] += sum.x[i];
  }
  store<L>(a.d_drive, in, lane, c, q);
}

inline void *q_at(const recur_device *d, int k) {
  const int64_t floats = (k % 2) * (int64_t)d->n_own * d->batch;
  return d->rounded ? (void *)((__nv_bfloat16 *)d->q + floats) : (void *)((float *)d->q + floats);
}

inline element_args element_of(const recur_device *d, int k) {
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
  a.narrow = d->near_in.narrow, a.lines = d->lines;
  a.in_col = columns_of(d, &d->near_in, d->in_value), a.in_value = values_of(d, d->in_value);
  return a;
}

} // namespace recur_kernels
#endif
