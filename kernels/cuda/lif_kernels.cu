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
constexpr int PASS = 2;    /* neurons a thread integrates before the block delivers */
constexpr int PIECE = 128; /* edges of a spike that a warp takes at a time */
constexpr unsigned ALL = ~0u;
constexpr unsigned long long NO_FAULT = ~0ull;
constexpr int PHASE_BIT = 48, STEP_BIT = 49;

/* A spike on its way: its edges, and the number of its first piece among the block's. */
struct spike {
  int64_t first_edge;
  int32_t n_edges;
  uint32_t first_piece;
};

struct shared {
  spike list[PASS * THREADS];
  unsigned long long
      reserved[3]; /* pieces, and above bit 32 spikes; three take turns: in use, being read, cleared */
  unsigned long long n_sent, n_events;
  int faulty, stop;
};

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

/* What the stimuli add to neuron i at step t; `fires`: one of them makes it fire. */
__device__ __noinline__ int64_t stimuli_at(const lif_device &d, int i, int64_t t, bool &fires) {
  int64_t sum = 0;
  for (uint32_t at = d.touch_ptr[i]; at < d.touch_ptr[i + 1]; at++) {
    const lif_device_stimulus &s = d.stimulus[d.touch[at]];
    if (t < s.first_step || t > s.last_step) continue;
    if (s.kind == LIF_CURRENT_ON_DEVICE) sum += s.value;
    if (s.kind == LIF_SPIKES_ON_DEVICE) fires |= listed(s.step, s.n_steps, t);
    if (s.kind == LIF_POISSON_ON_DEVICE) {
      const uint64_t id = (uint64_t)d.id[i];
      const rng_block r = rng_draw((uint64_t)d.seed, (uint32_t)id, (uint32_t)t,
                                   (uint32_t)s.index | (uint32_t)(id >> 32) << 16, d.trial);
      if ((((uint64_t)r.v[0] << 32 | r.v[1]) >> 11) < s.limit) sum += s.value;
    }
  }
  return sum;
}

/* One neuron, one step; true when it spikes. lif_backend.h has the rules. */
template <class SUM>
__device__ __forceinline__ bool step_neuron(const lif_device &d, int i, int64_t t, int64_t offset, SUM *slot,
                                            fault &f) {
  const SUM due = __ldcg(slot + i);
  const int32_t before = d.potential[i];
  const uint16_t counter = d.counter[i];
  const bool removed = d.mute && d.mute[i] & LIF_REMOVED_ON_DEVICE;
  bool fires = false;
  int64_t input = due;
  if (due) slot[i] = 0;
  if (d.touch_ptr) input += stimuli_at(d, i, t, fires);
  if (removed) input = 0, fires = false;
  if (!fits(input)) {
    note(f, offset, 0, d.id[i], input);
    return false;
  }
  if (!fires && counter > 0) {
    d.potential[i] = d.reset, d.counter[i] = counter - 1;
    return false;
  }
  if (!fires) {
    const int64_t sum = before + input;
    if (!fits(sum)) {
      note(f, offset, 1, d.id[i], sum);
      return false;
    }
    int32_t v = (int32_t)sum;
    for (int k = 0; k < d.n_shifts; k++) v -= v >> d.shift[k];
    fires = v >= d.threshold && !removed;
    if (!fires && v != before) d.potential[i] = v;
  }
  if (fires) d.potential[i] = d.reset, d.counter[i] = d.refractory;
  return fires;
}

/* ---- spikes out ---- */

__device__ void add(int32_t *ring, int64_t at, int weight) {
  atomicAdd(ring + at, weight);
}

__device__ void add(int64_t *ring, int64_t at, int weight) {
  atomicAdd((unsigned long long *)ring + at, (unsigned long long)(long long)weight);
}

/* Up to PIECE edges by a warp: all loads first, so that they are in flight together. */
template <class SUM>
__device__ __forceinline__ void send_piece(const lif_device &d, int64_t first, int n, int slot, int lane) {
  uint2 edge[PIECE / WARP];
#pragma unroll
  for (int u = 0; u < PIECE / WARP; u++)
    if (u * WARP + lane < n) edge[u] = __ldg(d.out + first + u * WARP + lane);
#pragma unroll
  for (int u = 0; u < PIECE / WARP; u++)
    if (u * WARP + lane < n) {
      int to = slot + (int)(edge[u].y >> 16);
      if (to >= d.slots) to -= d.slots;
      add((SUM *)d.ring, (int64_t)to * d.n + edge[u].x, (int16_t)(edge[u].y & 0xffff));
    }
}

/* The last spike whose first piece is not behind `piece`. */
__device__ __forceinline__ int spike_of(const spike *list, int n, uint32_t piece) {
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

/* All pieces of the block's spikes, shared out among its warps. */
template <class SUM>
__device__ __forceinline__ void send(const lif_device &d, const shared &s, unsigned long long reserved,
                                     int slot) {
  const uint32_t n_pieces = (uint32_t)reserved;
  const int n_spikes = (int)(reserved >> 32), lane = threadIdx.x % WARP;
  for (uint32_t piece = threadIdx.x / WARP; piece < n_pieces; piece += WARPS) {
    const spike k = s.list[spike_of(s.list, n_spikes, piece)];
    const int done = (int)(piece - k.first_piece) * PIECE;
    send_piece<SUM>(d, k.first_edge + done, min(PIECE, k.n_edges - done), slot, lane);
  }
}

__device__ __forceinline__ void enlist(const lif_device &d, shared &s, int i, int turn) {
  if (d.mute && d.mute[i] & LIF_MUTED_ON_DEVICE) return;
  atomicAdd(&s.n_sent, 1ull);
  const int64_t first = d.out_ptr[i];
  const int32_t n = (int32_t)(d.out_ptr[i + 1] - first);
  if (n == 0) return;
  const unsigned long long pieces = (unsigned)(n + PIECE - 1) / PIECE;
  const unsigned long long before = atomicAdd(&s.reserved[turn], 1ull << 32 | pieces);
  s.list[before >> 32] = spike{first, n, (uint32_t)before};
  atomicAdd(&s.n_events, (unsigned long long)n);
}

/* ---- the barrier ---- */

/* All blocks of the grid meet, and all additions made before are seen after it. True when some block met a
 * fault. */
__device__ __forceinline__ bool meet(const lif_device &d, shared &s, unsigned target) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(d.arrived, 1ull | (unsigned long long)(s.faulty != 0) << 32);
    unsigned long long now;
    do {
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(d.arrived) : "memory");
    } while ((unsigned)now < target);
    s.stop = now >> 32 != 0;
  }
  __syncthreads();
  return s.stop != 0;
}

/* ---- many steps ---- */

template <class SUM>
__global__ void __launch_bounds__(THREADS, 1)
    run_kernel(const __grid_constant__ lif_device d, int64_t t0, int n_steps, bool delivers, uint32_t *mask) {
  extern __shared__ __align__(16) char memory[];
  shared &s = *(shared *)memory;
  if (*d.fault != NO_FAULT) return;
  if (threadIdx.x == 0) s.reserved[0] = s.reserved[1] = s.n_sent = s.n_events = 0, s.faulty = 0;
  __syncthreads();
  const int lane = threadIdx.x % WARP, words_a_turn = gridDim.x * WARPS;
  const int first_word = (threadIdx.x / WARP) * gridDim.x + blockIdx.x;
  const int n_passes = (d.n_words + PASS * words_a_turn - 1) / (PASS * words_a_turn);
  fault f = {NO_FAULT, 0};
  int slot = (int)(t0 % d.slots), turn = 0;
  unsigned met = 0;
  for (int k = 0; k < n_steps; k++) {
    SUM *due = (SUM *)d.ring + (int64_t)slot * d.n;
    for (int pass = 0; pass < n_passes; pass++) {
#pragma unroll
      for (int u = 0; u < PASS; u++) {
        const int word = first_word + (pass * PASS + u) * words_a_turn, i = word * WARP + lane;
        const bool fired = i < d.n && step_neuron<SUM>(d, i, t0 + k, k, due, f);
        const unsigned fired_here = __ballot_sync(ALL, fired);
        if (lane == 0 && word < d.n_words) mask[(int64_t)k * d.n_words + word] = fired_here;
        if (fired && delivers) enlist(d, s, i, turn);
      }
      if (f.key != NO_FAULT) s.faulty = 1;
      const int next = turn == 2 ? 0 : turn + 1;
      if (threadIdx.x == 0) s.reserved[next] = 0;
      __syncthreads();
      const unsigned long long reserved = s.reserved[turn];
      turn = next;
      if (reserved) {
        send<SUM>(d, s, reserved, slot);
        __syncthreads();
      }
    }
    if (++slot == d.slots) slot = 0;
    if ((k + 1) % d.min_delay == 0 || k + 1 == n_steps) {
      met += gridDim.x;
      if (!meet(d, s, met)) continue;
      break;
    }
  }
  if (threadIdx.x == 0 && s.n_sent) atomicAdd(d.tally, s.n_sent), atomicAdd(d.tally + 1, s.n_events);
  /* every fault of the batch is known now; the thread that met the smallest says what did not fit */
  if (!s.stop) return;
  if (f.key != NO_FAULT) atomicMin(d.fault, f.key);
  met += gridDim.x;
  meet(d, s, met);
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
    for (int64_t e = d.out_ptr[row[k]], end = d.out_ptr[row[k] + 1]; e < end; e += PIECE)
      send_piece<SUM>(d, e, (int)min((int64_t)PIECE, end - e), slot, lane);
}

} // namespace

int lif_device_blocks(const struct lif_device *d) {
  const int wanted = (d->n_words + 7) / 8; /* small nets: fewer blocks meet faster */
  return wanted < 1 ? 1 : wanted < gpu_processors() ? wanted : gpu_processors();
}

void lif_device_run(const struct lif_device *d, int n_blocks, int64_t t, int n, bool delivers,
                    uint32_t *mask) {
  const void *kernel = d->wide ? (const void *)run_kernel<int64_t> : (const void *)run_kernel<int32_t>;
  void *args[] = {(void *)d, &t, &n, &delivers, &mask};
  CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(shared)));
  CHECK_CUDA(cudaMemsetAsync(d->arrived, 0, sizeof *d->arrived, gpu_stream()));
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
