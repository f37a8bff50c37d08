/* How a launch of many steps begins and ends. */
#ifndef FASCICLE_LIF_LAUNCH_CUH
#define FASCICLE_LIF_LAUNCH_CUH

#include "barrier.cuh"

namespace lif {

/* Nothing sent, nothing faulty. The caller lets all threads meet. */
template <bool GENERAL> __device__ __forceinline__ void clear(shared &s) {
  if (threadIdx.x < WARPS) s.sent[threadIdx.x] = tally{0, 0};
  if (threadIdx.x == 0) s.faulty = 0;
  for (int k = threadIdx.x; GENERAL && k < LIF_TRIALS * LIF_TALLIES; k += THREADS)
    s.sent_of[0][k] = 0;
}

/* The u-th neuron of a thread that keeps it for the launch, with its edges and stimuli at hand. */
__device__ __forceinline__ void keep(const lif_device &d, shared &s, place p, int u, int64_t t0,
                                     neuron &own, due_stimuli &a) {
  const int at = u * THREADS + threadIdx.x;
  own = take(d, p, t0, a);
  prepare(d, p, t0, 0, own, a);
  const span e = span_of(d, d.first + p.i, p.i < d.n);
  s.own_first[at] = e.first, s.own_n[at] = e.n;
}

/* What was sent to the device's counts. */
template <bool GENERAL> __device__ __forceinline__ void add_up(const lif_device &d, shared &s) {
  __syncthreads();
  if (!GENERAL && threadIdx.x < WARPS) {
    const tally &sent = s.sent[threadIdx.x];
    if (sent.spikes) atomicAdd(d.tally + LIF_SENT, sent.spikes);
    if (sent.events) atomicAdd(d.tally + LIF_EVENTS, sent.events);
  }
  const unsigned long long *all = s.sent_of[0];
  for (int k = threadIdx.x; GENERAL && k < d.n_trials * LIF_TALLIES; k += THREADS)
    if (all[k]) atomicAdd(d.tally + k, all[k]);
}

/* After a barrier at which all stop, f: what the thread met; the thread that met the smallest fault
 * says what did not fit. `elsewhere`: it may have been another rank's. */
__device__ __forceinline__ void report(const lif_device &d, shared &s, unsigned barrier,
                                       const fault &f, bool elsewhere) {
  if (f.key != NO_FAULT) atomicMin(d.fault, f.key);
  if (elsewhere && threadIdx.x == 0 && blockIdx.x == 0) atomicMin(d.fault, LIF_FAULT_ELSEWHERE);
  __syncthreads();
  arrive(d, s, barrier);
  wait_for_all(d, s, barrier);
  if (f.key != NO_FAULT && f.key == *(volatile unsigned long long *)d.fault)
    *d.fault_value = f.value;
}

} // namespace lif
#endif
