/* Draws of Poisson events by AVX-512: eight neurons at once. Built with -mavx512f. */
#include "kernels/cpu/lif/draw.h"

#include <immintrin.h>

typedef __m512i vec;
enum { LANES = 8 };

static inline vec vec_all(uint64_t x) {
  return _mm512_set1_epi64((long long)x);
}
static inline vec vec_load(const nodeid *at) {
  return _mm512_loadu_si512(at);
}
static inline vec vec_gather(const nodeid *id, const lidx *row) {
  return _mm512_i32gather_epi64(_mm256_loadu_si256((const __m256i *)(const void *)row), id, 8);
}
static inline vec vec_mul(vec a, vec b) {
  return _mm512_mul_epu32(a, b);
}
/* A shuffle: shifts stand in line behind products. */
static inline vec vec_high(vec x) {
  return _mm512_shuffle_epi32(x, _MM_PERM_DDBB);
}
static inline vec vec_to_high(vec x) {
  return _mm512_slli_epi64(x, 32);
}
static inline vec vec_xor(vec a, vec b) {
  return _mm512_xor_si512(a, b);
}
static inline vec vec_xor3(vec a, vec b, vec c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}
static inline bool vec_beyond_32(vec x) {
  return _mm512_test_epi64_mask(x, vec_all(~0ull << 32)) != 0;
}
static inline unsigned vec_at_most(vec x, vec bound) {
  return _mm512_cmple_epu64_mask(x, bound);
}

static inline void keep_lanes(vec x, unsigned hit, const lidx *neuron, struct lif_hits *hits) {
  const vec rows = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)neuron));
  const vec kept = _mm512_maskz_compress_epi64((__mmask8)hit, rows);
  _mm256_storeu_si256((__m256i *)(void *)(hits->row + hits->n), _mm512_cvtepi64_epi32(kept));
  _mm512_storeu_si512(hits->u + hits->n,
                      _mm512_srli_epi64(_mm512_maskz_compress_epi64((__mmask8)hit, x), 11));
  hits->n += __builtin_popcount(hit);
}

#include "draws.h"

static bool usable(void) {
  return __builtin_cpu_supports("avx512f");
}

const struct lif_draw_isa lif_draw_avx512 = {"avx512", usable, draw};
