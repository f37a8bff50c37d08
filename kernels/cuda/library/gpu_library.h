/* gpu.h inside the public library: the current thread's stream, and errors
 * that are noted, not fatal. */
#ifndef FASCICLE_GPU_LIBRARY_H
#define FASCICLE_GPU_LIBRARY_H

#include "kernels/cuda/gpu/gpu.h"
#include "kernels/interface/recur_gpu.h"

/* Begin a call: the stream that gpu_stream() gives this thread, and a clean slate for errors.
 * Returns the device that was current, for library_end. */
int library_begin(int device, cudaStream_t stream);

/* End it: the former device again, and the first error since library_begin. */
struct recur_gpu_result library_end(int former);

#endif
