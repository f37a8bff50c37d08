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

/* n steps of 32 neurons, which stay in registers. */
enum { AT_ONCE = 4 };

OP void steps_alone(int64_t *v, const int64_t *drive_of, const struct lanes *p,
                    const struct model_alone *alone, V *largest, M *fires, uint8_t *moved) {
  const V bar = v_all(alone->least), zero = v_all(0);
  V x[AT_ONCE], before[AT_ONCE], drive[AT_ONCE];
  for (int j = 0; j < AT_ONCE; j++) {
    before[j] = x[j] = v_load(v + j * LANES);
    drive[j] = v_load(drive_of + j * LANES);
  }
  for (int k = 0; k < alone->n_steps; k++)
#pragma GCC unroll 4
    for (int j = 0; j < AT_ONCE; j++) {
      const V size = v_size(x[j]);
      before[j] = x[j];
      *largest = v_or(*largest, size);
      x[j] = v_add_signed(alone->keeps ? x[j] : zero, product(size, zero, p, false),
                          m_xor(v_negative(x[j]), p->negative));
      x[j] = v_add(x[j], drive[j]);
      *fires = m_or(*fires, v_reaches(x[j], bar));
    }
  for (int j = 0; j < AT_ONCE; j++) {
    v_store(v + j * LANES, x[j]);
    m_store(moved, j * LANES, v_differ(before[j], x[j]));
  }
}

bool model_run_alone(const struct model_alone *alone, lidx n, int64_t *v, int64_t *drive,
                     uint8_t *moved) {
  const struct lanes p = lanes_of(alone->factor);
  V largest = v_all(0);
  M fires = m_all(false);
  for (lidx i = n; i % LIF_ALONE; i++) v[i] = v[n - 1], drive[i] = drive[n - 1];
  for (lidx i = 0; i < n; i += LIF_ALONE)
    steps_alone(v + i, drive + i, &p, alone, &largest, &fires, moved + i / 8);
  return !m_bits(m_or(fires, v_reaches_unsigned(largest, v_all(LIF_LARGE))));
}

const struct model_loop *model_loops_small(int *n) {
  *n = __builtin_cpu_supports("avx512ifma") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
           ? (int)(sizeof loops / sizeof *loops)
           : 0;
  return loops;
}
