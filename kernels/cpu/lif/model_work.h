/* A batch of steps of one block of a model: the neurons that are not at rest stand side by side. */
#ifndef FASCICLE_LIF_MODEL_WORK_H
#define FASCICLE_LIF_MODEL_WORK_H

#include "model_fused.h"
#include "state.h"

/* Room for one block, and the block that is there now. */
struct lif_model_work {
  model_step *step;  /* of the model, or NULL: by passes */
  model_step *small; /* for components below LIF_LARGE, or NULL */
  struct model_dense d;
  const struct lif_class *stalls_of;   /* the class that `stalls` is of */
  int64_t stalls[LIF_MOST_COMPONENTS]; /* a component up to this size stays as it is, and moves no
                                          other but v */
  lidx block, base, n;                 /* rows base .. base + n - 1 */
  bool gathered;                       /* else all neurons are computed where they stand */
  uint16_t at[LIF_BLOCK];              /* [d.n] gathered: which neuron of the block */
  uint16_t place[LIF_BLOCK];           /* [n] gathered: where in d, for those that are */
  uint64_t active[LIF_WORDS];          /* neurons that have to be computed */
  uint64_t called[LIF_WORDS];          /* neurons that something may reach in the batch */
  uint64_t touched[LIF_WORDS];         /* neurons of stimuli that act in the batch */
  uint64_t arrived[LIF_WORDS];         /* neurons with arrivals in the last step taken */

  int64_t x[LIF_MOST_COMPONENTS][LIF_BLOCK]; /* gathered */
  uint16_t counter[LIF_BLOCK], class_of[LIF_BLOCK];

  /* what comes in at a step */
  struct model_inputs in;
  int64_t current[LIF_BLOCK], synapse[2][LIF_BLOCK], direct[LIF_BLOCK];

  /* arrivals that are added after the update, one by one, by sign */
  lidx n_late[2];
  uint16_t late_place[2][LIF_BLOCK];
  int32_t late_count[2][LIF_BLOCK];

  struct model_found found;

  /* by passes */
  int64_t next[LIF_MOST_COMPONENTS][LIF_BLOCK];
  int64_t bar[LIF_BLOCK];
  uint8_t rests[LIF_BLOCK], fired[LIF_BLOCK], lost[LIF_BLOCK];
};

/* Where neuron i of the block is among those computed. */
static inline lidx lif_place(const struct lif_model_work *w, lidx i) {
  return w->gathered ? w->place[i] : i;
}

/* Neuron i of those computed, in the block. */
static inline lidx lif_position(const struct lif_model_work *w, lidx i) {
  return w->gathered ? w->at[i] : i;
}

/* ---- kernels/cpu/lif/model_input.c ---- */

/* bits |= neurons of the block that arrivals may reach in a slot; sums of removed neurons are 0
 * from now on. Whether there are some. */
bool lif_model_reached(struct lif_engine *s, lidx block, char *slot, uint64_t *bits);

/* w->touched: by stimuli in steps step .. step + n - 1; whether there are some. */
bool lif_model_touched(struct lif_engine *s, struct lif_model_work *w, int64_t step, int n);

/* w->in: all that comes in at a step; false after a fault. */
bool lif_model_take(struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a);

/* Arrivals that are added after the update: not for neurons that lose them. */
void lif_model_add_late(struct lif_model_work *w);

/* The sums of the step are 0 from now on. */
void lif_model_clear(struct lif_engine *s, const struct lif_arrival *a);

/* ---- kernels/cpu/lif/model_pass.c ---- */

/* A step by one pass for each factor: any shape and classes, and neurons that are made to fire
 * (forced [n_forced], ascending places). As a model_step. */
void lif_model_passes(struct lif_model_work *w, lidx n_forced, const uint16_t *forced);

#endif
