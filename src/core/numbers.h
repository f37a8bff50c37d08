/* Small functions of whole numbers. */
#ifndef FASCICLE_NUMBERS_H
#define FASCICLE_NUMBERS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline int64_t least_i64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t most_i64(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* The finish of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014): every bit of the input reaches every bit of the result, and no
 * two inputs give the same. */
static inline uint64_t mix_u64(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/* In place, ascending. */
void sort_i64(int64_t *x, int64_t n);

/* Of n ascending numbers the place of the first that is not below `value`; n when all are. */
int64_t find_i64(const int64_t *sorted, int64_t n, int64_t value);

#ifdef __cplusplus
}
#endif
#endif
