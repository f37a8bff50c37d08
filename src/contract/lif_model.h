/* Linear integrate-and-fire models: what a backend has to know of one to compute it, the same bits
 * everywhere. A neuron has a few components (v first), 64-bit integers of 2^-32 units. One step k
 * of a neuron, all in exact integers:
 *
 *   resting = counter > 0; if so counter -= 1
 *   x' = (x where the shape keeps it, else 0) + sum over entries of times(x[from], factor)
 *   v' += drive + currents of the step (+ arrivals and events into v's synapse, if arrivals_early)
 *   a resting neuron keeps its frozen components as they were
 *   fires = not resting and v' > threshold (or >=), threshold + w where adaptation raises it;
 *           or a stimulus makes it fire, whatever else
 *   not arrivals_early: positive sums go to component plus, negative ones to minus, and so do
 * events into the synapse; where that component is frozen, not for a neuron that rests or fires
 *   events into v are added, not for a neuron that rests or fires
 *   who fires: v = reset, cleared components = 0, w += jump, counter = rest
 *
 * Arrivals are counts, whole numbers of the weight's unit, worth 2^32 each. A removed neuron gets
 * no input and never fires. At the end of a step every sum of arrivals is below LIF_MOST_ARRIVALS
 * in size and every component below LIF_MOST_VALUE; else the run ends with that fault, so no sum of
 * two ever leaves 63 bits. tests/reference/README.md derives the factors and checks them. */
#ifndef FASCICLE_LIF_MODEL_H
#define FASCICLE_LIF_MODEL_H

#include "core/types.h"

enum { LIF_MOST_COMPONENTS = 6, LIF_MOST_ENTRIES = 16, LIF_MOST_CLASSES = 65536 };

#define LIF_MOST_ARRIVALS ((int64_t)1 << 28)
#define LIF_MOST_VALUE    ((int64_t)1 << 60)

/* p = sign f 2^-(32 + s), 0 <= f < 2^32, 0 <= s <= 31. */
struct lif_factor {
  uint32_t f;
  uint8_t s;
  int8_t sign; /* 1 or -1 */
};

/* Where a factor stands in the propagator. */
struct lif_entry {
  uint8_t to, from;
};

/* What all neurons of a run have in common. Components are numbered; a set of them is a bit mask.
 */
struct lif_shape {
  int n_components;
  int n_entries; /* ascending by (to, from) */
  struct lif_entry entry[LIF_MOST_ENTRIES];
  int plus, minus;     /* components that positive and negative arrivals go to */
  bool arrivals_early; /* arrivals join the update and are lost with what it loses */
  bool strict;         /* fires at v > threshold, else at v >= threshold */
  uint8_t keeps;       /* components whose decay is a part taken away: x' begins as x */
  uint8_t frozen;      /* components that a resting neuron keeps as they are */
  uint8_t cleared;     /* components that a spike sets to 0 */
  int adaptation;      /* component that a spike adds jump to; -1: none */
  bool raises;         /* some class adds it to its threshold */
};

/* What neurons of one class have in common. */
struct lif_class {
  struct lif_factor factor[LIF_MOST_ENTRIES]; /* in the order of shape.entry; f = 0: none */
  int64_t threshold, reset, jump;
  int64_t drive; /* of the constant current, into v in each step */
  bool raises;   /* adaptation is added to the threshold */
  uint16_t rest; /* steps at rest after a spike */
};

struct lif_model {
  struct lif_shape shape;
  int n_classes;
  const struct lif_class *classes; /* [n_classes] */
  const uint16_t *class_of;        /* [n_own] */
};

/* x p, to the nearest integer, halves away from zero. |x| < 2^63. */
static inline int64_t lif_times(int64_t x, struct lif_factor p) {
  const uint64_t size = x < 0 ? -(uint64_t)x : (uint64_t)x;
  const uint64_t high = (size >> 32) * p.f, low = (size & 0xffffffffu) * p.f;
  const uint64_t product = p.s ? (high + (low >> 32) + ((uint64_t)1 << (p.s - 1))) >> p.s
                               : high + ((low + 0x80000000u) >> 32);
  return (x < 0) == (p.sign < 0) ? (int64_t)product : -(int64_t)product;
}

/* Rings of arrivals: one for each component that takes them. */
static inline int lif_model_rings(const struct lif_model *model) {
  return model && model->shape.plus != model->shape.minus ? 2 : 1;
}

static inline int lif_model_components(const struct lif_model *model) {
  return model ? model->shape.n_components : 1;
}

#endif
