/* Contiguous ranges of rows of equal weight, and their owners. */
#include "rows.h"
#include "core/fail.h"

#include <stdbool.h>

/* The row at which the weight of all rows before it comes closest to `share` of the total. */
static gidx cut_at(gidx n, const eidx *row_ptr, int part, int parts) {
  const __int128 total = (__int128)row_ptr[n] + n;
  const int64_t goal = (int64_t)(total * part / parts);
  gidx low = 0, high = n; /* weight(low) <= goal */
  while (low < high) {
    const gidx middle = low + (high - low + 1) / 2;
    if (row_ptr[middle] + middle <= goal)
      low = middle;
    else
      high = middle - 1;
  }
  if (low < n && row_ptr[low + 1] + low + 1 - goal < goal - row_ptr[low] - low) low++;
  return low;
}

void rows_split(gidx n, const eidx *row_ptr, const gidx *block, int n_blocks, int parts,
                gidx *first) {
  ASSERT(parts >= 1 && (row_ptr || block || !n));
  const bool nested = block && n_blocks >= parts && n_blocks % parts == 0;
  first[0] = 0;
  for (int p = 1; p < parts; p++) {
    const gidx at = nested ? block[(int64_t)n_blocks / parts * p] : cut_at(n, row_ptr, p, parts);
    first[p] = at > first[p - 1] ? at : first[p - 1];
  }
  first[parts] = n;
}

int rows_owner(const gidx *first, int parts, gidx row) {
  ASSERT(row >= first[0] && row < first[parts]);
  int low = 0, high = parts - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (first[middle] <= row)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}
