/* Writes amounts in units that fit them. */
#include "units.h"

#include <stdio.h>

struct unit {
  double size;
  const char *name;
};

/* In the largest of the units, from small to large, that leaves at least one; a number that would
 * be rounded up to the next unit is in that one. */
static const char *in_units(double amount, const struct unit *unit, int n, char *text) {
  int i = 0;
  while (i + 1 < n && amount >= 0.9995 * unit[i + 1].size) i++;
  const double x = amount / unit[i].size;
  const int digits = x >= 99.95 || x == 0 ? 0 : x >= 9.995 ? 1 : 2;
  snprintf(text, UNITS_TEXT, "%.*f %s", i == 0 && x == (int64_t)x ? 0 : digits, x, unit[i].name);
  return text;
}

const char *units_bytes(int64_t bytes, char text[UNITS_TEXT]) {
  static const struct unit units[] = {
      {1, "bytes"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}};
  return in_units((double)bytes, units, sizeof units / sizeof *units, text);
}

const char *units_memory(int64_t bytes, char text[UNITS_TEXT]) {
  static const struct unit units[] = {
      {1, "bytes"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}};
  return in_units((double)bytes, units, sizeof units / sizeof *units, text);
}

const char *units_time(double seconds, char text[UNITS_TEXT]) {
  static const struct unit units[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"},   {1, "s"},
                                      {60, "min"},  {3600, "h"},  {86400, "days"}};
  return in_units(seconds, units, sizeof units / sizeof *units, text);
}

const char *units_count(int64_t n, char text[UNITS_TEXT]) {
  char digits[UNITS_TEXT];
  const int length = snprintf(digits, sizeof digits, "%lld", n < 0 ? -(long long)n : (long long)n);
  char *to = text;
  if (n < 0) *to++ = '-';
  for (int i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = 0;
  return text;
}
