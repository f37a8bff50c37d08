/* Draws of Poisson events on x86-64: the sets of instructions for which they are written. */
#include "kernels/cpu/lif/draw.h"

extern const struct lif_draw_isa lif_draw_avx2, lif_draw_avx512;

const struct lif_draw_isa *const lif_draw_isas[] = {&lif_draw_avx512, &lif_draw_avx2,
                                                    &lif_draw_portable, NULL};
