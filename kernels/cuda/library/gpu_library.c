/* gpu.h and mem.h as the public library needs them: plain memory, nothing counted. After an
 * error every later CUDA call of the same library call fails too or does no harm;
 * library_end reports the first. */
#include "gpu_library.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>

static _Thread_local cudaStream_t stream;
static _Thread_local cudaError_t first_error;
static _Thread_local char text[200];

void gpu_check_at(const char *file, int line, cudaError_t code, const char *call) {
  (void)file, (void)line;
  if (code == cudaSuccess || first_error != cudaSuccess) return;
  first_error = code;
  snprintf(text, sizeof text, "%.*s: %s", 60, call, cudaGetErrorString(code));
}

int library_begin(int device, cudaStream_t its_stream) {
  int former = 0;
  stream = its_stream, first_error = cudaSuccess;
  CHECK_CUDA(cudaGetDevice(&former));
  if (former != device) CHECK_CUDA(cudaSetDevice(device));
  return former;
}

static enum recur_gpu_code code_of(cudaError_t error) {
  switch (error) {
  case cudaSuccess: return RECUR_GPU_FINE;
  case cudaErrorMemoryAllocation: return RECUR_GPU_NO_MEMORY;
  case cudaErrorNoDevice:
  case cudaErrorInvalidDevice:
  case cudaErrorInsufficientDriver:
  case cudaErrorNoKernelImageForDevice: return RECUR_GPU_NO_DEVICE;
  default: return RECUR_GPU_ERROR;
  }
}

struct recur_gpu_result library_end(int former) {
  int now = former;
  if (cudaGetDevice(&now) == cudaSuccess && now != former) CHECK_CUDA(cudaSetDevice(former));
  if (first_error != cudaSuccess) (void)cudaGetLastError(); /* the next call starts clean */
  return (struct recur_gpu_result){code_of(first_error), text};
}

cudaStream_t gpu_stream(void) {
  return stream;
}

int gpu_processors(void) {
  int device = 0, n = 1;
  CHECK_CUDA(cudaGetDevice(&device));
  CHECK_CUDA(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device));
  return n;
}

void *gpu_zero(int64_t n, size_t bytes) {
  void *there = NULL;
  if (n == 0 || first_error != cudaSuccess) return NULL;
  CHECK_CUDA(cudaMalloc(&there, (size_t)n * bytes));
  if (there) CHECK_CUDA(cudaMemsetAsync(there, 0, (size_t)n * bytes, stream));
  return there;
}

void gpu_free(void *there) {
  if (there) CHECK_CUDA(cudaFree(there));
}

void gpu_put(void *there, const void *host, size_t bytes) {
  if (bytes == 0 || !there) return;
  CHECK_CUDA(cudaMemcpyAsync(there, host, bytes, cudaMemcpyHostToDevice, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
}

void *gpu_copy_of(const void *host, int64_t n, size_t bytes) {
  void *there = gpu_zero(n, bytes);
  gpu_put(there, host, (size_t)n * bytes);
  return there;
}

/* ---- host memory: small tables; recur_gpu_open has made sure that they fit ---- */

void *mem_alloc(int64_t n, size_t bytes) {
  return malloc((size_t)n * bytes + 1);
}

void *mem_zero(int64_t n, size_t bytes) {
  return calloc((size_t)n + 1, bytes);
}

void mem_free(void *p) {
  free(p);
}
