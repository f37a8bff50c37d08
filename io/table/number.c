/* Numbers written as text, exactly: digits never pass through a double unless they were written as
 * one. And what may be text at all. */
#include "reader.h"
#include "core/json.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double EXACT = 9007199254740992.0; /* 2^53: below it doubles hold every whole number */

struct span span_trim(struct span s) {
  while (s.n && (*s.at == ' ' || *s.at == '\t')) s.at++, s.n--;
  while (s.n && (s.at[s.n - 1] == ' ' || s.at[s.n - 1] == '\t')) s.n--;
  return s;
}

/* strtod over a copy; only decimal notation, so neither "nan" nor "0x1p3". */
static bool read_double(struct span s, double *x) {
  char copy[64];
  if (s.n == 0 || s.n >= (int64_t)sizeof copy) return false;
  for (int64_t i = 0; i < s.n; i++)
    if (!strchr("0123456789+-.eE", s.at[i]) || !s.at[i]) return false;
  memcpy(copy, s.at, (size_t)s.n);
  copy[s.n] = 0;
  char *end;
  errno = 0;
  *x = strtod(copy, &end);
  return end != copy && !*end && *x - *x == 0;
}

bool span_real(struct span s, double *x) {
  return read_double(span_trim(s), x);
}

bool span_is_number(struct span s) {
  double x;
  return span_real(s, &x);
}

/* All digits? Then the exact value, or false in *fits. */
static bool read_digits(struct span s, uint64_t *x, bool *fits) {
  if (!s.n) return false;
  uint64_t value = 0;
  *fits = true;
  for (int64_t i = 0; i < s.n; i++) {
    const unsigned digit = (unsigned char)s.at[i] - (unsigned)'0';
    if (digit > 9) return false;
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
      *fits = false;
  }
  *x = value;
  return true;
}

const char *span_id(struct span s, uint64_t *id) {
  s = span_trim(s);
  bool fits;
  if (read_digits(s, id, &fits)) return fits ? NULL : "an id must be below 2^64";
  if (!s.n) return "an id is missing";
  double x;
  if (!read_double(s, &x)) return "an id must be a whole number (names as ids: --ids names)";
  if (x < 0) return "an id must not be negative";
  if (x >= EXACT)
    return "an id above 2^53 that was written as a double has lost digits; write it as an integer";
  *id = (uint64_t)x;
  return (double)*id == x ? NULL : "an id must be a whole number";
}

const char *span_count(struct span s, int64_t *count) {
  s = span_trim(s);
  const bool minus = s.n && *s.at == '-';
  uint64_t x;
  bool fits;
  if (read_digits((struct span){s.at + minus, s.n - minus}, &x, &fits)) {
    if (!fits || x > INT64_MAX) return "the number does not fit 64 bits";
    *count = minus ? -(int64_t)x : (int64_t)x;
    return NULL;
  }
  if (!s.n) return "the value is missing";
  double d;
  if (!read_double(s, &d)) return "a whole number is wanted";
  if (d >= EXACT || d <= -EXACT) return "the number was written as a double and is above 2^53";
  *count = (int64_t)d;
  return (double)*count == d ? NULL
                             : "a whole number is wanted, not a fraction; --scale makes whole "
                               "impulses of fractions";
}

/* A decimal number taken apart: its digits without the point, and how many of them lie before it,
 * exponent included. */
struct digits {
  int n;
  int8_t digit[64];
  int64_t before;
};

/* `s` is a number for read_double; false when its exponent is none of 64 bits. */
static bool take_apart(struct span s, struct digits *d) {
  int64_t exponent = 0;
  bool point = false;
  *d = (struct digits){0};
  for (int64_t i = *s.at == '-' || *s.at == '+'; i < s.n; i++) {
    if (s.at[i] == 'e' || s.at[i] == 'E') {
      const int64_t from = i + 1 + (s.at[i + 1] == '+');
      if (span_count((struct span){s.at + from, s.n - from}, &exponent)) return false;
      break;
    }
    if (s.at[i] == '.')
      point = true;
    else
      d->digit[d->n++] = (int8_t)(s.at[i] - '0'), d->before += !point;
  }
  return !__builtin_add_overflow(d->before, exponent, &d->before);
}

/* The first `kept` digits as a number, the others rounded half to even; false when it is too large.
 */
static bool round_digits(const struct digits *d, int64_t kept, int64_t *units) {
  enum { NEVER_FITS = 128 };
  if (kept > NEVER_FITS) kept = NEVER_FITS;
  *units = 0;
  for (int64_t i = 0; i < kept; i++)
    if (__builtin_mul_overflow(*units, 10, units) ||
        __builtin_add_overflow(*units, i < d->n ? d->digit[i] : 0, units))
      return false;
  if (kept < 0 || kept >= d->n || d->digit[kept] < 5) return true;
  bool above = d->digit[kept] > 5;
  for (int64_t i = kept + 1; i < d->n; i++) above |= d->digit[i] > 0;
  return !(above || *units % 2) || !__builtin_add_overflow(*units, 1, units);
}

const char *span_decimal(struct span s, int places, int64_t *units) {
  struct digits digits;
  double any;
  ASSERT(places >= 0 && places <= 9);
  s = span_trim(s);
  if (!s.n) return "the value is missing";
  if (!read_double(s, &any)) return "a number is wanted";
  if (!take_apart(s, &digits) || digits.before > INT64_MAX - places ||
      !round_digits(&digits, digits.before + places, units))
    return "the number does not fit 64 bits";
  if (*s.at == '-') *units = -*units;
  return NULL;
}

const char *span_text(struct span s) {
  unsigned char high = 0;
  for (int64_t i = 0; i < s.n; i++) high |= (unsigned char)s.at[i];
  if (high >= 0x80 && !json_can_hold(s.at, s.n))
    return "not UTF-8; write the table anew in UTF-8 (iconv -f LATIN1 -t UTF-8, if it is Latin-1)";
  return s.n && memchr(s.at, 0, (size_t)s.n) ? "a zero byte does not belong in text" : NULL;
}

const char *span_shown(struct span s) {
  enum { MOST = 60, ESCAPED = 4, MARKS = 8 };
  static _Thread_local char text[4][ESCAPED * MOST + MARKS];
  static _Thread_local int turn;
  const bool utf8 = json_can_hold(s.at, s.n);
  char *to = text[turn++ & 3];
  int n = 0;
  to[n++] = '\'';
  for (int64_t i = 0; i < s.n && i < MOST; i++) {
    const unsigned char c = (unsigned char)s.at[i];
    if (c == '\t')
      to[n++] = '\\', to[n++] = 't';
    else if (c >= 0x80 && !utf8)
      n += sprintf(to + n, "\\x%02X", c);
    else
      to[n++] = iscntrl(c) ? '?' : s.at[i];
  }
  if (s.n > MOST) n += sprintf(to + n, "...");
  to[n++] = '\'';
  to[n] = 0;
  return to;
}
