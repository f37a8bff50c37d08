/* A look at NCCL's asynchronous errors. An exchange that fails beside us leaves its kernels waiting
 * for ever: the job must end with one line that names rank, host and phase, not stall. */
#ifndef FASCICLE_NCCL_WATCH_H
#define FASCICLE_NCCL_WATCH_H

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>

struct nccl_watch {
  ncclComm_t comm;
  pthread_t thread;
  atomic_bool closing;
};

/* Asks twice a second until nccl_watch_stop; ends the job (EXIT_RUNTIME) at the first error. The
 * struct stays where it is meanwhile. */
void nccl_watch_start(struct nccl_watch *watch, ncclComm_t comm);
void nccl_watch_stop(struct nccl_watch *watch);

#endif
