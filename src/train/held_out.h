/* The loss on a text that is not trained on. The same windows in every
 * evaluation and on every grid. */
#ifndef FASCICLE_EVALUATION_H
#define FASCICLE_EVALUATION_H

#include "rnn.h"

struct evaluation {
  double nats, bits;  /* mean per character */
  int64_t characters; /* how many were scored */
};

/* `n_windows` windows drawn by (seed, window), each from the zero state. `batch` is the global
 * batch of which rnn->shape.batch is our share. Collective over the world. */
struct evaluation evaluate_windows(struct rnn *rnn, const struct comm *world, int64_t batch,
                                   const int32_t *text, int64_t n_text, uint64_t seed,
                                   int64_t n_windows);

/* Every character of the text but the first, the state carried along. The text is cut into `lanes`
 * pieces that run side by side (the global batch of the rnn); each but the first is led in by the
 * EVALUATION_LEAD characters before it, unscored, so that its state is that of the text read in one
 * go. Collective over the world. */
enum { EVALUATION_LEAD = 256 };
struct evaluation evaluate_whole(struct rnn *rnn, const struct comm *world, int64_t lanes,
                                 const int32_t *text, int64_t n_text);

#endif
