/* What a block finds in a step: spikes, faults; and the sums that it has used. */
#include "state.h"
#include "core/mem.h"

#include <string.h>

void lif_cpu_report(const struct lif_engine *s, struct lif_fault *fault,
                    const struct lif_arrival *a, int phase, lidx i, int64_t value) {
  const nodeid node = s->net->id[a->block * LIF_BLOCK + i];
  const struct lif_fault found = {a->step, phase, node, value};
  if (lif_fault_before(&found, fault)) *fault = found;
}

void lif_cpu_clear(struct lif_engine *s, const struct lif_arrival *a) {
  const size_t width = s->net->wide ? sizeof(int64_t) : sizeof(int32_t);
  const size_t ring = (size_t)s->n_blocks * LIF_BLOCK * width;
  for (int r = 0; r < s->n_rings; r++)
    memset(a->slot + r * ring + (size_t)a->block * LIF_BLOCK * width, 0, LIF_BLOCK * width);
  lif_flags(s, a->slot)[a->block] = 0;
}

uint32_t *lif_cpu_room(struct lif_found *found) {
  if (found->room < found->n + LIF_BLOCK) {
    found->room = 2 * found->room + LIF_BLOCK;
    found->row = mem_grow(found->row, found->room, sizeof *found->row);
  }
  return found->row + found->n;
}

/* part->fired: bytes 0 or 1, looked at eight at a time. */
void lif_cpu_collect(const struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a,
                     int k) {
  struct lif_found *found = &part->found[k];
  memset(part->fired + a->n, 0, LIF_BLOCK - (size_t)a->n);
  const uint32_t base = (uint32_t)(s->net->first + a->block * LIF_BLOCK);
  uint32_t *to = lif_cpu_room(found);
  for (uint32_t i = 0; i < LIF_BLOCK; i += 8) {
    uint64_t eight;
    memcpy(&eight, part->fired + i, sizeof eight);
    for (; eight; eight &= eight - 1) *to++ = base + i + (uint32_t)__builtin_ctzll(eight) / 8;
  }
  found->n = to - found->row;
}
