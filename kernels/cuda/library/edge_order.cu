/* Edges of a graph on the GPU between the order of the caller and that of the kernels. */
#include "edge_order.h"

namespace {

constexpr int THREADS = 256, TILE = 32, TILE_ROWS = 8;
constexpr int64_t MOST_GRID_Y = 65535;

unsigned blocks_for(int64_t n) {
  return (unsigned)((n + THREADS - 1) / THREADS);
}

__global__ void gather(float *to, const float *from, const uint32_t *order, int64_t n) {
  const int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (e < n) to[e] = from[order[e]];
}

__global__ void scatter(float *to, const float *from, const uint32_t *order, int64_t n) {
  const int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (e < n) to[order[e]] = from[e];
}

/* A tile through shared memory, so that both sides move whole lines. */
__global__ void flip(float *to, const float *from, int64_t rows, int64_t columns) {
  __shared__ float tile[TILE][TILE + 1];
  const int64_t size = rows * columns, row0 = (int64_t)blockIdx.x * TILE;
  from += blockIdx.z * size, to += blockIdx.z * size;
  for (int64_t column0 = (int64_t)blockIdx.y * TILE; column0 < columns;
       column0 += (int64_t)gridDim.y * TILE) {
    for (int y = threadIdx.y; y < TILE; y += TILE_ROWS)
      if (row0 + y < rows && column0 + threadIdx.x < columns)
        tile[y][threadIdx.x] = from[(row0 + y) * columns + column0 + threadIdx.x];
    __syncthreads();
    for (int y = threadIdx.y; y < TILE; y += TILE_ROWS)
      if (column0 + y < columns && row0 + threadIdx.x < rows)
        to[(column0 + y) * rows + row0 + threadIdx.x] = tile[threadIdx.x][y];
    __syncthreads();
  }
}

} // namespace

void edge_order_gather(gpu_queue *queue, float *to, const float *from, const uint32_t *order,
                       int64_t n) {
  if (n == 0) return;
  gather<<<blocks_for(n), THREADS, 0, queue->stream>>>(to, from, order, n);
  gpu_queue_note(queue, cudaGetLastError());
}

void edge_order_scatter(gpu_queue *queue, float *to, const float *from, const uint32_t *order,
                        int64_t n) {
  if (n == 0) return;
  scatter<<<blocks_for(n), THREADS, 0, queue->stream>>>(to, from, order, n);
  gpu_queue_note(queue, cudaGetLastError());
}

void edge_order_flip(gpu_queue *queue, float *to, const float *from, int n, int64_t rows,
                     int64_t columns) {
  if (rows * columns == 0) return;
  const int64_t down = (columns + TILE - 1) / TILE;
  for (int first = 0; first < n; first += (int)MOST_GRID_Y) {
    const int64_t left = n - first;
    const dim3 grid((unsigned)((rows + TILE - 1) / TILE),
                    (unsigned)(down < MOST_GRID_Y ? down : MOST_GRID_Y),
                    (unsigned)(left < MOST_GRID_Y ? left : MOST_GRID_Y));
    flip<<<grid, dim3(TILE, TILE_ROWS), 0, queue->stream>>>(
        to + first * rows * columns, from + first * rows * columns, rows, columns);
    gpu_queue_note(queue, cudaGetLastError());
  }
}
