/* Draws of Poisson events: one draw, and the loop for all machines. */
#include "draw.h"
#include "core/clones.h"
#include "core/rng.h"

static uint64_t draw_u(const struct lif_draw *d, uint32_t low, uint32_t high) {
  const struct rng_block r = rng_draw(d->seed, low, d->step, d->index | high << 16, d->trial);
  return (((uint64_t)r.v[0] << 32) | r.v[1]) >> 11;
}

static void keep_hit(const struct lif_draw *d, lidx row, uint64_t u, struct lif_hits *hits) {
  hits->row[hits->n] = row, hits->u[hits->n] = u;
  hits->n += u < d->limit;
}

void lif_draw_one(const struct lif_draw *d, lidx row, nodeid id, struct lif_hits *hits) {
  keep_hit(d, row, draw_u(d, (uint32_t)id, (uint32_t)((uint64_t)id >> 32)), hits);
}

enum { GROUP = 256 };

/* Without branches, so that compilers vectorise it. */
VECTOR_CLONES static void draw_group(const struct lif_draw *d, lidx n, const uint32_t *restrict low,
                                     const uint32_t *restrict high, uint64_t *restrict u) {
  const struct lif_draw own = *d;
  for (lidx i = 0; i < n; i++) u[i] = draw_u(&own, low[i], high[i]);
}

static void draw_portable(const struct lif_draw *d, lidx n, const lidx *neuron, const nodeid *id,
                          struct lif_hits *hits) {
  uint32_t low[GROUP], high[GROUP];
  uint64_t u[GROUP];
  for (lidx at = 0; at < n; at += GROUP) {
    const lidx m = n - at < GROUP ? n - at : GROUP;
    for (lidx i = 0; i < m; i++) {
      const uint64_t node = (uint64_t)id[neuron[at + i]];
      low[i] = (uint32_t)node, high[i] = (uint32_t)(node >> 32);
    }
    draw_group(d, m, low, high, u);
    for (lidx i = 0; i < m; i++) keep_hit(d, neuron[at + i], u[i], hits);
  }
}

static bool always(void) {
  return true;
}

const struct lif_draw_isa lif_draw_portable = {"portable", always, draw_portable};
