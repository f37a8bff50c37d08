/* Spikes between GPUs without the host. Each rank tells all others, for every step, who fired:
 * words of 32 neurons, each in one 8-byte store together with the number of its step, so that a
 * word that has come says so by itself and no fence or flag is needed. Two exchanges carry the same
 * words.
 *
 * Direct: one persistent kernel for many steps stores its words straight into the inboxes of the
 * other GPUs of the host and waits there for theirs.
 *
 * Batches: one launch for min_delay steps leaves its words in an outbox, a collective operation
 * carries all outboxes to all inboxes, and the next launch begins with what has come.
 */
#ifndef FASCICLE_LIF_LINK_H
#define FASCICLE_LIF_LINK_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A word: low half: bit i = neuron i fired and is received; high half: 2 (q + 1) + 1 if the sender
 * met a fault, for the step number q, which never starts again while the link lives. */

/* Where a recorded launch stands; in device memory, because launches are recorded once for all. */
struct lif_clock {
  int64_t step;
  int64_t first; /* of its launch's steps: how many came before */
  uint32_t *mask;
};

struct lif_link {
  int32_t rank, size;
  int32_t stride;       /* words of a step: the most that any rank has */
  int32_t window;       /* steps that a box holds; step q stands at q % window */
  int32_t n_words_sent; /* words that we tell in a step: 1 at least, for the others wait for us */
  int32_t period;       /* steps from one barrier of our blocks to the next */
  bool direct;          /* words come while the kernel runs */
  const int64_t *row;   /* [size + 1] first global row of each rank */
  uint64_t *inbox;      /* [size][window][stride] */
  uint64_t *const
      *outbox; /* [n_outboxes] each [window][stride]: ours, or our place in the others' inboxes */
  int32_t n_outboxes;
  const struct lif_clock *clock; /* batches only */
};

/* One launch: n_steps steps, after those that came `n_received` steps ago at most
 * have been received (batches). */
struct lif_stretch {
  int64_t step;  /* the first; in batches: after clock->step */
  int64_t first; /* its place in the launch; in batches: after clock->first */
  uint64_t q;    /* the link's number of the first step (direct) */
  int32_t n_steps, n_received;
};

/* Whether this GPU has the shared memory that lif_link_launch needs: 148 kB a block. */
bool lif_link_fits(void);

/* Own steps with the spikes of all ranks delivered, own masks (muted ones too) to mask [steps
 * of launch][n_words] (batches: clock->mask). All blocks must fit the device at once. d->arrived
 * must be zeroed before. */
void lif_link_launch(const struct lif_device *d, const struct lif_link *link, int n_blocks,
                     const struct lif_stretch *stretch, uint32_t *mask);

/* *clock = value, in the stream's order. */
void lif_link_set_clock(struct lif_clock *clock, struct lif_clock value);

#ifdef __cplusplus
}
#endif
#endif
