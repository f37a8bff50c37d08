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

/* ---- spikes of other ranks ---- */

constexpr int DELIVER_THREADS = 256;

template <class SUM>
__global__ void __launch_bounds__(DELIVER_THREADS)
    deliver_kernel(const __grid_constant__ lif_device d, int slot, int64_t n_spikes, const uint32_t *row) {
  const int lane = threadIdx.x % WARP;
  const int64_t warps = (int64_t)gridDim.x * (DELIVER_THREADS / WARP);
  for (int64_t k = ((int64_t)blockIdx.x * DELIVER_THREADS + threadIdx.x) / WARP; k < n_spikes; k += warps)
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
