/* One empty launch: does this binary hold code for the device? */
#include "gpu.h"

static __global__ void nothing() {}

extern "C" cudaError_t gpu_can_launch(void) {
  nothing<<<1, 1>>>();
  const cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? cudaDeviceSynchronize() : code;
}
