/* Which sums of a line differ from 0. */
#include "kernels/cpu/lif/model_block.h"

unsigned model_line(const int32_t *line) {
  unsigned bits = 0;
  for (int i = 0; i < 16; i++) bits |= (unsigned)(line[i] != 0) << i;
  return bits;
}
