/* Products of contract/lif_model.h by size and sign, for fused.h: |x| p = ((|x| >> 32) f + ((|x|
 * mod 2^32) f + low) >> 32 + high) >> s with low = 2^31 where s = 0, else high = 2^(s - 1). */
#ifndef FASCICLE_LIF_FUSED_PRODUCTS_H
#define FASCICLE_LIF_FUSED_PRODUCTS_H

struct lanes {
  V f, low, high, s;
  M negative;
};

OP struct lanes lanes_of(struct lif_factor p) {
  return (struct lanes){.f = v_all(p.f),
                        .low = v_all(p.s ? 0 : 0x80000000),
                        .high = v_all(p.s ? (int64_t)1 << (p.s - 1) : 0),
                        .s = v_all(p.s),
                        .negative = m_all(p.sign < 0)};
}

/* |x| p; high: |x| >> 32. */
OP V product(V size, V high, const struct lanes *p, bool whole) {
  const V low = v_shift_right(v_add(v_multiply(size, p->f), p->low), v_all(32));
  const V sum = v_add(v_multiply(high, p->f), low);
  return whole ? sum : v_shift_right(v_add(sum, p->high), p->s);
}

#endif
