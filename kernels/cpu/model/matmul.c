/* Small dense products for the readout, row by row in a fixed order. */
#include "matmul.h"
#include "core/clones.h"

#include <string.h>

/* A tile of ROWS x LANES of c stays in registers while k runs. */
enum { ROWS = 6, LANES = 16 };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* n_rows is a constant at every call, so the loops over rows unroll. */
static inline __attribute__((always_inline)) void tile(const struct product *p, int64_t m,
                                                       int64_t n, int n_rows) {
  lanes sum[ROWS];
  float *c = p->c + m * p->c_row + n;
  for (int r = 0; r < n_rows; r++) sum[r] = p->add ? *(lanes *)(c + r * p->c_row) : (lanes){0};
  const float *a = p->a + m * p->a_row, *b = p->b + n;
  for (int64_t k = 0; k < p->k; k++) {
    const lanes column = *(const lanes *)(b + k * p->b_row);
    for (int r = 0; r < n_rows; r++) sum[r] += a[r * p->a_row + k * p->a_col] * column;
  }
  for (int r = 0; r < n_rows; r++) *(lanes *)(c + r * p->c_row) = sum[r];
}

/* The last columns, fewer than LANES. */
static inline __attribute__((always_inline)) void narrow_row(const struct product *p, int64_t m,
                                                             int64_t n, int width) {
  float sum[LANES] = {0}, *c = p->c + m * p->c_row + n;
  if (p->add) memcpy(sum, c, (size_t)width * sizeof *c);
  const float *a = p->a + m * p->a_row, *b = p->b + n;
  for (int64_t k = 0; k < p->k; k++)
    for (int l = 0; l < width; l++) sum[l] += a[k * p->a_col] * b[k * p->b_row + l];
  memcpy(c, sum, (size_t)width * sizeof *c);
}

VECTOR_CLONES void product(const struct product *p) {
  int64_t n = 0;
  for (; n + LANES <= p->n; n += LANES) {
    int64_t m = 0;
    for (; m + ROWS <= p->m; m += ROWS) tile(p, m, n, ROWS);
    for (; m < p->m; m++) tile(p, m, n, 1);
  }
  if (n == p->n) return;
  for (int64_t m = 0; m < p->m; m++) narrow_row(p, m, n, (int)(p->n - n));
}
