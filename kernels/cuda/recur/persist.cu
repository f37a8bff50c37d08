/* The persistent window kernels. A slice's two halves of 4 samples take turns: while one half's new
 * states travel to the other multiprocessors, the other half is computed. */
#include "kernels/cuda/gpu/gpu.h"
#include "persist_block.cuh"

using namespace persist;

namespace {

/* ---- forward ---- */

/* The slice's state 0, from the caller's order. */
__device__ __forceinline__ void load_first(const args &a, float4 *x) {
  const persist_tables &t = a.p.forward;
  for (int i = threadIdx.x; i < HALVES * places_of(t); i += THREADS) {
    const int half = i / places_of(t), row = t.row_at[i % places_of(t)];
    x[i] = row < 0
               ? make_float4(0, 0, 0, 0)
               : *(const float4 *)(a.d.states + (int64_t)row * a.d.batch + first_column(t, half));
  }
}

/* s_{k+1} = (1 - a) s_k + a tanh(z + b), z with the drive */
__device__ __forceinline__ float4 next_state(const own_row &r, float4 z, float4 s) {
  const float keep = 1 - r.leak;
  return make_float4(
      keep * s.x + r.leak * tanhf(z.x + r.bias), keep * s.y + r.leak * tanhf(z.y + r.bias),
      keep * s.z + r.leak * tanhf(z.z + r.bias), keep * s.w + r.leak * tanhf(z.w + r.bias));
}

__device__ __forceinline__ void forward_walkers(const args &a, const room &o, signals &s) {
  const persist_tables &t = a.p.forward;
  const int thread = threadIdx.x, lane = thread % LANES, B = a.d.batch;
  const int warp = block_of_slice(t) * WALKERS + thread / LANES,
            own_place = block_of_slice(t) * t.rows + thread;
  const ends_of_warp ends = load_ends(t.ends, warp);
  edges<false> e;
  load_edges(e, t, warp, lane, a.d.value);
  own_row r = {NULL, -1, -1, -1, 1, 0};
  if (thread < t.rows) r = o.own[thread];
  const int first = r.row < 0 ? 0 : o.first[thread], end = r.row < 0 ? 0 : o.first[thread + 1];
  const float *drive = a.d.drive + (int64_t)r.in * B + first_column(t, 0);
  float *output = a.d.output + (int64_t)r.out * B + first_column(t, 0);
  float *next = a.p.window + row_at(a, t, slice_of_block(t), 0, 0, own_place);
  const int64_t slot = (int64_t)places_of(t) * B, other_half = (int64_t)places_of(t) * HALF;
  const int K = a.d.steps * a.d.microsteps;
  for (int k = 0, m = 1; k < K; k++, m++) {
    if (k == K - 1) next = a.p.last + (int64_t)r.row * B + first_column(t, 0);
#pragma unroll 1
    for (int half = 0; half < HALVES; half++) {
      float4 *const mine = o.x + half * places_of(t), d = make_float4(0, 0, 0, 0);
      if (r.in >= 0) d = load_now(drive + half * HALF);
      if (k > 0) signal_wait(&s.here[half], (k - 1) & 1);
      walk<false>(e, ends, mine, o.sums + lane, NULL, NULL);
      walkers_barrier();
      if (r.row >= 0) {
        const float4 now =
            next_state(r, d + add_segments(o.sums, o.sum_at, first, end), mine[own_place]);
        *(float4 *)(next + half * (k == K - 1 ? HALF : other_half)) = now;
        if (r.out >= 0 && m == a.d.microsteps) *(float4 *)(output + half * HALF) = now;
      }
      written(s, half);
      walkers_barrier();
    }
    next = a.d.all_states || (k & 1) == 0 ? next + slot : next - slot;
    if (m == a.d.microsteps)
      m = 0, drive += (int64_t)a.d.n_in * B, output += (int64_t)a.d.n_out * B;
  }
}

__global__ void __launch_bounds__(THREADS, 1) forward_kernel(const __grid_constant__ args a) {
  extern __shared__ float4 memory[];
  __shared__ signals s;
  const persist_tables &t = a.p.forward;
  const room o = rooms(memory, t, 0);
  fill_rooms(a, t, o), load_first(a, o.x), signals_init(s);
  engine_sees();
  __syncthreads();
  if (threadIdx.x < WALKING) {
    forward_walkers(a, o, s);
  } else if (threadIdx.x == WALKING) {
    const float *const window = a.p.window + row_at(a, t, slice_of_block(t), 0, 0, 0);
    const int64_t slot = (int64_t)places_of(t) * a.d.batch;
    exchange_halves(a, t, o.x, s, a.d.steps * a.d.microsteps - 1,
                    [&](int i) { return window + (a.d.all_states ? i : i & 1) * slot; });
  }
}

/* ---- backward ---- */

/* What a block keeps of its own rows, rows of four by thread. */
struct own_arrays {
  float4 *state;    /* [2 alternating][HALVES][rows] */
  float4 *g;        /* [HALVES][rows] dL/ds */
  float4 *d_drive;  /* [HALVES][rows] of this character */
  float4 *d_output; /* [HALVES][rows] being copied */
  float2 *sums;     /* [rows] gradients of bias and leak */
};

__host__ __device__ int rows_of_own_arrays(int rows) {
  return 5 * HALVES * rows + (rows + 1) / 2;
}

__device__ __forceinline__ own_arrays own_arrays_at(float4 *at, int rows) {
  const int both = HALVES * rows;
  return {at, at + 2 * both, at + 3 * both, at + 4 * both, (float2 *)(at + 5 * both)};
}

/* A half row of s_k; `first`: where it stands in the window for k = 1, half 0. */
__device__ __forceinline__ const float *saved(const args &a, int k, int half, int row,
                                              const float *first) {
  const int64_t places = places_of(a.p.forward);
  if (k > 0 && k < a.d.steps * a.d.microsteps)
    return first + (k - 1) * places * a.d.batch + half * places * HALF;
  return (k == 0 ? a.d.states : a.p.last) + (int64_t)row * a.d.batch +
         first_column(a.p.backward, half);
}

/* Begins to copy the own row of s_k to shared memory. */
__device__ __forceinline__ void fetch_state(const args &a, const own_row &r, const own_arrays &own,
                                            int k, int half) {
  const int rows = a.p.backward.rows;
  copy_row_begin(own.state + ((k & 1) * HALVES + half) * rows + threadIdx.x,
                 saved(a, k, half, r.row, r.saved));
}

/* And the gradient of the output behind it. */
__device__ __forceinline__ void fetch_output(const args &a, const own_row &r, const own_arrays &own,
                                             int t, int half) {
  if (r.out >= 0)
    copy_row_begin(own.d_output + half * a.p.backward.rows + threadIdx.x,
                   a.d.d_output + ((int64_t)t * a.d.n_out + r.out) * a.d.batch +
                       first_column(a.p.backward, half));
}

/* p_k of a row whose leak is too small to recover it from two states. Rare:
 * kept out of the registers. */
__device__ __noinline__ float4 proposal_again(const args &a, const own_row &r, int k, int half) {
  float4 z = make_float4(0, 0, 0, 0);
  const uint16_t *col = (const uint16_t *)a.d.near_in.col;
  const recur_rows &rows = a.d.near_rows;
  col += (int64_t)rows.padded[r.row] - rows.ptr[r.row];
#pragma unroll 8
  for (uint32_t e = rows.ptr[r.row]; e < rows.ptr[r.row + 1]; e++) {
    const float *first = a.p.window + row_at(a, a.p.forward, slice_of_block(a.p.backward), 0, 0,
                                             a.p.forward.place[col[e]]);
    add_product(z, a.d.value[e], *(const float4 *)saved(a, k, half, col[e], first));
  }
  if (r.in >= 0)
    z = z + *(const float4 *)(a.d.drive +
                              ((int64_t)(k / a.d.microsteps) * a.d.n_in + r.in) * a.d.batch +
                              first_column(a.p.backward, half));
  return make_float4(tanhf(z.x + r.bias), tanhf(z.y + r.bias), tanhf(z.z + r.bias),
                     tanhf(z.w + r.bias));
}

/* With g = dL/ds_{k+1}: q_k = g a (1 - p^2), db += q, da += g (p - s), dd += q, g = (1 - a) g.
 * Microstep m of character t. */
__device__ __forceinline__ void element(const args &a, const own_row &r, const own_arrays &own,
                                        int k, int t, int m, int half, float4 g) {
  const int rows = a.p.backward.rows, at = half * rows + threadIdx.x, both = HALVES * rows;
  const float4 s = own.state[(k & 1) * both + at], after = own.state[(~k & 1) * both + at];
  const float keep = 1 - r.leak, back = 1 / r.leak;
  if (r.out >= 0 && m == a.d.microsteps - 1) g = g + own.d_output[at];
  float4 p = make_float4((after.x - keep * s.x) * back, (after.y - keep * s.y) * back,
                         (after.z - keep * s.z) * back, (after.w - keep * s.w) * back);
  if (r.leak < RECUR_SMALL_LEAK) p = proposal_again(a, r, k, half);
  const float4 slope = make_float4(fmaxf(0, 1 - p.x * p.x), fmaxf(0, 1 - p.y * p.y),
                                   fmaxf(0, 1 - p.z * p.z), fmaxf(0, 1 - p.w * p.w));
  const float4 q = make_float4(g.x * r.leak * slope.x, g.y * r.leak * slope.y,
                               g.z * r.leak * slope.z, g.w * r.leak * slope.w);
  *(float4 *)(a.p.q + row_at(a, a.p.backward, slice_of_block(a.p.backward), k & 1, half,
                             block_of_slice(a.p.backward) * rows + threadIdx.x)) = q;
  const float2 sums = own.sums[threadIdx.x];
  const float4 toward = make_float4(p.x - s.x, p.y - s.y, p.z - s.z, p.w - s.w);
  own.sums[threadIdx.x] = make_float2(sums.x + sum_of(q), sums.y + inner(g, toward));
  own.g[at] = make_float4(keep * g.x, keep * g.y, keep * g.z, keep * g.w);
  if (r.in < 0) return;
  const float4 d = m == a.d.microsteps - 1 ? q : q + own.d_drive[at];
  own.d_drive[at] = d;
  if (m == 0)
    *(float4 *)(a.d.d_drive + ((int64_t)t * a.d.n_in + r.in) * a.d.batch +
                first_column(a.p.backward, half)) = d;
}

/* q of the last microstep; needs no walk. */
__device__ __forceinline__ void begin_backward(const args &a, const room &o,
                                               const own_arrays &own) {
  if (threadIdx.x >= a.p.backward.rows) return;
  const own_row &r = o.own[threadIdx.x];
  if (r.row < 0) return;
  const int K = a.d.steps * a.d.microsteps, t = a.d.steps - 1, m = a.d.microsteps - 1;
  for (int half = 0; half < HALVES; half++)
    fetch_state(a, r, own, K, half), fetch_state(a, r, own, K - 1, half),
        fetch_output(a, r, own, t, half);
  copy_rows_end();
  for (int half = 0; half < HALVES; half++)
    element(a, r, own, K - 1, t, m, half, make_float4(0, 0, 0, 0));
}

__device__ __forceinline__ void give_sums(const args &a, const own_arrays &own,
                                          const edges<true> &e) {
  const persist_tables &t = a.p.backward;
  const int64_t warp = (int64_t)blockIdx.x * WALKERS + threadIdx.x / LANES;
  float *to = a.p.gradient + warp * SLOTS * LANES + threadIdx.x % LANES;
#pragma unroll
  for (int i = 0; i < SLOTS; i++) to[i * LANES] = e.gradient[i];
  if (threadIdx.x < t.rows)
    ((float2 *)a.p.row_sums)[(int64_t)blockIdx.x * t.rows + threadIdx.x] = own.sums[threadIdx.x];
}

__device__ __forceinline__ void backward_walkers(const args &a, const room &o,
                                                 const own_arrays &own, signals &s) {
  const persist_tables &t = a.p.backward;
  const int lane = threadIdx.x % LANES, warp = block_of_slice(t) * WALKERS + threadIdx.x / LANES;
  begin_backward(a, o, own);
  written(s, 0), written(s, 1);
  walkers_barrier();
  const ends_of_warp ends = load_ends(t.ends, warp);
  edges<true> e;
  load_edges(e, t, warp, lane, a.d.value);
  const bool owns = threadIdx.x < t.rows && o.own[threadIdx.x].row >= 0;
  int phase = 0;
  for (int k = a.d.steps * a.d.microsteps - 1, c = a.d.steps - 1, m = a.d.microsteps - 1; k >= 0;
       k--) {
    if (--m < 0) m = a.d.microsteps - 1, c--;
#pragma unroll 1
    for (int half = 0; half < HALVES; half++) {
      if (owns && k > 0) {
        fetch_state(a, o.own[threadIdx.x], own, k - 1, half);
        if (m == a.d.microsteps - 1) fetch_output(a, o.own[threadIdx.x], own, c, half);
      }
      signal_wait(&s.here[half], phase);
      walk<true>(e, ends, o.x + half * places_of(t), o.sums + lane,
                 own.state + ((k & 1) * HALVES + half) * t.rows, o.lane_row + lane);
      walkers_barrier();
      if (owns) {
        const float4 g =
            own.g[half * t.rows + threadIdx.x] +
            add_segments(o.sums, o.sum_at, o.first[threadIdx.x], o.first[threadIdx.x + 1]);
        copy_rows_end();
        if (k > 0)
          element(a, o.own[threadIdx.x], own, k - 1, c, m, half, g);
        else
          *(float4 *)(a.d.d_state + (int64_t)o.own[threadIdx.x].row * a.d.batch +
                      first_column(t, half)) = g;
      }
      written(s, half);
      walkers_barrier();
    }
    phase ^= 1;
  }
  give_sums(a, own, e);
}

__global__ void __launch_bounds__(THREADS, 1) backward_kernel(const __grid_constant__ args a) {
  extern __shared__ float4 memory[];
  __shared__ signals s;
  const persist_tables &t = a.p.backward;
  const int rest = rows_of_own_arrays(t.rows), K = a.d.steps * a.d.microsteps;
  const room o = rooms(memory, t, rest);
  const own_arrays own = own_arrays_at(o.rest, t.rows);
  fill_rooms(a, t, o), signals_init(s);
  for (int i = threadIdx.x; i < rest; i += THREADS) o.rest[i] = make_float4(0, 0, 0, 0);
  engine_sees();
  __syncthreads();
  if (threadIdx.x < WALKING) {
    backward_walkers(a, o, own, s);
  } else if (threadIdx.x == WALKING) {
    const float *const q = a.p.q + row_at(a, t, slice_of_block(t), 0, 0, 0);
    const int64_t slot = (int64_t)places_of(t) * a.d.batch;
    exchange_halves(a, t, o.x, s, K, [&](int i) { return q + ((K - 1 - i) & 1) * slot; });
  }
}

/* ---- sums over the slices ---- */

__global__ void sum_slices(const __grid_constant__ args a, int64_t n_slots, int n_places) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n_slots) {
    const uint32_t edge = a.p.backward.edge[i];
    if (edge == PERSIST_NO_EDGE) return;
    float sum = 0;
    for (int s = 0; s < a.p.slices; s++) sum += a.p.gradient[s * n_slots + i];
    a.d.d_value[edge] = sum;
    return;
  }
  const int at = (int)(i - n_slots), row = at < n_places ? a.p.backward.row_at[at] : -1;
  if (row < 0) return;
  float2 sum = make_float2(0, 0);
  for (int s = 0; s < a.p.slices; s++) {
    const float2 of = ((const float2 *)a.p.row_sums)[(int64_t)s * n_places + at];
    sum.x += of.x, sum.y += of.y;
  }
  a.d.d_bias[row] = sum.x, a.d.d_leak[row] = sum.y;
}

/* ---- launching ---- */

int64_t forward_room(const persist_device *p) {
  return bytes_of_rooms(p->forward, 0);
}

int64_t backward_room(const persist_device *p) {
  return bytes_of_rooms(p->backward, rows_of_own_arrays(p->backward.rows));
}

/* All blocks at a time, in clusters. */
cudaLaunchConfig_t together(int blocks, int64_t room, cudaLaunchAttribute (&attrs)[2]) {
  attrs[0].id = cudaLaunchAttributeCooperative, attrs[0].val.cooperative = 1;
  attrs[1].id = cudaLaunchAttributeClusterDimension;
  attrs[1].val.clusterDim.x = CLUSTER, attrs[1].val.clusterDim.y = attrs[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)blocks), config.blockDim = dim3(THREADS);
  config.dynamicSmemBytes = (size_t)room, config.stream = gpu_stream();
  config.attrs = attrs, config.numAttrs = 2;
  return config;
}

void launch(void (*kernel)(args), int blocks, int64_t room, const args &a) {
  const size_t counters = (size_t)a.p.slices * HALVES * PERSIST_ARRIVAL_BYTES;
  CHECK_CUDA(cudaMemsetAsync(a.p.arrivals, 0, counters, gpu_stream()));
  cudaLaunchAttribute attrs[2] = {};
  const cudaLaunchConfig_t config = together(a.p.slices * blocks, room, attrs);
  CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, a));
}

/* Also lets the kernel have so much shared memory. */
bool fits(void (*kernel)(args), int64_t room, int blocks) {
  int device, most, clusters = 0;
  CHECK_CUDA(cudaGetDevice(&device));
  CHECK_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  cudaFuncAttributes use;
  CHECK_CUDA(cudaFuncGetAttributes(&use, (const void *)kernel));
  if (room + (int64_t)use.sharedSizeBytes > most) return false;
  CHECK_CUDA(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)room));
  cudaLaunchAttribute attrs[2] = {};
  cudaLaunchConfig_t config = together(blocks, room, attrs);
  config.attrs = attrs + 1, config.numAttrs = 1;
  CHECK_CUDA(cudaOccupancyMaxActiveClusters(&clusters, (const void *)kernel, &config));
  return clusters * CLUSTER >= blocks;
}

} // namespace

bool persist_resident(const persist_device *p) {
  return fits(forward_kernel, forward_room(p), p->slices * p->forward.blocks) &&
         (!p->backward.blocks ||
          fits(backward_kernel, backward_room(p), p->slices * p->backward.blocks));
}

void persist_forward(const recur_device *d, const persist_device *p) {
  launch(forward_kernel, p->forward.blocks, forward_room(p), args{*d, *p});
}

void persist_backward(const recur_device *d, const persist_device *p) {
  const persist_tables *t = &p->backward;
  launch(backward_kernel, t->blocks, backward_room(p), args{*d, *p});
  const int64_t n_slots = (int64_t)t->blocks * WALKERS * SLOTS * LANES;
  const int n_places = t->blocks * t->rows;
  sum_slices<<<(unsigned)((n_slots + n_places + 255) / 256), 256, 0, gpu_stream()>>>(
      args{*d, *p}, n_slots, n_places);
  CHECK_CUDA(cudaGetLastError());
}
