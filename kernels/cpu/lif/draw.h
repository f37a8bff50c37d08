/* Draws of Poisson events: which neurons get some, and the number that says how many. A draw is a
 * pure function of seed, neuron, step, stimulus and trial (contract/lif.h), so neurons are drawn
 * for side by side. */
#ifndef FASCICLE_LIF_DRAW_H
#define FASCICLE_LIF_DRAW_H

#include "contract/lif.h"

/* u = the 53-bit integer (v[0] 2^32 + v[1]) >> 11 of rng_draw(seed, id, step, index | id high <<
 * 16, trial). A neuron is hit where u < limit: for a probability p, that is rng_unit < p exactly
 * when limit = p 2^53, rounded up. */
struct lif_draw {
  uint64_t seed, limit;
  uint32_t step, index, trial;
};

/* The draws of a stimulus at a step; step: its low half counts. */
static inline struct lif_draw lif_draw_of(const struct lif_stimulus *stimulus, uint64_t seed,
                                          int64_t step, uint32_t trial, uint64_t limit) {
  return (struct lif_draw){seed, limit, (uint32_t)step, (uint32_t)stimulus->index, trial};
}

enum { LIF_DRAWS = 1024, LIF_DRAW_SPARE = 8 }; /* most neurons at once; room to write past them */

struct lif_hits {
  lidx n;
  lidx row[LIF_DRAWS + LIF_DRAW_SPARE];   /* [n] of `neuron`, ascending */
  uint64_t u[LIF_DRAWS + LIF_DRAW_SPARE]; /* [n] */
};

/* Draws for neuron [n], rows strictly ascending, n <= LIF_DRAWS; id by row. */
void lif_draw(const struct lif_draw *d, lidx n, const lidx *neuron, const nodeid *id,
              struct lif_hits *hits);

/* The same by the loop for all machines and by each set of vector instructions, the fastest first,
 * the portable one last; `usable` says whether this machine has them. limit > 0 here. */
struct lif_draw_isa {
  const char *name;
  bool (*usable)(void);
  void (*draw)(const struct lif_draw *d, lidx n, const lidx *neuron, const nodeid *id,
               struct lif_hits *hits);
};
extern const struct lif_draw_isa *const lif_draw_isas[]; /* NULL after the last */
extern const struct lif_draw_isa lif_draw_portable;

/* One draw, added to the hits if it is one. */
void lif_draw_one(const struct lif_draw *d, lidx row, nodeid id, struct lif_hits *hits);

#endif
