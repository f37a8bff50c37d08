/* Some neurons of a block, side by side, and a step of them in one pass for the shapes that models
 * have. */
#ifndef FASCICLE_LIF_MODEL_FUSED_H
#define FASCICLE_LIF_MODEL_FUSED_H

#include "block.h"

/* Components below this in size can be computed by narrower products. */
#define LIF_LARGE ((int64_t)1 << 51)

enum { LIF_WORDS = LIF_BLOCK / 64 }; /* a bit for each neuron of a block */

/* The neurons that are computed, and what they are made of. Arrays are readable and writable up to
 * the next multiple of 8 neurons. */
struct model_dense {
  const struct lif_shape *shape;
  const struct lif_model *model;
  const struct lif_class *class; /* by which all move; NULL: each by its own */
  struct lif_factor factor[LIF_MOST_COMPONENTS]
                          [LIF_MOST_COMPONENTS]; /* of that class: [to][from] */
  lidx n;
  int64_t *x[LIF_MOST_COMPONENTS]; /* [n] */
  uint16_t *counter;               /* [n] */
  const uint16_t *class_of;        /* [n] */
  bool rests;                      /* some counter may be above 0 */
};

/* What comes in at a step: [n] each, or NULL. By sign: 0 for component plus, 1 for minus. */
struct model_inputs {
  const int64_t *current;    /* to v, with the update */
  const int32_t *arrived[2]; /* counts */
  const int64_t *synapse[2];
  const int64_t *direct; /* onto v itself */
};

/* What a step found, as bits of the n neurons and some behind them. */
struct model_found {
  bool settling;                  /* in: `changed` is wanted */
  bool any, rests;                /* somebody fires; some counter was above 0 */
  bool large;                     /* some component may have reached LIF_LARGE */
  bool exceeds;                   /* some component may have left its bounds */
  uint8_t fired[LIF_BLOCK / 8];   /* nobody is reset yet */
  uint8_t lost[LIF_BLOCK / 8];    /* fires or rests */
  uint8_t changed[LIF_BLOCK / 8]; /* the update moves it, or it rests */
};

/* A shape as a loop is compiled for it. */
struct model_form {
  int n;                             /* components */
  uint8_t from[LIF_MOST_COMPONENTS]; /* [to] set of components that it takes from */
  uint8_t keeps, frozen;
  int plus, minus, adaptation;
  bool early, whole; /* whole: s = 0 in all factors */
};

typedef void model_step(const struct model_dense *d, const struct model_inputs *in,
                        struct model_found *found);

struct model_loop {
  struct model_form form;
  model_step *step;
};

/* Loops [n] by AVX-512 and AVX2; n = 0 where this machine has none. */
const struct model_loop *model_loops512(int *n);
const struct model_loop *model_loops256(int *n);

/* For components below LIF_LARGE alone, and factors with s <= LIF_SMALL_SHIFT. */
const struct model_loop *model_loops_small(int *n);
enum { LIF_SMALL_SHIFT = 20 };

/* Neurons whose potential alone moves, and that nothing reaches for n_steps. */
struct model_alone {
  int n_steps;
  struct lif_factor factor; /* of v on itself */
  bool keeps;
  int64_t least; /* fires at v >= least */
};
enum { LIF_ALONE = 32 };

/* Their potentials v after the steps, each of which adds drive to them; both [n rounded up to
 * LIF_ALONE]. moved: bits of those that the
 * last step changes. False: somebody fires or gets large, or there are no loops for small
 * components; v and moved are then of no use. */
bool model_run_alone(const struct model_alone *alone, lidx n, int64_t *v, int64_t *drive,
                     uint8_t *moved);

/* The quickest loop for a model, or NULL; the same for components below LIF_LARGE. */
model_step *model_fused_step(const struct lif_model *model);
model_step *model_small_step(const struct lif_model *model);

#endif
