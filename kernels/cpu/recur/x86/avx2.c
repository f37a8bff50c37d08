/* The recurrence with AVX2 and FMA: 8 floats a vector. Built with -mavx2 -mfma. */
#include "sum8.h"

#include <stdbool.h>
#include <stdint.h>

typedef __m256 vec;
typedef __m256i vmask;
enum { LANES = 8 };

#define LANE static inline __attribute__((always_inline))

LANE vec vec_set(float x) {
  return _mm256_set1_ps(x);
}
LANE vec vec_load(const float *at) {
  return _mm256_loadu_ps(at);
}
LANE vec vec_load_part(const float *at, vmask m) {
  return _mm256_maskload_ps(at, m);
}
LANE void vec_store(float *at, vec x) {
  _mm256_storeu_ps(at, x);
}
LANE void vec_store_part(float *at, vmask m, vec x) {
  _mm256_maskstore_ps(at, m, x);
}
LANE vmask vec_mask(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LANE vec vec_add(vec a, vec b) {
  return _mm256_add_ps(a, b);
}
LANE vec vec_sub(vec a, vec b) {
  return _mm256_sub_ps(a, b);
}
LANE vec vec_mul(vec a, vec b) {
  return _mm256_mul_ps(a, b);
}
LANE vec vec_div(vec a, vec b) {
  return _mm256_div_ps(a, b);
}
LANE vec vec_fma(vec a, vec b, vec c) {
  return _mm256_fmadd_ps(a, b, c);
}
LANE vec vec_min(vec a, vec b) {
  return _mm256_min_ps(a, b);
}
LANE vec vec_max(vec a, vec b) {
  return _mm256_max_ps(a, b);
}
LANE vec vec_abs(vec x) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}
LANE vec vec_round(vec x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* 2^n through the exponent bits, |n| < 127 */
LANE vec vec_pow2(vec n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
LANE vec vec_take_sign(vec x, vec sign) {
  return _mm256_or_ps(x, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}
LANE float vec_sum(vec x) {
  return sum_of(x);
}
LANE void vec_add_sums8(float *at, const vec *x) {
  _mm256_storeu_ps(at, _mm256_add_ps(_mm256_loadu_ps(at), sums8(x)));
}

#include "kernels/cpu/recur/vector.h"

static bool usable(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const struct recur_isa recur_avx2 = {.name = "avx2",
                                     .usable = usable,
                                     .forward = forward_rows,
                                     .elementwise = elementwise_rows,
                                     .transposed = transposed_rows,
                                     .bench_flops = bench_flops,
                                     .bench_gather = bench_gather};
