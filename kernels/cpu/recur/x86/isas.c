/* SIMD paths of x86-64. */
#include "kernels/interface/recur_window.h"

extern const struct recur_isa recur_avx2, recur_avx512;

const struct recur_isa *const recur_isas[] = {&recur_avx512, &recur_avx2, &recur_plain, NULL};
