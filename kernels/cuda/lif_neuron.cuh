/* One neuron's step on the device, its stimuli, and what did not fit. */
#ifndef FASCICLE_LIF_NEURON_CUH
#define FASCICLE_LIF_NEURON_CUH

#include "lif_device.h"
#include "rng.h"

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

__device__ inline void note(fault &f, int trial, int64_t offset, int phase, int64_t node, int64_t value) {
  const unsigned long long key = (unsigned long long)trial << LIF_TRIAL_BIT |
                                 (unsigned long long)offset << LIF_STEP_BIT |
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

__device__ __forceinline__ neuron take(const lif_device &d, place p) {
  neuron c = {};
  c.first_touch = NEVER;
  if (p.i >= d.n) return c;
  c.v = d.potential[p.at], c.counter = d.counter[p.at];
  if (d.mute) c.mute = d.mute[p.i];
  if (d.touch_ptr) {
    c.touch = d.touch_now[p.at], c.touch_end = d.touch_ptr[p.i + 1];
    if (c.touch < c.touch_end) c.first_touch = d.touch[c.touch].first_step;
  }
  return c;
}

__device__ __forceinline__ void put(const lif_device &d, place p, const neuron &c) {
  if (p.i >= d.n) return;
  d.potential[p.at] = c.v, d.counter[p.at] = (uint16_t)c.counter;
  if (d.touch_ptr) d.touch_now[p.at] = c.touch;
}

__device__ inline bool hits(const lif_device &d, const lif_device_stimulus &s, place p, int64_t t) {
  const uint64_t id = (uint64_t)d.id[p.i];
  const rng_block r = rng_draw((uint64_t)d.seed, (uint32_t)id, (uint32_t)t,
                               (uint32_t)s.index | (uint32_t)(id >> 32) << 16, d.trial[p.trial]);
  return (((uint64_t)r.v[0] << 32 | r.v[1]) >> 11) < s.limit;
}

__device__ inline bool is_over(const lif_touch &touch, int64_t t) {
  return touch.more_steps != ~0u && touch.first_step + touch.more_steps < t;
}

/* The stimuli of step t, some of which have begun. */
__device__ __forceinline__ void meet_stimuli(const lif_device &d, place p, int64_t t, neuron &c) {
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
    if (s.kind == LIF_POISSON_ON_DEVICE && hits(d, s, p, t)) c.stimuli += s.value;
  }
}

__device__ __forceinline__ void prepare(const lif_device &d, place p, int64_t t, neuron &c) {
  c.stimuli = 0, c.fires = false;
  if (t >= c.first_touch) meet_stimuli(d, p, t, c);
}

/* One step; true when the neuron spikes. lif_backend.h has the rules. */
template <class SUM>
__device__ __forceinline__ bool step_neuron(const lif_device &d, place p, int64_t offset, SUM *slot,
                                            neuron &c, fault &f) {
  const SUM due = __ldcg(slot + p.at);
  if (due) slot[p.at] = 0;
  const bool removed = c.mute & LIF_REMOVED_ON_DEVICE;
  const int64_t input = removed ? 0 : due + c.stimuli;
  bool fires = c.fires && !removed;
  if (!fits(input)) {
    note(f, p.trial, offset, 0, d.id[p.i], input);
    return false;
  }
  if (!fires && c.counter > 0) {
    c.v = d.reset, c.counter--;
    return false;
  }
  if (!fires) {
    const int64_t sum = c.v + input;
    if (!fits(sum)) {
      note(f, p.trial, offset, 1, d.id[p.i], sum);
      return false;
    }
    c.v = (int32_t)sum;
    for (int k = 0; k < d.n_shifts; k++) c.v -= c.v >> d.shift[k];
    fires = c.v >= d.threshold && !removed;
  }
  if (fires) c.v = d.reset, c.counter = d.refractory;
  return fires;
}

} // namespace lif
#endif
