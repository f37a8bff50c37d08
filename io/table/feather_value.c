/* Numbers of Feather columns as ids, counts and text. */
#include "feather_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double EXACT = 9007199254740992.0; /* 2^53 */

int64_t value_int(const uint8_t *at, int bytes) {
  int64_t x = 0;
  memcpy(&x, at, (size_t)bytes);
  const int shift = 64 - 8 * bytes;
  return (int64_t)((uint64_t)x << shift) >> shift;
}

static uint64_t value_unsigned(const uint8_t *at, int bytes) {
  uint64_t x = 0;
  memcpy(&x, at, (size_t)bytes);
  return x;
}

/* IEEE 754 half precision: sign, 5 bits of exponent, 10 of fraction. */
static double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                      : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                     : ldexp(fraction, -24);
  return bits >> 15 ? -size : size;
}

static double value_real(const struct arrow_value *v, const uint8_t *at) {
  if (v->bytes == 2) return half((uint16_t)value_unsigned(at, 2));
  if (v->bytes == 4) {
    float x;
    memcpy(&x, at, sizeof x);
    return x;
  }
  double x;
  memcpy(&x, at, sizeof x);
  return x;
}

const char *value_id(const struct arrow_value *v, const uint8_t *at, uint64_t *id) {
  if (v->type == ARROW_FLOAT) {
    const double x = value_real(v, at);
    if (!(x >= 0) || x != floor(x)) return "an id must be a whole number that is not negative";
    if (x >= EXACT)
      return "an id above 2^53 that was written as a double has lost digits; write it as an "
             "integer";
    return *id = (uint64_t)x, NULL;
  }
  if (v->is_signed && value_int(at, v->bytes) < 0) return "an id must not be negative";
  return *id = value_unsigned(at, v->bytes), NULL;
}

const char *value_count(const struct arrow_value *v, const uint8_t *at, int64_t *count) {
  if (v->type == ARROW_FLOAT) {
    const double x = value_real(v, at);
    if (!(x == floor(x)) || x - x != 0) return "a whole number is wanted";
    if (x >= EXACT || x <= -EXACT) return "the number was written as a double and is above 2^53";
    return *count = (int64_t)x, NULL;
  }
  if (v->is_signed) return *count = value_int(at, v->bytes), NULL;
  const uint64_t x = value_unsigned(at, v->bytes);
  if (x > INT64_MAX) return "the number does not fit 64 bits with a sign";
  return *count = (int64_t)x, NULL;
}

static void real_text(const struct arrow_value *v, double x, char text[VALUE_TEXT]) {
  for (int digits = v->bytes == 8 ? 15 : 1; digits <= 17; digits++) {
    snprintf(text, VALUE_TEXT, "%.*g", digits, x);
    const double back = v->bytes == 8 ? strtod(text, NULL) : (double)strtof(text, NULL);
    if (back == x || x != x) return;
  }
}

void value_text(const struct arrow_value *v, const uint8_t *at, char text[VALUE_TEXT]) {
  if (v->type == ARROW_FLOAT)
    real_text(v, value_real(v, at), text);
  else if (v->is_signed)
    snprintf(text, VALUE_TEXT, "%" PRId64, value_int(at, v->bytes));
  else
    snprintf(text, VALUE_TEXT, "%" PRIu64, value_unsigned(at, v->bytes));
}
