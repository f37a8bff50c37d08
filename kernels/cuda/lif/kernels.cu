/* LIF on the device: one persistent kernel for many steps.
 *
 * A block owns words of 32 neurons, assigned round-robin so that neighbouring hubs part. A step is:
 * integrate own neurons, send own spikes along their edges, meet the other blocks at a barrier. One
 * barrier a batch of min_delay steps is enough, because the ring has room for a batch more than the
 * longest delay: nobody's arrivals land in a slot that somebody still reads. Sums are integers, so
 * the order of the atomic additions never shows. */
#include "device.h"
#include "launch.cuh"

using namespace lif;

namespace {

/* ---- many steps ---- */

/* What a launch has to reckon with; STREAMED: edges in host memory; TOGETHER: several trials, edges
 * anywhere.
 */
enum mode { PLAIN, STREAMED, TOGETHER };

/* The neuron of this lane in a word; none: i = n. */
template <mode MODE>
__device__ __forceinline__ place place_of(const lif_device &d, int word, int lane) {
  if (MODE != TOGETHER) return place(word * WARP + lane);
  const int trial = word / d.n_words;
  if (trial >= d.n_trials) return place(d.n);
  return place((word - trial * d.n_words) * WARP + lane, trial * d.n_words * WARP, trial);
}

/* Words go to the warps round-robin. */
__device__ __forceinline__ int word_of(int pass, int u) {
  return ((pass * PASS + u) * WARPS + threadIdx.x / WARP) * gridDim.x + blockIdx.x;
}

template <mode MODE>
__device__ __forceinline__ void take_own(const lif_device &d, shared &s, int64_t t0,
                                         neuron (&own)[PASS], due_stimuli *kept) {
#pragma unroll
  for (int u = 0; u < PASS; u++) {
    const place p = place_of<MODE>(d, word_of(0, u), threadIdx.x % WARP);
    keep(d, s, p, u, t0, own[u], kept[MODE == PLAIN ? u * THREADS : u]);
  }
}

/* RESIDENT: a thread has at most PASS neurons and keeps them in registers, where their edges are in
 * shared memory. What does not depend on the others (the stimuli of the next step, the masks) is
 * done while the barrier is on its way. */
template <class SUM, bool RESIDENT, mode MODE>
__global__ void __launch_bounds__(THREADS, 1)
    run_kernel(const __grid_constant__ lif_device d, int64_t t0, int n_steps, bool delivers,
               uint32_t *mask) {
  constexpr bool GENERAL = MODE != PLAIN;
  constexpr int STRIDE = RESIDENT && !GENERAL ? THREADS : 1; /* of a thread's stimuli */
  extern __shared__ __align__(16) char memory[];
  shared &s = *(shared *)memory;
  if (*d.fault != NO_FAULT) return;
  clear<GENERAL>(s);
  __syncthreads();
  const int lane = threadIdx.x % WARP;
  const int a_pass = PASS * WARPS * gridDim.x;
  const int n_words = MODE == TOGETHER ? d.n_words * d.n_trials : d.n_words;
  const int n_passes = RESIDENT ? 1 : (n_words + a_pass - 1) / a_pass;
  fault f = {NO_FAULT, 0};
  queue q = {0, 0, 0};
  int slot = (int)(t0 % d.slots);
  unsigned barrier = 0;
  bool stop = false;
  neuron own[PASS];
  due_stimuli passing[PASS], *kept = STRIDE > 1 ? due_stimuli_of<OWN>(d, s) + threadIdx.x : passing;
  if (RESIDENT) take_own<MODE>(d, s, t0, own, kept);
  for (int k = 0; k < n_steps; k++) {
    SUM *sums = (SUM *)d.ring + (int64_t)slot * d.width;
    unsigned fired_here[PASS];
    bool sent_last = false;
    for (int pass = 0; pass < n_passes; pass++) {
      int64_t mine[PASS];
      SUM due[PASS];
#pragma unroll
      for (int u = 0; u < PASS; u++)
        due[u] = due_at(d, place_of<MODE>(d, word_of(pass, u), lane), sums);
#pragma unroll
      for (int u = 0; u < PASS; u++) {
        const int word = word_of(pass, u);
        const place p = place_of<MODE>(d, word, lane);
        const int at = u * THREADS + threadIdx.x;
        due_stimuli &a = kept[u * STRIDE];
        if (!RESIDENT) {
          own[u] = take(d, p, t0, a);
          prepare(d, p, t0, k, own[u], a);
        }
        bool faulty = false;
        const bool fired = p.i < d.n && step_neuron(d, p, k, sums, due[u], own[u], a, f, faulty);
        if (faulty) s.faulty = 1;
        fired_here[u] = __ballot_sync(ALL, fired);
        const bool sends = fired && delivers && !(own[u].state & MUTED);
        const span e =
            RESIDENT ? span{s.own_first[at], s.own_n[at]} : span_of(d, d.first + p.i, sends);
        mine[u] = enlist<GENERAL, OWN>(d, s, q, sender{d.first + p.i, p.trial, sends}, e);
        if (!RESIDENT) {
          put(d, p, own[u], a);
          if (lane == 0 && word < n_words) mask[(int64_t)k * n_words + word] = fired_here[u];
        }
      }
      sent_last = send_listed<SUM, GENERAL, false, OWN>(d, s, q, slot);
      if (!GENERAL || !sent_last) continue;
      __syncthreads();
#pragma unroll
      for (int u = 0; u < PASS; u++) {
        const place p = place_of<MODE>(d, word_of(pass, u), lane);
        publish(d.host, d.first + p.i, mine[u]);
      }
    }
    if (++slot == d.slots) slot = 0;
    const bool batch_ends = (k + 1) % d.min_delay == 0 || k + 1 == n_steps;
    if (batch_ends && sent_last && !GENERAL) __syncthreads();
    if (batch_ends) arrive(d, s, barrier);
#pragma unroll
    for (int u = 0; u < PASS && RESIDENT; u++) {
      const int word = word_of(0, u);
      if (lane == 0 && word < n_words) mask[(int64_t)k * n_words + word] = fired_here[u];
      prepare(d, place_of<MODE>(d, word, lane), t0, k + 1, own[u], kept[u * STRIDE]);
    }
    if (!batch_ends) continue;
    stop = wait_for_all(d, s, barrier++);
    if (stop) break;
  }
#pragma unroll
  for (int u = 0; u < PASS && RESIDENT; u++)
    put(d, place_of<MODE>(d, word_of(0, u), lane), own[u], kept[u * STRIDE]);
  add_up<GENERAL>(d, s);
  if (stop) report(d, s, barrier, f, false);
}

/* ---- spikes of other ranks ---- */

constexpr int DELIVER_THREADS = 256;

template <class SUM>
__global__ void __launch_bounds__(DELIVER_THREADS)
    deliver_kernel(const __grid_constant__ lif_device d, int slot, int64_t n_spikes,
                   const uint32_t *row) {
  const int lane = threadIdx.x % WARP;
  const int64_t warps = (int64_t)gridDim.x * (DELIVER_THREADS / WARP);
  const uint2 *out = d.host.edge ? d.host.edge : d.out;
  for (int64_t k = ((int64_t)blockIdx.x * DELIVER_THREADS + threadIdx.x) / WARP; k < n_spikes;
       k += warps)
    for (int64_t e = d.out_ptr[row[k]] + lane, end = d.out_ptr[row[k] + 1]; e < end; e += WARP)
      send_edge<SUM>(d, __ldcs(out + e), slot);
}

} // namespace

template <class SUM, mode MODE> static const void *kernel_of(bool resident) {
  return resident ? (const void *)run_kernel<SUM, true, MODE>
                  : (const void *)run_kernel<SUM, false, MODE>;
}

template <class SUM> static const void *kernel_for(const struct lif_device *d, int n_blocks) {
  const bool resident = d->n_words * d->n_trials <= PASS * WARPS * n_blocks;
  if (d->width > d->n) return kernel_of<SUM, TOGETHER>(resident);
  return d->host.edge ? kernel_of<SUM, STREAMED>(resident) : kernel_of<SUM, PLAIN>(resident);
}

int lif_device_trials(int32_t n) {
  const int n_words = n > 0 ? (n + WARP - 1) / WARP : 1,
            trials = PASS * WARPS * gpu_processors() / n_words;
  return trials < 1 ? 1 : trials < LIF_TRIALS ? trials : LIF_TRIALS;
}

int lif_device_blocks(const struct lif_device *d) {
  const int wanted = (d->n_words * d->n_trials + 7) / 8; /* small nets: fewer blocks meet faster */
  return wanted < 1 ? 1 : wanted < gpu_processors() ? wanted : gpu_processors();
}

void lif_device_run(const struct lif_device *d, int n_blocks, int64_t t, int n, bool delivers,
                    uint32_t *mask) {
  const void *kernel =
      d->wide ? kernel_for<int64_t>(d, n_blocks) : kernel_for<int32_t>(d, n_blocks);
  struct lif_device own = *d;
  own.two_lists = shared_bytes(OWN, 2) <= gpu_shared_bytes();
  const size_t bytes = shared_bytes(OWN, own.two_lists ? 2 : 1);
  void *args[] = {&own, &t, &n, &delivers, &mask};
  CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  CHECK_CUDA(cudaMemsetAsync(d->arrived, 0, 3 * sizeof *d->arrived, gpu_stream()));
  CHECK_CUDA(cudaLaunchCooperativeKernel(kernel, dim3(n_blocks), dim3(THREADS), args, bytes,
                                         gpu_stream()));
}

void lif_device_deliver(const struct lif_device *d, int64_t t, int64_t n_spikes,
                        const uint32_t *row) {
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
