/* LIF on the device: one persistent kernel for many steps.
 *
 * A block owns words of 32 neurons, dealt out in turns so that neighbouring hubs part. A step is: integrate
 * own neurons, send own spikes along their edges, meet the other blocks at a barrier. One barrier a batch of
 * min_delay steps is enough, because the ring has room for a batch more than the longest delay: nobody's
 * arrivals land in a slot that somebody still reads. Sums are integers, so the order of the atomic additions
 * never shows. */
#include "lif_device.h"
#include "lif_barrier.cuh"
#include "lif_neuron.cuh"
#include "lif_send.cuh"

using namespace lif;

namespace {

/* ---- many steps ---- */

/* What a launch has to reckon with; STREAMED: edges in host memory; TOGETHER: several trials, edges anywhere.
 */
enum way { PLAIN, STREAMED, TOGETHER };

/* The neuron of this lane in a word; none: i = n. */
template <way WAY> __device__ __forceinline__ place place_of(const lif_device &d, int word, int lane) {
  if (WAY != TOGETHER) return place(word * WARP + lane);
  const int trial = word / d.n_words;
  if (trial >= d.n_trials) return place(d.n);
  return place((word - trial * d.n_words) * WARP + lane, trial * d.n_words * WARP, trial);
}

/* A launch's counts to the device's; where trials run together they stand in shared memory. */
template <bool GENERAL>
__device__ __forceinline__ void add_up(const lif_device &d, shared &s, const tally &sent) {
  if (!GENERAL) {
    if (threadIdx.x % WARP == 0 && sent.spikes)
      atomicAdd(d.tally + LIF_SENT, (unsigned long long)sent.spikes);
    if (sent.events) atomicAdd(d.tally + LIF_EVENTS, sent.events);
    return;
  }
  __syncthreads();
  const unsigned long long *all = s.sent[0];
  for (int k = threadIdx.x; k < d.n_trials * LIF_TALLIES; k += THREADS)
    if (all[k]) atomicAdd(d.tally + k, all[k]);
}

__device__ __forceinline__ void clear(shared &s) {
  if (threadIdx.x == 0) s.reserved[0] = s.reserved[1] = 0, s.faulty = 0;
  for (int k = threadIdx.x; k < LIF_TRIALS * LIF_TALLIES; k += THREADS) s.sent[0][k] = 0;
  __syncthreads();
}

/* RESIDENT: a thread has at most PASS neurons and keeps them in registers, where their edges are in shared
 * memory. What does not depend on the others (the stimuli of the next step, the masks) is done while the
 * barrier is on its way. */
template <class SUM, bool RESIDENT, way WAY>
__global__ void __launch_bounds__(THREADS, 1)
    run_kernel(const __grid_constant__ lif_device d, int64_t t0, int n_steps, bool delivers, uint32_t *mask) {
  constexpr bool GENERAL = WAY != PLAIN;
  extern __shared__ __align__(16) char memory[];
  shared &s = *(shared *)memory;
  if (*d.fault != NO_FAULT) return;
  clear(s);
  const int lane = threadIdx.x % WARP, words_a_turn = gridDim.x * WARPS;
  const int first_word = (threadIdx.x / WARP) * gridDim.x + blockIdx.x;
  const int n_words = WAY == TOGETHER ? d.n_words * d.n_trials : d.n_words;
  const int n_passes = RESIDENT ? 1 : (n_words + PASS * words_a_turn - 1) / (PASS * words_a_turn);
  fault f = {NO_FAULT, 0};
  tally sent = {0, 0};
  int slot = (int)(t0 % d.slots), turn = 0;
  unsigned barrier = 0;
  bool stop = false;
  neuron own[PASS];
#pragma unroll
  for (int u = 0; u < PASS && RESIDENT; u++) {
    const place p = place_of<WAY>(d, first_word + u * words_a_turn, lane);
    own[u] = take(d, p);
    prepare(d, p, t0, own[u]);
    const span e = span_of(d, d.first + p.i, p.i < d.n);
    s.own_first[u * THREADS + threadIdx.x] = e.first, s.own_n[u * THREADS + threadIdx.x] = e.n;
  }
  for (int k = 0; k < n_steps; k++) {
    SUM *due = (SUM *)d.ring + (int64_t)slot * d.width;
    unsigned fired_here[PASS];
    for (int pass = 0; pass < n_passes; pass++) {
      int64_t mine[PASS];
#pragma unroll
      for (int u = 0; u < PASS; u++) {
        const int word = first_word + (pass * PASS + u) * words_a_turn;
        const place p = place_of<WAY>(d, word, lane);
        if (!RESIDENT) {
          own[u] = take(d, p);
          prepare(d, p, t0 + k, own[u]);
        }
        const bool fired = p.i < d.n && step_neuron<SUM>(d, p, k, due, own[u], f);
        fired_here[u] = __ballot_sync(ALL, fired);
        const bool sends = fired && delivers && !(own[u].mute & LIF_MUTED_ON_DEVICE);
        const int at = u * THREADS + threadIdx.x;
        const span e = RESIDENT ? span{s.own_first[at], s.own_n[at]} : span_of(d, d.first + p.i, sends);
        mine[u] = enlist_span<GENERAL>(d, s, sender{d.first + p.i, p.trial, sends}, e, turn, sent);
        if (!RESIDENT) {
          put(d, p, own[u]);
          if (lane == 0 && word < n_words) mask[(int64_t)k * n_words + word] = fired_here[u];
        }
      }
      if (f.key != NO_FAULT) s.faulty = 1;
      const int next = turn == 2 ? 0 : turn + 1;
      if (threadIdx.x == 0) s.reserved[next] = 0;
      __syncthreads();
      const unsigned long long reserved = s.reserved[turn];
      turn = next;
      if (reserved) {
        send<SUM, GENERAL>(d, s, (int)(reserved >> 32), 0, (uint32_t)reserved, slot);
        __syncthreads();
#pragma unroll
        for (int u = 0; u < PASS && GENERAL; u++) {
          const place p = place_of<WAY>(d, first_word + (pass * PASS + u) * words_a_turn, lane);
          publish(d.host, d.first + p.i, mine[u]);
        }
      }
    }
    if (++slot == d.slots) slot = 0;
    const bool batch_ends = (k + 1) % d.min_delay == 0 || k + 1 == n_steps;
    if (batch_ends) arrive(d, s, barrier);
#pragma unroll
    for (int u = 0; u < PASS && RESIDENT; u++) {
      const int word = first_word + u * words_a_turn;
      if (lane == 0 && word < n_words) mask[(int64_t)k * n_words + word] = fired_here[u];
      prepare(d, place_of<WAY>(d, word, lane), t0 + k + 1, own[u]);
    }
    if (!batch_ends) continue;
    stop = wait_for_all(d, s, barrier++);
    if (stop) break;
  }
#pragma unroll
  for (int u = 0; u < PASS && RESIDENT; u++)
    put(d, place_of<WAY>(d, first_word + u * words_a_turn, lane), own[u]);
  add_up<GENERAL>(d, s, sent);
  /* every fault of the batch is known now; the thread that met the smallest says what did not fit */
  if (!stop) return;
  if (f.key != NO_FAULT) atomicMin(d.fault, f.key);
  __syncthreads();
  arrive(d, s, barrier);
  wait_for_all(d, s, barrier);
  if (f.key != NO_FAULT && f.key == *(volatile unsigned long long *)d.fault) *d.fault_value = f.value;
}

/* ---- spikes of other ranks ---- */

constexpr int DELIVER_THREADS = 256;

template <class SUM>
__global__ void __launch_bounds__(DELIVER_THREADS)
    deliver_kernel(const __grid_constant__ lif_device d, int slot, int64_t n_spikes, const uint32_t *row) {
  const int lane = threadIdx.x % WARP;
  const int64_t warps = (int64_t)gridDim.x * (DELIVER_THREADS / WARP);
  const uint2 *out = d.host.edge ? d.host.edge : d.out;
  for (int64_t k = ((int64_t)blockIdx.x * DELIVER_THREADS + threadIdx.x) / WARP; k < n_spikes; k += warps)
    for (int64_t e = d.out_ptr[row[k]] + lane, end = d.out_ptr[row[k] + 1]; e < end; e += WARP)
      send_edge<SUM>(d, __ldcs(out + e), slot);
}

} // namespace

template <class SUM, way WAY> static const void *kernel_of(bool resident) {
  return resident ? (const void *)run_kernel<SUM, true, WAY> : (const void *)run_kernel<SUM, false, WAY>;
}

template <class SUM> static const void *kernel_for(const struct lif_device *d, int n_blocks) {
  const bool resident = d->n_words * d->n_trials <= PASS * WARPS * n_blocks;
  if (d->width > d->n) return kernel_of<SUM, TOGETHER>(resident);
  return d->host.edge ? kernel_of<SUM, STREAMED>(resident) : kernel_of<SUM, PLAIN>(resident);
}

int lif_device_trials(int32_t n) {
  const int n_words = n > 0 ? (n + WARP - 1) / WARP : 1, trials = PASS * WARPS * gpu_processors() / n_words;
  return trials < 1 ? 1 : trials < LIF_TRIALS ? trials : LIF_TRIALS;
}

int lif_device_blocks(const struct lif_device *d) {
  const int wanted = (d->n_words * d->n_trials + 7) / 8; /* small nets: fewer blocks meet faster */
  return wanted < 1 ? 1 : wanted < gpu_processors() ? wanted : gpu_processors();
}

void lif_device_run(const struct lif_device *d, int n_blocks, int64_t t, int n, bool delivers,
                    uint32_t *mask) {
  const void *kernel = d->wide ? kernel_for<int64_t>(d, n_blocks) : kernel_for<int32_t>(d, n_blocks);
  void *args[] = {(void *)d, &t, &n, &delivers, &mask};
  CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes()));
  CHECK_CUDA(cudaMemsetAsync(d->arrived, 0, 3 * sizeof *d->arrived, gpu_stream()));
  CHECK_CUDA(
      cudaLaunchCooperativeKernel(kernel, dim3(n_blocks), dim3(THREADS), args, shared_bytes(), gpu_stream()));
}

void lif_device_deliver(const struct lif_device *d, int64_t t, int64_t n_spikes, const uint32_t *row) {
  if (n_spikes == 0) return;
  const int slot = (int)(t % d->slots);
  const int64_t wanted = (n_spikes + DELIVER_THREADS / WARP - 1) / (DELIVER_THREADS / WARP);
  const unsigned blocks = (unsigned)(wanted < 8 * gpu_processors() ? wanted : 8 * gpu_processors());
  if (d->wide)
    deliver_kernel<int64_t><<<blocks, DELIVER_THREADS, 0, gpu_stream()>>>(*d, slot, n_spikes, row);
  else
    deliver_kernel<int32_t><<<blocks, DELIVER_THREADS, 0, gpu_stream()>>>(*d, slot, n_spikes, row);
  CHECK_CUDA(cudaGetLastError());
}
