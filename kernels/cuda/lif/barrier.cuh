/* The barrier of all blocks. A word counts the blocks that arrived, and above bit 32 those
 * that met a fault. Barriers use three words in turn, so that a word stays as it is until
 * everybody has read it. */
#ifndef FASCICLE_LIF_BARRIER_CUH
#define FASCICLE_LIF_BARRIER_CUH

#include "send.cuh"

namespace lif {

constexpr int FAULT_BIT = 32;

/* Thread 0 tells the other blocks that this one has come to barrier n; whoever receives of it sees
 * all additions that the block made before. Behind a __syncthreads. */
__device__ __forceinline__ void arrive(const lif_device &d, const shared &s, unsigned n) {
  if (threadIdx.x != 0) return;
  asm volatile(
      "red.release.gpu.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(d.arrived + n % 3)),
      "l"(1ull | (unsigned long long)(s.faulty != 0) << FAULT_BIT)
      : "memory");
}

/* Waits for the others. Whether some block met a fault: the same answer in every block. */
__device__ __forceinline__ bool wait_for_all(const lif_device &d, shared &s, unsigned n) {
  if (threadIdx.x == 0) {
    unsigned long long now;
    do {
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
                   : "=l"(now)
                   : "l"(d.arrived + n % 3)
                   : "memory");
    } while ((unsigned)now < gridDim.x);
    s.stop = now >> FAULT_BIT != 0;
    if (blockIdx.x == 0)
      d.arrived[(n + 2) % 3] = 0; /* the word of barrier n - 1, which all have read */
  }
  __syncthreads();
  return s.stop;
}

} // namespace lif
#endif
