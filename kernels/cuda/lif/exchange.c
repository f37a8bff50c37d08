/* Spikes between the GPUs of several ranks: what a launch sends, and where it arrives. */
#include "exchange.h"
#include "contract/lif_pace.h"
#include "core/mem.h"
#include "kernels/cuda/transport/nccl.h"
#include "kernels/cuda/transport/peer.h"

#include <string.h>

enum { RECORDED = 32 }; /* batches in a recorded sequence */

struct lif_gpu_exchange {
  const struct comm *comm;
  struct lif_link link;
  uint64_t *inbox, *outbox; /* outbox: batches only */
  int64_t *row;
  uint64_t **targets;
  struct peer_window *window; /* direct only */
  uint64_t q;                 /* steps queued so far */
  /* batches only */
  struct lif_clock *clock;
  unsigned long long *arrived; /* [RECORDED + 1][3] each launch's barrier words */
  cudaGraphExec_t recorded;
  struct lif_device recorded_for; /* another trial is another recording */
  bool warm;                      /* the collective ran once without being recorded */
};

static int64_t words_of(const int64_t *first, int r) {
  return (first[r + 1] - first[r] + 31) / 32;
}

static int32_t most_words(const int64_t *first, int size) {
  int64_t most = 1;
  for (int r = 0; r < size; r++) most = words_of(first, r) > most ? words_of(first, r) : most;
  return (int32_t)most;
}

static int64_t box_words(const struct lif_link *link) {
  return (int64_t)link->window * link->stride;
}

static void set_targets(struct lif_gpu_exchange *exchange, uint64_t **targets, int n) {
  exchange->targets = GPU_COPY_OF(uint64_t *, targets, n);
  exchange->link.outbox = exchange->targets, exchange->link.n_outboxes = n;
}

/* Our place in every other rank's inbox. */
static bool open_direct(struct lif_gpu_exchange *exchange) {
  const struct comm *comm = exchange->comm;
  exchange->window = peer_window_open(comm, exchange->inbox);
  if (!exchange->window) return false;
  uint64_t **targets = NEW(uint64_t *, comm->size);
  int n = 0;
  for (int r = 0; r < comm->size; r++)
    if (r != comm->rank)
      targets[n++] =
          (uint64_t *)peer_window_at(exchange->window, r) + comm->rank * box_words(&exchange->link);
  set_targets(exchange, targets, n);
  mem_free(targets);
  return true;
}

static void open_batches(struct lif_gpu_exchange *exchange) {
  exchange->outbox = GPU_ZERO(uint64_t, box_words(&exchange->link));
  set_targets(exchange, &exchange->outbox, 1);
  exchange->clock = GPU_ZERO(struct lif_clock, 1);
  exchange->link.clock = exchange->clock;
  exchange->arrived = GPU_ZERO(unsigned long long, 3 * (RECORDED + 1));
}

struct lif_gpu_exchange *lif_gpu_exchange_open(const struct comm *comm, const struct lif_device *d,
                                               const int64_t *first) {
  if (!nccl_joins(comm)) return NULL;
  int64_t fits = lif_link_fits();
  comm_min_i64(comm, &fits, 1);
  if (!fits) return NULL;
  struct lif_gpu_exchange *exchange = NEW_ZERO(struct lif_gpu_exchange, 1);
  const bool direct = nccl_peer(comm);
  exchange->comm = comm;
  exchange->row = GPU_COPY_OF(int64_t, first, comm->size + 1);
  exchange->link =
      (struct lif_link){.rank = comm->rank,
                        .size = comm->size,
                        .stride = most_words(first, comm->size),
                        .window = direct ? lif_pace_window(d->min_delay) : d->min_delay,
                        .n_words_sent = d->n_words > 0 ? d->n_words : 1,
                        .period = direct ? lif_pace_period(d->min_delay) : d->min_delay,
                        .direct = direct,
                        .row = exchange->row};
  exchange->inbox = GPU_ZERO(uint64_t, comm->size * box_words(&exchange->link));
  exchange->link.inbox = exchange->inbox;
  CHECK_CUDA(cudaStreamSynchronize(gpu_stream())); /* zeroed before anybody else may write there */
  if (!direct) {
    open_batches(exchange);
    return exchange;
  }
  if (open_direct(exchange)) return exchange;
  lif_gpu_exchange_close(exchange);
  return NULL;
}

void lif_gpu_exchange_close(struct lif_gpu_exchange *exchange) {
  if (!exchange) return;
  peer_window_close(exchange->window, exchange->comm);
  if (exchange->recorded) CHECK_CUDA(cudaGraphExecDestroy(exchange->recorded));
  gpu_free(exchange->inbox), gpu_free(exchange->outbox), gpu_free(exchange->row),
      gpu_free(exchange->targets);
  gpu_free(exchange->clock), gpu_free(exchange->arrived);
  mem_free(exchange);
}

/* ---- direct ---- */

static void run_direct(struct lif_gpu_exchange *exchange, const struct lif_device *d, int n_blocks,
                       int64_t t, int n, uint32_t *mask) {
  const struct lif_stretch stretch = {.step = t, .q = exchange->q, .n_steps = n};
  CHECK_CUDA(cudaMemsetAsync(d->arrived, 0, 3 * sizeof *d->arrived, gpu_stream()));
  lif_link_launch(d, &exchange->link, n_blocks, &stretch, mask);
  exchange->q += (uint64_t)n;
}

/* ---- batches ---- */

static void launch(struct lif_gpu_exchange *exchange, const struct lif_device *d, int n_blocks,
                   int k, const struct lif_stretch *stretch) {
  struct lif_device own = *d;
  own.arrived = exchange->arrived + 3 * k;
  lif_link_launch(&own, &exchange->link, n_blocks, stretch, NULL);
}

/* n steps after the clock's: batch after batch, each received at the beginning of the next, the
 * last by itself.
 */
static void queue_batches(struct lif_gpu_exchange *exchange, const struct lif_device *d,
                          int n_blocks, int n) {
  const int each = d->min_delay;
  int k = 0, done = 0, before = 0;
  CHECK_CUDA(cudaMemsetAsync(exchange->arrived, 0, 3 * (RECORDED + 1) * sizeof *exchange->arrived,
                             gpu_stream()));
  for (; done < n; k++, done += before) {
    const struct lif_stretch stretch = {.step = done,
                                        .first = done,
                                        .n_steps = n - done < each ? n - done : each,
                                        .n_received = before};
    launch(exchange, d, n_blocks, k, &stretch);
    nccl_all_gather(exchange->comm, exchange->outbox,
                    (size_t)box_words(&exchange->link) * sizeof(uint64_t), exchange->inbox);
    before = stretch.n_steps;
  }
  const struct lif_stretch last = {.step = done, .first = done, .n_received = before};
  launch(exchange, d, n_blocks, k, &last);
}

static void record(struct lif_gpu_exchange *exchange, const struct lif_device *d, int n_blocks) {
  if (exchange->recorded && !memcmp(&exchange->recorded_for, d, sizeof *d)) return;
  if (exchange->recorded) CHECK_CUDA(cudaGraphExecDestroy(exchange->recorded));
  exchange->recorded_for = *d;
  gpu_capture_begin();
  queue_batches(exchange, d, n_blocks, RECORDED * d->min_delay);
  exchange->recorded = gpu_capture_end();
}

static void run_batches(struct lif_gpu_exchange *exchange, const struct lif_device *d, int n_blocks,
                        int64_t t, int n, uint32_t *mask) {
  const int whole = RECORDED * d->min_delay;
  for (int done = 0; done < n;) {
    const int left = n - done, made = left < whole ? left : whole;
    lif_link_set_clock(exchange->clock, (struct lif_clock){t + done, done, mask});
    if (made == whole && exchange->warm) {
      record(exchange, d, n_blocks);
      gpu_replay(exchange->recorded);
    } else
      queue_batches(exchange, d, n_blocks, made);
    exchange->warm = true;
    done += made;
  }
}

void lif_gpu_exchange_run(struct lif_gpu_exchange *exchange, const struct lif_device *d,
                          int n_blocks, int64_t t, int n, uint32_t *mask) {
  if (exchange->link.direct)
    run_direct(exchange, d, n_blocks, t, n, mask);
  else
    run_batches(exchange, d, n_blocks, t, n, mask);
}
