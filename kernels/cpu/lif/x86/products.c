/* Products of the linear models by AVX2: four neurons at once. */
#include "kernels/cpu/lif/model_block.h"

#include <immintrin.h>

/* What a factor is to the lanes. */
struct lanes {
  __m256i f, f_high, half, sign, top, top_shifted;
  __m128i shift;
};

static inline __m256i all(uint64_t x) {
  return _mm256_set1_epi64x((long long)x);
}

static inline struct lanes lanes_of(struct lif_factor p) {
  return (struct lanes){.f = all(p.f),
                        .f_high = all((uint64_t)p.f << 32),
                        .half = all(p.s ? (uint64_t)1 << (p.s - 1) : 0x80000000u),
                        .sign = all(p.sign < 0 ? ~0ull : 0),
                        .top = all(1ull << 63),
                        .top_shifted = all(1ull << (63 - p.s)),
                        .shift = _mm_cvtsi32_si128(p.s)};
}

/* The upper half of x as unsigned is 2^32 too large for negative x. */
static inline __m256i high_product(__m256i x, __m256i negative, const struct lanes *p) {
  return _mm256_sub_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), p->f),
                          _mm256_and_si256(negative, p->f_high));
}

/* s = 0: floor((x f + 2^31 - (x < 0)) / 2^32) */
static inline __m256i whole(__m256i x, const struct lanes *p) {
  const __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), x);
  const __m256i low =
      _mm256_add_epi64(_mm256_mul_epu32(x, p->f), _mm256_add_epi64(p->half, negative));
  return _mm256_add_epi64(high_product(x, negative, p), _mm256_srli_epi64(low, 32));
}

/* s > 0: floor((floor((x f - (x < 0)) / 2^32) + 2^(s - 1)) / 2^s); the arithmetic shift is that of
 * x + 2^63, unsigned. */
static inline __m256i shifted(__m256i x, const struct lanes *p) {
  const __m256i zero = _mm256_setzero_si256(), negative = _mm256_cmpgt_epi64(zero, x);
  const __m256i low = _mm256_mul_epu32(x, p->f);
  const __m256i exact = _mm256_cmpeq_epi64(_mm256_slli_epi64(low, 32), zero);
  const __m256i sum =
      _mm256_add_epi64(_mm256_add_epi64(high_product(x, negative, p), _mm256_srli_epi64(low, 32)),
                       _mm256_add_epi64(p->half, _mm256_and_si256(negative, exact)));
  return _mm256_sub_epi64(_mm256_srl_epi64(_mm256_add_epi64(sum, p->top), p->shift),
                          p->top_shifted);
}

static inline void add_product(int64_t *to, __m256i product, const struct lanes *p) {
  __m256i *at = (__m256i *)(void *)to;
  product = _mm256_sub_epi64(_mm256_xor_si256(product, p->sign), p->sign);
  _mm256_storeu_si256(at, _mm256_add_epi64(_mm256_loadu_si256(at), product));
}

static inline __m256i four(const int64_t *from) {
  return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

bool model_products_here(void) {
  return __builtin_cpu_supports("avx2");
}

void model_products(int64_t *to, const int64_t *from, lidx n, struct lif_factor p) {
  const struct lanes l = lanes_of(p);
  lidx i = 0;
  for (; i + 4 <= n && !p.s; i += 4) add_product(to + i, whole(four(from + i), &l), &l);
  for (; i + 4 <= n; i += 4) add_product(to + i, shifted(four(from + i), &l), &l);
  for (; i < n; i++) to[i] += lif_times(from[i], p);
}
