/* Which sums of a line differ from 0, by SSE2. */
#include "kernels/cpu/lif/model_block.h"

#include <emmintrin.h>

/* All bits where a sum is 0. */
static __m128i zeros(const int32_t *x) {
  return _mm_cmpeq_epi32(_mm_loadu_si128((const void *)x), _mm_setzero_si128());
}

unsigned model_line(const int32_t *line) {
  const __m128i low = _mm_packs_epi32(zeros(line), zeros(line + 4)),
                high = _mm_packs_epi32(zeros(line + 8), zeros(line + 12));
  return ~(unsigned)_mm_movemask_epi8(_mm_packs_epi16(low, high)) & 0xffff;
}
