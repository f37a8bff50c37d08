/* LIF on the device: one persistent kernel for many steps.
 *
 * A block owns words of 32 neurons, dealt out in turns so that neighbouring hubs part. A step is: integrate
 * own neurons, send own spikes along their edges, meet the other blocks at a barrier. One barrier a batch of
 * min_delay steps is enough, because the ring has room for a batch more than the longest delay: nobody's
 * arrivals land in a slot that somebody still reads. Sums are integers, so the order of the atomic additions
 * never shows. */
#include "lif_device.h"
#include "rng.h"

namespace {

constexpr int THREADS = 1024, WARP = 32, WARPS = THREADS / WARP;
constexpr int PASS = 2;     /* neurons that a thread integrates before the block delivers */
constexpr int PIECE = WARP; /* edges of a spike that a warp sends at once ... */
constexpr int AHEAD = 4;    /* ... of so many pieces together */
constexpr unsigned ALL = ~0u;
constexpr unsigned long long NO_FAULT = ~0ull;
constexpr int PHASE_BIT = 48, STEP_BIT = 49;

struct shared {
  lif_spike list[LIF_BLOCK_ROOM];
  unsigned long long
      reserved[3]; /* pieces, and above bit 32 spikes; three take turns: in use, being read, cleared */
  int faulty, stop;
};

static_assert(PASS * THREADS <= LIF_BLOCK_ROOM, "a pass fits the list");

struct fault {
  unsigned long long key;
  int64_t value;
};

__device__ void note(fault &f, int64_t offset, int phase, int64_t node, int64_t value) {
  const unsigned long long key = (unsigned long long)offset << STEP_BIT |
                                 (unsigned long long)phase << PHASE_BIT | (unsigned long long)node;
  if (key < f.key) f.key = key, f.value = value;
}

__device__ bool fits(int64_t x) {
  return x == (int32_t)x;
}

__device__ bool listed(const int64_t *step, int64_t n, int64_t t) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (step[middle] < t)
      low = middle + 1;
    else
      high = middle;
  }
  return low < n && step[low] == t;
}

/* One neuron while its block works on it. */
struct neuron {
  int32_t v;
  uint32_t counter;
  uint32_t mute;
  uint32_t touch, touch_end; /* stimuli that are not over */
  int64_t first_touch;       /* the step at which the first of them begins */
  int64_t stimuli;           /* what they add at the coming step */
  bool fires;                /* one of them makes it fire */
};

constexpr int64_t NEVER = INT64_MAX;

__device__ __forceinline__ neuron take(const lif_device &d, int i) {
  neuron c = {};
  c.first_touch = NEVER;
  if (i >= d.n) return c;
  c.v = d.potential[i], c.counter = d.counter[i];
  if (d.mute) c.mute = d.mute[i];
  if (d.touch_ptr) {
    c.touch = d.touch_now[i], c.touch_end = d.touch_ptr[i + 1];
    if (c.touch < c.touch_end) c.first_touch = d.touch[c.touch].first_step;
  }
  return c;
}

__device__ __forceinline__ void put(const lif_device &d, int i, const neuron &c) {
  if (i >= d.n) return;
  d.potential[i] = c.v, d.counter[i] = (uint16_t)c.counter;
  if (d.touch_ptr) d.touch_now[i] = c.touch;
}

__device__ bool hits(const lif_device &d, const lif_device_stimulus &s, int i, int64_t t) {
  const uint64_t id = (uint64_t)d.id[i];
  const rng_block r = rng_draw((uint64_t)d.seed, (uint32_t)id, (uint32_t)t,
                               (uint32_t)s.index | (uint32_t)(id >> 32) << 16, d.trial);
  return (((uint64_t)r.v[0] << 32 | r.v[1]) >> 11) < s.limit;
}

__device__ bool is_over(const lif_touch &touch, int64_t t) {
  return touch.more_steps != ~0u && touch.first_step + touch.more_steps < t;
}

/* The stimuli of step t, some of which have begun. */
__device__ __forceinline__ void meet_stimuli(const lif_device &d, int i, int64_t t, neuron &c) {
  while (c.touch < c.touch_end && is_over(d.touch[c.touch], t)) c.touch++;
  c.first_touch = c.touch < c.touch_end ? d.touch[c.touch].first_step : NEVER;
  for (uint32_t at = c.touch; at < c.touch_end; at++) {
    const lif_touch touch = d.touch[at];
    if (touch.first_step > t) break;
    if (is_over(touch, t)) continue;
    if (touch.stimulus == LIF_FIRES) {
      c.fires = true;
      continue;
    }
    const lif_device_stimulus &s = d.stimulus[touch.stimulus];
    if (s.kind == LIF_CURRENT_ON_DEVICE) c.stimuli += s.value;
    if (s.kind == LIF_SPIKES_ON_DEVICE) c.fires |= listed(s.step, s.n_steps, t);
    if (s.kind == LIF_POISSON_ON_DEVICE && hits(d, s, i, t)) c.stimuli += s.value;
  }
}

__device__ __forceinline__ void prepare(const lif_device &d, int i, int64_t t, neuron &c) {
  c.stimuli = 0, c.fires = false;
  if (t >= c.first_touch) meet_stimuli(d, i, t, c);
}

/* One step; true when the neuron spikes. lif_backend.h has the rules. */
template <class SUM>
__device__ __forceinline__ bool step_neuron(const lif_device &d, int i, int64_t offset, SUM *slot, neuron &c,
                                            fault &f) {
  const SUM due = __ldcg(slot + i);
  if (due) slot[i] = 0;
  const bool removed = c.mute & LIF_REMOVED_ON_DEVICE;
  const int64_t input = removed ? 0 : due + c.stimuli;
  bool fires = c.fires && !removed;
  if (!fits(input)) {
    note(f, offset, 0, d.id[i], input);
    return false;
  }
  if (!fires && c.counter > 0) {
    c.v = d.reset, c.counter--;
    return false;
  }
  if (!fires) {
    const int64_t sum = c.v + input;
    if (!fits(sum)) {
      note(f, offset, 1, d.id[i], sum);
      return false;
    }
    c.v = (int32_t)sum;
    for (int k = 0; k < d.n_shifts; k++) c.v -= c.v >> d.shift[k];
    fires = c.v >= d.threshold && !removed;
  }
  if (fires) c.v = d.reset, c.counter = d.refractory;
  return fires;
}

/* ---- spikes out ---- */

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

/* ---- the barrier ---- */

/* A word counts the blocks that arrived, and above bit 32 those that met a fault. Barriers use three words in
 * turn, so that a word stays as it is until everybody has read it. */
constexpr int FAULT_BIT = 32;

/* Thread 0 tells the other blocks that this one has come to barrier n; whoever hears of it sees all additions
 * that the block made before. Behind a __syncthreads. */
__device__ __forceinline__ void arrive(const lif_device &d, const shared &s, unsigned n) {
  if (threadIdx.x != 0) return;
  __threadfence();
  atomicAdd(d.arrived + n % 3, 1ull | (unsigned long long)(s.faulty != 0) << FAULT_BIT);
}

/* Waits for the others. Whether some block met a fault: the same answer in every block. */
__device__ __forceinline__ bool wait_for_all(const lif_device &d, shared &s, unsigned n) {
  if (threadIdx.x == 0) {
    unsigned long long now;
    do {
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(d.arrived + n % 3) : "memory");
    } while ((unsigned)now < gridDim.x);
    s.stop = now >> FAULT_BIT != 0;
    if (blockIdx.x == 0) d.arrived[(n + 2) % 3] = 0; /* the word of barrier n - 1, which all have read */
  }
  __syncthreads();
  return s.stop;
}

/* ---- many steps ---- */

/* RESIDENT: a thread has at most PASS neurons and keeps them in registers. What does not depend on the others
 * (the stimuli of the next step, the masks) is done while the barrier is on its way. */
template <class SUM, bool RESIDENT>
__global__ void __launch_bounds__(THREADS, 1)
    run_kernel(const __grid_constant__ lif_device d, int64_t t0, int n_steps, bool delivers, uint32_t *mask) {
  extern __shared__ __align__(16) char memory[];
  shared &s = *(shared *)memory;
  if (*d.fault != NO_FAULT) return;
  if (threadIdx.x == 0) s.reserved[0] = s.reserved[1] = 0, s.faulty = 0;
  __syncthreads();
  const int lane = threadIdx.x % WARP, words_a_turn = gridDim.x * WARPS;
  const int first_word = (threadIdx.x / WARP) * gridDim.x + blockIdx.x;
  const int n_passes = RESIDENT ? 1 : (d.n_words + PASS * words_a_turn - 1) / (PASS * words_a_turn);
  fault f = {NO_FAULT, 0};
  tally sent = {0, 0};
  int slot = (int)(t0 % d.slots), turn = 0;
  unsigned barrier = 0;
  bool stop = false;
  neuron own[PASS];
#pragma unroll
  for (int u = 0; u < PASS && RESIDENT; u++) {
    const int i = (first_word + u * words_a_turn) * WARP + lane;
    own[u] = take(d, i);
    prepare(d, i, t0, own[u]);
  }
  for (int k = 0; k < n_steps; k++) {
    SUM *due = (SUM *)d.ring + (int64_t)slot * d.n;
    unsigned fired_here[PASS];
    for (int pass = 0; pass < n_passes; pass++) {
#pragma unroll
      for (int u = 0; u < PASS; u++) {
        const int word = first_word + (pass * PASS + u) * words_a_turn, i = word * WARP + lane;
        if (!RESIDENT) {
          own[u] = take(d, i);
          prepare(d, i, t0 + k, own[u]);
        }
        const bool fired = i < d.n && step_neuron<SUM>(d, i, k, due, own[u], f);
        fired_here[u] = __ballot_sync(ALL, fired);
        enlist(d, s, i, fired && delivers && !(own[u].mute & LIF_MUTED_ON_DEVICE), turn, sent);
        if (!RESIDENT) {
          put(d, i, own[u]);
          if (lane == 0 && word < d.n_words) mask[(int64_t)k * d.n_words + word] = fired_here[u];
        }
      }
      if (f.key != NO_FAULT) s.faulty = 1;
      const int next = turn == 2 ? 0 : turn + 1;
      if (threadIdx.x == 0) s.reserved[next] = 0;
      __syncthreads();
      const unsigned long long reserved = s.reserved[turn];
      turn = next;
      if (reserved) {
        send<SUM>(d, s, (int)(reserved >> 32), 0, (uint32_t)reserved, slot);
        __syncthreads();
      }
    }
    if (++slot == d.slots) slot = 0;
    const bool batch_ends = (k + 1) % d.min_delay == 0 || k + 1 == n_steps;
    if (batch_ends) arrive(d, s, barrier);
#pragma unroll
    for (int u = 0; u < PASS && RESIDENT; u++) {
      const int word = first_word + u * words_a_turn;
      if (lane == 0 && word < d.n_words) mask[(int64_t)k * d.n_words + word] = fired_here[u];
      prepare(d, word * WARP + lane, t0 + k + 1, own[u]);
    }
    if (!batch_ends) continue;
    stop = wait_for_all(d, s, barrier++);
    if (stop) break;
  }
#pragma unroll
  for (int u = 0; u < PASS && RESIDENT; u++) put(d, (first_word + u * words_a_turn) * WARP + lane, own[u]);
  if (lane == 0 && sent.spikes) atomicAdd(d.tally, (unsigned long long)sent.spikes);
  if (sent.events) atomicAdd(d.tally + 1, sent.events);
  /* every fault of the batch is known now; the thread that met the smallest says what did not fit */
  if (!stop) return;
  if (f.key != NO_FAULT) atomicMin(d.fault, f.key);
  __syncthreads();
  arrive(d, s, barrier);
  wait_for_all(d, s, barrier);
  if (f.key != NO_FAULT && f.key == *(volatile unsigned long long *)d.fault) *d.fault_value = f.value;
}

/* ---- lists from masks ---- */

constexpr int LIST_THREADS = 256;

__device__ int block_sum(int x, int *room) {
  for (int b = WARP / 2; b > 0; b /= 2) x += __shfl_xor_sync(ALL, x, b);
  if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = x;
  __syncthreads();
  int sum = 0;
  for (int w = 0; w < LIST_THREADS / WARP; w++) sum += room[w];
  __syncthreads();
  return sum;
}

__global__ void __launch_bounds__(LIST_THREADS)
    count_kernel(int n_words, const uint32_t *mask, int32_t *count) {
  __shared__ int room[LIST_THREADS / WARP];
  const uint32_t *mine = mask + (int64_t)blockIdx.x * n_words;
  int n = 0;
  for (int w = threadIdx.x; w < n_words; w += LIST_THREADS) n += __popc(mine[w]);
  n = block_sum(n, room);
  if (threadIdx.x == 0) count[blockIdx.x] = n;
}

/* Each thread lists a run of words; where it begins follows from the counts of the threads before it. */
__global__ void __launch_bounds__(LIST_THREADS)
    list_kernel(int n_words, int64_t first, const uint32_t *mask, const int32_t *count, uint32_t *row) {
  __shared__ int room[LIST_THREADS / WARP], before[LIST_THREADS];
  const uint32_t *mine = mask + (int64_t)blockIdx.x * n_words;
  const int step = blockIdx.x, run = (n_words + LIST_THREADS - 1) / LIST_THREADS;
  if (count[step] == 0) return;
  int64_t base = 0;
  for (int k = threadIdx.x; k < step; k += LIST_THREADS) base += count[k];
  base = block_sum((int)base, room);
  const int from = threadIdx.x * run, to = min(from + run, n_words);
  int n = 0;
  for (int w = from; w < to; w++) n += __popc(mine[w]);
  before[threadIdx.x] = n;
  __syncthreads();
  for (int d = 1; d < LIST_THREADS; d *= 2) {
    const int add_here = (int)threadIdx.x >= d ? before[threadIdx.x - d] : 0;
    __syncthreads();
    before[threadIdx.x] += add_here;
    __syncthreads();
  }
  uint32_t *at = row + base + before[threadIdx.x] - n;
  for (int w = from; w < to; w++)
    for (uint32_t bits = mine[w]; bits; bits &= bits - 1)
      *at++ = (uint32_t)(first + (int64_t)w * WARP + __ffs(bits) - 1);
}

/* ---- spikes of other ranks ---- */

template <class SUM>
__global__ void __launch_bounds__(LIST_THREADS)
    deliver_kernel(const __grid_constant__ lif_device d, int slot, int64_t n_spikes, const uint32_t *row) {
  const int lane = threadIdx.x % WARP;
  const int64_t warps = (int64_t)gridDim.x * (LIST_THREADS / WARP);
  for (int64_t k = ((int64_t)blockIdx.x * LIST_THREADS + threadIdx.x) / WARP; k < n_spikes; k += warps)
    for (int64_t e = d.out_ptr[row[k]] + lane, end = d.out_ptr[row[k] + 1]; e < end; e += WARP)
      send_edge<SUM>(d, __ldcs(d.out + e), slot);
}

} // namespace

int lif_device_blocks(const struct lif_device *d) {
  const int wanted = (d->n_words + 7) / 8; /* small nets: fewer blocks meet faster */
  return wanted < 1 ? 1 : wanted < gpu_processors() ? wanted : gpu_processors();
}

void lif_device_run(const struct lif_device *d, int n_blocks, int64_t t, int n, bool delivers,
                    uint32_t *mask) {
  const bool resident = d->n_words <= PASS * WARPS * n_blocks;
  const void *narrow =
      resident ? (const void *)run_kernel<int32_t, true> : (const void *)run_kernel<int32_t, false>;
  const void *wide =
      resident ? (const void *)run_kernel<int64_t, true> : (const void *)run_kernel<int64_t, false>;
  const void *kernel = d->wide ? wide : narrow;
  void *args[] = {(void *)d, &t, &n, &delivers, &mask};
  CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(shared)));
  CHECK_CUDA(cudaMemsetAsync(d->arrived, 0, 3 * sizeof *d->arrived, gpu_stream()));
  CHECK_CUDA(
      cudaLaunchCooperativeKernel(kernel, dim3(n_blocks), dim3(THREADS), args, sizeof(shared), gpu_stream()));
}

void lif_device_list(const struct lif_device *d, int n, const uint32_t *mask, int32_t *count, uint32_t *row) {
  count_kernel<<<n, LIST_THREADS, 0, gpu_stream()>>>(d->n_words, mask, count);
  CHECK_CUDA(cudaGetLastError());
  list_kernel<<<n, LIST_THREADS, 0, gpu_stream()>>>(d->n_words, d->first, mask, count, row);
  CHECK_CUDA(cudaGetLastError());
}

void lif_device_deliver(const struct lif_device *d, int64_t t, int64_t n_spikes, const uint32_t *row) {
  if (n_spikes == 0) return;
  const int slot = (int)(t % d->slots);
  const int64_t wanted = (n_spikes + LIST_THREADS / WARP - 1) / (LIST_THREADS / WARP);
  const unsigned blocks = (unsigned)(wanted < 8 * gpu_processors() ? wanted : 8 * gpu_processors());
  if (d->wide)
    deliver_kernel<int64_t><<<blocks, LIST_THREADS, 0, gpu_stream()>>>(*d, slot, n_spikes, row);
  else
    deliver_kernel<int32_t><<<blocks, LIST_THREADS, 0, gpu_stream()>>>(*d, slot, n_spikes, row);
  CHECK_CUDA(cudaGetLastError());
}
