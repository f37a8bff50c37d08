/* Sorts and searches whole numbers. */
#include "numbers.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

void sort_i64(int64_t *x, int64_t n) {
  if (n > 0) qsort(x, (size_t)n, sizeof *x, ascending);
}

int64_t find_i64(const int64_t *sorted, int64_t n, int64_t value) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (sorted[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
