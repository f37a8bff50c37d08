/* The walk over one row's edges that both passes share. */
#ifndef FASCICLE_RECUR_WALK_CUH
#define FASCICLE_RECUR_WALK_CUH

#include "lanes.cuh"

namespace recur_kernels {

/* How edges are read, once a microstep: single ones through the first cache, for neighbours come
 * back for the rest of the sector; several at once fill a sector and pass by it, so as not to push
 * out states. STREAM: they shall not push out states and gradients from the second cache either. */
enum reading { BY_ONE, BY_FEW, STREAM };

__device__ __forceinline__ uint64_t evict_first() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ uint2 load_streamed(const uint2 *at) {
  uint2 w;
  asm volatile("ld.global.cg.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
               : "=r"(w.x), "=r"(w.y)
               : "l"(at), "l"(evict_first()));
  return w;
}

template <reading HOW, class WORD> __device__ __forceinline__ WORD load_word(const WORD *at) {
  if constexpr (HOW == STREAM)
    return load_streamed(at);
  else
    return HOW == BY_FEW ? __ldcg(at) : __ldg(at);
}

template <int EDGES> struct few_floats { float x[EDGES]; };

template <int EDGES, reading HOW>
__device__ __forceinline__ few_floats<EDGES> load_floats(const float *at) {
  typedef typename word_of<4 * EDGES>::type word;
  few_floats<EDGES> f;
  const word w = load_word<HOW>((const word *)at);
#pragma unroll
  for (int i = 0; i < EDGES; i++) f.x[i] = __uint_as_float(((const uint32_t *)&w)[i]);
  return f;
}

/* at[] += f. Each edge has one owner, who adds once in a launch, so the order of additions is fixed
 * whoever does them: from sm_90 on the second cache, and the old values need not travel. */
template <int EDGES>
__device__ __forceinline__ void add_floats(float *at, const few_floats<EDGES> &f) {
#if __CUDA_ARCH__ >= 900
  if constexpr (EDGES == 4)
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(f.x[0]),
                 "f"(f.x[1]), "f"(f.x[2]), "f"(f.x[3])
                 : "memory");
  else if constexpr (EDGES == 2)
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(at), "f"(f.x[0]), "f"(f.x[1])
                 : "memory");
  else
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(at), "f"(f.x[0]) : "memory");
#else
  typedef typename word_of<4 * EDGES>::type word;
  word old = __ldcg((const word *)at), sum;
#pragma unroll
  for (int i = 0; i < EDGES; i++) ((float *)&sum)[i] = ((const float *)&old)[i] + f.x[i];
  __stcg((word *)at, sum);
#endif
}

template <int EDGES> struct few_columns { int x[EDGES]; };

template <int EDGES, reading HOW>
__device__ __forceinline__ few_columns<EDGES> load_columns(const int32_t *at) {
  typedef typename word_of<4 * EDGES>::type word;
  few_columns<EDGES> f;
  const word w = load_word<HOW>((const word *)at);
#pragma unroll
  for (int i = 0; i < EDGES; i++) f.x[i] = (int)((const uint32_t *)&w)[i];
  return f;
}

template <int EDGES, reading HOW>
__device__ __forceinline__ few_columns<EDGES> load_columns(const uint16_t *at) {
  typedef typename word_of<2 * EDGES>::type word;
  few_columns<EDGES> f;
  const word w = load_word<HOW>((const word *)at);
#pragma unroll
  for (int i = 0; i < EDGES; i++) f.x[i] = ((const uint16_t *)&w)[i];
  return f;
}

/* Edges in lines of 128 bytes: RECUR_PAD columns, then their values, so that the second cache is
 * asked once for both. For groups of four lanes that load four edges each: two neighbouring groups
 * together read the line of the one, then that of the other. */
template <class L, class INDEX>
constexpr bool in_lines = sizeof(INDEX) == 4 && L::G == 4 && L::ROUND == RECUR_PAD && !L::MASK;

/* Where the column of edge e stands; its value is values_of() words behind. */
template <bool LINES> __device__ __forceinline__ int64_t edge_place(uint32_t e) {
  return LINES ? (int64_t)e + e / RECUR_PAD * RECUR_PAD : (int64_t)e;
}

/* T: what a gathered row is made of. Places of a round behind the row's end have column -1. */
template <class L, class INDEX, class T> struct walk {
  const INDEX *col;
  const float *value;
  uint32_t row_end, at,
      stride; /* first edge of the coming round that this lane loads; from round to round */
  int rounds; /* of the warp's longest group */
  few_columns<L::EDGES> next;
  few_floats<L::EDGES> next_value; /* only where edges stand in lines */

  static constexpr bool LINES = in_lines<L, INDEX>;
  /* pairs of 32-bit columns: the layout of large graphs at 32 columns, where it was measured */
  static constexpr reading HOW = L::EDGES == 1                         ? BY_ONE
                                 : L::EDGES == 2 && sizeof(INDEX) == 4 ? STREAM
                                                                       : BY_FEW;

  __device__ __forceinline__ bool ours(uint32_t edge) const { return edge < row_end; }

  __device__ __forceinline__ void fetch() {
    if constexpr (LINES)
      fetch_lines();
    else
      fetch_columns();
  }

  __device__ __forceinline__ void fetch_columns() {
    few_columns<L::EDGES> f;
#pragma unroll
    for (int i = 0; i < L::EDGES; i++) f.x[i] = -1;
    if (ours(at)) f = load_columns<L::EDGES, HOW>(col + at);
#pragma unroll
    for (int i = 0; i < L::EDGES; i++) next.x[i] = ours(at + i) ? f.x[i] : -1;
  }

  __device__ __forceinline__ walk(const recur_item &item, int in_row, int lane, const INDEX *col_,
                                  const float *value_)
      : col(col_), value(value_), row_end(item.first + item.edges) {
    stride = (uint32_t)L::ROUND << item.share;
    const uint32_t start = item.first + (uint32_t)in_row * L::ROUND;
    const uint32_t left = start < row_end ? row_end - start : 0;
    at = start + lane * L::EDGES;
    rounds = (int)__reduce_max_sync(ALL, (left + stride - 1) / stride);
    fetch();
  }

  /* acc += sum_e v_e x[col_e]; with GRADIENT also gradient_e += x[col_e] . own */
  template <bool GRADIENT>
  __device__ __forceinline__ void run(const T *x, columns c, int lane, const lane_values<L> &own,
                                      float *gradient, lane_values<L> &acc) {
    const T *const mine = lane_share<L>(x, lane, c);
    for (int t = 0; t < rounds; t++) {
      const few_columns<L::EDGES> now = next;
      const bool any = ours(at);
      few_floats<L::EDGES> v = {}, dv = {};
      if constexpr (LINES)
        v = next_value;
      else if (any)
        v = load_floats<L::EDGES, HOW>(value + at);
      float *const there = gradient + at;
#pragma unroll
      for (int i = 0; i < L::EDGES; i++)
        if (now.x[i] < 0) v.x[i] = 0;
      at += stride;
      fetch();
#pragma unroll
      for (int h = 0; h < L::TURNS; h++) turn<GRADIENT>(h, now, v, dv, mine, c, lane, own, acc);
      if constexpr (GRADIENT)
        if (any) add_floats<L::EDGES>(there, dv);
    }
  }

private:
  /* A pair of groups reads the line of its first, then that of its second. Each lane then has
   * columns of its own group's edges and values of the other's, which change hands. */
  __device__ __forceinline__ void fetch_lines() {
    const bool second = threadIdx.x & L::G, any = ours(at);
    const uint32_t other = __shfl_xor_sync(ALL, any ? at : RECUR_NO_EDGE, L::G);
    const bool others = other != RECUR_NO_EDGE;
    uint4 part[2] = {};
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const bool own = second == (i == 1);
      const INDEX *from = col + (own ? edge_place<true>(at) : edge_place<true>(other) + RECUR_PAD);
      if (own ? any : others) part[i] = __ldcg((const uint4 *)from);
    }
    const uint4 mine = second ? part[1] : part[0], theirs = second ? part[0] : part[1];
    const uint32_t column[] = {mine.x, mine.y, mine.z, mine.w},
                   send[] = {theirs.x, theirs.y, theirs.z, theirs.w};
#pragma unroll
    for (int i = 0; i < L::EDGES; i++) {
      next.x[i] = ours(at + i) ? (int)column[i] : -1;
      next_value.x[i] = __uint_as_float(__shfl_xor_sync(ALL, send[i], L::G));
    }
  }

  /* Turn h of a round: of each lane's edges the LOADS from h LOADS on, or of
   * every SHAREDth lane one. */
  template <bool GRADIENT>
  static __device__ __forceinline__ void
  turn(int h, const few_columns<L::EDGES> &now, const few_floats<L::EDGES> &v,
       few_floats<L::EDGES> &dv, const T *mine, columns c, int lane, const lane_values<L> &own,
       lane_values<L> &acc) {
    const int slot = h / L::SHARED * L::LOADS, share = h % L::SHARED;
    fetched<L, T> in[L::TURN];
#pragma unroll
    for (int u = 0; u < L::TURN; u++) {
      const int from =
          __shfl_sync(ALL, now.x[slot + u % L::LOADS], u / L::LOADS * L::SHARED + share, L::G);
      if (from >= 0) in[u].read(mine, from, lane, c);
    }
    float dot[L::TURN];
#pragma unroll
    for (int u = 0; u < L::TURN; u++) {
      const float w =
          __shfl_sync(ALL, v.x[slot + u % L::LOADS], u / L::LOADS * L::SHARED + share, L::G);
      dot[u] = 0;
#pragma unroll
      for (int i = 0; i < L::N; i++) {
        acc.x[i] = fmaf(w, in[u].value(i), acc.x[i]);
        if constexpr (GRADIENT) dot[u] = fmaf(in[u].value(i), own.x[i], dot[u]);
      }
    }
    if constexpr (GRADIENT) {
      sum_by_edge<L>(dot, lane);
#pragma unroll
      for (int i = 0; i < L::LOADS; i++)
        if (L::SHARED == 1 || lane % L::SHARED == share) dv.x[slot + i] += dot[i];
    }
  }
};

/* Adds up what the groups of a row have, in a fixed order: by lanes, then by warps through shared
 * memory. True for the threads that hold the whole sum and go on with the row; all lanes of their
 * warps then stay together. */
template <class L>
__device__ __forceinline__ bool gather_groups(const recur_item &item, int most_shared, int lane,
                                              lane_values<L> &acc) {
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

} // namespace recur_kernels
#endif
