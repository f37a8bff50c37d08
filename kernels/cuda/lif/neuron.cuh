/* One neuron's step on the device, its stimuli, and what did not fit. */
#ifndef FASCICLE_LIF_NEURON_CUH
#define FASCICLE_LIF_NEURON_CUH

#include "device.h"
#include "core/rng.h"

namespace lif {

constexpr unsigned long long NO_FAULT = ~0ull;

/* Neuron i of a trial, and where it stands in arrays of all trials. */
struct place {
  int i, at, trial;
  __device__ place(int own) : i(own), at(own), trial(0) {}
  __device__ place(int own, int first, int of) : i(own), at(first + own), trial(of) {}
};

struct fault {
  unsigned long long key;
  int64_t value;
};

__device__ inline void note(fault &f, int trial, int64_t offset, int phase, int64_t node,
                            int64_t value) {
  const unsigned long long key =
      (unsigned long long)trial << LIF_TRIAL_BIT | (unsigned long long)offset << LIF_STEP_BIT |
      (unsigned long long)phase << LIF_PHASE_BIT | (unsigned long long)node;
  if (key < f.key) f.key = key, f.value = value;
}

__device__ inline bool fits(int64_t x) {
  return x == (int32_t)x;
}

__device__ inline bool listed(const int64_t *step, int64_t n, int64_t t) {
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

/* One neuron while its block works on it. Threads keep two of them in
 * registers, so they are small. */
struct neuron {
  int32_t v;
  uint32_t state; /* the counter, and these: */
  int32_t first;  /* the launch's step at which the first stimulus that is not over begins */
};

constexpr uint32_t COUNTER = 0xffff;
constexpr int MUTE_BIT = 16; /* LIF_MUTED, LIF_REMOVED */
constexpr uint32_t MUTED = LIF_MUTED << MUTE_BIT, REMOVED = LIF_REMOVED << MUTE_BIT;
constexpr uint32_t FIRES = 1 << 24;  /* a stimulus makes it fire at the coming step */
constexpr uint32_t PUSHED = 1 << 25; /* stimuli add something then */

/* Its stimuli. */
struct due_stimuli {
  uint32_t touch, end; /* that are not over */
  int64_t push;        /* what they add at the coming step, if anything */
};

constexpr int32_t NEVER = INT32_MAX;

/* The launch's step, of those from t0 on, at which a stimulus begins. */
__device__ __forceinline__ int32_t first_of(const lif_touch &touch, int64_t t0) {
  const int64_t k = touch.first_step - t0;
  return k < 0 ? 0 : k < NEVER ? (int32_t)k : NEVER;
}

__device__ __forceinline__ neuron take(const lif_device &d, place p, int64_t t0, due_stimuli &a) {
  neuron c = {0, 0, NEVER};
  a = due_stimuli{0, 0, 0};
  if (p.i >= d.n) return c;
  c.v = d.potential[p.at], c.state = d.counter[p.at];
  if (d.mute) c.state |= (uint32_t)d.mute[p.i] << MUTE_BIT;
  if (d.touch_ptr) {
    a.touch = d.touch_now[p.at], a.end = d.touch_ptr[p.i + 1];
    if (a.touch < a.end) c.first = first_of(d.touch[a.touch], t0);
  }
  return c;
}

__device__ __forceinline__ void put(const lif_device &d, place p, const neuron &c,
                                    const due_stimuli &a) {
  if (p.i >= d.n) return;
  d.potential[p.at] = c.v, d.counter[p.at] = (uint16_t)c.state;
  if (d.touch_ptr) d.touch_now[p.at] = a.touch;
}

__device__ inline rng_block draw(const lif_device &d, const lif_device_stimulus &s, place p,
                                 int64_t t) {
  const uint64_t id = (uint64_t)d.id[p.i];
  return rng_draw((uint64_t)d.seed, (uint32_t)id, (uint32_t)t,
                  (uint32_t)s.index | (uint32_t)(id >> 32) << 16, d.trial[p.trial]);
}

/* The 53 bits that probabilities are held against. */
__device__ inline uint64_t bits_of(const rng_block &r) {
  return ((uint64_t)r.v[0] << 32 | r.v[1]) >> 11;
}

__device__ inline bool hits(const lif_device &d, const lif_device_stimulus &s, place p, int64_t t) {
  return bits_of(draw(d, s, p, t)) < s.limit;
}

__device__ inline bool is_over(const lif_touch &touch, int64_t t) {
  return touch.more_steps != ~0u && touch.first_step + touch.more_steps < t;
}

/* The stimuli of step t = t0 + k, some of which have begun. */
__device__ __forceinline__ void meet_stimuli(const lif_device &d, place p, int64_t t0, int k,
                                             neuron &c, due_stimuli &kept) {
  const int64_t t = t0 + k;
  due_stimuli a = kept;
  while (a.touch < a.end && is_over(d.touch[a.touch], t)) a.touch++;
  c.first = a.touch < a.end ? first_of(d.touch[a.touch], t0) : NEVER;
  a.push = 0;
  for (uint32_t at = a.touch; at < a.end; at++) {
    const lif_touch touch = d.touch[at];
    if (touch.first_step > t) break;
    if (is_over(touch, t)) continue;
    if (touch.stimulus == LIF_FIRES) {
      c.state |= FIRES;
      continue;
    }
    const lif_device_stimulus &s = d.stimulus[touch.stimulus];
    if (s.kind == LIF_CURRENT) a.push += s.value;
    if (s.kind == LIF_SPIKES && listed(s.step, s.n_steps, t)) c.state |= FIRES;
    if (s.kind == LIF_POISSON && hits(d, s, p, t)) a.push += s.value;
  }
  if (a.push) c.state |= PUSHED;
  kept = a;
}

__device__ __forceinline__ void prepare(const lif_device &d, place p, int64_t t0, int k, neuron &c,
                                        due_stimuli &a) {
  c.state &= ~(FIRES | PUSHED);
  if (k >= c.first) meet_stimuli(d, p, t0, k, c, a);
}

/* What is due at a step whose sums stand in `slot`. To be asked for early, for
 * all neurons of a thread. */
template <class SUM>
__device__ __forceinline__ SUM due_at(const lif_device &d, place p, const SUM *slot) {
  return p.i < d.n ? __ldcg(slot + p.at) : 0;
}

/* One step; true when the neuron spikes. What does not fit is noted in f, and makes `faulty` true.
 * contract/lif.h has the rules. */
template <class SUM>
__device__ __forceinline__ bool step_neuron(const lif_device &d, place p, int64_t offset, SUM *slot,
                                            SUM due, neuron &c, const due_stimuli &a, fault &f,
                                            bool &faulty) {
  if (due) slot[p.at] = 0;
  const bool removed = c.state & REMOVED;
  const int64_t input = removed ? 0 : due + (c.state & PUSHED ? a.push : 0);
  bool fires = (c.state & FIRES) && !removed;
  if (!fits(input)) {
    note(f, p.trial, offset, 0, d.id[p.i], input);
    faulty = true;
    return false;
  }
  if (!fires && (c.state & COUNTER)) {
    c.v = d.reset, c.state--;
    return false;
  }
  if (!fires) {
    const int64_t sum = c.v + input;
    if (!fits(sum)) {
      note(f, p.trial, offset, 1, d.id[p.i], sum);
      faulty = true;
      return false;
    }
    c.v = (int32_t)sum;
#pragma unroll 1 /* mostly one or two; this is the step of a neuron that does nothing else */
    for (int k = 0; k < d.n_shifts; k++) c.v -= c.v >> d.shift[k];
    fires = c.v >= d.threshold && !removed;
  }
  if (fires) c.v = d.reset, c.state = (c.state & ~COUNTER) | d.refractory;
  return fires;
}

} // namespace lif
#endif
