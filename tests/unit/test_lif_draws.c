/* ranks: 1 */
/* Poisson draws: every set of instructions that this machine has, and the loop for all, against
 * rng_draw and rng_unit, neuron by neuron. */
#include "check.h"
#include "core/rng.h"
#include "kernels/cpu/lif/draw.h"

#include <math.h>

enum { MOST = 40, ROWS = 200 };

static uint64_t number(uint32_t round, uint32_t i, uint32_t what) {
  const struct rng_block r = rng_draw(9, round, i, what, 0);
  return (uint64_t)r.v[0] << 32 | r.v[1];
}

struct example {
  struct lif_draw draw;
  double p;
  lidx n;
  lidx neuron[MOST];
  nodeid id[ROWS];
};

/* 0, the least, small ones, halves, all but 1, 1. */
static double probability_of(uint32_t round) {
  switch (round % 8) {
  case 0: return 0;
  case 1: return 0x1p-60;
  case 2: return 0x1p-53;
  case 3: return 1 - 0x1p-53;
  case 4: return 1;
  default: return ldexp(1 + (double)number(round, 0, 1) * 0x1p-64, -1 - (int)(round % 13));
  }
}

/* Rows that follow each other, or have gaps; in some rounds ids of more than 32 bits. */
static void make(uint32_t round, struct example *x) {
  x->p = probability_of(round);
  x->draw = (struct lif_draw){.seed = number(round, 0, 2),
                              .limit = (uint64_t)ceil(x->p * 0x1p53),
                              .step = (uint32_t)number(round, 0, 3),
                              .index = (uint32_t)number(round, 0, 4) & 0xFFFF,
                              .trial = (uint32_t)number(round, 0, 5)};
  x->n = 1 + (lidx)(round / 8 % MOST);
  const bool gaps = round / 3 % 2, large = round % 5 == 0;
  lidx row = (lidx)(number(round, 0, 6) % 40);
  for (lidx i = 0; i < x->n; i++) {
    x->neuron[i] = row;
    row += gaps ? 1 + (lidx)(number(round, (uint32_t)i, 7) % 4) : 1;
  }
  for (lidx r = 0; r < ROWS; r++) {
    const uint64_t any = number(round, (uint32_t)r, 8);
    x->id[r] = (nodeid)(large && any % 7 == 0 ? any >> 16 : any >> 32);
  }
}

static void check(const struct lif_draw_isa *isa, const struct example *x, lidx *hits_at_all) {
  struct lif_hits hits = {.n = 0};
  lidx n = 0;
  isa->draw(&x->draw, x->n, x->neuron, x->id, &hits);
  for (lidx i = 0; i < x->n; i++) {
    const uint64_t id = (uint64_t)x->id[x->neuron[i]];
    const struct rng_block r = rng_draw(x->draw.seed, (uint32_t)id, x->draw.step,
                                        x->draw.index | (uint32_t)(id >> 32) << 16, x->draw.trial);
    if (!(rng_unit(r.v[0], r.v[1]) < x->p)) continue;
    if (n >= hits.n || hits.row[n] != x->neuron[i])
      DIE(1, "%s: row %d is hit, and not listed as hit %d", isa->name, x->neuron[i], n);
    CHECK_EQ(hits.u[n], (((uint64_t)r.v[0] << 32) | r.v[1]) >> 11);
    n++;
  }
  CHECK_EQ(hits.n, n);
  *hits_at_all += n;
}

static void check_isa(const struct lif_draw_isa *isa) {
  static struct example x;
  lidx hits = 0;
  for (uint32_t round = 0; round < 4000; round++) {
    make(round, &x);
    if (x.draw.limit > 0) check(isa, &x, &hits);
  }
  CHECK(hits > 10000);
}

/* By whatever this machine has, and nobody at a probability of 0. */
static void check_choice(void) {
  static struct example x;
  static struct lif_hits hits;
  for (uint32_t round = 0; round < 64; round++) {
    make(round, &x);
    lif_draw(&x.draw, x.n, x.neuron, x.id, &hits);
    if (x.p == 0) CHECK_EQ(hits.n, 0);
    if (x.p == 1) CHECK_EQ(hits.n, x.n);
  }
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  for (const struct lif_draw_isa *const *isa = lif_draw_isas; *isa; isa++)
    if ((*isa)->usable()) check_isa(*isa);
  check_choice();
  return test_end();
}
