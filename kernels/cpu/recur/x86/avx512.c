/* The recurrence with AVX-512: 16 floats a vector. Built with -mavx512f -mavx512dq -mfma. */
#include "sum8.h"

#include <stdbool.h>
#include <stdint.h>

typedef __m512 vec;
typedef __mmask16 vmask;
enum { LANES = 16 };

#define LANE static inline __attribute__((always_inline))

LANE vec vec_set(float x) {
  return _mm512_set1_ps(x);
}
LANE vec vec_load(const float *at) {
  return _mm512_loadu_ps(at);
}
LANE vec vec_load_part(const float *at, vmask m) {
  return _mm512_maskz_loadu_ps(m, at);
}
LANE void vec_store(float *at, vec x) {
  _mm512_storeu_ps(at, x);
}
LANE void vec_store_part(float *at, vmask m, vec x) {
  _mm512_mask_storeu_ps(at, m, x);
}
LANE vmask vec_mask(int n) {
  return (vmask)((1u << n) - 1);
}
LANE vec vec_add(vec a, vec b) {
  return _mm512_add_ps(a, b);
}
LANE vec vec_sub(vec a, vec b) {
  return _mm512_sub_ps(a, b);
}
LANE vec vec_mul(vec a, vec b) {
  return _mm512_mul_ps(a, b);
}
LANE vec vec_div(vec a, vec b) {
  return _mm512_div_ps(a, b);
}
LANE vec vec_fma(vec a, vec b, vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
LANE vec vec_min(vec a, vec b) {
  return _mm512_min_ps(a, b);
}
LANE vec vec_max(vec a, vec b) {
  return _mm512_max_ps(a, b);
}
LANE vec vec_abs(vec x) {
  return _mm512_abs_ps(x);
}
LANE vec vec_round(vec x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
LANE vec vec_pow2(vec n) {
  return _mm512_scalef_ps(_mm512_set1_ps(1), n);
}
LANE vec vec_take_sign(vec x, vec sign) {
  const vec bit = _mm512_set1_ps(-0.0f);
  return _mm512_or_ps(x, _mm512_and_ps(bit, sign));
}
LANE __m256 fold(vec x) {
  return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
}
LANE float vec_sum(vec x) {
  return sum_of(fold(x));
}
LANE void vec_add_sums8(float *at, const vec *x) {
  __m256 half[8];
  for (int i = 0; i < 8; i++) half[i] = fold(x[i]);
  _mm256_storeu_ps(at, _mm256_add_ps(_mm256_loadu_ps(at), sums8(half)));
}

#include "kernels/cpu/recur/vector.h"

static bool usable(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("fma");
}

/* Rows shorter than a vector, or whose last vector is at most half used, are AVX2's: its loads
 * cross fewer cache lines. */
extern const struct recur_isa recur_avx2;

static bool fills(int batch) {
  return batch >= LANES && (batch - 1) % LANES >= LANES / 2;
}

static void forward(const struct recur_window *w, int k, enum recur_edge_set edges, lidx first,
                    lidx last) {
  (fills(w->batch) ? forward_rows : recur_avx2.forward)(w, k, edges, first, last);
}

static void elementwise(const struct recur_window *w, int k, lidx first, lidx last) {
  (fills(w->batch) ? elementwise_rows : recur_avx2.elementwise)(w, k, first, last);
}

static void transposed(const struct recur_window *w, int k, lidx first, lidx last) {
  (fills(w->batch) ? transposed_rows : recur_avx2.transposed)(w, k, first, last);
}

static float gather(const float *rows, int width, const lidx *row, int64_t n) {
  return (fills(width) ? bench_gather : recur_avx2.bench_gather)(rows, width, row, n);
}

const struct recur_isa recur_avx512 = {.name = "avx512",
                                       .usable = usable,
                                       .forward = forward,
                                       .elementwise = elementwise,
                                       .transposed = transposed,
                                       .bench_flops = bench_flops,
                                       .bench_gather = gather};
