/* Machines for which no SIMD path is written. */
#include "kernels/interface/recur_window.h"

const struct recur_isa *const recur_isas[] = {&recur_plain, NULL};
