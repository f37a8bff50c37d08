/* LIF on one of several devices; lif_kernels.cu has the same steps for one alone.
 *
 * A block also hears its share of the other ranks' words, dealt out in turns as own words are, and sends the
 * spikes along their edges into own rows. What is heard of step t may be sent one step late, together with
 * own spikes of step t + 1, when the words have long come: with barriers every min_delay - 1 steps, one still
 * lies between that and step t + min_delay, the first that it can matter to. Where min_delay is 1, words are
 * waited for in their own step. A rank can be so far ahead of another, and no further, that it overwrites no
 * word that the other has not heard: inboxes of 2 min_delay steps suffice, since every rank hears every
 * other, also one without neurons. */
#include "lif_barrier.cuh"
#include "lif_link.h"
#include "lif_neuron.cuh"
#include "lif_send.cuh"

using namespace lif;

namespace {

/* What a block keeps from step to step. */
struct block {
  tally sent;
  unsigned barrier;
  int turn;
};

/* A launch's first step, its place in the leg, where the leg's masks go. */
struct course {
  int64_t t0, first;
  uint32_t *mask;
};

/* Where a step's arrivals go in the ring, where its words stand in a box, and the tag that they carry. */
struct moment {
  int slot, box;
  uint32_t tag;
};

__device__ __forceinline__ moment moment_of(const lif_device &d, const lif_link &link, int64_t t,
                                            uint64_t q) {
  return moment{(int)(t % d.slots), (int)(q % link.window), (uint32_t)(q + 1) << 1};
}

__device__ __forceinline__ moment after(const lif_device &d, const lif_link &link, const moment &m) {
  return moment{m.slot + 1 == d.slots ? 0 : m.slot + 1, m.box + 1 == link.window ? 0 : m.box + 1, m.tag + 2};
}

__device__ __forceinline__ uint64_t load(const uint64_t *at) {
  uint64_t word;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
  return word;
}

__device__ __forceinline__ void store(uint64_t *at, uint64_t word) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(word) : "memory");
}

/* The warp's word of a step to all outboxes. */
__device__ __forceinline__ void tell(const lif_link &link, const moment &now, int word, unsigned loud,
                                     bool faulty) {
  const uint64_t value = (uint64_t)(now.tag | faulty) << 32 | loud;
  const int64_t at = (int64_t)now.box * link.stride + word;
  for (int o = threadIdx.x % WARP; o < link.n_outboxes; o += WARP) store(link.outbox[o] + at, value);
}

/* The block's list along its edges, then an empty list. */
template <class SUM>
__device__ __forceinline__ void flush(const lif_device &d, shared &s, block &b, int slot) {
  const int next = b.turn == 2 ? 0 : b.turn + 1;
  if (threadIdx.x == 0) s.reserved[next] = 0;
  __syncthreads();
  const unsigned long long reserved = s.reserved[b.turn];
  b.turn = next;
  if (!reserved) return;
  send<SUM, false, true>(d, s, (int)(reserved >> 32), 0, (uint32_t)reserved, slot);
  __syncthreads();
}

/* A word of another rank. */
struct heard {
  const uint64_t *at; /* NULL: no such word */
  int64_t row;        /* of its first neuron */
};

/* Own spikes and as many heard ones. */
constexpr int ROOM = 2 * LIF_BLOCK_ROOM;

__device__ __forceinline__ heard word_at(const lif_link &link, int box, int item) {
  int from = item / link.stride;
  const int word = item - from * link.stride;
  from += from >= link.rank;
  if (from >= link.size) return heard{nullptr, 0};
  const int64_t row = link.row[from] + (int64_t)word * WARP;
  if (word > 0 && row >= link.row[from + 1]) return heard{nullptr, 0};
  return heard{link.inbox + ((int64_t)from * link.window + box) * link.stride + word, row};
}

/* Waits for the other ranks' words of the step `then`, and sends their spikes, with what else is listed;
 * `late`: in the step after it, whose slot is `slot`. */
template <class SUM>
__device__ __forceinline__ void hear(const lif_device &d, const lif_link &link, shared &s, block &b,
                                     const moment &then, bool late, int slot) {
  const int lane = threadIdx.x % WARP, words_a_turn = gridDim.x * WARPS;
  const int n_items = (link.size - 1) * link.stride;
  for (int pass = 0; pass < n_items; pass += PASS * words_a_turn) {
    heard from[PASS];
    uint64_t word[PASS];
#pragma unroll
    for (int u = 0; u < PASS; u++) {
      from[u] =
          word_at(link, then.box, pass + u * words_a_turn + (threadIdx.x / WARP) * gridDim.x + blockIdx.x);
      word[u] = from[u].at ? load(from[u].at) : 0;
    }
#pragma unroll
    for (int u = 0; u < PASS; u++) {
      while (link.direct && from[u].at && (word[u] >> 32 & ~1u) != then.tag) word[u] = load(from[u].at);
      if (word[u] >> 32 & 1) s.faulty = 1;
      const sender who = {from[u].row + lane, 0, (word[u] >> lane & 1) != 0, late};
      enlist_span<false>(d, s, who, span_of(d, who.row, who.sends), b.turn, b.sent);
    }
    flush<SUM>(d, s, b, slot);
  }
}

/* What came while no kernel ran. */
template <class SUM>
__device__ __forceinline__ bool hear_before(const lif_device &d, const lif_link &link, shared &s, block &b,
                                            int64_t t, int n) {
  moment then = moment_of(d, link, t, 0);
  for (int k = 0; k < n; k++, then = after(d, link, then)) hear<SUM>(d, link, s, b, then, false, then.slot);
  arrive(d, s, b.barrier);
  return wait_for_all(d, s, b.barrier++);
}

/* Every fault of the batch is known now; the thread that met the smallest says what did not fit. */
__device__ __forceinline__ void report(const lif_device &d, shared &s, block &b, const fault &f) {
  if (f.key != NO_FAULT) atomicMin(d.fault, f.key);
  if (threadIdx.x == 0 && blockIdx.x == 0) atomicMin(d.fault, LIF_FAULT_ELSEWHERE);
  __syncthreads();
  arrive(d, s, b.barrier);
  wait_for_all(d, s, b.barrier);
  if (f.key != NO_FAULT && f.key == *(volatile unsigned long long *)d.fault) *d.fault_value = f.value;
}

/* The block's own neurons make a step: their words are told, their spikes listed, the last of them not yet
 * sent. */
template <class SUM, bool RESIDENT>
__device__ __forceinline__ void step_own(const lif_device &d, const lif_link &link, shared &s, block &b,
                                         const moment &now, const course &c, int k, neuron (&own)[PASS],
                                         fault &f, unsigned (&fired_here)[PASS]) {
  const int lane = threadIdx.x % WARP, words_a_turn = gridDim.x * WARPS;
  const int first_word = (threadIdx.x / WARP) * gridDim.x + blockIdx.x;
  const int n_passes = RESIDENT ? 1 : (d.n_words + PASS * words_a_turn - 1) / (PASS * words_a_turn);
  SUM *due = (SUM *)d.ring + (int64_t)now.slot * d.width;
  for (int pass = 0; pass < n_passes; pass++) {
    if (pass > 0) flush<SUM>(d, s, b, now.slot);
#pragma unroll
    for (int u = 0; u < PASS; u++) {
      const int word = first_word + (pass * PASS + u) * words_a_turn;
      const place p(word * WARP + lane);
      if (!RESIDENT) {
        own[u] = take(d, p);
        prepare(d, p, c.t0 + k, own[u]);
      }
      const bool fired = p.i < d.n && step_neuron<SUM>(d, p, c.first + k, due, own[u], f);
      const bool sends = fired && !(own[u].mute & LIF_MUTED_ON_DEVICE);
      const unsigned loud = __ballot_sync(ALL, sends);
      const bool faulty = __any_sync(ALL, f.key != NO_FAULT);
      fired_here[u] = __ballot_sync(ALL, fired);
      if (word < link.n_told) tell(link, now, word, loud, faulty);
      const int at = u * THREADS + threadIdx.x;
      const span e = RESIDENT ? span{s.own_first[at], s.own_n[at]} : span_of(d, d.first + p.i, sends);
      enlist_span<false>(d, s, sender{d.first + p.i, 0, sends}, e, b.turn, b.sent);
      if (!RESIDENT) {
        put(d, p, own[u]);
        if (lane == 0 && word < d.n_words) c.mask[(c.first + k) * d.n_words + word] = fired_here[u];
      }
    }
    if (f.key != NO_FAULT) s.faulty = 1;
  }
}

template <class SUM, bool RESIDENT>
__global__ void __launch_bounds__(THREADS, 1)
    joined_kernel(const __grid_constant__ lif_device d, const __grid_constant__ lif_link link,
                  const __grid_constant__ lif_stretch stretch, uint32_t *mask) {
  extern __shared__ __align__(16) char memory[];
  shared &s = *(shared *)memory;
  if (*d.fault != NO_FAULT) return;
  if (threadIdx.x == 0) s.reserved[0] = s.reserved[1] = 0, s.faulty = 0;
  __syncthreads();
  /* Plain numbers: nvcc 13.0 loses the first of these sums when they are members of a struct. */
  int64_t t0 = stretch.step, first = stretch.first;
  if (link.clock) t0 += link.clock->step, first += link.clock->first, mask = link.clock->mask;
  const course c = {t0, first, mask};
  const int lane = threadIdx.x % WARP, words_a_turn = gridDim.x * WARPS;
  const int first_word = (threadIdx.x / WARP) * gridDim.x + blockIdx.x;
  fault f = {NO_FAULT, 0};
  block b = {{0, 0}, 0, 0};
  bool stop = stretch.n_heard > 0 && hear_before<SUM>(d, link, s, b, c.t0 - stretch.n_heard, stretch.n_heard);
  neuron own[PASS];
#pragma unroll
  for (int u = 0; u < PASS && RESIDENT; u++) {
    const place p((first_word + u * words_a_turn) * WARP + lane);
    own[u] = take(d, p);
    prepare(d, p, c.t0, own[u]);
    const span e = span_of(d, d.first + p.i, p.i < d.n);
    s.own_first[u * THREADS + threadIdx.x] = e.first, s.own_n[u * THREADS + threadIdx.x] = e.n;
  }
  moment now = moment_of(d, link, c.t0, stretch.q), then = now;
  const bool late = d.min_delay > 1;
  int since_barrier = 0;
  for (int k = 0; k < stretch.n_steps && !stop; k++) {
    const bool last = k + 1 == stretch.n_steps;
    unsigned fired_here[PASS];
    step_own<SUM, RESIDENT>(d, link, s, b, now, c, k, own, f, fired_here);
    if (link.direct && late && k > 0)
      hear<SUM>(d, link, s, b, then, true, now.slot);
    else if (!link.direct || late)
      flush<SUM>(d, s, b, now.slot);
    if (link.direct && (last || !late)) hear<SUM>(d, link, s, b, now, false, now.slot);
    then = now, now = after(d, link, now);
    const bool meet = ++since_barrier == link.period || last;
    if (meet) arrive(d, s, b.barrier);
#pragma unroll
    for (int u = 0; u < PASS && RESIDENT; u++) {
      const int word = first_word + u * words_a_turn;
      if (lane == 0 && word < d.n_words) c.mask[(c.first + k) * d.n_words + word] = fired_here[u];
      prepare(d, place(word * WARP + lane), c.t0 + k + 1, own[u]);
    }
    if (!meet) continue;
    since_barrier = 0;
    stop = wait_for_all(d, s, b.barrier++);
  }
#pragma unroll
  for (int u = 0; u < PASS && RESIDENT; u++)
    put(d, place((first_word + u * words_a_turn) * WARP + lane), own[u]);
  if (lane == 0 && b.sent.spikes) atomicAdd(d.tally + LIF_SENT, (unsigned long long)b.sent.spikes);
  if (b.sent.events) atomicAdd(d.tally + LIF_EVENTS, b.sent.events);
  if (stop) report(d, s, b, f);
}

__global__ void set_clock(lif_clock *clock, lif_clock value) {
  *clock = value;
}

} // namespace

void lif_link_launch(const struct lif_device *d, const struct lif_link *link, int n_blocks,
                     const struct lif_stretch *stretch, uint32_t *mask) {
  const bool resident = d->n_words <= PASS * WARPS * n_blocks;
  const void *narrow =
      resident ? (const void *)joined_kernel<int32_t, true> : (const void *)joined_kernel<int32_t, false>;
  const void *wide =
      resident ? (const void *)joined_kernel<int64_t, true> : (const void *)joined_kernel<int64_t, false>;
  const void *kernel = d->wide ? wide : narrow;
  void *args[] = {(void *)d, (void *)link, (void *)stretch, &mask};
  CHECK_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes(ROOM)));
  CHECK_CUDA(cudaLaunchCooperativeKernel(kernel, dim3(n_blocks), dim3(THREADS), args, shared_bytes(ROOM),
                                         gpu_stream()));
}

void lif_link_set_clock(struct lif_clock *clock, struct lif_clock value) {
  set_clock<<<1, 1, 0, gpu_stream()>>>(clock, value);
  CHECK_CUDA(cudaGetLastError());
}
