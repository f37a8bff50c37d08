/* The loss on text that is not trained on: drawn windows, or the whole of it. */
#include "held_out.h"
#include "corpus.h"
#include "core/mem.h"
#include "purpose.h"
#include "text.h"
#include "core/watchdog.h"

#include <math.h>

struct lanes {
  struct rnn *rnn;
  int64_t first;           /* our first column of the global batch */
  int32_t *token, *target; /* [T][batch] */
  double nats;
  int64_t scored;
};

static struct lanes lanes_init(struct rnn *rnn, int64_t batch) {
  const int64_t n = (int64_t)rnn->shape.steps * rnn->shape.batch;
  struct lanes l = {.rnn = rnn, .token = NEW_ZERO(int32_t, n), .target = NEW(int32_t, n)};
  int64_t share;
  rnn_share(batch, rnn->grid, &l.first, &share);
  ASSERT(share == rnn->shape.batch);
  return l;
}

static void clear_targets(struct lanes *l) {
  for (int64_t i = 0; i < (int64_t)l->rnn->shape.steps * l->rnn->shape.batch; i++)
    l->target[i] = -1;
}

static void score(struct lanes *l) {
  rnn_forward(l->rnn, l->token);
  rnn_loss(l->rnn, l->target, 0);
  l->nats += rnn_nats(l->rnn);
  for (int64_t i = 0; i < (int64_t)l->rnn->shape.steps * l->rnn->shape.batch; i++)
    l->scored += l->target[i] >= 0;
  pulse("evaluation");
}

/* Each replica counts once. */
static struct evaluation lanes_end(struct lanes *l, const struct comm *world) {
  const bool counts = l->rnn->grid->part == 0;
  double sums[2] = {counts ? l->nats : 0, counts ? (double)l->scored : 0};
  comm_sum_f64(world, sums, 2);
  mem_free(l->token), mem_free(l->target);
  const double nats = sums[0] / sums[1];
  return (struct evaluation){.nats = nats, .bits = nats / log(2), .characters = (int64_t)sums[1]};
}

struct evaluation evaluate_windows(struct rnn *rnn, const struct comm *world, int64_t batch,
                                   const int32_t *text, int64_t n_text, uint64_t seed,
                                   int64_t n_windows) {
  struct lanes l = lanes_init(rnn, batch);
  const int T = rnn->shape.steps, B = rnn->shape.batch;
  for (int64_t round = 0; round * batch < n_windows; round++) {
    clear_targets(&l);
    for (int b = 0; b < B; b++) {
      const int64_t window = round * batch + l.first + b;
      if (window >= n_windows) continue;
      const int64_t start = text_window(seed, PURPOSE_EVALUATION, 0, window, n_text, T);
      corpus_window(text, start, T, b, B, l.token, l.target);
    }
    rnn_cold(rnn);
    score(&l);
  }
  return lanes_end(&l, world);
}

struct evaluation evaluate_whole(struct rnn *rnn, const struct comm *world, int64_t n_lanes,
                                 const int32_t *text, int64_t n_text) {
  struct lanes l = lanes_init(rnn, n_lanes);
  const int T = rnn->shape.steps, B = rnn->shape.batch;
  const int64_t scored = n_text - 1, longest = (scored + n_lanes - 1) / n_lanes + EVALUATION_LEAD;
  rnn_cold(rnn);
  for (int64_t done = 0; done < longest; done += T) {
    clear_targets(&l);
    for (int b = 0; b < B; b++) {
      const int64_t lane = l.first + b, from = scored * lane / n_lanes,
                    to = scored * (lane + 1) / n_lanes;
      const int64_t start = from > EVALUATION_LEAD ? from - EVALUATION_LEAD : 0;
      for (int64_t t = 0; t < T; t++) {
        const int64_t at = start + done + t;
        l.token[t * B + b] = at < scored ? text[at] : 0;
        if (at >= from && at < to) l.target[t * B + b] = text[at + 1];
      }
    }
    score(&l);
    rnn_carry(rnn);
  }
  return lanes_end(&l, world);
}
