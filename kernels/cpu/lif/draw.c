/* Draws of Poisson events: the choice of instructions. */
#include "draw.h"

void lif_draw(const struct lif_draw *d, lidx n, const lidx *neuron, const nodeid *id,
              struct lif_hits *hits) {
  hits->n = 0;
  if (d->limit == 0) return;
  const struct lif_draw_isa *const *isa = lif_draw_isas;
  while (!(*isa)->usable()) isa++;
  (*isa)->draw(d, n, neuron, id, hits);
}
