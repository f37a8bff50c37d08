/* One call of the public library on a GPU: the device that is current, the caller's stream, and the
 * first error, which is returned and never fatal. */
#ifndef FASCICLE_DEVICE_CALL_H
#define FASCICLE_DEVICE_CALL_H

#include "kernels/cuda/gpu/queue.h"
#include "kernels/interface/recur_gpu.h"

struct device_call {
  struct gpu_queue queue;
  int former; /* the device that was current, current again at the end */
  int device;
};

/* After an error the call goes on, as what follows fails too or does no harm. */
struct device_call call_begin(int device, cudaStream_t stream);

/* The former device again; the first error since call_begin. */
struct recur_gpu_result call_end(struct device_call *call);

#endif
