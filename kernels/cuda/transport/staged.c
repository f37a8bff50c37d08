/* Rows in device memory through MPI: packed on the device, staged through pinned host memory,
 * carried by the mpi transport. For machines with more ranks than GPUs, and for tests. The copies
 * make the host wait; nothing overlaps. */
#include "kernels/interface/backends.h"
#include "kernels/cuda/gpu/gpu.h"
#include "halo.h"
#include "core/mem.h"
#include "rows.h"

#include <string.h>

/* The mpi transport works on a staged array whose own rows are just the rows to send, in order. */
struct staged_state {
  void *mpi; /* the mpi transport's own state */
  struct halo_device *halo;
  const struct halo_device *now; /* of the current exchange */
  struct halo image; /* the halo with send_row = 0, 1, 2 ..., packed whether or not all rows go */
  char *stage;       /* pinned: [n_send + n_recv] rows, or a piece of a sum */
  size_t stage_bytes;
  void *rows; /* of the current exchange */
  lidx n_own;
  size_t row_bytes;
};

static struct status open_staged(struct comm *comm) {
  struct staged_state *s = NEW_ZERO(struct staged_state, 1);
  TRY(transport_mpi.open(comm));
  s->mpi = comm->via_state;
  comm->via = &transport_staged, comm->via_state = s;
  return fine();
}

/* The group as the mpi transport sees it. */
static struct comm mpi_view(const struct comm *comm) {
  const struct staged_state *s = comm->via_state;
  struct comm view = *comm;
  view.via = &transport_mpi, view.via_state = s->mpi;
  return view;
}

static void close_staged(struct comm *comm) {
  struct staged_state *s = comm->via_state;
  struct comm view = mpi_view(comm);
  transport_mpi.close(&view);
  halo_device_free(&s->halo);
  mem_free(s->image.send_row);
  gpu_pinned_free(s->stage);
  mem_free(s);
  comm->via = NULL, comm->via_state = NULL;
}

static void stage_for(struct staged_state *s, size_t bytes) {
  if (bytes <= s->stage_bytes) return;
  gpu_pinned_free(s->stage);
  s->stage = gpu_pinned((int64_t)bytes, 1);
  s->stage_bytes = bytes;
}

static void prepare(struct staged_state *s, const struct halo *h, size_t row_bytes) {
  s->now = halo_device_of(&s->halo, h, row_bytes, true);
  stage_for(s, (size_t)(s->now->n_send + s->now->n_recv) * row_bytes);
  if (s->image.id == h->id) return;
  mem_free(s->image.send_row);
  s->image = *h;
  s->image.all = false;
  s->image.send_row = NEW(lidx, s->now->n_send);
  for (eidx i = 0; i < s->now->n_send; i++) s->image.send_row[i] = (lidx)i;
}

static void exchange_begin(const struct comm *comm, const struct halo *h, void *rows, lidx n_own,
                           size_t row_bytes) {
  if (h->n_peers == 0) return;
  struct staged_state *s = comm->via_state;
  prepare(s, h, row_bytes);
  rows_pack(gpu_stream(), rows, s->now->send_row, s->now->n_send, (int64_t)row_bytes / 4,
            s->now->packed);
  gpu_get(s->stage, s->now->packed, (size_t)s->now->n_send * row_bytes);
  s->rows = rows, s->n_own = n_own, s->row_bytes = row_bytes;
  const struct comm view = mpi_view(comm);
  transport_mpi.exchange_begin(&view, &s->image, s->stage, (lidx)s->now->n_send, row_bytes);
}

static void exchange_end(const struct comm *comm, const struct halo *h) {
  if (h->n_peers == 0) return;
  struct staged_state *s = comm->via_state;
  const struct comm view = mpi_view(comm);
  transport_mpi.exchange_end(&view, &s->image);
  gpu_put((char *)s->rows + (size_t)s->n_own * s->row_bytes,
          s->stage + (size_t)s->now->n_send * s->row_bytes, (size_t)s->now->n_recv * s->row_bytes);
}

static void reduce_begin(const struct comm *comm, const struct halo *h, float *rows, lidx n_own,
                         int width) {
  if (h->n_peers == 0) return;
  struct staged_state *s = comm->via_state;
  const size_t row_bytes = (size_t)width * sizeof(float);
  prepare(s, h, row_bytes);
  memset(s->stage, 0, (size_t)s->now->n_send * row_bytes);
  gpu_get(s->stage + (size_t)s->now->n_send * row_bytes, rows + (size_t)n_own * (size_t)width,
          (size_t)s->now->n_recv * row_bytes);
  const struct comm view = mpi_view(comm);
  transport_mpi.reduce_begin(&view, &s->image, (float *)s->stage, (lidx)s->now->n_send, width);
}

static void reduce_end(const struct comm *comm, const struct halo *h, float *rows, int width) {
  if (h->n_peers == 0) return;
  struct staged_state *s = comm->via_state;
  const struct comm view = mpi_view(comm);
  transport_mpi.reduce_end(&view, &s->image, (float *)s->stage, width);
  gpu_put(s->now->arrived, s->stage, (size_t)s->now->n_send * (size_t)width * sizeof(float));
  halo_device_add(s->now, h, rows, width);
}

enum { PIECE = 1 << 22 }; /* floats summed at a time */

static void sum(const struct comm *comm, float *x, int64_t n) {
  if (comm->size == 1) return;
  struct staged_state *s = comm->via_state;
  const struct comm view = mpi_view(comm);
  stage_for(s, (size_t)(n < PIECE ? n : PIECE) * sizeof *x);
  for (int64_t at = 0; at < n; at += PIECE) {
    const int64_t m = n - at < PIECE ? n - at : PIECE;
    gpu_get(s->stage, x + at, (size_t)m * sizeof *x);
    transport_mpi.sum(&view, (float *)s->stage, m);
    gpu_put(x + at, s->stage, (size_t)m * sizeof *x);
  }
}

static void gather(const struct comm *comm, const void *mine, int64_t bytes, void *all,
                   int64_t capacity, int64_t *sizes) {
  transport_mpi.gather(comm, mine, bytes, all, capacity, sizes);
}

const struct transport transport_staged = {.name = "mpi",
                                           .open = open_staged,
                                           .close = close_staged,
                                           .exchange_begin = exchange_begin,
                                           .exchange_end = exchange_end,
                                           .reduce_begin = reduce_begin,
                                           .reduce_end = reduce_end,
                                           .sum = sum,
                                           .gather = gather};
