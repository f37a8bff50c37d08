/* Halo rows, their gradients and sums in device memory through a transport, on any number of ranks:
 * every halo row must receive its own global id, gradients must come home in rank order, sums must
 * have the bits of a sum in rank order. Usage: mpirun -n R gpu_test_transport nccl|peer|mpi */
#include "kernels/interface/backends.h"
#include "core/comm.h"
#include "kernels/cuda/gpu/gpu.h"
#include "partition/halo.h"
#include "core/mem.h"
#include "core/rng.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 3000, EDGES = 40, WIDTH = 32 };

static struct comm world;

static void check(bool good, const char *what) {
  if (!good) DIE(1, "check failed: %s", what);
}

/* This rank's share of a random graph: row i takes EDGES sources. */
static void make_graph(gidx *first, enum halo_kind kind, struct graph *g) {
  for (int r = 0; r <= world.size; r++) first[r] = (gidx)ROWS * r / world.size;
  const gidx from = first[world.rank], n = first[world.rank + 1] - from;
  eidx *row_ptr = NEW(eidx, n + 1);
  gidx *source = NEW(gidx, n * EDGES);
  for (gidx i = 0; i <= n; i++) row_ptr[i] = i * EDGES;
  for (gidx e = 0; e < n * EDGES; e++)
    source[e] = (gidx)(rng_draw(7, (uint32_t)(from * EDGES + e), 0, 0, 0).v[0] % ROWS);
  graph_build(&world, first, row_ptr, source, kind, g);
  mem_free(row_ptr), mem_free(source);
}

/* Own rows hold id and column; halo rows must arrive so. */
static void test_exchange(const struct graph *g) {
  const int64_t rows = g->n_own + g->n_halo, n = rows * WIDTH;
  float *host = NEW_ZERO(float, n), *there = gpu_zero(n, sizeof(float));
  for (int turn = 0; turn < 3; turn++) {
    for (int64_t i = 0; i < n; i++)
      host[i] = i < (int64_t)g->n_own * WIDTH
                    ? (float)(g->first + i / WIDTH) + 4096.f * (float)(i % WIDTH + turn)
                    : -1;
    backend_cuda.put(there, host, (size_t)n * sizeof *host);
    world.via->exchange_begin(&world, &g->halo, there, g->n_own, WIDTH * sizeof(float));
    world.via->exchange_end(&world, &g->halo);
    backend_cuda.get(host, there, (size_t)n * sizeof *host);
    for (int64_t i = (int64_t)g->n_own * WIDTH; i < n; i++)
      check(host[i] ==
                (float)g->halo_gid[i / WIDTH - g->n_own] + 4096.f * (float)(i % WIDTH + turn),
            "halo row");
  }
  gpu_free(there);
  mem_free(host);
}

/* Every halo row sends 1 + its rank home: an own row ends as the sum over
 * the ranks that have it. */
static void test_reduce(const struct graph *g) {
  const int64_t rows = g->n_own + g->n_halo, n = rows * WIDTH;
  float *host = NEW_ZERO(float, n), *wanted = NEW_ZERO(float, n),
        *there = gpu_zero(n, sizeof(float));
  for (int64_t i = (int64_t)g->n_own * WIDTH; i < n; i++) host[i] = (float)(1 + world.rank) / 3;
  for (int p = 0; p < g->halo.n_peers; p++)
    for (eidx k = g->halo.send_ptr[p]; k < g->halo.send_ptr[p + 1]; k++)
      for (int b = 0; b < WIDTH; b++)
        wanted[(int64_t)g->halo.send_row[k] * WIDTH + b] += (float)(1 + g->halo.peer[p]) / 3;
  backend_cuda.put(there, host, (size_t)n * sizeof *host);
  world.via->reduce_begin(&world, &g->halo, there, g->n_own, WIDTH);
  world.via->reduce_end(&world, &g->halo, there, WIDTH);
  backend_cuda.get(host, there, (size_t)n * sizeof *host);
  check(!memcmp(host, wanted, (size_t)g->n_own * WIDTH * sizeof *host), "gradients in rank order");
  gpu_free(there);
  mem_free(host), mem_free(wanted);
}

static float value_of(int rank, int64_t i) {
  return (float)rng_unit(rng_draw(3, (uint32_t)i, (uint32_t)rank, 0, 0).v[0], 0) - 0.5f;
}

static void test_sum(int64_t n) {
  float *host = NEW(float, n), *there = gpu_zero(n, sizeof(float));
  for (int64_t i = 0; i < n; i++) host[i] = value_of(world.rank, i);
  backend_cuda.put(there, host, (size_t)n * sizeof *host);
  world.via->sum(&world, there, n);
  backend_cuda.get(host, there, (size_t)n * sizeof *host);
  for (int64_t i = 0; i < n; i++) {
    float total = value_of(0, i);
    for (int r = 1; r < world.size; r++) total += value_of(r, i);
    check(host[i] == total, "sum in rank order");
  }
  gpu_free(there);
  mem_free(host);
}

int main(int argc, char **argv) {
  world = comm_start(&argc, &argv);
  const char *name = argc > 1 ? argv[1] : "nccl";
  const struct transport *via = !strcmp(name, "nccl")   ? &transport_nccl
                                : !strcmp(name, "peer") ? &transport_peer
                                                        : &transport_staged;
  struct status s = backend_cuda.start(world.rank);
  if (s.code) DIE(s.code, "%s", s.text);
  s = via->open(&world);
  if (s.code) DIE(s.code, "%s", s.text);
  gidx *first = NEW(gidx, world.size + 1);
  for (enum halo_kind kind = HALO_NEEDED; kind <= HALO_ALL; kind++)
    for (int turn = 0; turn < 12;
         turn++) { /* arrays come and go, more of them than a transport remembers */
      struct graph g;
      make_graph(first, kind, &g);
      test_exchange(&g);
      test_reduce(&g);
      graph_free(&g);
    }
  static const int64_t sizes[] = {1, 2, 1000, 1 << 20, 5000003};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) test_sum(sizes[i]);
  mem_free(first);
  world.via->close(&world);
  backend_cuda.stop();
  if (world.rank == 0) printf("transport %s on %d ranks: all checks pass\n", name, world.size);
  comm_finish(&world, 0);
}
