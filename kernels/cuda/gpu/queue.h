/* A stream, and the first error of what was queued on it: for code that serves both the program, to
 * which an error is fatal, and libfascicle, which returns it. */
#ifndef FASCICLE_GPU_QUEUE_H
#define FASCICLE_GPU_QUEUE_H

#include <cuda_runtime_api.h>

struct gpu_queue {
  cudaStream_t stream;
  cudaError_t error; /* cudaSuccess so far; after an error nothing more need be queued */
};

static inline void gpu_queue_note(struct gpu_queue *q, cudaError_t code) {
  if (q->error == cudaSuccess) q->error = code;
}

#endif
