/* Rows in host memory through MPI. Halo rows arrive in place; rows to send
 * are packed unless all go. */
#include "kernels/interface/backends.h"
#include "core/mem.h"

#include <string.h>

struct mpi_state {
  char *pack; /* rows on their way out */
  int64_t pack_bytes;
  float *arrived; /* gradient rows on their way in */
  int64_t arrived_bytes;
  MPI_Request *request;
  int n_requests, room;
  float *sum; /* scratch of `sum`: one piece of every rank */
};

static struct status open_mpi(struct comm *comm) {
  comm->via = &transport_mpi;
  comm->via_state = mem_zero(1, sizeof(struct mpi_state));
  return fine();
}

static void close_mpi(struct comm *comm) {
  struct mpi_state *s = comm->via_state;
  mem_free(s->pack), mem_free(s->arrived), mem_free(s->request), mem_free(s->sum);
  mem_free(s);
  comm->via = NULL, comm->via_state = NULL;
}

static void *room_for(void *p, int64_t *have, int64_t want) {
  if (want <= *have) return p;
  mem_free(p);
  *have = want;
  return mem_alloc(want, 1);
}

static void expect_requests(struct mpi_state *s, int n) {
  if (n > s->room) {
    mem_free(s->request);
    s->request = NEW(MPI_Request, n);
    s->room = n;
  }
  s->n_requests = 0;
}

/* Messages over 2^31 - 1 bytes go in elements of a row. */
static MPI_Datatype row_type(size_t row_bytes) {
  MPI_Datatype type;
  CHECK_MPI(MPI_Type_contiguous(int_from((int64_t)row_bytes, "a row's size"), MPI_BYTE, &type));
  CHECK_MPI(MPI_Type_commit(&type));
  return type;
}

static void receive_rows(const struct comm *comm, void *at, eidx n, MPI_Datatype type, int peer) {
  struct mpi_state *s = comm->via_state;
  if (n == 0) return;
  CHECK_MPI(MPI_Irecv(at, int_from(n, "a halo message's rows"), type, peer, 0, comm->mpi,
                      &s->request[s->n_requests++]));
}

static void send_rows(const struct comm *comm, const void *at, eidx n, MPI_Datatype type,
                      int peer) {
  struct mpi_state *s = comm->via_state;
  if (n == 0) return;
  CHECK_MPI(MPI_Isend(at, int_from(n, "a halo message's rows"), type, peer, 0, comm->mpi,
                      &s->request[s->n_requests++]));
}

static void wait_all(const struct comm *comm) {
  struct mpi_state *s = comm->via_state;
  CHECK_MPI(MPI_Waitall(s->n_requests, s->request, MPI_STATUSES_IGNORE));
  s->n_requests = 0;
}

static void exchange_begin(const struct comm *comm, const struct halo *h, void *rows, lidx n_own,
                           size_t row_bytes) {
  if (h->n_peers == 0) return;
  struct mpi_state *s = comm->via_state;
  const eidx n_send = h->all ? 0 : h->send_ptr[h->n_peers]; /* to pack */
  s->pack = room_for(s->pack, &s->pack_bytes, n_send * (int64_t)row_bytes);
  expect_requests(s, 2 * h->n_peers);
  MPI_Datatype type = row_type(row_bytes);
  char *halo_rows = (char *)rows + (size_t)n_own * row_bytes;
  for (int p = 0; p < h->n_peers; p++)
    receive_rows(comm, halo_rows + (size_t)h->recv_ptr[p] * row_bytes,
                 h->recv_ptr[p + 1] - h->recv_ptr[p], type, h->peer[p]);
  for (eidx i = 0; i < n_send; i++)
    memcpy(s->pack + (size_t)i * row_bytes, (const char *)rows + (size_t)h->send_row[i] * row_bytes,
           row_bytes);
  for (int p = 0; p < h->n_peers; p++)
    send_rows(comm, halo_rows_for(h, p, rows, s->pack, row_bytes),
              h->send_ptr[p + 1] - h->send_ptr[p], type, h->peer[p]);
  CHECK_MPI(MPI_Type_free(&type));
}

static void exchange_end(const struct comm *comm, const struct halo *h) {
  if (h->n_peers > 0) wait_all(comm);
}

static void reduce_begin(const struct comm *comm, const struct halo *h, float *rows, lidx n_own,
                         int width) {
  if (h->n_peers == 0) return;
  struct mpi_state *s = comm->via_state;
  const size_t row_bytes = (size_t)width * sizeof(float);
  s->arrived =
      room_for(s->arrived, &s->arrived_bytes, h->send_ptr[h->n_peers] * (int64_t)row_bytes);
  expect_requests(s, 2 * h->n_peers);
  MPI_Datatype type = row_type(row_bytes);
  const float *halo_rows = rows + (size_t)n_own * (size_t)width;
  for (int p = 0; p < h->n_peers; p++)
    receive_rows(comm, s->arrived + h->send_ptr[p] * width, h->send_ptr[p + 1] - h->send_ptr[p],
                 type, h->peer[p]);
  for (int p = 0; p < h->n_peers; p++)
    send_rows(comm, halo_rows + h->recv_ptr[p] * width, h->recv_ptr[p + 1] - h->recv_ptr[p], type,
              h->peer[p]);
  CHECK_MPI(MPI_Type_free(&type));
}

/* Peers ascend, and each peer's rows are added in one go: a fixed order for every own row. */
static void reduce_end(const struct comm *comm, const struct halo *h, float *rows, int width) {
  if (h->n_peers == 0) return;
  const struct mpi_state *s = comm->via_state;
  wait_all(comm);
  for (eidx i = 0; i < h->send_ptr[h->n_peers]; i++) {
    float *restrict own = rows + (size_t)h->send_row[i] * (size_t)width;
    const float *restrict in = s->arrived + i * width;
    for (int b = 0; b < width; b++) own[b] += in[b];
  }
}

enum { PIECE = 1 << 18 }; /* floats summed at a time */

static void sum(const struct comm *comm, float *x, int64_t n) {
  if (comm->size == 1) return;
  struct mpi_state *s = comm->via_state;
  if (!s->sum) s->sum = NEW(float, (int64_t)PIECE * comm->size);
  for (int64_t at = 0; at < n; at += PIECE) {
    const int64_t m = n - at < PIECE ? n - at : PIECE;
    comm_gather(comm, x + at, m * (int64_t)sizeof(float), s->sum);
    for (int64_t i = 0; i < m; i++) {
      float total = s->sum[i];
      for (int r = 1; r < comm->size; r++) total += s->sum[r * m + i];
      x[at + i] = total;
    }
  }
}

static void gather(const struct comm *comm, const void *mine, int64_t bytes, void *all,
                   int64_t capacity, int64_t *sizes) {
  comm_gather(comm, &bytes, sizeof bytes, sizes);
  int *count = NEW(int, comm->size), *offset = NEW(int, comm->size);
  int64_t total = 0;
  for (int r = 0; r < comm->size; r++) {
    count[r] = int_from(sizes[r], "a gathered message's size");
    offset[r] = int_from(total, "a gathered message's offset");
    total += sizes[r];
  }
  if (total > capacity)
    DIE(EXIT_RUNTIME, "gathered %lld bytes, room for %lld", (long long)total, (long long)capacity);
  CHECK_MPI(MPI_Allgatherv(mine, (int)bytes, MPI_BYTE, all, count, offset, MPI_BYTE, comm->mpi));
  mem_free(count), mem_free(offset);
}

const struct transport transport_mpi = {.name = "mpi",
                                        .open = open_mpi,
                                        .close = close_mpi,
                                        .exchange_begin = exchange_begin,
                                        .exchange_end = exchange_end,
                                        .reduce_begin = reduce_begin,
                                        .reduce_end = reduce_end,
                                        .sum = sum,
                                        .gather = gather};
