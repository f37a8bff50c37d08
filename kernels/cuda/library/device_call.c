/* Calls of the public library on a GPU: which device, and what went wrong. */
#include "device_call.h"

#include <stdio.h>

struct device_call call_begin(int device, cudaStream_t stream) {
  struct device_call call = {.queue = {.stream = stream}, .device = device};
  gpu_queue_note(&call.queue, cudaGetDevice(&call.former));
  if (call.former != device) gpu_queue_note(&call.queue, cudaSetDevice(device));
  return call;
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

struct recur_gpu_result call_end(struct device_call *call) {
  int now = call->former;
  if (cudaGetDevice(&now) == cudaSuccess && now != call->former)
    gpu_queue_note(&call->queue, cudaSetDevice(call->former));
  const cudaError_t error = call->queue.error;
  if (error != cudaSuccess) (void)cudaGetLastError(); /* the next call starts clean */
  return (struct recur_gpu_result){code_of(error), error ? cudaGetErrorString(error) : NULL};
}
