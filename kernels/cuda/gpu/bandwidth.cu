/* What the device's memory can do, measured: what the benches divide by. */
#include "bandwidth.h"

namespace {

constexpr int THREADS = 256, ROW = 8; /* float4 in a row of 128 bytes */

__global__ void copy_kernel(const float4 *from, float4 *to, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) to[i] = from[i];
}

__device__ unsigned scatter(unsigned x) {
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}

/* 8 lanes fetch a row; 8 rows are in flight. */
__global__ void gather_kernel(const float4 *rows, unsigned n_rows, int64_t n, float4 *sink) {
  const int64_t group = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / ROW,
                groups = (int64_t)gridDim.x * THREADS / ROW;
  const int lane = threadIdx.x % ROW;
  float4 sum = make_float4(0, 0, 0, 0);
  for (int64_t first = group * 8; first < n; first += groups * 8) {
    float4 x[8];
#pragma unroll
    for (int u = 0; u < 8; u++)
      x[u] = rows[(int64_t)(scatter((unsigned)(first + u)) % n_rows) * ROW + lane];
#pragma unroll
    for (int u = 0; u < 8; u++) sum.x += x[u].x, sum.y += x[u].y, sum.z += x[u].z, sum.w += x[u].w;
  }
  if (sum.x == 1) *sink = sum;
}

struct stopwatch {
  cudaEvent_t start, stop;
  stopwatch() {
    CHECK_CUDA(cudaEventCreate(&start));
    CHECK_CUDA(cudaEventCreate(&stop));
  }
  ~stopwatch() {
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
  }
  template <class F> double best(const F &once) {
    float least = 1e30f;
    for (int i = 0; i < 6; i++) {
      float ms;
      CHECK_CUDA(cudaEventRecord(start, gpu_stream()));
      once();
      CHECK_CUDA(cudaGetLastError());
      CHECK_CUDA(cudaEventRecord(stop, gpu_stream()));
      CHECK_CUDA(cudaEventSynchronize(stop));
      CHECK_CUDA(cudaEventElapsedTime(&ms, start, stop));
      if (i > 0 && ms < least) least = ms;
    }
    return 1e-3 * least;
  }
};

} // namespace

double gpu_copy_rate(void) {
  const int64_t n = 1 << 26; /* 1 GiB: far more than the cache */
  float4 *from = GPU_ZERO(float4, n), *to = GPU_ZERO(float4, n);
  const double seconds = stopwatch().best(
      [&] { copy_kernel<<<(unsigned)(n / THREADS), THREADS, 0, gpu_stream()>>>(from, to, n); });
  gpu_free(from), gpu_free(to);
  return 2.0 * (double)n * sizeof(float4) / seconds;
}

double gpu_gather_rate(int64_t n_rows) {
  const int64_t n = 1 << 23;
  if (n_rows < 1) n_rows = 1;
  float4 *rows = GPU_ZERO(float4, n_rows * ROW), *sink = GPU_ZERO(float4, 1);
  const unsigned blocks = (unsigned)gpu_processors() * 8;
  const double seconds = stopwatch().best([&] {
    gather_kernel<<<blocks, THREADS, 0, gpu_stream()>>>(rows, (unsigned)n_rows, n, sink);
  });
  gpu_free(rows), gpu_free(sink);
  return (double)n * ROW * sizeof(float4) / seconds;
}

double gpu_upload_rate(void) {
  const size_t bytes = 64 << 20;
  void *from = gpu_pinned(1, bytes), *to = gpu_zero(1, bytes);
  const double seconds = stopwatch().best(
      [&] { CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, gpu_stream())); });
  gpu_pinned_free(from), gpu_free(to);
  return (double)bytes / seconds;
}
