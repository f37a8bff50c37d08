/* Built in place of kernels/cuda where there is no CUDA Toolkit: the same symbols,
 * each of which says so. */
#include "kernels/interface/backends.h"

#include <stdio.h>

static struct status start(int local_rank) {
  (void)local_rank;
  return failure(EXIT_DEVICE,
                 "--device cuda: this program was built without CUDA; install the CUDA Toolkit and "
                 "configure again, or use --device cpu");
}

static void stop(void) {}

static void describe(char *text, size_t size) {
  snprintf(text, size, "built without CUDA");
}

static void copy(void *to, const void *from, size_t bytes) {
  (void)to, (void)from, (void)bytes;
  DIE(EXIT_DEVICE, "this program was built without CUDA");
}

static int64_t peak(void) {
  return 0;
}

const struct backend backend_cuda = {.name = "cuda",
                                     .start = start,
                                     .stop = stop,
                                     .describe = describe,
                                     .put = copy,
                                     .get = copy,
                                     .peak = peak};

static struct status open_nothing(struct comm *comm) {
  (void)comm;
  return failure(EXIT_DEVICE,
                 "--transport: this program was built without CUDA; use --transport mpi");
}

const struct transport transport_nccl = {.name = "nccl", .open = open_nothing};
const struct transport transport_staged = {.name = "mpi", .open = open_nothing};
const struct transport transport_peer = {.name = "peer", .open = open_nothing};
const struct transport transport_near = {.name = "peer or nccl", .open = open_nothing};
