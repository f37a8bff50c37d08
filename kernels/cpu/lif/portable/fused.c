/* No fused loops here: the passes of model_pass.c do. */
#include "kernels/cpu/lif/model_fused.h"

const struct model_loop *model_loops512(int *n) {
  *n = 0;
  return NULL;
}

bool model_run_alone(const struct model_alone *alone, lidx n, int64_t *v, int64_t *drive,
                     uint8_t *moved) {
  (void)alone, (void)n, (void)v, (void)drive, (void)moved;
  return false;
}

const struct model_loop *model_loops_small(int *n) {
  *n = 0;
  return NULL;
}

const struct model_loop *model_loops256(int *n) {
  *n = 0;
  return NULL;
}
