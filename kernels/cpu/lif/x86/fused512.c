/* Steps of linear models by AVX-512: eight neurons at once. */
#include "kernels/cpu/lif/model_fused.h"

#include "lanes512.h"
#include "products.h"

#include "fused.h"

const struct model_loop *model_loops512(int *n) {
  *n = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl")
           ? (int)(sizeof loops / sizeof *loops)
           : 0;
  return loops;
}
