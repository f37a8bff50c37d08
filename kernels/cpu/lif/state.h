/* The fast LIF path's memory. Own rows stand in blocks; each thread owns a run of blocks and is the
 * only one that touches their neurons, for the update and for the delivery alike, so there are no
 * atomics and the order of events never shows. */
#ifndef FASCICLE_LIF_STATE_H
#define FASCICLE_LIF_STATE_H

#include "block.h"
#include "rows.h"

/* Spikes of one step found by one thread, ascending. */
struct lif_found {
  uint32_t *row;
  int64_t n, room;
};

/* One thread's blocks, what it found, and room to work on one block. */
struct lif_part {
  lidx first_block, last_block; /* [first, last) */
  struct lif_found *found;      /* [min_delay] by step of the batch */
  struct lif_fault fault;
  int64_t sum[LIF_BLOCK];
  int32_t input[LIF_BLOCK];
  uint8_t fired[LIF_BLOCK];
  uint16_t forced[LIF_BLOCK];
  struct lif_model_work *work; /* room for a block of a model; NULL: lif_shift */
};

/* Stimulus `stimulus` reaches its neurons [from, to) in one block. */
struct lif_touch {
  int stimulus;
  lidx from, to;
};

struct lif_engine {
  const struct lif_net *net;
  struct lif_params params;
  const struct lif_stimulus *stimulus;
  uint64_t seed;
  uint32_t trial;
  int64_t step; /* the next one */

  lidx n_blocks;
  int32_t *potential;   /* [n_own]; NULL with a model */
  int64_t *component;   /* [n_components][n_blocks x LIF_BLOCK] with a model */
  uint64_t *settled;    /* [n_blocks][LIF_BLOCK / 64] with a model: bits of neurons that a step
                           without input does not change */
  uint64_t *alone;      /* the same of neurons whose potential alone moves, if nothing reaches them;
                           not all of them */
  int32_t *block_class; /* [n_blocks] with a model: a class by which all its neurons
                          move, or -1 */
  uint16_t *counter;    /* [n_blocks x LIF_BLOCK] */
  const uint8_t *mute;  /* net->mute, or a block of zeros that stands for every block */
  bool muted;

  /* The delay ring: max_delay slots; the sums due at t are in slot t % max_delay, cleared once
   * used. A slot is sums [n_rings][n_blocks x LIF_BLOCK] of int32 (wide: int64), and behind them
   * one byte per block: may a sum there differ from 0? With a model 64 bits per block instead, bit
   * j for its neurons LIF_LINE j to LIF_LINE (j + 1) - 1. */
  char *ring;
  int n_rings;
  size_t slot_bytes, flags_at;
  char *
      *slot; /* [2 max_delay]: slot[t % max_delay + d] is that of step t + d, 0 <= d <= max_delay */

  uint8_t *resting; /* [n_blocks] some counter may be above 0 */
  uint8_t *large;   /* [n_blocks] with a model: some component may have reached LIF_LARGE */
  uint8_t *still;   /* [n_blocks] lif_shift: a step without input changes nothing */
  uint8_t *barred;  /* [n_blocks] some neuron is removed */

  int64_t *touch_ptr; /* [n_blocks + 2] into touch; within a block by first step */
  int64_t *touch_now; /* [n_blocks] the first that is not over */
  struct lif_touch *touch;

  struct lif_rows *rows; /* streamed edges; NULL: resident */

  int n_parts;
  struct lif_part *part;

  struct lif_spikes mine; /* all parts' spikes of the batch */
  int64_t mine_room;
};

enum { LIF_LINE = LIF_BLOCK / 64 };

static inline uint64_t *lif_lines(const struct lif_engine *s, char *slot) {
  return (uint64_t *)(void *)(slot + s->flags_at);
}

static inline size_t lif_flag_bytes(const struct lif_engine *s) {
  return (size_t)s->n_blocks * (s->params.model ? sizeof(uint64_t) : 1);
}

static inline lidx lif_block_size(const struct lif_engine *s, lidx block) {
  const lidx left = s->net->n_own - block * LIF_BLOCK;
  return left < LIF_BLOCK ? left : LIF_BLOCK;
}

static inline uint8_t *lif_flags(const struct lif_engine *s, char *slot) {
  return (uint8_t *)slot + s->flags_at;
}

static inline char *lif_slot_at(const struct lif_engine *s, int64_t step) {
  return s->slot[step % s->net->max_delay];
}

/* What comes in at one step of one block. */
struct lif_arrival {
  lidx block, n;
  int64_t step;
  char *slot;
  bool arrives; /* sums may be there */
  bool summed;  /* part->sum holds them, and what stimuli add (lif_shift) */
  int stimuli;  /* LIF_ADDS, LIF_FORCES */
  lidx n_forced;
};

enum { LIF_ADDS = 1, LIF_FORCES = 2 }; /* what the stimuli of a block do at a step */

/* The first of `replayed` that is not before (step, neuron). */
static inline int64_t lif_first_replayed(const struct lif_stimulus *stimulus, int64_t step,
                                         lidx neuron) {
  int64_t low = 0, high = stimulus->n_steps;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const struct lif_replayed r = stimulus->replayed[middle];
    if (r.step < step || (r.step == step && r.neuron < neuron))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* ---- kernels/cpu/lif/stimuli.c ---- */

/* Does the stimulus act at the step? For LIF_REPLAY: on some neuron. */
bool lif_stimulus_is_on(const struct lif_stimulus *stimulus, int64_t step);

/* What the stimuli of a block do at a step, steps in ascending order: LIF_ADDS, LIF_FORCES. */
int lif_stimuli_on(struct lif_engine *s, lidx block, int64_t step);

/* The neurons of the block, but for removed ones, that are made to fire now: part->forced [returned
 * n], by their positions in the block, each once. */
lidx lif_find_forced(const struct lif_engine *s, struct lif_part *part,
                     const struct lif_arrival *a);

/* ---- kernels/cpu/lif/found.c ---- */

/* The smaller fault stays. */
void lif_cpu_report(const struct lif_engine *s, struct lif_fault *fault,
                    const struct lif_arrival *a, int phase, lidx i, int64_t value);

/* Sums of the slot and its flag to 0. */
void lif_cpu_clear(struct lif_engine *s, const struct lif_arrival *a);

/* Where the next spikes go; there is room for a block's. */
uint32_t *lif_cpu_room(struct lif_found *found);

/* The block's spikes, part->fired, go to the end of the list of step k of the batch. */
void lif_cpu_collect(const struct lif_engine *s, struct lif_part *part, const struct lif_arrival *a,
                     int k);

/* ---- kernels/cpu/lif/model.c ---- */

/* n steps of a block of a model. */
struct lif_model_work *lif_model_work_open(const struct lif_model *model);
void lif_model_block(struct lif_engine *s, struct lif_part *part, lidx block, int n);

/* ---- kernels/cpu/lif/integrate.c and kernels/cpu/lif/deliver.c: the entries of contract/lif.h
 * ---- */

void lif_cpu_integrate(struct lif_engine *s, int n, struct lif_spikes *mine,
                       struct lif_fault *fault);
void lif_cpu_deliver(struct lif_engine *s, int n, const struct lif_spikes *all);

#endif
