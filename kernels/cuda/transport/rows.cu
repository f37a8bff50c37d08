/* Kernels that pack, add and sum rows in transit between ranks. */
#include "kernels/cuda/gpu/gpu.h"
#include "rows.h"

#include <cuda/atomic>

enum { THREADS = 256 };

static unsigned blocks_for(int64_t n) {
  return (unsigned)((n + THREADS - 1) / THREADS);
}

template <class WORD>
static __global__ void pack(const WORD *rows, const int32_t *row, int64_t n, int64_t words,
                            WORD *packed) {
  const int64_t at = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (at >= n * words) return;
  const int64_t i = at / words;
  packed[at] = rows[row[i] * words + at - i * words];
}

static __global__ void add(float *rows, const int32_t *row, int64_t n, int64_t width,
                           const float *arrived) {
  const int64_t at = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (at >= n * width) return;
  const int64_t i = at / width;
  rows[row[i] * width + at - i * width] += arrived[at];
}

static __global__ void sum_parts(const float *parts, int n_parts, int64_t stride, int own,
                                 int64_t n, float *x) {
  const int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (i >= n) return;
  const float mine = x[i];
  float total = own == 0 ? mine : parts[i];
  for (int p = 1; p < n_parts; p++) total += p == own ? mine : parts[p * stride + i];
  x[i] = total;
}

template <class WORD>
static void pack_as(cudaStream_t stream, const void *rows, const int32_t *row, int64_t n,
                    int64_t words, void *packed) {
  pack<<<blocks_for(n * words), THREADS, 0, stream>>>((const WORD *)rows, row, n, words,
                                                      (WORD *)packed);
  CHECK_CUDA(cudaGetLastError());
}

void rows_pack(cudaStream_t stream, const void *rows, const int32_t *row, int64_t n, int64_t words,
               void *packed) {
  if (n * words == 0) return;
  const bool wide = words % 4 == 0 && (((uintptr_t)rows | (uintptr_t)packed) & 15) == 0;
  if (wide)
    pack_as<uint4>(stream, rows, row, n, words / 4, packed);
  else
    pack_as<uint32_t>(stream, rows, row, n, words, packed);
}

void rows_add(cudaStream_t stream, float *rows, const int32_t *row, int64_t n, int64_t width,
              const float *arrived) {
  if (n * width == 0) return;
  add<<<blocks_for(n * width), THREADS, 0, stream>>>(rows, row, n, width, arrived);
  CHECK_CUDA(cudaGetLastError());
}

void rows_sum(cudaStream_t stream, const float *parts, int n_parts, int64_t stride, int own,
              int64_t n, float *x) {
  if (n == 0) return;
  sum_parts<<<blocks_for(n), THREADS, 0, stream>>>(parts, n_parts, stride, own, n, x);
  CHECK_CUDA(cudaGetLastError());
}

static __global__ void barrier(uint32_t *const *theirs, uint32_t *mine, int rank, int n) {
  const int r = threadIdx.x;
  if (r >= n || r == rank) return;
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> there(*theirs[r]), here(mine[r]);
  there.store(1, cuda::memory_order_release);
  while (here.load(cuda::memory_order_acquire) == 0) __nanosleep(100);
  here.store(0, cuda::memory_order_relaxed);
}

void flags_barrier(cudaStream_t stream, uint32_t *const *theirs, uint32_t *mine, int rank, int n) {
  barrier<<<1, n, 0, stream>>>(theirs, mine, rank, n);
  CHECK_CUDA(cudaGetLastError());
}
