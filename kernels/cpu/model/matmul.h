/* Small dense products of the character model, on one thread. */
#ifndef FASCICLE_MATMUL_H
#define FASCICLE_MATMUL_H

#include "core/types.h"

/* c[m][n] = sum over k of a(m, k) b[k][n]; with `add`, c += . a(m, k) = a[m * a_row + k * a_col],
 * so that a may stand as it is or transposed; rows of b and c are contiguous, b_row and c_row
 * apart. Sums run over k in ascending order, whatever the machine's vector width. */
struct product {
  const float *a;
  int64_t a_row, a_col;
  const float *b;
  int64_t b_row;
  float *c;
  int64_t c_row;
  int64_t m, n, k;
  bool add;
};
void product(const struct product *p);

#endif
