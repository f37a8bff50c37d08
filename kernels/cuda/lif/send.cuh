/* Spikes of a block on their way: each warp lists its own in shared memory, then all warps
 * share out the pieces of all lists. Nothing is reserved by atomic additions, which in shared
 * memory would take turns. */
#ifndef FASCICLE_LIF_SEND_CUH
#define FASCICLE_LIF_SEND_CUH

#include "device.h"
#include "neuron.cuh"

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

constexpr int OWN = PASS * WARP; /* spikes that a warp lists at most, of its own neurons */

/* What a warp has sent. */
struct tally {
  unsigned long long spikes, events;
};

static_assert(WARPS <= WARP, "a warp looks over what all warps have listed");

struct shared {
  int64_t own_first[PASS * THREADS]; /* spans of the neurons that threads keep in registers */
  int32_t own_n[PASS * THREADS];
  tally sent[WARPS]; /* of each warp, where there is one trial ... */
  unsigned long long sent_of[LIF_TRIALS]
                            [LIF_TALLIES]; /* ... and where trials run together, of each */
  uint2 listed[2][WARPS]; /* spikes and pieces of each warp; two take turns: in use, being read */
  int faulty, stop;
  lif_spike list[]; /* [1 or 2][WARPS][room of a warp] two take turns, so that a warp that has sent
                       its share may list while others still send */
};

/* Behind the lists: routes of the listed spikes where they are needed, else the stimuli of the
 * neurons that threads keep. */
static_assert(sizeof(due_stimuli) == sizeof(lif_route), "either has the same room");

/* room: spikes that a warp lists at most. */
constexpr size_t shared_bytes(int room, int lists) {
  return sizeof(shared) + lists * WARPS * room * sizeof(lif_spike) +
         PASS * THREADS * sizeof(due_stimuli);
}

template <int ROOM>
__device__ __forceinline__ lif_spike *lists_end(const lif_device &d, shared &s) {
  return s.list + (d.two_lists ? 2 : 1) * WARPS * ROOM;
}

template <int ROOM>
__device__ __forceinline__ lif_route &route_at(const lif_device &d, shared &s, int at) {
  return ((lif_route *)lists_end<ROOM>(d, s))[at];
}

template <int ROOM>
__device__ __forceinline__ due_stimuli *due_stimuli_of(const lif_device &d, shared &s) {
  return (due_stimuli *)lists_end<ROOM>(d, s);
}

/* Written out, because for a pointer that it does not know to be global the compiler takes an
 * addition that sends the old value back: twice the traffic. */
__device__ __forceinline__ void add(int32_t *ring, int64_t at, int weight) {
  asm volatile(
      "red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(ring + at)),
      "r"(weight)
      : "memory");
}

__device__ __forceinline__ void add(int64_t *ring, int64_t at, int weight) {
  asm volatile(
      "red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(ring + at)),
      "l"((long long)weight)
      : "memory");
}

/* No edge, where a lane has none. */
constexpr uint32_t NONE = ~0u;

/* Edges are read once and may leave the cache first: at high activity they would push the ring out
 * of it. A copy that another block may have made is looked for where all blocks meet. */
template <bool GENERAL> __device__ __forceinline__ uint2 edge_at(const uint2 *at, bool there) {
  if (!there) return make_uint2(NONE, 0);
  return GENERAL ? __ldcg(at) : __ldcs(at);
}

template <class SUM>
__device__ __forceinline__ void send_edge(const lif_device &d, uint2 edge, int slot) {
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
struct edge_batch {
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

/* What the warps have listed: lane w knows of warp w's spikes, how many, and how many pieces
 * all warps before it have. */
struct listing {
  const lif_spike *list;
  int n;
  uint32_t start;
};

/* The warp in whose list a piece is. */
__device__ __forceinline__ int warp_of(const listing &l, uint32_t piece) {
  return __popc(__ballot_sync(ALL, l.start <= piece)) - 1;
}

/* A batch of pieces below `to`: lane u < AHEAD looks up piece u, then all
 * lanes load an edge of each. */
template <bool GENERAL, bool LATE, int ROOM>
__device__ __forceinline__ void fetch(const lif_device &d, shared &s, const listing &l,
                                      uint32_t first, uint32_t to, int lane, edge_batch &h) {
  const uint32_t piece = first + lane % AHEAD;
  int warp = 0;
#pragma unroll
  for (int u = 0; u < AHEAD; u++) {
    const int found = warp_of(l, first + u);
    if (lane % AHEAD == u) warp = found;
  }
  const uint32_t start = __shfl_sync(ALL, l.start, warp);
  const int n_spikes = __shfl_sync(ALL, l.n, warp);
  const uint2 *from = nullptr;
  int left = 0;
  h.keep = nullptr, h.shift = 0;
  if (piece < to) {
    const lif_spike *list = l.list + warp * ROOM;
    const int k = spike_of(list, n_spikes, piece - start);
    const lif_spike spike = list[k];
    const int done = (int)(piece - start - spike.first_piece) * PIECE;
    from = spike.edge + done, left = spike.n_edges - done;
    if (GENERAL) {
      const lif_route r = route_at<ROOM>(d, s, warp * ROOM + k);
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
__device__ __forceinline__ void send_batch(const lif_device &d, edge_batch &h, int lane, int slot) {
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

/* All pieces, `n` of them, shared out among the warps; the next batch is fetched while one is
 * sent. LATE: some may be a step late. */
template <class SUM, bool GENERAL, bool LATE, int ROOM>
__device__ __forceinline__ void send(const lif_device &d, shared &s, const listing &l, uint32_t n,
                                     int slot) {
  const int lane = threadIdx.x % WARP;
  uint32_t first = threadIdx.x / WARP * AHEAD;
  if (first >= n) return;
  edge_batch now, next;
  fetch<GENERAL, LATE, ROOM>(d, s, l, first, n, lane, now);
  while (first < n) {
    first += WARPS * AHEAD;
    if (first < n) fetch<GENERAL, LATE, ROOM>(d, s, l, first, n, lane, next);
    send_batch<SUM, GENERAL>(d, now, lane, slot);
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

/* Room on the device for a row that has none: where, or NO_CLAIM. Only one asker gets it, and the
 * row is not to be found there before publish(). */
__device__ __forceinline__ int64_t claim(const lif_host_edges &host, int64_t row, int32_t n) {
  if (*(volatile unsigned long long *)host.used + n > (unsigned long long)host.room)
    return NO_CLAIM;
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
struct pending_spike {
  lif_spike spike;
  lif_route route;
  bool from_host;
  int64_t mine; /* to be published */
};

/* Where a row's edges are to be read, its copy on the device if there is one. */
__device__ __forceinline__ void find(const lif_device &d, int64_t row, span e, pending_spike &r) {
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

/* Where trials run together, or rows may come from the host: counts of each
 * trial. All lanes take part. */
__device__ __forceinline__ void count(shared &s, int trial, unsigned senders, int32_t n,
                                      int32_t n_host) {
  const unsigned events = __reduce_add_sync(ALL, (unsigned)n),
                 host_events = __reduce_add_sync(ALL, (unsigned)n_host);
  if (threadIdx.x % WARP != 0) return;
  atomicAdd(&s.sent_of[trial][LIF_SENT], (unsigned long long)__popc(senders));
  atomicAdd(&s.sent_of[trial][LIF_EVENTS], (unsigned long long)events);
  if (host_events) atomicAdd(&s.sent_of[trial][LIF_HOST_EVENTS], (unsigned long long)host_events);
}

/* Where there is one trial, and rows are on the device. */
__device__ __forceinline__ void count(shared &s, unsigned senders, int32_t n) {
  const unsigned low = __reduce_add_sync(ALL, (unsigned)n & 0xffff),
                 high = __reduce_add_sync(ALL, (unsigned)n >> 16);
  tally &sent = s.sent[threadIdx.x / WARP];
  if (threadIdx.x % WARP == 0)
    sent.spikes += __popc(senders), sent.events += low + ((unsigned long long)high << 16);
}

/* Whose spikes: lanes of one trial. */
struct sender {
  int64_t row;
  int trial;
  bool sends;
  bool late; /* the spike is of the step before */
};

/* Over this lane and those before it. */
__device__ __forceinline__ uint32_t sum_until(uint32_t x) {
#pragma unroll
  for (int k = 1; k < WARP; k *= 2) {
    const uint32_t other = __shfl_up_sync(ALL, x, k);
    if (threadIdx.x % WARP >= k) x += other;
  }
  return x;
}

/* What the warp has listed since the block last sent, and which of the two lists is in use. */
struct queue {
  int n;
  uint32_t pieces;
  int turn;
};

/* Spikes of up to WARP lanes onto the warp's list. All lanes take part; e is this lane's row, if it
 * sends. Returns what is to be published. */
template <bool GENERAL, int ROOM>
__device__ __forceinline__ int64_t enlist(const lif_device &d, shared &s, queue &q, sender from,
                                          span e) {
  const unsigned senders = __ballot_sync(ALL, from.sends);
  if (!senders) return NO_CLAIM;
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  if (!from.sends) e.n = 0;
  pending_spike r = {{d.out + e.first, e.n, 0},
                     {nullptr, (uint32_t)(from.trial * d.n_words * WARP)},
                     false,
                     NO_CLAIM};
  if (from.late) r.spike.edge = (const uint2 *)((unsigned long long)r.spike.edge | LATE_BIT);
  if (GENERAL && d.host.edge && e.n > 0) find(d, from.row, e, r);
  const uint32_t pieces = (uint32_t)(e.n + PIECE - 1) / PIECE;
  const uint32_t sum = sum_until(pieces);
  const unsigned listed_here = __ballot_sync(ALL, e.n > 0);
  if (e.n > 0) {
    const int at = warp * ROOM + q.n + __popc(listed_here & ((1u << lane) - 1));
    r.spike.first_piece = q.pieces + sum - pieces;
    s.list[(d.two_lists ? q.turn : 0) * WARPS * ROOM + at] = r.spike;
    if (GENERAL) route_at<ROOM>(d, s, at) = r.route;
  }
  q.n += __popc(listed_here), q.pieces += __shfl_sync(ALL, sum, WARP - 1);
  if (GENERAL)
    count(s, from.trial, senders, e.n, r.from_host ? e.n : 0);
  else
    count(s, senders, e.n);
  return r.mine;
}

/* All that the block's warps have listed along its edges; whether that was anything. All threads
 * meet between listing and sending, and after it only where there is one list. */
template <class SUM, bool GENERAL, bool LATE, int ROOM>
__device__ __forceinline__ bool send_listed(const lif_device &d, shared &s, queue &q, int slot) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  if (lane == 0) s.listed[q.turn][warp] = make_uint2((unsigned)q.n, q.pieces);
  __syncthreads();
  const uint2 here = lane < WARPS ? s.listed[q.turn][lane] : make_uint2(0, 0);
  const lif_spike *list = s.list + (d.two_lists ? q.turn : 0) * WARPS * ROOM;
  q = queue{0, 0, q.turn ^ 1};
  if (!__any_sync(ALL, here.y != 0)) return false;
  const uint32_t sum = sum_until(here.y);
  send<SUM, GENERAL, LATE, ROOM>(d, s, listing{list, (int)here.x, sum - here.y},
                                 __shfl_sync(ALL, sum, WARP - 1), slot);
  if (!d.two_lists) __syncthreads();
  return true;
}

__device__ __forceinline__ span span_of(const lif_device &d, int64_t row, bool wanted) {
  if (!wanted) return span{0, 0};
  const int64_t first = d.out_ptr[row];
  return span{first, (int32_t)(d.out_ptr[row + 1] - first)};
}

} // namespace lif
#endif
