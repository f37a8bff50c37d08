/* Steps of linear models by AVX2: four neurons at once. */
#include "kernels/cpu/lif/model_fused.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 4 };
typedef __m256i V;
typedef __m256i M; /* all bits of a lane */

#define OP static inline __attribute__((always_inline))

OP V v_all(int64_t x) {
  return _mm256_set1_epi64x(x);
}
OP V v_load(const int64_t *x) {
  return _mm256_loadu_si256((const void *)x);
}
OP void v_store(int64_t *x, V v) {
  _mm256_storeu_si256((void *)x, v);
}
OP V v_counts(const int32_t *x) {
  return _mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm_loadu_si128((const void *)x)), 32);
}
OP V v_add(V a, V b) {
  return _mm256_add_epi64(a, b);
}
OP V v_and(V a, V b) {
  return _mm256_and_si256(a, b);
}
OP V v_or(V a, V b) {
  return _mm256_or_si256(a, b);
}
OP V v_multiply(V a, V b) {
  return _mm256_mul_epu32(a, b);
}
OP V v_shift_right(V a, V n) {
  return _mm256_srlv_epi64(a, n);
}
OP M v_negative(V a) {
  return _mm256_cmpgt_epi64(v_all(0), a);
}
OP V v_signed(V x, M negative) {
  return _mm256_sub_epi64(_mm256_xor_si256(x, negative), negative);
}
OP V v_size(V a) {
  return v_signed(a, v_negative(a));
}
OP V v_add_signed(V to, V x, M negative) {
  return v_add(to, v_signed(x, negative));
}
OP V v_add_unless(V to, V x, M m) {
  return v_add(to, _mm256_andnot_si256(m, x));
}
OP V v_choose(M m, V yes, V no) {
  return _mm256_blendv_epi8(no, yes, m);
}
OP M m_all(bool x) {
  return v_all(x ? -1 : 0);
}
OP M m_or(M a, M b) {
  return _mm256_or_si256(a, b);
}
OP M m_xor(M a, M b) {
  return _mm256_xor_si256(a, b);
}
OP M m_unless(M a, M b) {
  return _mm256_andnot_si256(b, a);
}
OP M v_differ(V a, V b) {
  return m_xor(_mm256_cmpeq_epi64(a, b), m_all(true));
}
OP M v_reaches(V a, V bar) {
  return m_xor(_mm256_cmpgt_epi64(bar, a), m_all(true));
}
OP M v_reaches_unsigned(V a, V bar) {
  const V top = v_all(INT64_MIN);
  return v_reaches(m_xor(a, top), m_xor(bar, top));
}
OP unsigned m_bits(M m) {
  return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(m));
}
OP unsigned m_store(uint8_t *bits, lidx i, M m) {
  const unsigned four = m_bits(m);
  bits[i / 8] = (uint8_t)(i % 8 ? bits[i / 8] | four << 4 : four);
  return four;
}
OP M m_count_down(uint16_t *counter) {
  uint64_t four;
  memcpy(&four, counter, sizeof four);
  const __m128i c = _mm_cvtsi64_si128((int64_t)four);
  four = (uint64_t)_mm_cvtsi128_si64(_mm_subs_epu16(c, _mm_set1_epi16(1)));
  memcpy(counter, &four, sizeof four);
  return m_xor(_mm256_cmpeq_epi64(_mm256_cvtepu16_epi64(c), v_all(0)), m_all(true));
}

#include "products.h"

#include "fused.h"

const struct model_loop *model_loops256(int *n) {
  *n = __builtin_cpu_supports("avx2") ? (int)(sizeof loops / sizeof *loops) : 0;
  return loops;
}
