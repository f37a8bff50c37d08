/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). A draw is a pure function of (key, counter), so it does not depend on ranks,
 * threads, order or device. The header is plain C99 and is also compiled by nvcc. */
#ifndef FASCICLE_RNG_H
#define FASCICLE_RNG_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define RNG_INLINE static __host__ __device__ __forceinline__
#else
#define RNG_INLINE static inline
#endif

struct rng_block {
  uint32_t v[4];
};

/* Ten rounds of Philox4x32. key: 64 bits; counter: four 32-bit words. */
RNG_INLINE struct rng_block rng_draw(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2,
                                     uint32_t c3) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)b, c3 = (uint32_t)a, c0 = n0, c2 = n2;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  struct rng_block out = {{c0, c1, c2, c3}};
  return out;
}

/* Uniform in [0, 1) with 53 bits, from two words. */
RNG_INLINE double rng_unit(uint32_t high, uint32_t low) {
  return (double)((((uint64_t)high << 32) | low) >> 11) * 0x1p-53;
}

/* Standard normal by Box and Muller, from a whole block: uses words 0..3. */
RNG_INLINE double rng_normal(struct rng_block b) {
  const double u = 1.0 - rng_unit(b.v[0], b.v[1]); /* (0, 1] */
  const double v = rng_unit(b.v[2], b.v[3]);
  return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* Uniform integer in [0, n), n >= 1, by the high part of a 64 x 64 bit
 * product (bias under 2^-64 n). */
RNG_INLINE uint64_t rng_below(uint32_t high, uint32_t low, uint64_t n) {
  const uint64_t x = ((uint64_t)high << 32) | low;
  return (uint64_t)(((unsigned __int128)x * n) >> 64);
}

#endif
