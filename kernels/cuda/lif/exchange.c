#include "route.h"
#include "contract/lif_pace.h"
#include "core/mem.h"
#include "kernels/cuda/transport/nccl.h"
#include "kernels/cuda/transport/peer.h"

#include <string.h>

enum { RECORDED = 32 }; /* batches in a recorded sequence */

struct lif_road {
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

static void set_targets(struct lif_road *road, uint64_t **targets, int n) {
  road->targets = GPU_COPY_OF(uint64_t *, targets, n);
  road->link.outbox = road->targets, road->link.n_outboxes = n;
}

/* Our place in every other rank's inbox. */
static bool open_direct(struct lif_road *road) {
  const struct comm *comm = road->comm;
  road->window = peer_window_open(comm, road->inbox);
  if (!road->window) return false;
  uint64_t **targets = NEW(uint64_t *, comm->size);
  int n = 0;
  for (int r = 0; r < comm->size; r++)
    if (r != comm->rank)
      targets[n++] =
          (uint64_t *)peer_window_at(road->window, r) + comm->rank * box_words(&road->link);
  set_targets(road, targets, n);
  mem_free(targets);
  return true;
}

static void open_batches(struct lif_road *road) {
  road->outbox = GPU_ZERO(uint64_t, box_words(&road->link));
  set_targets(road, &road->outbox, 1);
  road->clock = GPU_ZERO(struct lif_clock, 1);
  road->link.clock = road->clock;
  road->arrived = GPU_ZERO(unsigned long long, 3 * (RECORDED + 1));
}

struct lif_road *lif_road_open(const struct comm *comm, const struct lif_device *d,
                               const int64_t *first) {
  if (!nccl_joins(comm)) return NULL;
  int64_t fits = lif_link_fits();
  comm_min_i64(comm, &fits, 1);
  if (!fits) return NULL;
  struct lif_road *road = NEW_ZERO(struct lif_road, 1);
  const bool direct = nccl_peer(comm);
  road->comm = comm;
  road->row = GPU_COPY_OF(int64_t, first, comm->size + 1);
  road->link = (struct lif_link){.rank = comm->rank,
                                 .size = comm->size,
                                 .stride = most_words(first, comm->size),
                                 .window = direct ? lif_pace_window(d->min_delay) : d->min_delay,
                                 .n_told = d->n_words > 0 ? d->n_words : 1,
                                 .period = direct ? lif_pace_period(d->min_delay) : d->min_delay,
                                 .direct = direct,
                                 .row = road->row};
  road->inbox = GPU_ZERO(uint64_t, comm->size * box_words(&road->link));
  road->link.inbox = road->inbox;
  CHECK_CUDA(cudaStreamSynchronize(gpu_stream())); /* zeroed before anybody else may write there */
  if (!direct) {
    open_batches(road);
    return road;
  }
  if (open_direct(road)) return road;
  lif_road_close(road);
  return NULL;
}

void lif_road_close(struct lif_road *road) {
  if (!road) return;
  peer_window_close(road->window, road->comm);
  if (road->recorded) CHECK_CUDA(cudaGraphExecDestroy(road->recorded));
  gpu_free(road->inbox), gpu_free(road->outbox), gpu_free(road->row), gpu_free(road->targets);
  gpu_free(road->clock), gpu_free(road->arrived);
  mem_free(road);
}

/* ---- direct ---- */

static void run_direct(struct lif_road *road, const struct lif_device *d, int n_blocks, int64_t t,
                       int n, uint32_t *mask) {
  const struct lif_stretch stretch = {.step = t, .q = road->q, .n_steps = n};
  CHECK_CUDA(cudaMemsetAsync(d->arrived, 0, 3 * sizeof *d->arrived, gpu_stream()));
  lif_link_launch(d, &road->link, n_blocks, &stretch, mask);
  road->q += (uint64_t)n;
}

/* ---- batches ---- */

static void launch(struct lif_road *road, const struct lif_device *d, int n_blocks, int k,
                   const struct lif_stretch *stretch) {
  struct lif_device own = *d;
  own.arrived = road->arrived + 3 * k;
  lif_link_launch(&own, &road->link, n_blocks, stretch, NULL);
}

/* n steps after the clock's: batch after batch, each heard at the beginning of the next, the last
 * by itself.
 */
static void queue_batches(struct lif_road *road, const struct lif_device *d, int n_blocks, int n) {
  const int each = d->min_delay;
  int k = 0, done = 0, before = 0;
  CHECK_CUDA(
      cudaMemsetAsync(road->arrived, 0, 3 * (RECORDED + 1) * sizeof *road->arrived, gpu_stream()));
  for (; done < n; k++, done += before) {
    const struct lif_stretch stretch = {.step = done,
                                        .first = done,
                                        .n_steps = n - done < each ? n - done : each,
                                        .n_heard = before};
    launch(road, d, n_blocks, k, &stretch);
    nccl_all_gather(road->comm, road->outbox, (size_t)box_words(&road->link) * sizeof(uint64_t),
                    road->inbox);
    before = stretch.n_steps;
  }
  const struct lif_stretch last = {.step = done, .first = done, .n_heard = before};
  launch(road, d, n_blocks, k, &last);
}

static void record(struct lif_road *road, const struct lif_device *d, int n_blocks) {
  if (road->recorded && !memcmp(&road->recorded_for, d, sizeof *d)) return;
  if (road->recorded) CHECK_CUDA(cudaGraphExecDestroy(road->recorded));
  road->recorded_for = *d;
  gpu_capture_begin();
  queue_batches(road, d, n_blocks, RECORDED * d->min_delay);
  road->recorded = gpu_capture_end();
}

static void run_batches(struct lif_road *road, const struct lif_device *d, int n_blocks, int64_t t,
                        int n, uint32_t *mask) {
  const int whole = RECORDED * d->min_delay;
  for (int done = 0; done < n;) {
    const int left = n - done, made = left < whole ? left : whole;
    lif_link_set_clock(road->clock, (struct lif_clock){t + done, done, mask});
    if (made == whole && road->warm) {
      record(road, d, n_blocks);
      gpu_replay(road->recorded);
    } else
      queue_batches(road, d, n_blocks, made);
    road->warm = true;
    done += made;
  }
}

void lif_road_run(struct lif_road *road, const struct lif_device *d, int n_blocks, int64_t t, int n,
                  uint32_t *mask) {
  if (road->link.direct)
    run_direct(road, d, n_blocks, t, n, mask);
  else
    run_batches(road, d, n_blocks, t, n, mask);
}
