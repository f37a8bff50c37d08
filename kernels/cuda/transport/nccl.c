/* Rows in device memory through NCCL, one rank a GPU. Halo rows travel on a stream of their own
 * beside the work on own rows; begin and end only order the two streams by events, the host never
 * waits. Sums are formed in rank order by sending every rank its segment of all others: as many
 * bytes as a ring all-reduce, and the same bits on every run. */
#include "kernels/interface/backends.h"
#include "kernels/cuda/gpu/gpu.h"
#include "halo.h"
#include "core/mem.h"
#include "nccl_messages.h"
#include "nccl.h"
#include "nccl_watch.h"
#include "peer.h"
#include "rows.h"
#include "core/watchdog.h"

#include <nccl.h>
#include <stdlib.h>

struct nccl_state {
  ncclComm_t nccl;
  cudaStream_t stream;
  cudaEvent_t ready, done; /* own rows may be read; halo rows have arrived */
  struct halo_device *halo;
  struct peer_link *peer; /* copies halo rows where all ranks are on one host; NULL: NCCL does */
  float *segment;         /* [size][segment_floats] */
  int64_t segment_floats;
  struct nccl_watch watch;
  bool busy; /* between begin and end of an exchange */
};

static void check_nccl_at(const char *file, int line, ncclResult_t code, const char *call,
                          ncclComm_t comm) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  nccl_messages_flush();
  die_at(file, line, EXIT_RUNTIME, "NCCL: %s in '%s': %s (%s)", call, watchdog_place(),
         ncclGetErrorString(code), ncclGetLastError(comm));
}
#define CHECK_NCCL(comm, call) check_nccl_at(__FILE__, __LINE__, (call), #call, (comm))

/* ---- open and close ---- */

static void join(struct comm *comm, struct nccl_state *s) {
  ncclUniqueId id;
  pulse("joining the GPUs by NCCL");
  if (comm->rank == 0) CHECK_NCCL(NULL, ncclGetUniqueId(&id));
  comm_share(comm, &id, sizeof id, 0);
  CHECK_NCCL(NULL, ncclCommInitRank(&s->nccl, comm->size, id, comm->rank));
  /* First in line: its few blocks start as soon as any block of the work on own rows ends. */
  int least, greatest;
  CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK_CUDA(cudaStreamCreateWithPriority(&s->stream, cudaStreamNonBlocking, greatest));
  CHECK_CUDA(cudaEventCreateWithFlags(&s->ready, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventCreateWithFlags(&s->done, cudaEventDisableTiming));
  nccl_watch_start(&s->watch, s->nccl);
}

static void open_with(struct comm *comm, const struct transport *transport) {
  setenv("NCCL_NVLS_ENABLE", "0", 0); /* NVLink multicast has been seen to hang */
  nccl_messages_start();
  struct nccl_state *s = NEW_ZERO(struct nccl_state, 1);
  comm->via = transport;
  comm->via_state = s;
  if (comm->size > 1) join(comm, s);
}

static struct status open_nccl(struct comm *comm) {
  open_with(comm, &transport_nccl);
  return fine();
}

static struct status open_peer(struct comm *comm) {
  open_with(comm, &transport_peer);
  struct nccl_state *s = comm->via_state;
  if (comm->size > 1) s->peer = peer_open(comm);
  if (s->peer || comm->size == 1) return fine();
  return failure(EXIT_DEVICE, "--transport peer: the ranks' GPUs cannot map each other's memory "
                              "(all must be on one host and "
                              "linked); use --transport nccl");
}

static struct status open_near(struct comm *comm) {
  open_with(comm, &transport_nccl);
  struct nccl_state *s = comm->via_state;
  if (comm->size > 1) s->peer = peer_open(comm);
  if (s->peer) comm->via = &transport_peer;
  return fine();
}

static void close_nccl(struct comm *comm) {
  struct nccl_state *s = comm->via_state;
  if (comm->size > 1) {
    CHECK_CUDA(cudaStreamSynchronize(s->stream));
    nccl_watch_stop(&s->watch);
    comm_barrier(comm); /* now nobody takes our leaving for an error */
    CHECK_NCCL(s->nccl, ncclCommDestroy(s->nccl));
    CHECK_CUDA(cudaEventDestroy(s->ready));
    CHECK_CUDA(cudaEventDestroy(s->done));
    CHECK_CUDA(cudaStreamDestroy(s->stream));
  }
  peer_close(s->peer, comm);
  halo_device_free(&s->halo);
  gpu_free(s->segment);
  mem_free(s);
  comm->via = NULL, comm->via_state = NULL;
}

/* ---- halo ---- */

/* One exchange at a time. */
static void note_begin(struct nccl_state *s) {
  ASSERT(!s->busy);
  s->busy = true;
}

static void note_end(struct nccl_state *s) {
  ASSERT(s->busy);
  s->busy = false;
}

/* What the transport's stream does next waits for the work queued so far. */
static void follow_work(struct nccl_state *s) {
  CHECK_CUDA(cudaEventRecord(s->ready, gpu_stream()));
  CHECK_CUDA(cudaStreamWaitEvent(s->stream, s->ready, 0));
}

static void arrived(struct nccl_state *s) {
  CHECK_CUDA(cudaEventRecord(s->done, s->stream));
}

static void wait_for_arrival(struct nccl_state *s) {
  CHECK_CUDA(cudaStreamWaitEvent(gpu_stream(), s->done, 0));
}

static void send_run(struct nccl_state *s, const void *from, eidx rows, size_t row_bytes,
                     int peer) {
  if (rows > 0)
    CHECK_NCCL(s->nccl,
               ncclSend(from, (size_t)rows * row_bytes, ncclChar, peer, s->nccl, s->stream));
}

static void receive_run(struct nccl_state *s, void *to, eidx rows, size_t row_bytes, int peer) {
  if (rows > 0)
    CHECK_NCCL(s->nccl, ncclRecv(to, (size_t)rows * row_bytes, ncclChar, peer, s->nccl, s->stream));
}

static void exchange_begin(const struct comm *comm, const struct halo *h, void *rows, lidx n_own,
                           size_t row_bytes) {
  struct nccl_state *s = comm->via_state;
  ASSERT(n_own >= 0 && row_bytes % sizeof(uint32_t) == 0); /* rows are packed by words */
  note_begin(s);
  if (h->n_peers == 0 && !s->peer) return;
  const struct halo_device *d = halo_device_of(&s->halo, h, row_bytes, false);
  const bool by_peer = s->peer && peer_serves(s->peer, comm, h, n_own);
  char *halo_rows = (char *)rows + (size_t)n_own * row_bytes, *packed = d->packed;
  if (h->n_peers == 0 && !by_peer) return;
  follow_work(s);
  if (packed) rows_pack(s->stream, rows, d->send_row, d->n_send, (int64_t)row_bytes / 4, packed);
  if (by_peer) {
    peer_make_ready(s->peer, s->stream);
    peer_send_rows(s->peer, comm, h, rows, n_own, row_bytes, packed, s->stream);
    arrived(s);
    return;
  }
  CHECK_NCCL(s->nccl, ncclGroupStart());
  for (int p = 0; p < h->n_peers; p++) {
    send_run(s, halo_rows_for(h, p, rows, packed, row_bytes), h->send_ptr[p + 1] - h->send_ptr[p],
             row_bytes, h->peer[p]);
    receive_run(s, halo_rows + (size_t)h->recv_ptr[p] * row_bytes,
                h->recv_ptr[p + 1] - h->recv_ptr[p], row_bytes, h->peer[p]);
  }
  CHECK_NCCL(s->nccl, ncclGroupEnd());
  arrived(s);
}

static void exchange_end(const struct comm *comm, const struct halo *h) {
  note_end(comm->via_state);
  if (h->n_peers > 0) wait_for_arrival(comm->via_state);
}

static void reduce_begin(const struct comm *comm, const struct halo *h, float *rows, lidx n_own,
                         int width) {
  struct nccl_state *s = comm->via_state;
  note_begin(s);
  if (h->n_peers == 0 && !s->peer) return;
  const size_t row_bytes = (size_t)width * sizeof(float);
  const struct halo_device *d = halo_device_of(&s->halo, h, row_bytes, false);
  const bool by_peer = s->peer && peer_serves(s->peer, comm, h, n_own);
  const char *halo_rows = (const char *)rows + (size_t)n_own * row_bytes;
  char *in = d->arrived;
  if (h->n_peers == 0 && !by_peer) return;
  follow_work(s);
  if (by_peer) {
    peer_make_ready(s->peer, s->stream);
    peer_send_gradients(s->peer, comm, h, rows, n_own, row_bytes, in, s->stream);
    arrived(s);
    return;
  }
  CHECK_NCCL(s->nccl, ncclGroupStart());
  for (int p = 0; p < h->n_peers; p++) {
    send_run(s, halo_rows + (size_t)h->recv_ptr[p] * row_bytes, h->recv_ptr[p + 1] - h->recv_ptr[p],
             row_bytes, h->peer[p]);
    receive_run(s, in + (size_t)h->send_ptr[p] * row_bytes, h->send_ptr[p + 1] - h->send_ptr[p],
                row_bytes, h->peer[p]);
  }
  CHECK_NCCL(s->nccl, ncclGroupEnd());
  arrived(s);
}

static void reduce_end(const struct comm *comm, const struct halo *h, float *rows, int width) {
  struct nccl_state *s = comm->via_state;
  note_end(s);
  if (h->n_peers == 0) return;
  wait_for_arrival(s);
  halo_device_add(halo_device_of(&s->halo, h, (size_t)width * sizeof(float), false), h, rows,
                  width);
}

/* ---- sums ---- */

/* Rank r's segment of n floats. */
static int64_t segment_start(int64_t n, int64_t length, int r) {
  return r * length < n ? r * length : n;
}

static void sum(const struct comm *comm, float *x, int64_t n) {
  if (comm->size == 1 || n == 0) return;
  struct nccl_state *s = comm->via_state;
  ASSERT(!s->busy);
  const int R = comm->size, me = comm->rank;
  const int64_t length = (n + R - 1) / R, mine = segment_start(n, length, me);
  const int64_t count = segment_start(n, length, me + 1) - mine;
  if (length > s->segment_floats) {
    gpu_free(s->segment);
    s->segment = GPU_ZERO(float, length *R);
    s->segment_floats = length;
  }
  const size_t word = sizeof(float);
  follow_work(s);
  CHECK_NCCL(s->nccl, ncclGroupStart());
  for (int r = 0; r < R; r++) {
    if (r == me) continue;
    const int64_t at = segment_start(n, length, r);
    send_run(s, x + at, segment_start(n, length, r + 1) - at, word, r);
    receive_run(s, s->segment + r * length, count, word, r);
  }
  CHECK_NCCL(s->nccl, ncclGroupEnd());
  rows_sum(s->stream, s->segment, R, length, me, count, x + mine);
  CHECK_NCCL(s->nccl, ncclGroupStart());
  for (int r = 0; r < R; r++) {
    if (r == me) continue;
    const int64_t at = segment_start(n, length, r);
    send_run(s, x + mine, count, word, r);
    receive_run(s, x + at, segment_start(n, length, r + 1) - at, word, r);
  }
  CHECK_NCCL(s->nccl, ncclGroupEnd());
  arrived(s);
  wait_for_arrival(s);
}

/* Small lists in host memory: MPI carries them. */
static void gather(const struct comm *comm, const void *mine, int64_t bytes, void *all,
                   int64_t capacity, int64_t *sizes) {
  transport_mpi.gather(comm, mine, bytes, all, capacity, sizes);
}

/* ---- beyond the table ---- */

bool nccl_joins(const struct comm *comm) {
  return comm->size > 1 && (comm->via == &transport_nccl || comm->via == &transport_peer);
}

struct peer_link *nccl_peer(const struct comm *comm) {
  return ((const struct nccl_state *)comm->via_state)->peer;
}

void nccl_all_gather(const struct comm *comm, const void *mine, size_t bytes, void *all) {
  const struct nccl_state *s = comm->via_state;
  CHECK_NCCL(s->nccl, ncclAllGather(mine, all, bytes, ncclChar, s->nccl, gpu_stream()));
}

const struct transport transport_nccl = {.name = "nccl",
                                         .queues = true,
                                         .open = open_nccl,
                                         .close = close_nccl,
                                         .exchange_begin = exchange_begin,
                                         .exchange_end = exchange_end,
                                         .reduce_begin = reduce_begin,
                                         .reduce_end = reduce_end,
                                         .sum = sum,
                                         .gather = gather};

const struct transport transport_peer = {.name = "peer",
                                         .queues = true,
                                         .open = open_peer,
                                         .close = close_nccl,
                                         .exchange_begin = exchange_begin,
                                         .exchange_end = exchange_end,
                                         .reduce_begin = reduce_begin,
                                         .reduce_end = reduce_end,
                                         .sum = sum,
                                         .gather = gather};

const struct transport transport_near = {.name = "peer or nccl", .open = open_near};
