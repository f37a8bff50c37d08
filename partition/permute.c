/* Random permutations computed one element at a time by a Feistel network. */
#include "permute.h"
#include "core/fail.h"
#include "core/rng.h"

enum { FOR_PERMUTE = 0x20000001, ROUNDS = 6 };

/* A Feistel network on the next even power of two, walked until it falls inside: at most
 * four times on average. */
uint64_t permute(uint64_t seed, uint32_t stream, uint32_t part, uint64_t n, uint64_t i) {
  ASSERT(i < n && n <= (uint64_t)1 << 62 && part < 1u << 28);
  int half = 1;
  while (((uint64_t)1 << (2 * half)) < n) half++;
  const uint64_t mask = ((uint64_t)1 << half) - 1;
  do {
    uint64_t left = i >> half, right = i & mask;
    for (uint32_t round = 0; round < ROUNDS; round++) {
      const struct rng_block b =
          rng_draw(seed, (uint32_t)right, part << 4 | round, stream, FOR_PERMUTE);
      const uint64_t next = left ^ (b.v[0] & mask);
      left = right, right = next;
    }
    i = left << half | right;
  } while (i >= n);
  return i;
}
