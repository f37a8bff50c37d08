/* How state rows lie over the lanes of a warp. */
#ifndef FASCICLE_RECUR_LANES_CUH
#define FASCICLE_RECUR_LANES_CUH

#include "device.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace recur_kernels {

constexpr int WARP = 32;
constexpr unsigned ALL = ~0u;

/* Columns first .. of rows of `batch` columns; only layouts that mask look at it. */
struct columns {
  int batch, first;
};

/* A row is held by G lanes: R runs of V neighbouring columns each. TURN rows are in flight at a
 * time; a lane loads index and value of EDGES edges at once (a round of the group), so that the
 * caches see few, wide requests. A layout that masks serves any batch that V divides, G R V columns
 * a launch; the others are exact. */
template <int G_, int R_, int V_, int TURN_, int EDGES_, int BLOCKS_, bool MASK_ = false>
struct layout {
  static constexpr int G = G_, R = R_, V = V_, N = R_ * V_, TURN = TURN_, EDGES = EDGES_;
  static constexpr int BLOCKS =
      BLOCKS_; /* that a multiprocessor shall hold: what registers may be used */
  static constexpr bool MASK = MASK_;
  static constexpr int LOADS =
      TURN >= G ? TURN / G : 1; /* rows of a turn whose edges a lane holds */
  static constexpr int SHARED = TURN >= G ? 1 : G / TURN; /* lanes for each row of a turn */
  static constexpr int ROUND = G * EDGES, TURNS = ROUND / TURN;
  static constexpr int GROUPS = RECUR_THREADS / G, GROUPS_OF_WARP = WARP / G;
  static_assert(EDGES % LOADS == 0 && ROUND % TURN == 0, "a round is a whole number of turns");
};

/* One lane's share of a state row. */
template <class L> struct lane_values { float x[L::N]; };

template <class L> __device__ __forceinline__ lane_values<L> nothing() {
  lane_values<L> p;
#pragma unroll
  for (int i = 0; i < L::N; i++) p.x[i] = 0;
  return p;
}

template <int BYTES> struct word_of;
template <> struct word_of<2> { typedef uint16_t type; };
template <> struct word_of<4> { typedef uint32_t type; };
template <> struct word_of<8> { typedef uint2 type; };
template <> struct word_of<16> { typedef uint4 type; };

/* Where a lane's share of row 0 begins. Its bits are hidden from the compiler, so that the
 * place of another row takes one multiplication and addition of 64 bits, not the sum of row,
 * column and base by parts. */
template <class L, class T>
__device__ __forceinline__ const T *lane_share(const T *rows, int lane, columns c) {
  const T *mine = rows + (L::MASK ? c.first : 0) + lane * L::V;
  asm("" : "+l"(mine));
  __builtin_assume(__isGlobal(mine));
  return mine;
}

/* One lane's share of a row of T (float, __half, __nv_bfloat16) as it came from memory. */
template <class L, class T> struct fetched {
  static constexpr int RUN = L::V * (int)sizeof(T);   /* bytes of a run */
  static constexpr int LOAD = RUN < 16 ? RUN : 16;    /* bytes of one load */
  static constexpr int SLOTS = RUN < 4 ? 1 : RUN / 4; /* registers of a run */
  alignas(16) uint32_t w[L::R * SLOTS];

  __device__ __forceinline__ fetched() {
#pragma unroll
    for (int i = 0; i < L::R * SLOTS; i++) w[i] = 0;
  }

  __device__ __forceinline__ fetched(const T *base, int64_t row, int lane, columns c) : fetched() {
    read(base + (L::MASK ? c.first : 0) + lane * L::V, row, lane, c);
  }

  /* mine: where the lane's share of row 0 begins. What a layout masks stays as it is. */
  __device__ __forceinline__ void read(const T *mine, int64_t row, int lane, columns c) {
    const T *at = mine + row * (L::MASK ? c.batch : L::G * L::N);
#pragma unroll
    for (int r = 0; r < L::R; r++) {
      if (L::MASK && c.first + (r * L::G + lane) * L::V >= c.batch) continue;
      typedef typename word_of<LOAD>::type word;
#pragma unroll
      for (int b = 0; b < RUN; b += LOAD) {
        const word x = *(const word *)((const char *)(at + r * L::G * L::V) + b);
        if constexpr (RUN < 4)
          w[r] = x;
        else
          *(word *)(w + r * SLOTS + b / 4) = x;
      }
    }
  }

  __device__ __forceinline__ float value(int i) const {
    if constexpr (sizeof(T) == 4) return __uint_as_float(w[i]);
    const uint32_t pair = L::V == 1 ? w[i] : w[i / 2];
    const bool upper = L::V > 1 && i % 2;
    if constexpr (sizeof(T) == 2) return widen(upper ? pair >> 16 : pair & 0xffff, T());
  }

private:
  static __device__ __forceinline__ float widen(uint32_t bits, __half) {
    return __half2float(__ushort_as_half((unsigned short)bits));
  }
  static __device__ __forceinline__ float widen(uint32_t bits, __nv_bfloat16) {
    return __uint_as_float(bits << 16);
  }
  static __device__ __forceinline__ float widen(uint32_t bits, float) {
    return __uint_as_float(bits);
  }
};

template <class L>
__device__ __forceinline__ lane_values<L> load(const float *base, int64_t row, int lane,
                                               columns c) {
  const fetched<L, float> f(base, row, lane, c);
  lane_values<L> p;
#pragma unroll
  for (int i = 0; i < L::N; i++) p.x[i] = f.value(i);
  return p;
}

__device__ __forceinline__ float narrow(float x, float) {
  return x;
}
__device__ __forceinline__ __half narrow(float x, __half) {
  return __float2half_rn(x);
}
__device__ __forceinline__ __nv_bfloat16 narrow(float x, __nv_bfloat16) {
  return __float2bfloat16_rn(x);
}

/* x as a reader of a row of T sees it */
template <class T> __device__ __forceinline__ float rounded(float x) {
  return (float)narrow(x, T());
}

template <class L, class T>
__device__ __forceinline__ void store(T *base, int64_t row, int lane, columns c,
                                      const lane_values<L> &p) {
  constexpr int RUN = L::V * (int)sizeof(T), STORE = RUN < 16 ? RUN : 16,
                EACH = STORE / (int)sizeof(T);
  T *at = base + row * (L::MASK ? c.batch : L::G * L::N) + (L::MASK ? c.first : 0) + lane * L::V;
#pragma unroll
  for (int r = 0; r < L::R; r++) {
    if (L::MASK && c.first + (r * L::G + lane) * L::V >= c.batch) continue;
#pragma unroll
    for (int v = 0; v < L::V; v += EACH) {
      alignas(16) T part[EACH];
#pragma unroll
      for (int i = 0; i < EACH; i++) part[i] = narrow(p.x[r * L::V + v + i], T());
      typedef typename word_of<STORE>::type word;
      *(word *)(at + r * L::G * L::V + v) = *(const word *)part;
    }
  }
}

/* The sum over the lanes of a group; every lane gets it. */
template <class L> __device__ __forceinline__ float group_sum(float x) {
#pragma unroll
  for (int d = 1; d < L::G; d <<= 1) x += __shfl_xor_sync(ALL, x, d);
  return x;
}

/* d[u] of every lane -> sums over the group. Halves change hands at each round, so that
 * TURN sums cost about TURN shuffles: afterwards d[0 .. LOADS) of lane l are the sums of
 * rows l / SHARED * LOADS on. */
template <class L> __device__ __forceinline__ void sum_by_edge(float (&d)[L::TURN], int lane) {
  int width = L::TURN;
#pragma unroll
  for (int bit = L::G / 2; bit > 0; bit /= 2) {
    if (width > 1) {
      const bool upper = lane & bit;
#pragma unroll
      for (int u = 0; u < L::TURN / 2; u++)
        if (u < width / 2) {
          const float keep = upper ? d[u + width / 2] : d[u],
                      send = upper ? d[u] : d[u + width / 2];
          d[u] = keep + __shfl_xor_sync(ALL, send, bit);
        }
      width /= 2;
    } else {
      d[0] += __shfl_xor_sync(ALL, d[0], bit);
    }
  }
}

/* ---- programmatic launch: the next kernel's blocks may come in and read what never changes while
 * this one drains ------- */

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

} // namespace recur_kernels
#endif
