/* Draws of Poisson events by AVX2: four neurons at once. Built with -mavx2. */
#include "kernels/cpu/lif/draw.h"

#include <immintrin.h>

typedef __m256i vec;
enum { LANES = 4 };

static inline vec vec_all(uint64_t x) {
  return _mm256_set1_epi64x((long long)x);
}
static inline vec vec_load(const nodeid *at) {
  return _mm256_loadu_si256((const __m256i *)(const void *)at);
}
static inline vec vec_gather(const nodeid *id, const lidx *row) {
  return _mm256_setr_epi64x(id[row[0]], id[row[1]], id[row[2]], id[row[3]]);
}
static inline vec vec_mul(vec a, vec b) {
  return _mm256_mul_epu32(a, b);
}
/* A shuffle: shifts stand in line behind products. */
static inline vec vec_high(vec x) {
  return _mm256_shuffle_epi32(x, _MM_SHUFFLE(3, 3, 1, 1));
}
static inline vec vec_to_high(vec x) {
  return _mm256_slli_epi64(x, 32);
}
static inline vec vec_xor(vec a, vec b) {
  return _mm256_xor_si256(a, b);
}
static inline vec vec_xor3(vec a, vec b, vec c) {
  return _mm256_xor_si256(a, _mm256_xor_si256(b, c));
}
static inline bool vec_beyond_32(vec x) {
  return !_mm256_testz_si256(x, vec_all(~0ull << 32));
}
/* Comparisons are signed: both sides are moved by 2^63. */
static inline unsigned vec_at_most(vec x, vec bound) {
  const vec sign = vec_all(1ull << 63);
  const vec above = _mm256_cmpgt_epi64(vec_xor(x, sign), vec_xor(bound, sign));
  return ~(unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(above)) & 15;
}
/* Each lane is written and the next goes over it unless it is a hit: no branch to foresee. */
static inline void keep_lanes(vec x, unsigned hit, const lidx *neuron, struct lif_hits *hits) {
  uint64_t u[LANES];
  lidx n = hits->n;
  _mm256_storeu_si256((__m256i *)(void *)u, _mm256_srli_epi64(x, 11));
  for (int k = 0; k < LANES; k++) {
    hits->row[n] = neuron[k], hits->u[n] = u[k];
    n += (lidx)(hit >> k & 1);
  }
  hits->n = n;
}

#include "draws.h"

static bool usable(void) {
  return __builtin_cpu_supports("avx2");
}

const struct lif_draw_isa lif_draw_avx2 = {"avx2", usable, draw};
