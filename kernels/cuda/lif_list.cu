/* Who fired: lists from bit masks. */
#include "lif_device.h"

namespace {

constexpr int WARP = 32, LIST_THREADS = 256;
constexpr unsigned ALL = ~0u;

__device__ int block_sum(int x, int *room) {
  for (int b = WARP / 2; b > 0; b /= 2) x += __shfl_xor_sync(ALL, x, b);
  if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = x;
  __syncthreads();
  int sum = 0;
  for (int w = 0; w < LIST_THREADS / WARP; w++) sum += room[w];
  __syncthreads();
  return sum;
}

/* A block lists a step of a trial; blocks are by trial, then step, masks by step, then trial. */
__device__ const uint32_t *mask_of(int n_steps, int n_trials, int n_words, const uint32_t *mask) {
  const int trial = blockIdx.x / n_steps, step = blockIdx.x % n_steps;
  return mask + ((int64_t)step * n_trials + trial) * n_words;
}

__global__ void __launch_bounds__(LIST_THREADS)
    count_kernel(int n_steps, int n_trials, int n_words, const uint32_t *mask, int32_t *count) {
  __shared__ int room[LIST_THREADS / WARP];
  const uint32_t *mine = mask_of(n_steps, n_trials, n_words, mask);
  int n = 0;
  for (int w = threadIdx.x; w < n_words; w += LIST_THREADS) n += __popc(mine[w]);
  n = block_sum(n, room);
  if (threadIdx.x == 0) count[blockIdx.x] = n;
}

/* Each thread lists a run of words; where it begins follows from the counts of the threads before it. */
__global__ void __launch_bounds__(LIST_THREADS)
    list_kernel(int n_steps, int n_trials, int n_words, int64_t first, const uint32_t *mask,
                const int32_t *count, uint32_t *row) {
  __shared__ int room[LIST_THREADS / WARP], before[LIST_THREADS];
  const uint32_t *mine = mask_of(n_steps, n_trials, n_words, mask);
  const int block = blockIdx.x, run = (n_words + LIST_THREADS - 1) / LIST_THREADS;
  if (count[block] == 0) return;
  int64_t base = 0;
  for (int k = threadIdx.x; k < block; k += LIST_THREADS) base += count[k];
  base = block_sum((int)base, room);
  const int from = threadIdx.x * run, to = min(from + run, n_words);
  int n = 0;
  for (int w = from; w < to; w++) n += __popc(mine[w]);
  before[threadIdx.x] = n;
  __syncthreads();
  for (int d = 1; d < LIST_THREADS; d *= 2) {
    const int add_here = (int)threadIdx.x >= d ? before[threadIdx.x - d] : 0;
    __syncthreads();
    before[threadIdx.x] += add_here;
    __syncthreads();
  }
  uint32_t *at = row + base + before[threadIdx.x] - n;
  for (int w = from; w < to; w++)
    for (uint32_t bits = mine[w]; bits; bits &= bits - 1)
      *at++ = (uint32_t)(first + (int64_t)w * WARP + __ffs(bits) - 1);
}

} // namespace

void lif_device_list(const struct lif_device *d, int n, const uint32_t *mask, int32_t *count, uint32_t *row) {
  const int blocks = n * d->n_trials;
  count_kernel<<<blocks, LIST_THREADS, 0, gpu_stream()>>>(n, d->n_trials, d->n_words, mask, count);
  CHECK_CUDA(cudaGetLastError());
  list_kernel<<<blocks, LIST_THREADS, 0, gpu_stream()>>>(n, d->n_trials, d->n_words, d->first, mask, count,
                                                         row);
  CHECK_CUDA(cudaGetLastError());
}
