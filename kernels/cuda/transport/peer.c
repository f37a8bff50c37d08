/* Rows between GPUs of one host by mapped memory and copy engines. */
#include "peer.h"
#include "core/log.h"
#include "core/mem.h"
#include "rows.h"

#include <string.h>

enum { MOST_MAPS = 64, READY = 0, ARRIVED = 1, FLAGS = 2 };

/* One array of ours, and where the same array of each rank is mapped here. */
struct peer_map {
  char *mine;
  const void *array; /* that holds it, as gpu_zero gave it */
  size_t bytes;      /* to the end of the allocation */
  uint64_t id;       /* of the allocation: an address may come back, an id does not */
  int64_t
      stride; /* ours, between arrays that follow each other in the allocation; 0: there is one */
  char **theirs; /* [size] */
  void **opened; /* [size] bases to close; NULL for our own */
  int64_t *their_stride;
};

struct peer_link {
  int rank, size;
  uint32_t *flag;    /* ours: [FLAGS][size] */
  uint32_t **remote; /* on the device: [FLAGS][size] our place among the flags of each rank */
  int n_maps;
  struct peer_map map[MOST_MAPS];
  int64_t of;  /* id of the halo that the rest is about */
  bool serves; /* every rank has rows and sends some */
  int64_t *their_recv,
      *their_send;    /* [size] first halo row, first row in send order, of ours at each rank */
  int64_t *their_own; /* [size] own rows of each rank */
};

/* ---- mapping ---- */

struct handle {
  cudaIpcMemHandle_t memory;
  int64_t offset, stride;
  int32_t good, empty; /* empty: this rank has no such array */
};

/* A function of the driver, found at run time so that the program starts
 * where there is no driver. */
static void *driver_call(const char *name) {
  void *entry = NULL;
  enum cudaDriverEntryPointQueryResult found;
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found);
  return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? entry : NULL;
}

/* Base and size of the allocation that holds `at`. */
static bool allocation_of(const void *at, char **base, size_t *size) {
  typedef int range_of(unsigned long long *, size_t *, unsigned long long);
  unsigned long long start = 0;
  range_of *range = (range_of *)(uintptr_t)driver_call("cuMemGetAddressRange");
  if (!range || range(&start, size, (unsigned long long)(uintptr_t)at)) return false;
  *base = (char *)(uintptr_t)start;
  return true;
}

/* Its id, 0 of no memory; false when the driver has no function for it. Without an id memory that
 * came back at an address would be taken for what was there before. */
static bool allocation_id(const void *at, uint64_t *id) {
  enum { BUFFER_ID = 7 }; /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
  typedef int attribute_of(void *, int, unsigned long long);
  unsigned long long found = 0;
  static attribute_of *attribute;
  if (!attribute) attribute = (attribute_of *)(uintptr_t)driver_call("cuPointerGetAttribute");
  const int code =
      attribute && at ? attribute(&found, BUFFER_ID, (unsigned long long)(uintptr_t)at) : 0;
  if (code)
    DIE(EXIT_RUNTIME, "cuPointerGetAttribute: the driver gives no id of our memory: error %d",
        code);
  *id = found;
  return attribute != NULL;
}

static bool same_host(const struct comm *comm) {
  struct host *all = comm_hosts(comm);
  bool same = true;
  for (int r = 0; r < comm->size; r++) same &= !strcmp(all[comm->rank].name, all[r].name);
  mem_free(all);
  return same;
}

/* Collective: map everyone's array at the place of `at`. False, on every rank,
 * when that cannot be done. */
static bool map_array(const struct comm *comm, void *at, int64_t stride, struct peer_map *m) {
  struct handle mine = {.stride = stride}, *all = NEW_ZERO(struct handle, comm->size);
  char *base = NULL;
  size_t size = 0;
  mine.empty = !at;
  uint64_t id;
  const bool has_id = allocation_id(at, &id);
  mine.good = !at || (has_id && allocation_of(at, &base, &size) &&
                      cudaIpcGetMemHandle(&mine.memory, base) == cudaSuccess);
  mine.offset = base ? (char *)at - base : 0;
  if (at && mine.good) gpu_export(gpu_array_at(base));
  comm_gather(comm, &mine, sizeof mine, all);
  *m = (struct peer_map){.mine = at,
                         .array = base ? gpu_array_at(base) : NULL,
                         .bytes = size - (size_t)mine.offset,
                         .id = id,
                         .stride = stride,
                         .theirs = NEW_ZERO(char *, comm->size),
                         .opened = NEW_ZERO(void *, comm->size),
                         .their_stride = NEW_ZERO(int64_t, comm->size)};
  int64_t good = 1;
  for (int r = 0; r < comm->size; r++) {
    good &= all[r].good;
    m->theirs[r] = at;
    m->their_stride[r] = all[r].stride;
    if (r == comm->rank || !good || all[r].empty) continue;
    good &= cudaIpcOpenMemHandle(&m->opened[r], all[r].memory, cudaIpcMemLazyEnablePeerAccess) ==
            cudaSuccess;
    m->theirs[r] = (char *)m->opened[r] + all[r].offset;
  }
  cudaGetLastError(); /* a refusal is an answer here, not an error */
  comm_min_i64(comm, &good, 1);
  mem_free(all);
  return good;
}

static void unmap(struct peer_map *m, int size) {
  cudaError_t code;
  for (int r = 0; r < size; r++)
    if (m->opened[r] && (code = cudaIpcCloseMemHandle(m->opened[r])) != cudaSuccess) {
      log_warning("rank %d's GPU memory stays mapped: %s", r, cudaGetErrorString(code));
      cudaGetLastError(); /* nothing depends on it */
    }
  mem_free(m->theirs), mem_free(m->opened), mem_free(m->their_stride);
}

struct peer_link *peer_open(const struct comm *comm) {
  if (!same_host(comm) || comm->size > FLAGS_RANKS) return NULL;
  struct peer_link *l = NEW_ZERO(struct peer_link, 1);
  l->rank = comm->rank, l->size = comm->size;
  l->flag = GPU_ZERO(uint32_t, (int64_t)FLAGS * comm->size);
  struct peer_map flags;
  const bool good = map_array(comm, l->flag, 0, &flags);
  l->map[l->n_maps++] = flags;
  if (!good) {
    peer_close(l, comm);
    return NULL;
  }
  uint32_t **remote = NEW(uint32_t *, (int64_t)FLAGS * comm->size);
  for (int f = 0; f < FLAGS; f++)
    for (int r = 0; r < comm->size; r++)
      remote[f * comm->size + r] = (uint32_t *)flags.theirs[r] + f * comm->size + comm->rank;
  l->remote = GPU_COPY_OF(uint32_t *, remote, (int64_t)FLAGS * comm->size);
  mem_free(remote);
  return l;
}

void peer_close(struct peer_link *l, const struct comm *comm) {
  if (!l) return;
  for (int i = 0; i < l->n_maps; i++) unmap(&l->map[i], l->size);
  comm_barrier(comm);
  for (int i = 0; i < l->n_maps; i++) gpu_release(l->map[i].array);
  gpu_free(l->flag), gpu_free(l->remote);
  mem_free(l->their_recv), mem_free(l->their_send), mem_free(l->their_own);
  mem_free(l);
}

/* Close the maps of arrays that every rank has freed; only then does the memory go back. */
static void drop_freed(struct peer_link *l, const struct comm *comm, cudaStream_t stream) {
  CHECK_CUDA(cudaStreamSynchronize(stream)); /* no copy of ours to them is in flight */
  int64_t freed[MOST_MAPS] = {0};
  for (int i = 0; i < l->n_maps; i++) freed[i] = gpu_set_aside(l->map[i].array);
  comm_min_i64(comm, freed, l->n_maps);
  for (int i = 0; i < l->n_maps; i++)
    if (freed[i]) unmap(&l->map[i], l->size);
  comm_barrier(comm);
  int kept = 0;
  for (int i = 0; i < l->n_maps; i++) {
    if (freed[i])
      gpu_release(l->map[i].array);
    else
      l->map[kept++] = l->map[i];
  }
  l->n_maps = kept;
}

/* The map that holds `at`, made on first use. Arrays of one allocation follow each other at
 * `stride` bytes.
 */
static const struct peer_map *map_of(struct peer_link *l, const struct comm *comm, void *at,
                                     int64_t stride, cudaStream_t stream) {
  uint64_t id;
  allocation_id(at, &id); /* the driver gave one before, or there were no maps */
  for (int i = 0; i < l->n_maps; i++) {
    const struct peer_map *m = &l->map[i];
    if ((char *)at >= m->mine && (char *)at < m->mine + m->bytes && m->id == id) return m;
  }
  drop_freed(l, comm, stream);
  if (l->n_maps == MOST_MAPS)
    DIE(EXIT_RUNTIME, "more than %d arrays travel between the GPUs", MOST_MAPS);
  struct peer_map *m = &l->map[l->n_maps++];
  if (!map_array(comm, at, stride, m))
    DIE(EXIT_RUNTIME, "a GPU's memory cannot be mapped by the other ranks of this host");
  return m;
}

/* Rank r's array that corresponds to ours at `at`. */
static char *array_of(const struct peer_map *m, const void *at, int r) {
  const int64_t k = m->stride ? ((const char *)at - m->mine) / m->stride : 0;
  return m->theirs[r] + k * m->their_stride[r];
}

/* ---- places ---- */

/* Where our rows go: each rank tells every other where that one's rows stand in its halo
 * and in its send order. */
static void learn_places(struct peer_link *l, const struct comm *comm, const struct halo *h,
                         lidx n_own) {
  if (l->of == h->id) return;
  const int n = comm->size;
  int64_t *mine = NEW_ZERO(int64_t, 2 * n + 2), *all = NEW(int64_t, (int64_t)n * (2 * n + 2));
  for (int p = 0; p < h->n_peers; p++)
    mine[h->peer[p]] = h->recv_ptr[p], mine[n + h->peer[p]] = h->send_ptr[p];
  mine[2 * n] = n_own, mine[2 * n + 1] = h->send_ptr[h->n_peers];
  comm_gather(comm, mine, (2 * n + 2) * (int64_t)sizeof *mine, all);
  mem_free(l->their_recv), mem_free(l->their_send), mem_free(l->their_own);
  l->their_recv = NEW(int64_t, n), l->their_send = NEW(int64_t, n), l->their_own = NEW(int64_t, n);
  l->serves = true;
  for (int r = 0; r < n; r++) {
    const int64_t *theirs = all + (int64_t)r * (2 * n + 2);
    l->serves &= theirs[2 * n] > 0 && theirs[2 * n + 1] > 0;
    l->their_recv[r] = theirs[comm->rank], l->their_send[r] = theirs[n + comm->rank],
    l->their_own[r] = theirs[2 * n];
  }
  l->of = h->id;
  mem_free(mine), mem_free(all);
}

bool peer_serves(struct peer_link *l, const struct comm *comm, const struct halo *h, lidx n_own) {
  learn_places(l, comm, h, n_own);
  return l->serves;
}

/* ---- transfers ---- */

static void flag_barrier(struct peer_link *l, int flag, cudaStream_t stream) {
  flags_barrier(stream, l->remote + flag * l->size, l->flag + flag * l->size, l->rank, l->size);
}

void peer_make_ready(struct peer_link *l, cudaStream_t stream) {
  flag_barrier(l, READY, stream);
}

static void copy(void *to, const void *from, eidx rows, size_t row_bytes, cudaStream_t stream) {
  if (rows > 0)
    CHECK_CUDA(
        cudaMemcpyAsync(to, from, (size_t)rows * row_bytes, cudaMemcpyDeviceToDevice, stream));
}

void peer_send_rows(struct peer_link *l, const struct comm *comm, const struct halo *h, void *rows,
                    lidx n_own, size_t row_bytes, const void *packed, cudaStream_t stream) {
  const int64_t stride = ((int64_t)n_own + h->recv_ptr[h->n_peers]) * (int64_t)row_bytes;
  const struct peer_map *m = map_of(l, comm, rows, stride, stream);
  for (int p = 0; p < h->n_peers; p++) {
    const int r = h->peer[p];
    copy(array_of(m, rows, r) + (size_t)(l->their_own[r] + l->their_recv[r]) * row_bytes,
         halo_rows_for(h, p, rows, packed, row_bytes), h->send_ptr[p + 1] - h->send_ptr[p],
         row_bytes, stream);
  }
  flag_barrier(l, ARRIVED, stream);
}

void peer_send_gradients(struct peer_link *l, const struct comm *comm, const struct halo *h,
                         const void *rows, lidx n_own, size_t row_bytes, void *arrived,
                         cudaStream_t stream) {
  const struct peer_map *m = map_of(l, comm, arrived, 0, stream);
  const char *halo_rows = (const char *)rows + (size_t)n_own * row_bytes;
  for (int p = 0; p < h->n_peers; p++) {
    const int r = h->peer[p];
    copy(array_of(m, arrived, r) + (size_t)l->their_send[r] * row_bytes,
         halo_rows + (size_t)h->recv_ptr[p] * row_bytes, h->recv_ptr[p + 1] - h->recv_ptr[p],
         row_bytes, stream);
  }
  flag_barrier(l, ARRIVED, stream);
}

/* ---- windows ---- */

struct peer_window {
  struct peer_map map;
};

struct peer_window *peer_window_open(const struct comm *comm, void *at) {
  struct peer_window *w = NEW_ZERO(struct peer_window, 1);
  if (map_array(comm, at, 0, &w->map)) return w;
  peer_window_close(w, comm);
  return NULL;
}

void *peer_window_at(const struct peer_window *w, int r) {
  return w->map.theirs[r];
}

void peer_window_close(struct peer_window *w, const struct comm *comm) {
  if (!w) return;
  CHECK_CUDA(cudaStreamSynchronize(gpu_stream()));
  comm_barrier(comm); /* nobody writes any more */
  unmap(&w->map, comm->size);
  comm_barrier(comm);
  gpu_release(w->map.array); /* its owner may free it again */
  mem_free(w);
}
