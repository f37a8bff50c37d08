/* How rows and gradients travel between ranks. All entries are required, but a build without CUDA
 * leaves its transports only `open`, which fails. A transport belongs to a
 * communicator: the state hangs on comm->via_state. Arrays of rows and of `sum` are where the
 * backend keeps them (mpi: host memory; nccl, and mpi beside the cuda backend: device memory);
 * those of `gather` are host memory. */
#ifndef FASCICLE_TRANSPORT_H
#define FASCICLE_TRANSPORT_H

#include "core/comm.h"
#include "graph.h"

struct transport {
  const char *name;
  bool queues; /* the entries for rows and sums only queue work on the device: the host never waits
                  in them */

  /* Set comm->via and comm->via_state. Collective and agreed; EXIT_DEVICE
   * when it cannot work here. */
  struct status (*open)(struct comm *comm);
  void (*close)(struct comm *comm);

  /* Forward halo. rows [n_own + n_halo][row_bytes]: own rows leave, halo rows arrive in place.
   * Between begin and end the caller may read own rows and must not touch halo rows. One exchange
   * at a time per communicator. */
  void (*exchange_begin)(const struct comm *comm, const struct halo *halo, void *rows, lidx n_own,
                         size_t row_bytes);
  void (*exchange_end)(const struct comm *comm, const struct halo *halo);

  /* Backward halo: the float halo rows [n_halo][width] of `rows` travel to their owners,
   * who add them to their own rows in ascending order of the sending rank, so that the
   * same grid repeats bit for bit. Between begin and end the caller may change own rows
   * and must not touch halo rows. */
  void (*reduce_begin)(const struct comm *comm, const struct halo *halo, float *rows, lidx n_own,
                       int width);
  void (*reduce_end)(const struct comm *comm, const struct halo *halo, float *rows, int width);

  /* Element-wise sum over all ranks, in place, added in rank order; every
   * rank gets the same bits. */
  void (*sum)(const struct comm *comm, float *x, int64_t n);

  /* Every rank gives `bytes` bytes and gets all, in rank order, into `all` (capacity in bytes),
   * with sizes [size]. DIEs when they do not fit. */
  void (*gather)(const struct comm *comm, const void *mine, int64_t bytes, void *all,
                 int64_t capacity, int64_t *sizes);
};

#endif
