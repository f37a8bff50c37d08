/* Spikes of a block on their way: a list in shared memory, in pieces that its warps share out. */
#ifndef FASCICLE_LIF_SEND_CUH
#define FASCICLE_LIF_SEND_CUH

#include "lif_device.h"

namespace lif {

constexpr int THREADS = 1024, WARP = 32, WARPS = THREADS / WARP;
constexpr int PASS = 2;     /* neurons that a thread integrates before the block delivers */
constexpr int PIECE = WARP; /* edges of a spike that a warp sends at once ... */
constexpr int AHEAD = 4;    /* ... of so many pieces together */
constexpr unsigned ALL = ~0u;

struct shared {
  lif_spike list[LIF_BLOCK_ROOM];
  unsigned long long
      reserved[3]; /* pieces, and above bit 32 spikes; three take turns: in use, being read, cleared */
  int faulty, stop;
};

static_assert(PASS * THREADS <= LIF_BLOCK_ROOM, "a pass fits the list");

/* Written out, because for a pointer that it does not know to be global the compiler takes an addition that
 * sends the old value back: twice the traffic. */
__device__ __forceinline__ void add(int32_t *ring, int64_t at, int weight) {
  asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(ring + at)),
               "r"(weight)
               : "memory");
}

__device__ __forceinline__ void add(int64_t *ring, int64_t at, int weight) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(ring + at)),
               "l"((long long)weight)
               : "memory");
}

/* An edge on its way to the ring; none: target all ones. Edges are read once and may leave the cache first:
 * at high activity they would push the ring out of it. */
__device__ __forceinline__ uint2 edge_at(const lif_device &d, int64_t e, bool there) {
  return there ? __ldcs(d.out + e) : make_uint2(~0u, 0);
}

template <class SUM> __device__ __forceinline__ void send_edge(const lif_device &d, uint2 edge, int slot) {
  if (edge.x == ~0u) return;
  int to = slot + (int)(edge.y >> 16);
  if (to >= d.slots) to -= d.slots;
  add((SUM *)d.ring, (int64_t)to * d.n + edge.x, (int16_t)(edge.y & 0xffff));
}

/* The last spike whose first piece is not behind `piece`. */
__device__ __forceinline__ int spike_of(const lif_spike *list, int n, uint32_t piece) {
  int low = 0, high = n - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (list[middle].first_piece <= piece)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* A handful of pieces below `to`: lane u < AHEAD looks up piece u, then all lanes load an edge of each. */
__device__ __forceinline__ void fetch(const lif_device &d, const shared &s, uint32_t first, uint32_t to,
                                      int n_spikes, int lane, uint2 (&edge)[AHEAD]) {
  const uint32_t piece = first + lane % AHEAD;
  int64_t from = 0;
  int left = 0;
  if (piece < to) {
    const lif_spike k = s.list[spike_of(s.list, n_spikes, piece)];
    const int done = (int)(piece - k.first_piece) * PIECE;
    from = k.first_edge + done, left = k.n_edges - done;
  }
#pragma unroll
  for (int u = 0; u < AHEAD; u++) {
    const int64_t e = __shfl_sync(ALL, from, u) + lane;
    edge[u] = edge_at(d, e, lane < __shfl_sync(ALL, left, u));
  }
}

/* Pieces [from, to) of the listed spikes, shared out among the warps; the next handful is fetched while one
 * is sent. */
template <class SUM>
__device__ __forceinline__ void send(const lif_device &d, const shared &s, int n_spikes, uint32_t from,
                                     uint32_t to, int slot) {
  const int lane = threadIdx.x % WARP;
  uint32_t first = from + threadIdx.x / WARP * AHEAD;
  if (first >= to) return;
  uint2 now[AHEAD], next[AHEAD];
  fetch(d, s, first, to, n_spikes, lane, now);
  while (first < to) {
    first += WARPS * AHEAD;
    fetch(d, s, first, to, n_spikes, lane, next);
#pragma unroll
    for (int u = 0; u < AHEAD; u++) send_edge<SUM>(d, now[u], slot), now[u] = next[u];
  }
}

/* What a warp has sent so far. */
struct tally {
  unsigned spikes;
  unsigned long long events; /* of this lane's neurons */
};

/* The warp's spikes onto the block's list: one reservation for all of them, since 64-bit additions in shared
 * memory are slow when many lanes want them. All lanes take part. */
__device__ __forceinline__ void enlist(const lif_device &d, shared &s, int i, bool sends, int turn,
                                       tally &sent) {
  const unsigned senders = __ballot_sync(ALL, sends);
  if (!senders) return;
  const int lane = threadIdx.x % WARP;
  const int64_t first = sends ? d.out_ptr[i] : 0;
  const int32_t n = sends ? (int32_t)(d.out_ptr[i + 1] - first) : 0;
  const uint32_t pieces = (uint32_t)(n + PIECE - 1) / PIECE;
  uint32_t sum = pieces;
#pragma unroll
  for (int k = 1; k < WARP; k *= 2) {
    const uint32_t other = __shfl_up_sync(ALL, sum, k);
    if (lane >= k) sum += other;
  }
  const unsigned listed_here = __ballot_sync(ALL, n > 0);
  unsigned long long before = 0;
  if (lane == WARP - 1)
    before = atomicAdd(&s.reserved[turn], (unsigned long long)__popc(listed_here) << 32 | sum);
  before = __shfl_sync(ALL, before, WARP - 1);
  if (n > 0)
    s.list[(before >> 32) + __popc(listed_here & ((1u << lane) - 1))] =
        lif_spike{first, n, (uint32_t)before + sum - pieces};
  sent.spikes += __popc(senders), sent.events += n;
}

} // namespace lif
#endif
