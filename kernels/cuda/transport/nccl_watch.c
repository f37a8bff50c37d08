/* A thread that asks NCCL for asynchronous errors and ends the job with one line. */
#include "nccl_watch.h"
#include "core/fail.h"
#include "nccl_messages.h"
#include "core/watchdog.h"

#include <time.h>

/* On its own host a peer's end is seen and explained by others first: they have a second. */
static void *watch_errors(void *self) {
  struct nccl_watch *watch = self;
  const struct timespec pause = {0, 500000000}, turn = {1, 0};
  while (!atomic_load(&watch->closing)) {
    ncclResult_t error = ncclSuccess;
    if (ncclCommGetAsyncError(watch->comm, &error) == ncclSuccess && error != ncclSuccess &&
        error != ncclInProgress) {
      nanosleep(&turn, NULL);
      nccl_messages_flush();
      DIE(EXIT_RUNTIME, "NCCL: an exchange failed in '%s': %s (%s)", watchdog_place(),
          ncclGetErrorString(error), ncclGetLastError(watch->comm));
    }
    nanosleep(&pause, NULL);
  }
  return NULL;
}

void nccl_watch_start(struct nccl_watch *watch, ncclComm_t comm) {
  watch->comm = comm;
  atomic_init(&watch->closing, false);
  if (pthread_create(&watch->thread, NULL, watch_errors, watch))
    DIE(EXIT_RUNTIME, "cannot start the NCCL watcher thread");
}

void nccl_watch_stop(struct nccl_watch *watch) {
  atomic_store(&watch->closing, true);
  pthread_join(watch->thread, NULL);
}
