/* The device as the rest of kernels/cuda sees it: counted memory, one stream, checked calls. C and
 * CUDA C++ both include this, so it includes nothing of MPI. For the program: errors are fatal.
 * libfascicle uses queue.h. */
#ifndef FASCICLE_GPU_H
#define FASCICLE_GPU_H

#include <cuda_runtime_api.h>
#include <vector_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A failed CUDA call is fatal and carries CUDA's own text. */
void gpu_check_at(const char *file, int line, cudaError_t code, const char *call);
#define CHECK_CUDA(call) gpu_check_at(__FILE__, __LINE__, (call), #call)

/* All work of this rank is queued here, in order. */
cudaStream_t gpu_stream(void);

/* Streaming multiprocessors of the chosen device. */
int gpu_processors(void);

/* Shared memory that a block can have. FASCICLE_SHARED_BYTES in the environment makes it
 * less, so that what runs on smaller GPUs (101376 on many, 166912 on an A100) can be
 * tested on a large one. */
#define GPU_SHARED_BYTES "FASCICLE_SHARED_BYTES"
size_t gpu_shared_bytes(void);

/* n elements of `bytes` each in device memory, zeroed; NULL when n is 0. Running out of memory is
 * fatal; what is held is counted. */
void *gpu_zero(int64_t n, size_t bytes);
void gpu_free(void *array);

/* Other processes are about to map the array (CUDA IPC): from now on gpu_free only sets it aside,
 * because memory must not be released while another process maps it. gpu_set_aside: whether
 * gpu_free has been called for it; gpu_release: nobody maps it any more, and what was set aside is
 * released now. */
const void *gpu_array_at(const void *allocation); /* the array in an allocation of CUDA's */
void gpu_export(const void *array);
bool gpu_set_aside(const void *array);
void gpu_release(const void *array);

/* As gpu_zero, filled from a host array. */
void *gpu_copy_of(const void *host, int64_t n, size_t bytes);

/* Between host and device, behind all work queued so far; the host waits. */
void gpu_put(void *array, const void *host, size_t bytes);
void gpu_get(void *host, const void *array, size_t bytes);

/* The most bytes ever held by gpu_zero and gpu_copy_of. */
int64_t gpu_peak(void);

/* Bytes of the device that no process holds. */
int64_t gpu_free_bytes(void);

/* Pinned host memory, for copies that run beside the work. */
void *gpu_pinned(int64_t n, size_t bytes);
void gpu_pinned_free(void *host);

/* Pins host memory that exists already, and maps it; its address for the device. */
cudaError_t gpu_pin(void *host, size_t bytes);
void gpu_unpin(void *host);
void *gpu_pinned_at(void *host);

/* A recorded sequence of launches: what is queued between begin and end, replayed as one. */
void gpu_capture_begin(void);
cudaGraphExec_t gpu_capture_end(void);
void gpu_replay(cudaGraphExec_t graph);

#define GPU_ZERO(type, n)          ((type *)gpu_zero((n), sizeof(type)))
#define GPU_COPY_OF(type, host, n) ((type *)gpu_copy_of((host), (n), sizeof(type)))

#ifdef __cplusplus
}
#endif
#endif
