/* Eight neurons at once by AVX-512, for fused.h. */
#ifndef FASCICLE_LIF_LANES512_H
#define FASCICLE_LIF_LANES512_H

#include <immintrin.h>

enum { LANES = 8 };
typedef __m512i V;
typedef __mmask8 M;

#define OP static inline __attribute__((always_inline))

OP V v_all(int64_t x) {
  return _mm512_set1_epi64(x);
}
OP V v_load(const int64_t *x) {
  return _mm512_loadu_si512(x);
}
OP void v_store(int64_t *x, V v) {
  _mm512_storeu_si512(x, v);
}
OP V v_counts(const int32_t *x) {
  return _mm512_slli_epi64(_mm512_cvtepi32_epi64(_mm256_loadu_si256((const void *)x)), 32);
}
OP V v_add(V a, V b) {
  return _mm512_add_epi64(a, b);
}
OP V v_and(V a, V b) {
  return _mm512_and_si512(a, b);
}
OP V v_or(V a, V b) {
  return _mm512_or_si512(a, b);
}
OP V v_multiply(V a, V b) {
  return _mm512_mul_epu32(a, b);
}
OP V v_shift_right(V a, V n) {
  return _mm512_srlv_epi64(a, n);
}
OP V v_size(V a) {
  return _mm512_abs_epi64(a);
}
OP M v_negative(V a) {
  return _mm512_movepi64_mask(a);
}
OP V v_add_signed(V to, V x, M negative) {
  return _mm512_mask_sub_epi64(_mm512_add_epi64(to, x), negative, to, x);
}
OP V v_add_unless(V to, V x, M m) {
  return _mm512_mask_add_epi64(to, (M)~m, to, x);
}
OP V v_choose(M m, V yes, V no) {
  return _mm512_mask_blend_epi64(m, no, yes);
}
OP M v_differ(V a, V b) {
  return _mm512_cmpneq_epi64_mask(a, b);
}
OP M v_reaches(V a, V bar) {
  return _mm512_cmpge_epi64_mask(a, bar);
}
OP M v_reaches_unsigned(V a, V bar) {
  return _mm512_cmpge_epu64_mask(a, bar);
}
OP M m_all(bool x) {
  return x ? 0xff : 0;
}
OP M m_or(M a, M b) {
  return a | b;
}
OP M m_xor(M a, M b) {
  return a ^ b;
}
OP M m_unless(M a, M b) {
  return (M)(a & ~b);
}
OP unsigned m_bits(M m) {
  return m;
}
OP unsigned m_store(uint8_t *bits, lidx i, M m) {
  bits[i / 8] = m;
  return m;
}
OP M m_count_down(uint16_t *counter) {
  const __m128i c = _mm_loadu_si128((const void *)counter);
  _mm_storeu_si128((void *)counter, _mm_subs_epu16(c, _mm_set1_epi16(1)));
  return _mm_test_epi16_mask(c, c);
}

#endif
