/* Linear models, loops over a block: no branches inside and no state beyond the arguments. */
#include "model_block.h"
#include "core/clones.h"

/* times() as one multiplication of each half: floor((x f + 2^31 - (x < 0)) / 2^32) rounds halves
 * away from zero. The upper half as unsigned is 2^32 too large for negative x. */
VECTOR_CLONES static void accumulate_whole(int64_t *restrict to, const int64_t *restrict from,
                                           lidx n, uint64_t f, int64_t sign) {
  for (lidx i = 0; i < n; i++) {
    const uint64_t x = (uint64_t)from[i], negative = x >> 63;
    const uint64_t low = (x & 0xffffffffu) * f + 0x80000000u - negative;
    const uint64_t high = (x >> 32) * f - (negative ? f << 32 : 0);
    const int64_t product = (int64_t)(high + (low >> 32));
    to[i] += (product ^ sign) - sign;
  }
}

/* With s > 0: floor((floor((x f - (x < 0)) / 2^32) + 2^(s - 1)) / 2^s); the inner one borrows where
 * x < 0 and x f is a multiple of 2^32. */
VECTOR_CLONES static void accumulate_shifted(int64_t *restrict to, const int64_t *restrict from,
                                             lidx n, uint64_t f, int s, int64_t sign) {
  const int64_t half = (int64_t)1 << (s - 1);
  for (lidx i = 0; i < n; i++) {
    const uint64_t x = (uint64_t)from[i], negative = x >> 63, low = (x & 0xffffffffu) * f;
    const uint64_t borrow = negative & ((low & 0xffffffffu) == 0);
    const uint64_t high = (x >> 32) * f - (negative ? f << 32 : 0);
    const int64_t product = ((int64_t)(high + (low >> 32) - borrow) + half) >> s;
    to[i] += (product ^ sign) - sign;
  }
}

void model_accumulate(int64_t *to, const int64_t *from, lidx n, struct lif_factor p) {
  const int64_t sign = p.sign < 0 ? -1 : 0;
  if (p.f == 0) return;
  if (model_products_here()) {
    model_products(to, from, n, p);
    return;
  }
  if (p.s == 0)
    accumulate_whole(to, from, n, p.f, sign);
  else
    accumulate_shifted(to, from, n, p.f, p.s, sign);
}

void model_accumulate_by_class(int64_t *to, const int64_t *from, lidx n, int e,
                               const struct lif_class *classes, const uint16_t *class_of) {
  for (lidx i = 0; i < n; i++) to[i] += lif_times(from[i], classes[class_of[i]].factor[e]);
}

VECTOR_CLONES static void add_all32(int64_t *restrict to, const int32_t *restrict counts, lidx n) {
  for (lidx i = 0; i < n; i++) to[i] += (int64_t)((uint64_t)(int64_t)counts[i] << 32);
}

VECTOR_CLONES static void add_some32(int64_t *restrict to, const int32_t *restrict counts,
                                     const uint8_t *restrict lost, lidx n) {
  for (lidx i = 0; i < n; i++)
    to[i] += (int64_t)((uint64_t)(int64_t)counts[i] << 32) & ((int64_t)lost[i] - 1);
}

void model_add_counts32(int64_t *to, const int32_t *counts, const uint8_t *lost, lidx n) {
  if (lost)
    add_some32(to, counts, lost, n);
  else
    add_all32(to, counts, n);
}

void model_add(int64_t *to, const int64_t *amounts, const uint8_t *lost, lidx n) {
  for (lidx i = 0; i < n; i++)
    if (!lost || !lost[i]) to[i] += amounts[i];
}

VECTOR_CLONES void model_keep(int64_t *restrict to, const int64_t *restrict from,
                              const uint8_t *restrict kept, lidx n) {
  for (lidx i = 0; i < n; i++) to[i] = kept[i] ? from[i] : to[i];
}

VECTOR_CLONES bool model_count_down(uint16_t *restrict counter, uint8_t *restrict rests, lidx n) {
  uint8_t any = 0;
  for (lidx i = 0; i < n; i++) {
    const uint8_t r = counter[i] != 0;
    rests[i] = r, counter[i] = (uint16_t)(counter[i] - r);
    any |= r;
  }
  return any;
}

VECTOR_CLONES static bool reaches(const int64_t *restrict v, int64_t threshold, lidx n,
                                  uint8_t *restrict fired) {
  int64_t any = 0;
  for (lidx i = 0; i < n; i++) any |= -(int64_t)(v[i] >= threshold);
  if (!any) return false;
  for (lidx i = 0; i < n; i++) fired[i] = v[i] >= threshold;
  return true;
}

bool model_fires(const int64_t *v, int64_t threshold, bool strict, const int64_t *bar,
                 const uint8_t *rests, lidx n, uint8_t *fired) {
  const int64_t least = threshold + strict; /* v > threshold, in whole numbers */
  if (!bar && !reaches(v, least, n, fired)) return false;
  uint8_t any = 0;
  for (lidx i = 0; i < n; i++) {
    if (bar) fired[i] = v[i] >= least + bar[i];
    fired[i] &= (uint8_t) !(rests && rests[i]);
    any |= fired[i];
  }
  return any;
}

VECTOR_CLONES bool model_exceeds(const int64_t *x, int64_t bound, lidx n) {
  int64_t any = 0;
  for (lidx i = 0; i < n; i++) any |= -(int64_t)(x[i] >= bound) | -(int64_t)(x[i] <= -bound);
  return any;
}

VECTOR_CLONES bool model_exceeds32(const int32_t *x, int32_t bound, lidx n) {
  int32_t any = 0;
  for (lidx i = 0; i < n; i++) any |= -(int32_t)(x[i] >= bound) | -(int32_t)(x[i] <= -bound);
  return any;
}
