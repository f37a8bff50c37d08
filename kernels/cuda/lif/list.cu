/* Who fired: lists from bit masks. */
#include "device.h"

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

/* A block lists a chunk of LIF_CHUNK words of a step of a trial. Counts stand by trial, step,
 * chunk; masks by step, trial, word. */
struct chunk {
  const uint32_t *mask;
  int first_word, n_words;
};

__device__ chunk chunk_of(int n_steps, int n_trials, int n_words, const uint32_t *mask) {
  const int first = blockIdx.x * LIF_CHUNK, trial = blockIdx.y / n_steps,
            step = blockIdx.y % n_steps;
  return chunk{mask + ((int64_t)step * n_trials + trial) * n_words + first, first,
               min(LIF_CHUNK, n_words - first)};
}

__global__ void __launch_bounds__(LIST_THREADS)
    count_kernel(int n_steps, int n_trials, int n_words, const uint32_t *mask, int32_t *count) {
  __shared__ int room[LIST_THREADS / WARP];
  const chunk c = chunk_of(n_steps, n_trials, n_words, mask);
  int n = 0;
  for (int w = threadIdx.x; w < c.n_words; w += LIST_THREADS) n += __popc(c.mask[w]);
  n = block_sum(n, room);
  if (threadIdx.x == 0) count[blockIdx.y * gridDim.x + blockIdx.x] = n;
}

/* Each thread lists a run of words; where it begins follows from the counts of the chunks
 * and threads before it. */
__global__ void __launch_bounds__(LIST_THREADS)
    list_kernel(int n_steps, int n_trials, int n_words, int64_t first, const uint32_t *mask,
                const int32_t *count, uint32_t *row) {
  __shared__ int room[LIST_THREADS / WARP], before[LIST_THREADS];
  const chunk c = chunk_of(n_steps, n_trials, n_words, mask);
  const int block = blockIdx.y * gridDim.x + blockIdx.x,
            run = (c.n_words + LIST_THREADS - 1) / LIST_THREADS;
  if (count[block] == 0) return;
  int base = 0;
  for (int k = threadIdx.x; k < block; k += LIST_THREADS) base += count[k];
  base = block_sum(base, room);
  const int from = min((int)threadIdx.x * run, c.n_words), to = min(from + run, c.n_words);
  int n = 0;
  for (int w = from; w < to; w++) n += __popc(c.mask[w]);
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
    for (uint32_t bits = c.mask[w]; bits; bits &= bits - 1)
      *at++ = (uint32_t)(first + (int64_t)(c.first_word + w) * WARP + __ffs(bits) - 1);
}

} // namespace

int lif_device_chunks(const struct lif_device *d) {
  return d->n_words > LIF_CHUNK ? (d->n_words + LIF_CHUNK - 1) / LIF_CHUNK : 1;
}

void lif_device_list(const struct lif_device *d, int n, const uint32_t *mask, int32_t *count,
                     uint32_t *row) {
  const dim3 blocks(lif_device_chunks(d), n * d->n_trials);
  count_kernel<<<blocks, LIST_THREADS, 0, gpu_stream()>>>(n, d->n_trials, d->n_words, mask, count);
  CHECK_CUDA(cudaGetLastError());
  list_kernel<<<blocks, LIST_THREADS, 0, gpu_stream()>>>(n, d->n_trials, d->n_words, d->first, mask,
                                                         count, row);
  CHECK_CUDA(cudaGetLastError());
}
