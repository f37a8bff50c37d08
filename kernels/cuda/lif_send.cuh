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

/* The edges of a row. */
struct span {
  int64_t first;
  int32_t n;
};

struct shared {
  lif_route route[LIF_BLOCK_ROOM];   /* of the listed spikes, where needed */
  int64_t own_first[PASS * THREADS]; /* spans of the neurons that threads keep in registers */
  int32_t own_n[PASS * THREADS];
  unsigned long long sent[LIF_TRIALS][LIF_TALLIES]; /* where trials run together */
  unsigned long long
      reserved[3]; /* pieces, and above bit 32 spikes; three take turns: in use, being read, cleared */
  int faulty, stop;
  lif_spike list[]; /* as many as the launch has taken room for, LIF_BLOCK_ROOM at least */
};

constexpr size_t shared_bytes(int room = LIF_BLOCK_ROOM) {
  return sizeof(shared) + room * sizeof(lif_spike);
}

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

/* No edge, where a lane has none. */
constexpr uint32_t NONE = ~0u;

/* Edges are read once and may leave the cache first: at high activity they would push the ring out of it. A
 * copy that another block may have made is looked for where all blocks meet. */
template <bool GENERAL> __device__ __forceinline__ uint2 edge_at(const uint2 *at, bool there) {
  if (!there) return make_uint2(NONE, 0);
  return GENERAL ? __ldcg(at) : __ldcs(at);
}

template <class SUM> __device__ __forceinline__ void send_edge(const lif_device &d, uint2 edge, int slot) {
  if (edge.x == NONE) return;
  int to = slot + (int)(edge.y >> 16);
  if (to >= d.slots) to -= d.slots;
  add((SUM *)d.ring, (int64_t)to * d.width + edge.x, (int16_t)(edge.y & 0xffff));
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

/* Pieces on their way, an edge of each in every lane; what else belongs to piece u is lane u's. */
struct handful {
  uint2 edge[AHEAD];
  uint2 *keep;
  uint32_t shift;
};

template <class T> __device__ __forceinline__ T *shuffle(T *x, int from) {
  return (T *)__shfl_sync(ALL, (unsigned long long)x, from);
}

/* A spike that is sent a step late has this bit set in the address of its edges. */
constexpr unsigned long long LATE_BIT = 1;

/* Its delays are a step shorter now. */
__device__ __forceinline__ uint2 late_edge(const uint2 *at, bool there) {
  const auto address = (unsigned long long)at;
  uint2 edge = edge_at<false>((const uint2 *)(address & ~LATE_BIT), there);
  edge.y -= (uint32_t)(address & LATE_BIT) << 16;
  return edge;
}

/* A handful of pieces below `to`: lane u < AHEAD looks up piece u, then all lanes load an edge of each. */
template <bool GENERAL, bool LATE>
__device__ __forceinline__ void fetch(const shared &s, uint32_t first, uint32_t to, int n_spikes, int lane,
                                      handful &h) {
  const uint32_t piece = first + lane % AHEAD;
  const uint2 *from = nullptr;
  int left = 0;
  h.keep = nullptr, h.shift = 0;
  if (piece < to) {
    const int k = spike_of(s.list, n_spikes, piece);
    const lif_spike spike = s.list[k];
    const int done = (int)(piece - spike.first_piece) * PIECE;
    from = spike.edge + done, left = spike.n_edges - done;
    if (GENERAL) {
      const lif_route r = s.route[k];
      h.shift = r.shift;
      if (r.keep) h.keep = r.keep + done;
    }
  }
#pragma unroll
  for (int u = 0; u < AHEAD; u++) {
    const uint2 *at = shuffle(from, u) + lane;
    const bool there = lane < __shfl_sync(ALL, left, u);
    h.edge[u] = LATE ? late_edge(at, there) : edge_at<GENERAL>(at, there);
  }
}

template <class SUM, bool GENERAL>
__device__ __forceinline__ void send_handful(const lif_device &d, handful &h, int lane, int slot) {
#pragma unroll
  for (int u = 0; u < AHEAD; u++) {
    uint2 edge = h.edge[u];
    if (GENERAL) {
      uint2 *keep = shuffle(h.keep, u);
      const uint32_t shift = __shfl_sync(ALL, h.shift, u);
      if (keep && edge.x != NONE) keep[lane] = edge;
      if (edge.x != NONE) edge.x += shift;
    }
    send_edge<SUM>(d, edge, slot);
  }
}

/* Pieces [from, to) of the listed spikes, shared out among the warps; the next handful is fetched while one
 * is sent. LATE: some may be a step late. */
template <class SUM, bool GENERAL = false, bool LATE = false>
__device__ __forceinline__ void send(const lif_device &d, const shared &s, int n_spikes, uint32_t from,
                                     uint32_t to, int slot) {
  const int lane = threadIdx.x % WARP;
  uint32_t first = from + threadIdx.x / WARP * AHEAD;
  if (first >= to) return;
  handful now, next;
  fetch<GENERAL, LATE>(s, first, to, n_spikes, lane, now);
  while (first < to) {
    first += WARPS * AHEAD;
    fetch<GENERAL, LATE>(s, first, to, n_spikes, lane, next);
    send_handful<SUM, GENERAL>(d, now, lane, slot);
    now = next;
  }
}

/* ---- rows in host memory ---- */

constexpr int64_t NO_CLAIM = -1;

__device__ __forceinline__ int64_t kept_at(const int64_t *kept) {
  int64_t at;
  asm volatile("ld.acquire.gpu.global.s64 %0, [%1];" : "=l"(at) : "l"(kept) : "memory");
  return at;
}

/* Room on the device for a row that has none: where, or NO_CLAIM. Only one asker gets it, and the row is not
 * to be found there before publish(). */
__device__ __forceinline__ int64_t claim(const lif_host_edges &host, int64_t row, int32_t n) {
  if (*(volatile unsigned long long *)host.used + n > (unsigned long long)host.room) return NO_CLAIM;
  auto *kept = (unsigned long long *)host.kept + row;
  const auto none = (unsigned long long)LIF_NOT_KEPT;
  if (atomicCAS(kept, none, (unsigned long long)LIF_NEVER_KEPT) != none) return NO_CLAIM;
  const unsigned long long at = atomicAdd(host.used, (unsigned long long)n);
  return at + n <= (unsigned long long)host.room ? (int64_t)at : NO_CLAIM;
}

/* The block has sent the row, so its copy is complete. Behind a __syncthreads. */
__device__ __forceinline__ void publish(const lif_host_edges &host, int64_t row, int64_t at) {
  if (at == NO_CLAIM) return;
  __threadfence();
  *(volatile int64_t *)(host.kept + row) = at;
}

/* A spike about to be listed. */
struct errand {
  lif_spike spike;
  lif_route route;
  bool from_host;
  int64_t mine; /* to be published */
};

/* Where a row's edges are to be read, its copy on the device if there is one. */
__device__ __forceinline__ void find(const lif_device &d, int64_t row, span e, errand &r) {
  const int64_t at = kept_at(d.host.kept + row);
  r.from_host = at < 0;
  if (at >= 0) {
    r.spike.edge = d.out + at;
    return;
  }
  r.spike.edge = d.host.edge + e.first;
  if (at == LIF_NOT_KEPT) r.mine = claim(d.host, row, e.n);
  if (r.mine != NO_CLAIM) r.route.keep = (uint2 *)d.out + r.mine;
}

/* ---- the list ---- */

/* What a warp has sent so far, where there is one trial. */
struct tally {
  unsigned spikes;
  unsigned long long events; /* of this lane's neurons */
};

/* Where trials run together, or rows may come from the host: counts of each trial. All lanes take part. */
__device__ __forceinline__ void count(shared &s, int trial, unsigned senders, int32_t n, int32_t n_host) {
  const unsigned events = __reduce_add_sync(ALL, (unsigned)n),
                 host_events = __reduce_add_sync(ALL, (unsigned)n_host);
  if (threadIdx.x % WARP != 0) return;
  atomicAdd(&s.sent[trial][LIF_SENT], (unsigned long long)__popc(senders));
  atomicAdd(&s.sent[trial][LIF_EVENTS], (unsigned long long)events);
  if (host_events) atomicAdd(&s.sent[trial][LIF_HOST_EVENTS], (unsigned long long)host_events);
}

/* Whose spikes: lanes of one trial. */
struct sender {
  int64_t row;
  int trial;
  bool sends;
  bool late; /* the spike is of the step before */
};

/* The warp's spikes onto the block's list: one reservation for all of them, since 64-bit additions in shared
 * memory are slow when many lanes want them. All lanes take part; e is this lane's row, if it sends. Returns
 * what is to be published. */
template <bool GENERAL>
__device__ __forceinline__ int64_t enlist_span(const lif_device &d, shared &s, sender from, span e, int turn,
                                               tally &sent) {
  const unsigned senders = __ballot_sync(ALL, from.sends);
  if (!senders) return NO_CLAIM;
  const int lane = threadIdx.x % WARP;
  if (!from.sends) e.n = 0;
  errand r = {
      {d.out + e.first, e.n, 0}, {nullptr, (uint32_t)(from.trial * d.n_words * WARP)}, false, NO_CLAIM};
  if (from.late) r.spike.edge = (const uint2 *)((unsigned long long)r.spike.edge | LATE_BIT);
  if (GENERAL && d.host.edge && e.n > 0) find(d, from.row, e, r);
  const uint32_t pieces = (uint32_t)(e.n + PIECE - 1) / PIECE;
  uint32_t sum = pieces;
#pragma unroll
  for (int k = 1; k < WARP; k *= 2) {
    const uint32_t other = __shfl_up_sync(ALL, sum, k);
    if (lane >= k) sum += other;
  }
  const unsigned listed_here = __ballot_sync(ALL, e.n > 0);
  unsigned long long before = 0;
  if (lane == WARP - 1)
    before = atomicAdd(&s.reserved[turn], (unsigned long long)__popc(listed_here) << 32 | sum);
  before = __shfl_sync(ALL, before, WARP - 1);
  if (e.n > 0) {
    const int at = (int)(before >> 32) + __popc(listed_here & ((1u << lane) - 1));
    r.spike.first_piece = (uint32_t)before + sum - pieces;
    s.list[at] = r.spike;
    if (GENERAL) s.route[at] = r.route;
  }
  if (GENERAL)
    count(s, from.trial, senders, e.n, r.from_host ? e.n : 0);
  else
    sent.spikes += __popc(senders), sent.events += e.n;
  return r.mine;
}

__device__ __forceinline__ span span_of(const lif_device &d, int64_t row, bool wanted) {
  if (!wanted) return span{0, 0};
  const int64_t first = d.out_ptr[row];
  return span{first, (int32_t)(d.out_ptr[row + 1] - first)};
}

/* The same for one trial and edges on the device. */
__device__ __forceinline__ void enlist(const lif_device &d, shared &s, int64_t row, bool sends, int turn,
                                       tally &sent) {
  enlist_span<false>(d, s, sender{row, 0, sends}, span_of(d, row, sends), turn, sent);
}

} // namespace lif
#endif
