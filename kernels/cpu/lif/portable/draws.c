/* No draws by vector instructions here: the loop of draw_loop.c does. */
#include "kernels/cpu/lif/draw.h"

const struct lif_draw_isa *const lif_draw_isas[] = {&lif_draw_portable, NULL};
