/* Steps of linear models on the device. A thread keeps one neuron in registers over a batch of
 * min_delay steps, within which nobody's spikes reach anybody; a second launch sends the spikes of
 * the batch along their edges. A neuron that a step left as it was is not computed again until
 * something reaches it. contract/lif_model.h has the arithmetic. */
#include "model_device.h"
#include "send.cuh"

using namespace lif;

namespace {

constexpr int STEP_THREADS = 128, SEND_THREADS = 128;

/* Blocks that share a multiprocessor, so that a fly's neurons fit the GPU at once. */
constexpr int blocks_together(int n_components) {
  return n_components <= 2 ? 9 : n_components <= 3 ? 6 : 3;
}

/* ---- what comes to a neuron in a step ---- */

struct model_input {
  int64_t current;     /* to v, with the update */
  int64_t plus, minus; /* events into the synapse, by sign */
  int64_t v;           /* events onto v itself */
  bool fires;
};

/* Counts: positive and negative sums, or one sum for both. */
struct arrivals {
  int64_t plus, minus;
};

/* Whether (t, neuron) is among those of a replay, by step, then neuron. */
__device__ bool replays(const lif_replayed *at, int64_t n, int64_t t, int32_t neuron) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (at[middle].step < t || (at[middle].step == t && at[middle].neuron < neuron))
      low = middle + 1;
    else
      high = middle;
  }
  return low < n && at[low].step == t && at[low].neuron == neuron;
}

/* floor(x y / 2^32). */
__device__ int64_t scaled(int64_t x, int64_t y) {
  return __mul64hi(x, y) << 32 | (int64_t)((uint64_t)(x * y) >> 32);
}

__device__ void add_stimulus(const lif_device &d, const lif_device_model &m, int k, place p,
                             int64_t t, model_input &in) {
  const lif_device_stimulus &s = d.stimulus[k];
  const lif_model_stimulus &of = m.stimulus[k];
  if (s.kind == LIF_CURRENT) in.current += of.amount_of[m.class_of[p.i]];
  if (s.kind == LIF_NOISE)
    in.current += scaled(of.quantile[draw(d, s, p, t).v[0] >> 20], of.amount_of[m.class_of[p.i]]);
  if (s.kind == LIF_POISSON) {
    const uint64_t u = bits_of(draw(d, s, p, t));
    int n = 0;
    while (n < of.n_tails && u < of.tail[n]) n++;
    const int64_t sum = n * of.amount;
    if (of.into == LIF_INTO_V)
      in.v += sum;
    else if (sum < 0)
      in.minus += sum;
    else
      in.plus += sum;
  }
  if (s.kind == LIF_SPIKES) in.fires |= listed(s.step, s.n_steps, t);
  if (s.kind == LIF_REPLAY) in.fires |= replays(of.replayed, s.n_steps, t, p.i);
}

/* The stimuli of step t, of those from `touch` on that are not over. */
__device__ __noinline__ model_input stimuli_at(const lif_device &d, const lif_device_model &m,
                                               place p, int64_t t, uint32_t touch, uint32_t end) {
  model_input in = {};
  for (uint32_t at = touch; at < end; at++) {
    const lif_touch here = d.touch[at];
    if (here.first_step > t) break;
    if (is_over(here, t)) continue;
    if (here.stimulus == LIF_FIRES)
      in.fires = true;
    else
      add_stimulus(d, m, (int)here.stimulus, p, t, in);
  }
  return in;
}

template <class SUM>
__device__ __forceinline__ SUM *sum_at(const lif_device &d, int ring, int slot, int at) {
  return (SUM *)d.ring + ((int64_t)ring * d.slots + slot) * d.width + at;
}

template <class SUM>
__device__ __forceinline__ arrivals arrivals_at(const lif_device &d, int n_rings, int slot,
                                                int at) {
  return {__ldcg(sum_at<SUM>(d, 0, slot, at)),
          n_rings == 2 ? (int64_t)__ldcg(sum_at<SUM>(d, 1, slot, at)) : 0};
}

template <class SUM>
__device__ __forceinline__ void clear_arrivals(const lif_device &d, int slot, int at,
                                               const arrivals &in) {
  if (in.plus) *sum_at<SUM>(d, 0, slot, at) = 0;
  if (in.minus) *sum_at<SUM>(d, 1, slot, at) = 0;
}

/* ---- one neuron ---- */

/* Of all faults the smallest is kept, key and value together: one thread at a time. */
__device__ void write_down(const lif_device &d, const lif_device_model &m, const fault &f) {
  for (bool done = false; !done;) {
    if (atomicCAS(m.lock, 0, 1) != 0) continue;
    __threadfence();
    if (f.key < *(volatile unsigned long long *)d.fault) {
      *(volatile unsigned long long *)d.fault = f.key;
      *(volatile int64_t *)d.fault_value = f.value;
    }
    __threadfence();
    atomicExch(m.lock, 0);
    done = true;
  }
}

template <int N> struct model_neuron {
  int64_t x[N];
  int counter;
  uint64_t factor[N * N];               /* f 2^(32 - s), those that the shape has */
  uint32_t negative[(N * N + 31) / 32]; /* bits: whose sign is - */
  int64_t threshold, drive;
  const lif_class *own;
  bool removed;
  bool still; /* the last step left it as it was, without input: so would the next */
};

template <int N>
__device__ __forceinline__ void load(const lif_device &d, const lif_device_model &m, place p,
                                     model_neuron<N> &c) {
  const lif_class &own = m.classes[m.class_of[p.i]];
#pragma unroll
  for (int k = 0; k < N; k++) c.x[k] = m.component[(int64_t)k * d.width + p.at];
#pragma unroll
  for (int k = 0; k < N * N; k++) {
    const int e = m.factor_at[k / N * LIF_MOST_COMPONENTS + k % N];
    if (e < 0) continue;
    c.factor[k] = (uint64_t)own.factor[e].f << (32 - own.factor[e].s);
    if (own.factor[e].sign < 0) c.negative[k / 32] |= 1u << k % 32;
  }
  c.counter = d.counter[p.at], c.removed = d.mute && d.mute[p.i] & LIF_REMOVED;
  c.threshold = own.threshold, c.drive = own.drive, c.own = &own, c.still = false;
}

template <int N>
__device__ __forceinline__ void store(const lif_device &d, const lif_device_model &m, place p,
                                      const model_neuron<N> &c) {
#pragma unroll
  for (int k = 0; k < N; k++) m.component[(int64_t)k * d.width + p.at] = c.x[k];
  d.counter[p.at] = (uint16_t)c.counter;
}

/* lif_times for f 2^-(32 + s) = factor 2^-64: the same number, because rounding down to 2^-32 first
 * does not change what is rounded to the nearest whole number. */
__device__ __forceinline__ int64_t product(int64_t x, uint64_t factor, bool negative) {
  const uint64_t size = x < 0 ? -(uint64_t)x : (uint64_t)x;
  const uint64_t rounded = __umul64hi(size, factor) + (size * factor >> 63);
  return (x < 0) == negative ? (int64_t)rounded : -(int64_t)rounded;
}

/* x' without input. */
template <int N>
__device__ __forceinline__ void propagate(const lif_device_model &m, const model_neuron<N> &c,
                                          int64_t (&next)[N]) {
#pragma unroll
  for (int to = 0; to < N; to++) {
    next[to] = m.shape.keeps >> to & 1 ? c.x[to] : 0;
#pragma unroll
    for (int from = 0; from < N; from++)
      if (m.factor_at[to * LIF_MOST_COMPONENTS + from] >= 0)
        next[to] += product(c.x[from], c.factor[to * N + from],
                            c.negative[(to * N + from) / 32] >> (to * N + from) % 32 & 1);
  }
  next[0] += c.drive;
}

template <int N>
__device__ __forceinline__ void add_arrivals(const lif_shape &shape, const arrivals &due,
                                             const model_input &in, bool loses, int64_t (&x)[N]) {
#pragma unroll
  for (int k = 0; k < N; k++) {
    if (loses && shape.frozen >> k & 1) continue;
    if (k == shape.plus) x[k] += due.plus * (1ll << 32) + in.plus;
    if (k == shape.minus) x[k] += due.minus * (1ll << 32) + in.minus;
  }
}

__device__ __forceinline__ bool is_beyond(int64_t x, int64_t bound) {
  return x >= bound || x <= -bound;
}

template <int N>
__device__ __forceinline__ void check(const lif_device &d, place p, int k, const arrivals &due,
                                      const int64_t (&x)[N], fault &f) {
  if (is_beyond(due.plus, LIF_MOST_ARRIVALS)) note(f, p.trial, k, LIF_INPUT, d.id[p.i], due.plus);
  if (is_beyond(due.minus, LIF_MOST_ARRIVALS)) note(f, p.trial, k, LIF_INPUT, d.id[p.i], due.minus);
#pragma unroll
  for (int c = 0; c < N; c++)
    if (is_beyond(x[c], LIF_MOST_VALUE)) note(f, p.trial, k, LIF_INTEGRATE + c, d.id[p.i], x[c]);
}

template <int N>
__device__ __forceinline__ void fire(const lif_shape &shape, model_neuron<N> &c,
                                     int64_t (&next)[N]) {
#pragma unroll
  for (int k = 0; k < N; k++) {
    if (shape.cleared >> k & 1) next[k] = 0;
    if (k == 0) next[k] = c.own->reset;
    if (k == shape.adaptation) next[k] += c.own->jump;
  }
  c.counter = c.own->rest;
}

/* One step; true when the neuron spikes. */
template <int N>
__device__ __forceinline__ bool step(const lif_device_model &m, const arrivals &due,
                                     const model_input &in, model_neuron<N> &c) {
  int64_t next[N];
  const lif_shape &shape = m.shape;
  const bool rests = c.counter > 0;
  c.counter -= rests;
  propagate(m, c, next);
  next[0] += in.current;
  if (shape.arrivals_early) add_arrivals(shape, due, in, rests, next);
  int64_t bar = c.threshold;
#pragma unroll
  for (int k = 0; k < N; k++) {
    if (rests && shape.frozen >> k & 1) next[k] = c.x[k];
    if (shape.raises && k == shape.adaptation && c.own->raises) bar += next[k];
  }
  const bool reaches = !rests && (shape.strict ? next[0] > bar : next[0] >= bar);
  const bool fires = (reaches || in.fires) && !c.removed;
  if (!shape.arrivals_early) add_arrivals(shape, due, in, rests || fires, next);
  if (!rests && !fires) next[0] += in.v;
  if (fires) fire(shape, c, next);
  c.still = !rests && !fires;
#pragma unroll
  for (int k = 0; k < N; k++) c.still &= c.x[k] == next[k], c.x[k] = next[k];
  return fires;
}

/* ---- a batch of steps ---- */

/* A fault of an earlier batch of the launch ended the run. */
__device__ __forceinline__ bool has_ended(const lif_device &d, int first) {
  const unsigned long long key = *(volatile unsigned long long *)d.fault;
  const unsigned long long steps = (1ull << (LIF_TRIAL_BIT - LIF_STEP_BIT)) - 1;
  return key != NO_FAULT && (int)(key >> LIF_STEP_BIT & steps) < first;
}

/* Steps t0 + first .. t0 + first + n - 1 of a launch that began at t0. */
template <class SUM, int N>
__global__ void __launch_bounds__(STEP_THREADS, blocks_together(N))
    step_kernel(const __grid_constant__ lif_device d, const __grid_constant__ lif_device_model m,
                int64_t t0, int first, int n, uint32_t *mask) {
  const int word = (blockIdx.x * STEP_THREADS + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
  const int n_words = d.n_words * d.n_trials;
  if (word >= n_words || has_ended(d, first)) return;
  const int trial = word / d.n_words;
  const place p((word - trial * d.n_words) * WARP + lane, trial * d.n_words * WARP, trial);
  const bool here = p.i < d.n;
  model_neuron<N> c = {};
  uint32_t touch = 0, end = 0;
  if (here) load(d, m, p, c);
  if (here && d.touch_ptr) touch = d.touch_now[p.at], end = d.touch_ptr[p.i + 1];
  fault f = {NO_FAULT, 0};
  int slot = (int)((t0 + first) % d.slots);
  arrivals next_due = {0, 0};
  if (here) next_due = arrivals_at<SUM>(d, m.n_rings, slot, p.at);
  for (int k = first; k < first + n; k++) {
    arrivals due = next_due;
    const int next_slot = slot + 1 == d.slots ? 0 : slot + 1;
    if (here && k + 1 < first + n) next_due = arrivals_at<SUM>(d, m.n_rings, next_slot, p.at);
    if (here) clear_arrivals<SUM>(d, slot, p.at, due);
    if (c.removed) due = {0, 0};
    model_input in = {};
    while (touch < end && is_over(d.touch[touch], t0 + k)) touch++;
    const bool reached = due.plus || due.minus || touch < end;
    bool fired = false;
    if (here && (reached || !c.still)) {
      if (touch < end && !c.removed) in = stimuli_at(d, m, p, t0 + k, touch, end);
      fired = step(m, due, in, c);
      c.still &= !reached;
      check(d, p, k, due, c.x, f);
    }
    const unsigned fired_here = __ballot_sync(ALL, fired);
    if (lane == 0) mask[(int64_t)k * n_words + word] = fired_here;
    slot = next_slot;
  }
  if (here) store(d, m, p, c);
  if (here && d.touch_ptr) d.touch_now[p.at] = touch;
  if (f.key != NO_FAULT) write_down(d, m, f);
}

/* ---- spikes along their edges ---- */

/* The whole block takes a row. */
template <class SUM>
__device__ void send_row(const lif_device &d, int n_rings, int slot, int base, int64_t row) {
  const uint2 *out = d.host.edge ? d.host.edge : d.out;
  const int64_t ring = (int64_t)d.slots * d.width;
  for (int64_t e = d.out_ptr[row] + threadIdx.x, end = d.out_ptr[row + 1]; e < end;
       e += SEND_THREADS) {
    const uint2 edge = __ldcs(out + e);
    const int weight = (int16_t)(edge.y & 0xffff);
    int to = slot + (int)(edge.y >> 16);
    if (to >= d.slots) to -= d.slots;
    add((SUM *)d.ring + (n_rings == 2 && weight < 0 ? ring : 0),
        (int64_t)to * d.width + base + edge.x, weight);
  }
}

/* Spikes of WARP words of a trial's mask of a step: blockIdx.x the words, y the step, z the trial.
 */
template <class SUM>
__global__ void __launch_bounds__(SEND_THREADS)
    send_kernel(const __grid_constant__ lif_device d, int n_rings, int64_t t0, int first,
                const uint32_t *mask) {
  __shared__ uint32_t words[WARP];
  const int k = first + blockIdx.y, trial = blockIdx.z, from = blockIdx.x * WARP;
  if (has_ended(d, first)) return;
  const uint32_t *own = mask + ((int64_t)k * d.n_trials + trial) * d.n_words + from;
  uint32_t word = 0;
  if (threadIdx.x < WARP && from + threadIdx.x < d.n_words) word = own[threadIdx.x];
  if (threadIdx.x < WARP) words[threadIdx.x] = word;
  if (!__syncthreads_or(word != 0)) return;
  const int slot = (int)((t0 + k) % d.slots);
  unsigned long long spikes = 0, events = 0;
  for (int w = 0; w < WARP; w++)
    for (uint32_t left = words[w]; left; left &= left - 1) {
      const int i = (from + w) * WARP + __ffs(left) - 1;
      if (d.mute && d.mute[i] & LIF_MUTED) continue;
      spikes++, events += d.out_ptr[d.first + i + 1] - d.out_ptr[d.first + i];
      send_row<SUM>(d, n_rings, slot, trial * d.n_words * WARP, d.first + i);
    }
  if (threadIdx.x != 0 || spikes == 0) return;
  unsigned long long *tally = d.tally + trial * LIF_TALLIES;
  atomicAdd(tally + LIF_SENT, spikes), atomicAdd(tally + LIF_EVENTS, events);
  if (d.host.edge) atomicAdd(tally + LIF_HOST_EVENTS, events);
}

template <class SUM>
__global__ void __launch_bounds__(SEND_THREADS)
    send_rows_kernel(const __grid_constant__ lif_device d, int n_rings, int slot,
                     const uint32_t *row) {
  send_row<SUM>(d, n_rings, slot, 0, row[blockIdx.x]);
}

/* ---- launches ---- */

typedef void (*step_function)(lif_device, lif_device_model, int64_t, int, int, uint32_t *);

template <class SUM> step_function step_of(int n_components) {
  static const step_function all[] = {step_kernel<SUM, 1>, step_kernel<SUM, 2>,
                                      step_kernel<SUM, 3>, step_kernel<SUM, 4>,
                                      step_kernel<SUM, 5>, step_kernel<SUM, 6>};
  static_assert(sizeof all / sizeof *all == LIF_MOST_COMPONENTS, "one for each number");
  return all[n_components - 1];
}

template <class SUM>
void send_batch_of(const lif_device &d, int n_rings, int64_t t, int first, int n,
                   const uint32_t *mask) {
  const dim3 grid((unsigned)(d.n_words + WARP - 1) / WARP, (unsigned)n, (unsigned)d.n_trials);
  send_kernel<SUM><<<grid, SEND_THREADS, 0, gpu_stream()>>>(d, n_rings, t, first, mask);
}

} // namespace

void lif_gpu_model_run(const struct lif_device *d, const struct lif_device_model *m, int64_t t,
                       int n, bool delivers, uint32_t *mask) {
  if (d->n == 0) return;
  const int64_t threads = (int64_t)d->n_words * d->n_trials * WARP;
  const unsigned blocks = (unsigned)((threads + STEP_THREADS - 1) / STEP_THREADS);
  const step_function step =
      d->wide ? step_of<int64_t>(m->shape.n_components) : step_of<int32_t>(m->shape.n_components);
  for (int first = 0; first < n; first += d->min_delay) {
    const int steps = n - first < d->min_delay ? n - first : d->min_delay;
    step<<<blocks, STEP_THREADS, 0, gpu_stream()>>>(*d, *m, t, first, steps, mask);
    if (!delivers) continue;
    if (d->wide)
      send_batch_of<int64_t>(*d, m->n_rings, t, first, steps, mask);
    else
      send_batch_of<int32_t>(*d, m->n_rings, t, first, steps, mask);
  }
  CHECK_CUDA(cudaGetLastError());
}

void lif_gpu_model_deliver(const struct lif_device *d, const struct lif_device_model *m, int64_t t,
                           int64_t n_spikes, const uint32_t *row) {
  if (n_spikes == 0) return;
  const int slot = (int)(t % d->slots);
  const auto kernel = d->wide ? send_rows_kernel<int64_t> : send_rows_kernel<int32_t>;
  kernel<<<(unsigned)n_spikes, SEND_THREADS, 0, gpu_stream()>>>(*d, m->n_rings, slot, row);
  CHECK_CUDA(cudaGetLastError());
}
