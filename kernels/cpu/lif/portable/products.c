/* No products by wide vectors here: the loops of model_block.c do. */
#include "kernels/cpu/lif/model_block.h"

bool model_products_here(void) {
  return false;
}

void model_products(int64_t *to, const int64_t *from, lidx n, struct lif_factor p) {
  for (lidx i = 0; i < n; i++) to[i] += lif_times(from[i], p);
}
