/* ranks: 1 */
/* Products of the linear models: lif_times, the loops and the vector instructions against 128-bit
 * integers. */
#include "check.h"
#include "core/rng.h"
#include "kernels/cpu/lif/model_block.h"

enum { N = 37 }; /* no multiple of a vector's width */

static uint64_t draw(uint32_t round, uint32_t i, uint32_t what) {
  const struct rng_block r = rng_draw(5, round, i, what, 0);
  return (uint64_t)r.v[0] << 32 | r.v[1];
}

/* round(|x| f / 2^(32 + s)), halves away from zero, with the signs. */
static int64_t exact(int64_t x, struct lif_factor p) {
  const unsigned __int128 size = (unsigned __int128)(x < 0 ? -(uint64_t)x : (uint64_t)x) * p.f;
  const int64_t product = (int64_t)((size + ((unsigned __int128)1 << (31 + p.s))) >> (32 + p.s));
  return (x < 0) == (p.sign < 0) ? product : -product;
}

/* Many sizes; powers of two and multiples of 2^32, where halves are exact. */
static int64_t value_of(uint32_t round, uint32_t i) {
  const uint64_t r = draw(round, i, 1), kind = draw(round, i, 2);
  int64_t x = (int64_t)(r >> (4 + kind % 58));
  if (kind >> 8 & 1) x = (int64_t)1 << (kind >> 16) % 60;
  if ((kind >> 24) % 5 == 0) x = (int64_t)(kind >> 40 & 7) << 32;
  return kind >> 63 ? -x : x;
}

static struct lif_factor factor_of(uint32_t round) {
  const uint64_t r = draw(round, 0, 3);
  struct lif_factor p = {(uint32_t)(r >> 32 >> r % 20), (uint8_t)(r >> 8 & 31),
                         r & 1 << 20 ? 1 : -1};
  if (round % 3 == 0) p.s = 0;
  if (round % 7 == 0) p.f = (uint32_t)1 << (r >> 16 & 31);
  return p;
}

static void check_round(uint32_t round) {
  const struct lif_factor p = factor_of(round);
  int64_t x[N], sum[N], vector[N];
  for (int i = 0; i < N; i++) x[i] = value_of(round, (uint32_t)i), sum[i] = vector[i] = i - 7;
  model_accumulate(sum, x, N, p);
  if (model_products_here()) model_products(vector, x, N, p);
  for (int i = 0; i < N; i++) {
    CHECK_EQ(lif_times(x[i], p), exact(x[i], p));
    CHECK_EQ(sum[i], i - 7 + exact(x[i], p));
    if (model_products_here()) CHECK_EQ(vector[i], sum[i]);
  }
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  for (uint32_t round = 0; round < 20000; round++) check_round(round);
  return test_end();
}
