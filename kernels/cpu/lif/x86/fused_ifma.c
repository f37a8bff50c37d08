/* Steps of linear models by AVX-512 with products of 52 bits: for components below LIF_LARGE and
 * factors with s <= 20. */
#include "kernels/cpu/lif/model_fused.h"

#include "lanes512.h"

struct lanes {
  V f; /* f 2^(20 - s) */
  M negative;
};

OP struct lanes lanes_of(struct lif_factor p) {
  return (struct lanes){.f = v_all((int64_t)p.f << (20 - p.s)), .negative = m_all(p.sign < 0)};
}

/* |x| p: the upper half of |x| f 2^(20 - s), and the highest bit of the lower one. */
OP V product(V size, V high, const struct lanes *p, bool whole) {
  (void)high, (void)whole;
  const V low = _mm512_madd52lo_epu64(_mm512_setzero_si512(), size, p->f);
  return _mm512_madd52hi_epu64(_mm512_srli_epi64(low, 51), size, p->f);
}

#include "fused.h"

const struct model_loop *model_loops_small(int *n) {
  *n = __builtin_cpu_supports("avx512ifma") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
           ? (int)(sizeof loops / sizeof *loops)
           : 0;
  return loops;
}
