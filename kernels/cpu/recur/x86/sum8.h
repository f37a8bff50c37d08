/* Eight vectors of eight floats folded into the vector of their sums. */
#include <immintrin.h>

/* Blends run on more ports than shuffles do: one of the two operands of a sum is a blend wherever
 * one serves. */

/* a0+a2 a1+a3 b0+b2 b1+b3, in both lanes of 128 bits */
static inline __attribute__((always_inline)) __m256 pair_sums(__m256 a, __m256 b) {
  return _mm256_add_ps(_mm256_blend_ps(a, b, 0xCC),
                       _mm256_shuffle_ps(a, b, _MM_SHUFFLE(1, 0, 3, 2)));
}

/* of a, b, c and d: the sums of their lanes, side by side */
static inline __attribute__((always_inline)) __m256 quad_sums(__m256 ab, __m256 cd) {
  return _mm256_add_ps(_mm256_shuffle_ps(ab, cd, _MM_SHUFFLE(2, 0, 2, 0)),
                       _mm256_shuffle_ps(ab, cd, _MM_SHUFFLE(3, 1, 3, 1)));
}

static inline __attribute__((always_inline)) __m256 sums8(const __m256 *x) {
  const __m256 low = quad_sums(pair_sums(x[0], x[1]), pair_sums(x[2], x[3]));
  const __m256 high = quad_sums(pair_sums(x[4], x[5]), pair_sums(x[6], x[7]));
  return _mm256_add_ps(_mm256_blend_ps(low, high, 0xF0), _mm256_permute2f128_ps(low, high, 0x21));
}

static inline __attribute__((always_inline)) float sum_of(__m256 x) {
  __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_add_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_add_ss(y, _mm_shuffle_ps(y, y, 1)));
}
