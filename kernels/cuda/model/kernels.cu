/* The character model around the recurrence: small kernels, each sum in a fixed order. */
#include "device.h"

#include <math.h>

namespace {

constexpr int THREADS = 256, WARP = 32;
constexpr unsigned ALL = ~0u;

unsigned blocks_for(int64_t n) {
  return (unsigned)((n + THREADS - 1) / THREADS);
}

__device__ int64_t thread_index() {
  return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

template <class T> __device__ T warp_sum(T x) {
  for (int d = WARP / 2; d > 0; d /= 2) x += __shfl_xor_sync(ALL, x, d);
  return x;
}

/* Valid in thread 0. */
__device__ double block_sum(double x) {
  __shared__ double part[THREADS / WARP];
  x = warp_sum(x);
  if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = x;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < THREADS / WARP; w++) sum += part[w];
  __syncthreads();
  return sum;
}

/* A warp takes STRETCH of the T B positions of a row: its lane's first, and where they end. */
constexpr int STRETCH = 4 * WARP;
struct stretch {
  int64_t row;
  int first, end;
};

__host__ __device__ int64_t stretches_of(const model_device &s) {
  return (s.T * s.B + STRETCH - 1) / STRETCH;
}

__device__ stretch stretch_of(const model_device &s) {
  const int64_t warp = thread_index() / WARP, each = stretches_of(s);
  const int first = (int)(warp % each) * STRETCH;
  return {warp / each, first + (int)(threadIdx.x % WARP), min(first + STRETCH, s.T * s.B)};
}

unsigned stretch_blocks(const model_device &s, int64_t rows) {
  return blocks_for(rows * stretches_of(s) * WARP);
}

/* ---- element by element ---- */

__global__ void multiply_kernel(const float *x, const float *y, int64_t n, float *z) {
  const int64_t i = thread_index();
  if (i < n) z[i] = x[i] * y[i];
}

__global__ void sigmoid_kernel(const float *rho, int64_t n, float *leak, float *kept) {
  const int64_t i = thread_index();
  if (i < n) leak[i] = kept[i] = (float)(1 / (1 + exp(-(double)rho[i])));
}

__global__ void sigmoid_gradient_kernel(const float *kept, const float *d_leak, int64_t n,
                                        float *d_rho) {
  const int64_t i = thread_index();
  if (i < n) d_rho[i] = kept[i] * (1 - kept[i]) * d_leak[i];
}

__global__ void fill_kernel(float *x, int64_t n, float value) {
  const int64_t i = thread_index();
  if (i < n) x[i] = value;
}

/* adamw.h has the formula. */
__global__ void adamw_kernel(const adamw_factors f, const double *squares, int64_t n, float *w,
                             const float *gradient, float *m, float *v) {
  __shared__ float scale;
  if (threadIdx.x == 0) {
    const double norm = sqrt(*squares);
    scale = isfinite(norm) ? (float)(f.clip > 0 && norm > f.clip ? f.clip / norm : 1) : -1;
  }
  __syncthreads();
  const int64_t i = thread_index();
  if (i >= n || scale < 0) return;
  const float g = scale * gradient[i];
  m[i] = f.beta1 * m[i] + f.rest1 * g;
  v[i] = f.beta2 * v[i] + f.rest2 * g * g;
  w[i] = f.keep * w[i] - f.rate * m[i] / (sqrtf(v[i]) * f.root + f.eps);
}

/* ---- drive ---- */

/* table [n_in][V] = the last column of projection [n_in][W + 1] */
__global__ void table_start_kernel(const model_device s, const float *projection, float *table) {
  const int64_t at = thread_index();
  if (at < (int64_t)s.n_in * s.V) table[at] = projection[at / s.V * (s.W + 1) + s.W];
}

__global__ void drive_kernel(const model_device s, const float *table, const int32_t *token,
                             float *drive) {
  const stretch at = stretch_of(s);
  if (at.row >= s.n_in) return;
#pragma unroll
  for (int k = at.first, u = 0; u < STRETCH / WARP; u++, k += WARP) {
    if (k >= at.end) return;
    const int t = k / s.B, b = k % s.B;
    drive[((int64_t)t * s.n_in + at.row) * s.B + b] = table[at.row * s.V + token[k]];
  }
}

/* A warp sums the positions of one token for one input node. */
__global__ void token_sum_kernel(const model_device s, const float *d_drive,
                                 const int32_t *position, const int32_t *first, float *d_table) {
  const int64_t at = thread_index() / WARP;
  if (at >= (int64_t)s.n_in * s.V) return;
  const int64_t i = at / s.V, v = at % s.V;
  double sum = 0;
  for (int k = first[v] + threadIdx.x % WARP; k < first[v + 1]; k += WARP) {
    const int64_t t = position[k] / s.B, b = position[k] % s.B;
    sum += d_drive[(t * s.n_in + i) * s.B + b];
  }
  sum = warp_sum(sum);
  if (threadIdx.x % WARP == 0) d_table[at] = (float)sum;
}

__global__ void projection_gradient_kernel(const model_device s, const float *d_table,
                                           const float *embedding, float *d_projection) {
  const int64_t at = thread_index();
  if (at >= (int64_t)s.n_in * (s.W + 1)) return;
  const int64_t i = at / (s.W + 1), w = at % (s.W + 1);
  double sum = 0;
  for (int v = 0; v < s.V; v++)
    sum += (double)d_table[i * s.V + v] * (w < s.W ? embedding[v * s.W + w] : 1.0f);
  d_projection[at] = (float)sum;
}

/* ---- loss ---- */

/* bias: NULL, or [V]; rows: NULL, or [V][T B] */
__global__ void logit_kernel(const model_device s, const float *bias, const float *rows,
                             float *logit) {
  const int64_t at = thread_index();
  if (at >= (int64_t)s.T * s.V * s.B) return;
  const int64_t b = at % s.B, v = at / s.B % s.V, t = at / s.B / s.V;
  logit[at] = (bias ? bias[v] : 0.0f) + (rows ? rows[(v * s.T + t) * s.B + b] : 0.0f);
}

/* 32 columns a block; each column by THREADS / 32 threads that share out the tokens. */
__global__ void loss_kernel(const model_device s, const int32_t *target, double scale, float *logit,
                            double *nats) {
  constexpr int SHARES = THREADS / WARP;
  __shared__ float high[SHARES][WARP];
  __shared__ double total[SHARES][WARP];
  const int64_t column = (int64_t)blockIdx.x * WARP + threadIdx.x % WARP;
  const int share = threadIdx.x / WARP, c = threadIdx.x % WARP;
  const bool there = column < (int64_t)s.T * s.B;
  const int64_t t = column / s.B, b = column % s.B;
  const int y = there ? target[column] : -1;
  float *x = logit + t * s.V * s.B + b;
  float highest = -INFINITY;
  for (int v = share; v < s.V && there; v += SHARES) highest = fmaxf(highest, x[(int64_t)v * s.B]);
  high[share][c] = highest;
  __syncthreads();
  for (int k = 0; k < SHARES; k++) highest = fmaxf(highest, high[k][c]);
  const double at_target = y >= 0 ? (double)x[(int64_t)y * s.B] - (double)highest : 0;
  double sum = 0;
  for (int v = share; v < s.V && there; v += SHARES)
    sum += (double)expf(x[(int64_t)v * s.B] - highest);
  total[share][c] = sum;
  __syncthreads();
  sum = 0;
  for (int k = 0; k < SHARES; k++) sum += total[k][c];
  const float factor = (float)(scale / sum);
  for (int v = share; v < s.V && there; v += SHARES) {
    const float p = expf(x[(int64_t)v * s.B] - highest) * factor;
    x[(int64_t)v * s.B] = y < 0 ? 0.0f : v == y ? p - (float)scale : p;
  }
  if (there && share == 0)
    nats[column] = y < 0 ? 0.0 : isfinite(sum) && isfinite(at_target) ? log(sum) - at_target : NAN;
}

/* *sum = the sum of x, or with `more` that is added to it. */
__global__ void sum_kernel(const double *x, int64_t n, double *sum, bool more) {
  double mine = 0;
  for (int64_t i = threadIdx.x; i < n; i += THREADS) mine += x[i];
  mine = block_sum(mine);
  if (threadIdx.x == 0) *sum = more ? *sum + mine : mine;
}

__global__ void by_row_kernel(const model_device s, int n, const float *by_time, float *rows) {
  const stretch at = stretch_of(s);
  if (at.row >= n) return;
#pragma unroll
  for (int k = at.first, u = 0; u < STRETCH / WARP; u++, k += WARP) {
    if (k >= at.end) return;
    const int t = k / s.B, b = k % s.B;
    rows[at.row * s.T * s.B + k] = by_time[((int64_t)t * n + at.row) * s.B + b];
  }
}

__global__ void row_sum_kernel(int64_t n, const float *rows, float *sums) {
  double mine = 0;
  for (int64_t i = threadIdx.x; i < n; i += THREADS) mine += rows[blockIdx.x * n + i];
  mine = block_sum(mine);
  if (threadIdx.x == 0) sums[blockIdx.x] = (float)mine;
}

/* ---- figures ---- */

__global__ void squares_kernel(const float *x, int64_t n, double *parts) {
  double mine = 0;
  for (int64_t i = thread_index(); i < n; i += (int64_t)gridDim.x * THREADS)
    mine += (double)x[i] * x[i];
  mine = block_sum(mine);
  if (threadIdx.x == 0) parts[blockIdx.x] = mine;
}

__global__ void count_kernel(const float *x, int64_t n, float level, unsigned long long *count) {
  int mine = 0;
  for (int64_t i = thread_index(); i < n; i += (int64_t)gridDim.x * THREADS)
    mine += fabsf(x[i]) > level;
  mine = warp_sum(mine);
  if (threadIdx.x % WARP == 0 && mine) atomicAdd(count, (unsigned long long)mine);
}

void launched() {
  CHECK_CUDA(cudaGetLastError());
}

} // namespace

void model_device_multiply(const float *x, const float *y, int64_t n, float *z) {
  if (n == 0) return;
  multiply_kernel<<<blocks_for(n), THREADS, 0, gpu_stream()>>>(x, y, n, z);
  launched();
}

void model_device_sigmoid(const float *rho, int64_t n, float *leak, float *kept) {
  if (n == 0) return;
  sigmoid_kernel<<<blocks_for(n), THREADS, 0, gpu_stream()>>>(rho, n, leak, kept);
  launched();
}

void model_device_sigmoid_gradient(const float *kept, const float *d_leak, int64_t n,
                                   float *d_rho) {
  if (n == 0) return;
  sigmoid_gradient_kernel<<<blocks_for(n), THREADS, 0, gpu_stream()>>>(kept, d_leak, n, d_rho);
  launched();
}

void model_device_fill(float *x, int64_t n, float value) {
  if (n == 0) return;
  fill_kernel<<<blocks_for(n), THREADS, 0, gpu_stream()>>>(x, n, value);
  launched();
}

void model_device_table_start(const struct model_device *m, const float *projection, float *table) {
  if (m->n_in == 0) return;
  table_start_kernel<<<blocks_for((int64_t)m->n_in * m->V), THREADS, 0, gpu_stream()>>>(
      *m, projection, table);
  launched();
}

void model_device_drive(const struct model_device *m, const float *table, const int32_t *token,
                        float *drive) {
  if (m->n_in == 0) return;
  drive_kernel<<<stretch_blocks(*m, m->n_in), THREADS, 0, gpu_stream()>>>(*m, table, token, drive);
  launched();
}

void model_device_drive_gradient(const struct model_device *m, const float *d_drive,
                                 const int32_t *position, const int32_t *first,
                                 const float *embedding, float *d_table, float *d_projection) {
  if (m->n_in == 0) return;
  token_sum_kernel<<<blocks_for((int64_t)m->n_in * m->V * WARP), THREADS, 0, gpu_stream()>>>(
      *m, d_drive, position, first, d_table);
  launched();
  projection_gradient_kernel<<<blocks_for((int64_t)m->n_in * (m->W + 1)), THREADS, 0,
                               gpu_stream()>>>(*m, d_table, embedding, d_projection);
  launched();
}

void model_device_logits(const struct model_device *m, const float *bias, const float *rows,
                         float *logit) {
  logit_kernel<<<blocks_for((int64_t)m->T * m->V * m->B), THREADS, 0, gpu_stream()>>>(*m, bias,
                                                                                      rows, logit);
  launched();
}

void model_device_loss(const struct model_device *m, const int32_t *target, double scale,
                       float *logit, double *nats, double *sum) {
  const int64_t columns = (int64_t)m->T * m->B;
  loss_kernel<<<(unsigned)((columns + WARP - 1) / WARP), THREADS, 0, gpu_stream()>>>(
      *m, target, scale, logit, nats);
  launched();
  sum_kernel<<<1, THREADS, 0, gpu_stream()>>>(nats, columns, sum, false);
  launched();
}

void model_device_by_row(const struct model_device *m, int n, const float *by_time, float *rows) {
  if (n == 0) return;
  by_row_kernel<<<stretch_blocks(*m, n), THREADS, 0, gpu_stream()>>>(*m, n, by_time, rows);
  launched();
}

void model_device_row_sums(const struct model_device *m, int n, const float *rows, float *sums) {
  if (n == 0) return;
  row_sum_kernel<<<n, THREADS, 0, gpu_stream()>>>((int64_t)m->T * m->B, rows, sums);
  launched();
}

void model_device_squares(const float *x, int64_t n, double *parts, double *sum) {
  squares_kernel<<<MODEL_PARTS, THREADS, 0, gpu_stream()>>>(x, n, parts);
  launched();
  sum_kernel<<<1, THREADS, 0, gpu_stream()>>>(parts, MODEL_PARTS, sum, true);
  launched();
}

void model_device_count_beyond(const float *x, int64_t n, float level, unsigned long long *count) {
  CHECK_CUDA(cudaMemsetAsync(count, 0, sizeof *count, gpu_stream()));
  if (n == 0) return;
  count_kernel<<<MODEL_PARTS, THREADS, 0, gpu_stream()>>>(x, n, level, count);
  launched();
}

void model_device_adamw(const struct adamw_factors *f, const double *squares, int64_t n, float *w,
                        const float *g, float *m, float *v) {
  if (n == 0) return;
  adamw_kernel<<<blocks_for(n), THREADS, 0, gpu_stream()>>>(*f, squares, n, w, g, m, v);
  launched();
}
