/* An asynchronous error of NCCL without a GPU: NCCL's three questions are answered here, and say on
 * rank 1, in the midst of a phase, that the transfer broke. tests/cli/test_nccl_error.py looks at
 * how the job ends.
 */
#include "core/comm.h"
#include "kernels/cuda/transport/nccl_watch.h"
#include "core/watchdog.h"

#include <unistd.h>

static struct comm world;
static atomic_int asked;

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  (void)comm;
  *error = world.rank == 1 && atomic_fetch_add(&asked, 1) >= 2 ? ncclSystemError : ncclInProgress;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t error) {
  return error == ncclSystemError ? "unhandled system error" : "another error";
}

const char *ncclGetLastError(ncclComm_t comm) {
  (void)comm;
  return "the cable was pulled";
}

int main(int argc, char **argv) {
  world = comm_start(&argc, &argv);
  struct nccl_watch watch;
  nccl_watch_start(&watch, NULL);
  nccl_watch_stop(&watch); /* no error yet: it ends when it is told to */
  nccl_watch_start(&watch, NULL);
  pulse("the backward pass");
  for (;;) pause();
}
