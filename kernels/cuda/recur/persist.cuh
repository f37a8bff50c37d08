/* What both persistent kernels are made of: the walk over the edges of a lane, the barrier of a
 * slice's blocks, copies by the bulk engine. */
#ifndef FASCICLE_RECUR_PERSIST_CUH
#define FASCICLE_RECUR_PERSIST_CUH

#include "persist.h"

namespace persist {

constexpr unsigned ALL = ~0u;
constexpr int LANES = PERSIST_LANES, WALKERS = PERSIST_WALKERS, SLOTS = PERSIST_SLOTS,
              TURNS = SLOTS / 2, WORDS = PERSIST_WORDS;
constexpr int WALKING = WALKERS * LANES;         /* threads that walk edges and finish rows */
constexpr int THREADS = WALKING + LANES;         /* and a warp that waits for the other blocks */
constexpr int HALVES = PERSIST_HALVES, HALF = 4; /* columns of a half slice */
constexpr int CLUSTER = PERSIST_CLUSTER;
constexpr int ARRIVAL_WORDS = PERSIST_ARRIVAL_BYTES / sizeof(uint32_t);

/* ---- four columns ---- */

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ __forceinline__ void add_product(float4 &sum, float w, float4 x) {
  sum.x = fmaf(w, x.x, sum.x), sum.y = fmaf(w, x.y, sum.y);
  sum.z = fmaf(w, x.z, sum.z), sum.w = fmaf(w, x.w, sum.w);
}

__device__ __forceinline__ float inner(float4 a, float4 b) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, a.x * b.x)));
}

__device__ __forceinline__ float sum_of(float4 a) {
  return (a.x + a.y) + (a.z + a.w);
}

/* A load that the compiler does not move: it is in flight during the walk. */
__device__ __forceinline__ float4 load_now(const float *at) {
  float4 x;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "l"(at));
  return x;
}

/* ---- shared memory, barriers, copies (sm_90) ---- */

__device__ __forceinline__ uint32_t shared_address(const void *at) {
  return (uint32_t)__cvta_generic_to_shared(at);
}

__device__ __forceinline__ void walkers_barrier() {
  asm volatile("bar.sync 1, %0;" ::"n"(WALKING) : "memory");
}

__device__ __forceinline__ void signal_init(uint64_t *signal, int arrivals) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(signal)),
               "r"(arrivals)
               : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ __forceinline__ void signal_expect(uint64_t *signal, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(signal)),
      "r"(bytes)
      : "memory");
#endif
}

__device__ __forceinline__ void signal_arrive(uint64_t *signal) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(signal)) : "memory");
#endif
}

__device__ __forceinline__ bool signal_ready(uint64_t *signal, uint32_t parity) {
  uint32_t ready = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("{\n .reg .pred ready;\n"
               "mbarrier.test_wait.parity.shared::cta.b64 ready, [%1], %2;\n"
               "selp.u32 %0, 1, 0, ready;\n}"
               : "=r"(ready)
               : "r"(shared_address(signal)), "r"(parity)
               : "memory");
#endif
  return ready;
}

__device__ __forceinline__ void signal_wait(uint64_t *signal, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  asm volatile("{\n .reg .pred ready;\n"
               "again: mbarrier.try_wait.parity.shared::cta.b64 ready, [%0], %1;\n"
               "@!ready bra again;\n}" ::"r"(shared_address(signal)),
               "r"(parity)
               : "memory");
#endif
}

/* To every block of the cluster, at the same place in each. */
__device__ __forceinline__ void copy_in(void *to, const void *from, uint32_t bytes,
                                        uint64_t *signal) {
#if __CUDA_ARCH__ >= 900
  if constexpr (CLUSTER > 1)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(signal)), "h"((uint16_t)((1 << CLUSTER) - 1))
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(signal))
        : "memory");
#endif
}

/* Ordinary accesses before, accesses of the bulk engine after. */
__device__ __forceinline__ void engine_sees() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async;" ::: "memory");
#endif
}

__device__ __forceinline__ void copy_row_begin(float4 *to, const float *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}

__device__ __forceinline__ void copy_rows_end() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/* ---- the barrier of a slice ---- */

__device__ __forceinline__ void arrive(uint32_t *arrivals) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals) : "memory");
}

__device__ __forceinline__ bool all_arrived(const uint32_t *arrivals, uint32_t wanted) {
  uint32_t seen;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrivals) : "memory");
  return seen >= wanted;
}

/* ---- the walk ---- */

struct ends_of_warp {
  uint32_t turns[2], first;
  int n;
};

__device__ __forceinline__ ends_of_warp load_ends(const uint4 *ends, int warp) {
  const uint4 e = ends[warp];
  return {{e.x, e.y}, e.z, (int)e.w};
}

/* The edges of a lane: places, three in 32 bits, weights, and (backward) gradients. */
template <bool BACK> struct edges {
  uint32_t packed[WORDS];
  float weight[SLOTS], gradient[BACK ? SLOTS : 1];
};

template <bool BACK>
__device__ __forceinline__ void load_edges(edges<BACK> &e, const persist_tables &t,
                                           int warp_of_slice, int lane, const float *value) {
  const uint32_t *packed = t.packed + (int64_t)warp_of_slice * WORDS * LANES + lane,
                 *edge = t.edge + (int64_t)warp_of_slice * SLOTS * LANES + lane;
#pragma unroll
  for (int i = 0; i < WORDS; i++) e.packed[i] = packed[i * LANES];
#pragma unroll
  for (int i = 0; i < SLOTS; i++) {
    const uint32_t at = edge[i * LANES];
    e.weight[i] = at == PERSIST_NO_EDGE ? 0.0f : value[at];
    if constexpr (BACK) e.gradient[i] = 0;
  }
}

/* The other end of an edge. Read where it is written, in this order, so that a turn's loads are
 * on their way while the turn before is added up; the word is hidden so that nothing made from
 * it is kept in registers. */
template <int SLOT>
__device__ __forceinline__ float4 load_end(uint32_t x, uint32_t in_row, uint32_t &packed) {
  constexpr int TO = 7, BITS = PERSIST_BITS, SHIFT = SLOT % 3 * BITS; /* 8 classes of 16 bytes */
  constexpr uint32_t MASK = ((1u << BITS) - 1) << TO;
  asm volatile("" : "+r"(packed));
  const uint32_t at =
      ((SHIFT < TO ? packed << (TO - SHIFT) : packed >> (SHIFT - TO)) & MASK) | in_row;
  float4 a;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(a.x), "=f"(a.y), "=f"(a.z), "=f"(a.w)
               : "r"(x + at));
  return a;
}

/* Where a lane stands in its walk. */
struct steps {
  uint32_t from, in_row; /* shared addresses: of the half slice, of the lane's class */
  float4 *sums;
  const float4 *own;
  const uint8_t *lane_row;
  float4 sum, h, a[2], b[2]; /* b: of the other edge of a turn; alternating */
};

template <bool BACK, int TURN> __device__ __forceinline__ void load_turn(edges<BACK> &e, steps &s) {
  if constexpr (TURN < TURNS) {
    s.a[TURN % 2] = load_end<2 * TURN>(s.from, s.in_row, e.packed[2 * TURN / 3]);
    s.b[TURN % 2] = load_end<2 * TURN + 1>(s.from, s.in_row, e.packed[(2 * TURN + 1) / 3]);
  }
}

template <bool BACK, int TURN>
__device__ __forceinline__ void walk_on(edges<BACK> &e, const ends_of_warp &ends, steps &s) {
  if constexpr (TURN < TURNS) {
    constexpr int I = TURN % 2;
    add_product(s.sum, e.weight[2 * TURN], s.a[I]);
    add_product(s.sum, e.weight[2 * TURN + 1], s.b[I]);
    if constexpr (BACK) {
      e.gradient[2 * TURN] += inner(s.a[I], s.h);
      e.gradient[2 * TURN + 1] += inner(s.b[I], s.h);
    }
    load_turn<BACK, TURN + 2>(e, s);
    if (ends.turns[TURN / 32] >> (TURN % 32) & 1) {
      *s.sums = s.sum;
      if (TURN + 1 == ends.n) return;
      s.sum = make_float4(0, 0, 0, 0), s.sums += LANES;
      if constexpr (BACK) s.lane_row += LANES, s.h = s.own[*s.lane_row];
    }
    walk_on<BACK, TURN + 1>(e, ends, s);
  }
}

/* One pass over the lane's edges: sums[stretch][lane] = sum of weight * x[place] over
 * the lane's segment; backward also gradient += x[place] . own, where own[] are the rows
 * that the segments belong to. */
template <bool BACK>
__device__ __forceinline__ void walk(edges<BACK> &e, const ends_of_warp &ends, const float4 *x,
                                     float4 *sums, const float4 *own, const uint8_t *lane_row) {
  if (ends.n == 0) return;
  steps s;
  s.from = shared_address(x), s.in_row = threadIdx.x % PERSIST_CLASSES * (uint32_t)sizeof(float4);
  s.sums = sums + ends.first * LANES, s.own = own;
  s.sum = make_float4(0, 0, 0, 0);
  if constexpr (BACK) s.lane_row = lane_row + ends.first * LANES, s.h = own[*s.lane_row];
  load_turn<BACK, 0>(e, s), load_turn<BACK, 1>(e, s);
  walk_on<BACK, 0>(e, ends, s);
}

/* The sums of a row's segments in their order; `at`: where four of them lie. */
__device__ __forceinline__ float4 add_four(const float4 *sums, uint2 at) {
  return (sums[at.x & 0xffff] + sums[at.x >> 16]) + (sums[at.y & 0xffff] + sums[at.y >> 16]);
}

__device__ __forceinline__ float4 add_segments(const float4 *sums, const uint16_t *sum_at,
                                               int first, int end) {
  float4 z = make_float4(0, 0, 0, 0);
  for (int i = first; i < end; i++) {
    const uint4 at = ((const uint4 *)sum_at)[i];
    z = z + (add_four(sums, make_uint2(at.x, at.y)) + add_four(sums, make_uint2(at.z, at.w)));
  }
  return z;
}

} // namespace persist
#endif
