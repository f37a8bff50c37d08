/* Rounding to 16 bits and back, to nearest, ties to even: what mixed precision
 * does to gathered rows. */
#ifndef FASCICLE_RECUR_ROUND_H
#define FASCICLE_RECUR_ROUND_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float bits_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Drops the last `dropped` bits of the significand. NaN stays NaN. */
static inline float round_bits(float x, int dropped) {
  const uint32_t bits = float_bits(x), half = (1u << (dropped - 1)) - 1 + (bits >> dropped & 1);
  return isnan(x) ? x : bits_float((bits + half) >> dropped << dropped);
}

/* bfloat16: 8 bits of exponent, 8 of significand. */
static inline float round_bfloat(float x) {
  return round_bits(x, 16);
}

/* binary16: 11 bits of significand, steps of 2^-24 below 2^-14, infinity from 65520 on. */
static inline float round_half(float x) {
  const float size = fabsf(x), steps = 0.5f; /* floats around it are 2^-24 apart */
  const float small = (size + steps) - steps, normal = round_bits(size, 13);
  const float rounded = size < 0x1p-14f ? small : size >= 65520 ? size + INFINITY : normal;
  return copysignf(rounded, x);
}

#endif
