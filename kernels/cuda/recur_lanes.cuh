/* How state rows lie over the lanes of a warp, and the walk over one row's edges that both passes share. */
#ifndef FASCICLE_RECUR_LANES_CUH
#define FASCICLE_RECUR_LANES_CUH

#include "recur_device.h"

namespace recur {

constexpr int WARP = 32;
constexpr unsigned ALL = ~0u;

/* Columns first .. of rows of `batch` floats; only layouts that mask look at it. */
struct columns {
  int batch, first;
};

/* A row is held by G lanes: R runs of V neighbouring columns each. TURN edges are in flight at a time. A
 * layout that masks serves any batch, 32 columns a launch; the others are exact. */
template <int G_, int R_, int V_, int TURN_, int BLOCKS_, bool MASK_ = false> struct layout {
  static constexpr int G = G_, R = R_, V = V_, N = R_ * V_, TURN = TURN_;
  static constexpr int BLOCKS = BLOCKS_; /* that a multiprocessor shall hold: what registers may be used */
  static constexpr bool MASK = MASK_;
  static constexpr int LOADS = TURN >= G ? TURN / G : 1;  /* edges that a lane loads index and value of */
  static constexpr int SHARED = TURN >= G ? 1 : G / TURN; /* lanes that load the same edge */
  static constexpr int GROUPS = RECUR_THREADS / G, GROUPS_OF_WARP = WARP / G;
};

template <int V> struct vector_of;
template <> struct vector_of<1> { typedef float type; };
template <> struct vector_of<4> { typedef float4 type; };

/* One lane's share of a state row. */
template <class L> struct piece { float x[L::N]; };

template <class L> __device__ __forceinline__ piece<L> nothing() {
  piece<L> p;
#pragma unroll
  for (int i = 0; i < L::N; i++) p.x[i] = 0;
  return p;
}

template <class L>
__device__ __forceinline__ piece<L> load(const float *base, int64_t row, int lane, columns c) {
  piece<L> p;
  if constexpr (L::MASK) {
    const float *at = base + row * c.batch;
#pragma unroll
    for (int r = 0; r < L::R; r++) {
      const int column = c.first + r * L::G + lane;
      p.x[r] = column < c.batch ? at[column] : 0.0f;
    }
  } else {
    typedef typename vector_of<L::V>::type vec;
    const vec *at = (const vec *)base + row * (L::G * L::R) + lane;
#pragma unroll
    for (int r = 0; r < L::R; r++) *(vec *)(p.x + r * L::V) = at[r * L::G];
  }
  return p;
}

template <class L>
__device__ __forceinline__ void store(float *base, int64_t row, int lane, columns c, const piece<L> &p) {
  if constexpr (L::MASK) {
    float *at = base + row * c.batch;
#pragma unroll
    for (int r = 0; r < L::R; r++) {
      const int column = c.first + r * L::G + lane;
      if (column < c.batch) at[column] = p.x[r];
    }
  } else {
    typedef typename vector_of<L::V>::type vec;
    vec *at = (vec *)base + row * (L::G * L::R) + lane;
#pragma unroll
    for (int r = 0; r < L::R; r++) at[r * L::G] = *(const vec *)(p.x + r * L::V);
  }
}

/* The sum over the lanes of a group; every lane gets it. */
template <class L> __device__ __forceinline__ float group_sum(float x) {
#pragma unroll
  for (int d = 1; d < L::G; d <<= 1) x += __shfl_xor_sync(ALL, x, d);
  return x;
}

/* d[u] of every lane -> sums over the group. Halves change hands at each round, so that TURN sums cost about
 * TURN shuffles: afterwards d[0 .. LOADS) of a lane are the sums of the edges that it loaded. */
template <class L> __device__ __forceinline__ void sum_by_edge(float (&d)[L::TURN], int lane) {
  int width = L::TURN;
#pragma unroll
  for (int bit = L::G / 2; bit > 0; bit /= 2) {
    if (width > 1) {
      const bool upper = lane & bit;
#pragma unroll
      for (int u = 0; u < L::TURN / 2; u++)
        if (u < width / 2) {
          const float keep = upper ? d[u + width / 2] : d[u], send = upper ? d[u] : d[u + width / 2];
          d[u] = keep + __shfl_xor_sync(ALL, send, bit);
        }
      width /= 2;
    } else {
      d[0] += __shfl_xor_sync(ALL, d[0], bit);
    }
  }
}

/* ---- programmatic launch: the next kernel's blocks may come in and read what never changes while this one
 * drains ------- */

__device__ __forceinline__ void wait_for_previous_launch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void let_next_launch_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* ---- the walk ---- */

/* Index and value of the edges that a lane loads for a turn; past the end: value 0. Edges are read once a
 * microstep: they may leave the cache first, so that the states stay. */
template <class L> struct handful {
  int col[L::LOADS];
  float value[L::LOADS];
};

template <class L, class INDEX> struct walk {
  const INDEX *col;
  const float *value;
  uint32_t turn_first, end, stride; /* first edge of the coming turn; one past the row; from turn to turn */
  int mine;                         /* the first edge of a turn that this lane loads */
  int turns;                        /* of the warp's longest group */
  handful<L> next;

  __device__ __forceinline__ handful<L> fetch(uint32_t first) const {
    handful<L> h;
#pragma unroll
    for (int i = 0; i < L::LOADS; i++) {
      const uint32_t e = first + mine + i;
      h.col[i] = e < end ? (int)__ldg(col + e) : 0;
      h.value[i] = e < end ? __ldg(value + e) : 0.0f;
    }
    return h;
  }

  __device__ __forceinline__ walk(const recur_item &item, int in_row, int lane, const INDEX *col_,
                                  const float *value_)
      : col(col_), value(value_) {
    stride = (uint32_t)L::TURN << item.share;
    turn_first = item.first + (uint32_t)in_row * L::TURN;
    end = item.first + item.edges;
    mine = lane / L::SHARED * L::LOADS;
    const uint32_t left = turn_first < end ? end - turn_first : 0;
    turns = (int)__reduce_max_sync(ALL, (left + stride - 1) / stride);
    next = fetch(turn_first);
  }

  /* acc += sum_e v_e x[col_e]; with GRADIENT also gradient_e += x[col_e] . own */
  template <bool GRADIENT>
  __device__ __forceinline__ void run(const float *x, columns c, int lane, const piece<L> &own,
                                      float *gradient, piece<L> &acc) {
    for (int t = 0; t < turns; t++) {
      const handful<L> now = next;
      const uint32_t first = turn_first;
      const int n = first < end ? (int)min(end - first, (uint32_t)L::TURN) : 0;
      turn_first += stride;
      next = fetch(turn_first);
      float before[L::LOADS];
      if constexpr (GRADIENT) {
#pragma unroll
        for (int i = 0; i < L::LOADS; i++) before[i] = mine + i < n ? gradient[first + mine + i] : 0.0f;
      }
      piece<L> in[L::TURN];
#pragma unroll
      for (int u = 0; u < L::TURN; u++) {
        const int col_u = __shfl_sync(ALL, now.col[u % L::LOADS], u / L::LOADS * L::SHARED, L::G);
        in[u] = nothing<L>();
        if (u < n) in[u] = load<L>(x, col_u, lane, c);
      }
      float dot[L::TURN];
#pragma unroll
      for (int u = 0; u < L::TURN; u++) {
        const float v = __shfl_sync(ALL, now.value[u % L::LOADS], u / L::LOADS * L::SHARED, L::G);
        dot[u] = 0;
#pragma unroll
        for (int i = 0; i < L::N; i++) {
          acc.x[i] = fmaf(v, in[u].x[i], acc.x[i]);
          if constexpr (GRADIENT) dot[u] = fmaf(in[u].x[i], own.x[i], dot[u]);
        }
      }
      if constexpr (GRADIENT) {
        sum_by_edge<L>(dot, lane);
#pragma unroll
        for (int i = 0; i < L::LOADS; i++)
          if (mine + i < n && lane % L::SHARED == 0) gradient[first + mine + i] = before[i] + dot[i];
      }
    }
  }
};

/* Adds up what the groups of a row have, in a fixed order: by lanes, then by warps through shared memory.
 * True for the threads that hold the whole sum and go on with the row; all lanes of their warps then stay
 * together. */
template <class L>
__device__ __forceinline__ bool gather_groups(const recur_item &item, int most_shared, int lane,
                                              piece<L> &acc) {
  const int width = L::G << item.share; /* threads of the row */
#pragma unroll
  for (int d = L::G; d < WARP; d <<= 1)
#pragma unroll
    for (int i = 0; i < L::N; i++) {
      const float other = __shfl_xor_sync(ALL, acc.x[i], d);
      if (d < width) acc.x[i] += other;
    }
  if ((L::G << most_shared) <= WARP) return true;
  __shared__ float part[RECUR_THREADS / WARP][L::G * L::N];
  const int warp = threadIdx.x / WARP, warps = width / WARP, own_lane = threadIdx.x % WARP;
  if (own_lane < L::G)
#pragma unroll
    for (int i = 0; i < L::N; i++) part[warp][i * L::G + lane] = acc.x[i];
  __syncthreads();
  if (warps <= 1) return true;
  if (warp % warps != 0) return false;
#pragma unroll
  for (int i = 0; i < L::N; i++) {
    acc.x[i] = part[warp][i * L::G + lane];
    for (int w = 1; w < warps; w++) acc.x[i] += part[warp + w][i * L::G + lane];
  }
  return true;
}

} // namespace recur
#endif
