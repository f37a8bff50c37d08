/* Eight vectors of eight floats folded into the vector of their sums. */
#include <immintrin.h>

static inline __attribute__((always_inline)) __m256 pair_sums(__m256 a, __m256 b) {
  /* a0+a2 b0+b2 .. : lanes of a and b side by side */
  return _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
}

static inline __attribute__((always_inline)) __m256 quad_sums(__m256 a, __m256 b) {
  const __m256d x = _mm256_castps_pd(a), y = _mm256_castps_pd(b);
  return _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)),
                       _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));
}

static inline __attribute__((always_inline)) __m256 sums8(const __m256 *x) {
  const __m256 low = quad_sums(pair_sums(x[0], x[1]), pair_sums(x[2], x[3]));
  const __m256 high = quad_sums(pair_sums(x[4], x[5]), pair_sums(x[6], x[7]));
  return _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20),
                       _mm256_permute2f128_ps(low, high, 0x31));
}

static inline __attribute__((always_inline)) float sum_of(__m256 x) {
  __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_add_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_add_ss(y, _mm_shuffle_ps(y, y, 1)));
}
