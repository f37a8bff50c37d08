/* LIF on one GPU: what struct lif_backend promises, by the kernels of lif_kernels.cu. */
#include "gpu.h"
#include "lif_backend.h"
#include "lif_device.h"
#include "mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)LIF_SHIFTS == (int)LIF_SHIFTS_ON_DEVICE &&
                   (int)LIF_CURRENT == (int)LIF_CURRENT_ON_DEVICE &&
                   (int)LIF_POISSON == (int)LIF_POISSON_ON_DEVICE &&
                   (int)LIF_SPIKES == (int)LIF_SPIKES_ON_DEVICE &&
                   (int)LIF_MUTED == (int)LIF_MUTED_ON_DEVICE &&
                   (int)LIF_REMOVED == (int)LIF_REMOVED_ON_DEVICE,
               "lif_fields.h repeats lif_backend.h");
_Static_assert(sizeof(struct lif_edge) == 8, "an edge is one 8-byte load");

/* A run of steps on its way: two take turns, so that the device goes on while the host reads. */
struct leg {
  int64_t step;
  int n;
  uint32_t *mask, *row; /* device */
  int32_t *count;       /* device [most_steps] */
  struct leg_facts {
    unsigned long long fault, tally[2];
    int64_t fault_value;
    int32_t count[];
  } * facts; /* pinned */
  cudaEvent_t done;
};

enum { LEG_ROWS = 1 << 25, LEG_STEPS = 256 }; /* room for spikes, should everybody fire; steps at most */
enum { LEG_SPIKES = 1 << 20 };    /* about so many spikes in a leg, so that the last one's copy is short */
enum { ENOUGH_SPIKES = 1 << 24 }; /* a run returns when it has so many */

struct lif {
  struct lif_device d;
  const struct lif_net *net;
  int64_t step;
  int n_blocks, leg_steps;
  struct leg leg[2];
  cudaStream_t copies;
  uint32_t *row_pinned, *row_sent; /* of a leg on the host; of deliver on the device */
  int64_t pinned_room, sent_room;
  struct lif_device_stimulus *stimulus_host; /* to free what they point to */
  int n_stimuli;
  struct lif_spikes mine;
  int64_t row_room, step_room;
  double spikes_per_step; /* of the last leg */
};

/* ---- to the device ---- */

static struct lif_device_stimulus stimulus_to_device(const struct lif_stimulus *s) {
  return (struct lif_device_stimulus){
      .kind = s->kind,
      .index = s->index,
      .first_step = s->first_step,
      .last_step = s->last_step,
      .value = s->value,
      .limit = s->kind == LIF_POISSON ? (uint64_t)ceil(s->probability * 0x1p53) : 0,
      .n_steps = s->n_steps,
      .step = GPU_COPY_OF(int64_t, s->step, s->n_steps)};
}

struct order {
  int64_t first_step;
  int stimulus;
};

static int by_first_step(const void *a, const void *b) {
  const struct order *x = a, *y = b;
  if (x->first_step != y->first_step) return x->first_step < y->first_step ? -1 : 1;
  return x->stimulus - y->stimulus;
}

/* Listed spikes at every step from first to last need no list. */
static bool fires_throughout(const struct lif_stimulus *s) {
  return s->kind == LIF_SPIKES && s->n_steps > 0 && s->step[0] == s->first_step &&
         s->step[s->n_steps - 1] == s->last_step && s->n_steps == s->last_step - s->first_step + 1;
}

static struct lif_touch touch_of(const struct lif_stimulus *s, int stimulus) {
  const uint64_t more = s->last_step < s->first_step ? 0 : (uint64_t)(s->last_step - s->first_step);
  return (struct lif_touch){s->first_step, more < UINT32_MAX ? (uint32_t)more : UINT32_MAX,
                            fires_throughout(s) ? (uint32_t)LIF_FIRES : (uint32_t)stimulus};
}

/* The stimuli of each neuron, by first step. */
static void touches_to_device(struct lif *s, const struct lif_stimulus *stimulus, int n_stimuli) {
  const lidx n = s->net->n_own;
  uint32_t *ptr = NEW_ZERO(uint32_t, (int64_t)n + 2);
  struct order *order = NEW(struct order, n_stimuli);
  for (int k = 0; k < n_stimuli; k++) order[k] = (struct order){stimulus[k].first_step, k};
  qsort(order, (size_t)n_stimuli, sizeof *order, by_first_step);
  for (int k = 0; k < n_stimuli; k++)
    for (lidx i = 0; i < stimulus[k].n; i++) ptr[stimulus[k].neuron[i] + 2]++;
  for (lidx i = 0; i < n; i++) ptr[i + 2] += ptr[i + 1];
  struct lif_touch *touch = NEW(struct lif_touch, ptr[n + 1]);
  for (int o = 0; o < n_stimuli; o++) {
    const struct lif_stimulus *from = &stimulus[order[o].stimulus];
    for (lidx i = 0; i < from->n; i++) touch[ptr[from->neuron[i] + 1]++] = touch_of(from, order[o].stimulus);
  }
  s->d.touch_ptr = GPU_COPY_OF(uint32_t, ptr, (int64_t)n + 1);
  s->d.touch_now = GPU_COPY_OF(uint32_t, ptr, n);
  s->d.touch = GPU_COPY_OF(struct lif_touch, touch, ptr[n]);
  mem_free(ptr), mem_free(touch), mem_free(order);
}

static void stimuli_to_device(struct lif *s, const struct lif_stimulus *stimulus, int n_stimuli) {
  s->n_stimuli = n_stimuli;
  if (n_stimuli == 0) return;
  s->stimulus_host = NEW(struct lif_device_stimulus, n_stimuli);
  for (int k = 0; k < n_stimuli; k++) s->stimulus_host[k] = stimulus_to_device(&stimulus[k]);
  s->d.stimulus = GPU_COPY_OF(struct lif_device_stimulus, s->stimulus_host, n_stimuli);
  touches_to_device(s, stimulus, n_stimuli);
}

static void pinned_room_for(struct lif *s, int64_t n) {
  if (n <= s->pinned_room) return;
  gpu_pinned_free(s->row_pinned);
  s->pinned_room = n + n / 2;
  s->row_pinned = gpu_pinned(s->pinned_room, sizeof *s->row_pinned);
}

static void leg_init(struct leg *leg, const struct lif *s) {
  leg->mask = GPU_ZERO(uint32_t, (int64_t)s->leg_steps * s->d.n_words);
  leg->row = GPU_ZERO(uint32_t, (int64_t)s->leg_steps * s->d.n);
  leg->count = GPU_ZERO(int32_t, s->leg_steps);
  leg->facts = gpu_pinned(1, sizeof *leg->facts + (size_t)s->leg_steps * sizeof(int32_t));
  CHECK_CUDA(cudaEventCreateWithFlags(&leg->done, cudaEventDisableTiming | cudaEventBlockingSync));
}

static void leg_free(struct leg *leg) {
  gpu_free(leg->mask), gpu_free(leg->row), gpu_free(leg->count);
  gpu_pinned_free(leg->facts);
  CHECK_CUDA(cudaEventDestroy(leg->done));
}

static int steps_of_leg(const struct lif_net *net) {
  int steps = net->n_own > 0 ? LEG_ROWS / net->n_own : LEG_STEPS;
  if (steps > LEG_STEPS) steps = LEG_STEPS;
  if (steps > net->min_delay) steps -= steps % net->min_delay; /* whole batches */
  return steps < 1 ? 1 : steps;
}

static struct lif_device device_of(const struct lif_net *net, const struct lif_params *p, uint64_t seed) {
  struct lif_device d = {.n = net->n_own,
                         .n_words = (net->n_own + 31) / 32,
                         .slots = net->max_delay + net->min_delay,
                         .min_delay = net->min_delay,
                         .wide = net->wide,
                         .first = net->first,
                         .seed = (int64_t)seed,
                         .threshold = p->threshold,
                         .reset = p->reset,
                         .n_shifts = p->n_shifts,
                         .refractory = p->refractory};
  memcpy(d.shift, p->shift, sizeof p->shift);
  d.potential = GPU_ZERO(int32_t, net->n_own), d.counter = GPU_ZERO(uint16_t, net->n_own);
  d.ring = gpu_zero((int64_t)d.slots * net->n_own, net->wide ? sizeof(int64_t) : sizeof(int32_t));
  d.out_ptr = GPU_COPY_OF(int64_t, net->out_ptr, net->n_global + 1);
  d.out = (const uint2 *)gpu_copy_of(net->out, net->n_edges, sizeof(struct lif_edge));
  d.id = GPU_COPY_OF(int64_t, net->id, net->n_own);
  if (net->mute) d.mute = GPU_COPY_OF(uint8_t, net->mute, net->n_own);
  d.arrived = GPU_ZERO(unsigned long long, 3), d.fault = GPU_ZERO(unsigned long long, 1);
  d.fault_value = GPU_ZERO(int64_t, 1), d.tally = GPU_ZERO(unsigned long long, 2);
  return d;
}

static struct status open(const struct lif_net *net, const struct lif_params *params,
                          const struct lif_stimulus *stimulus, int n_stimuli, uint64_t seed, int n_threads,
                          struct lif **state) {
  (void)n_threads;
  if (net->stream)
    return failure(EXIT_USAGE,
                   "--residency streamed: the GPU holds all edges so far; use --residency resident, "
                   "or --device cpu");
  struct lif *s = NEW_ZERO(struct lif, 1);
  s->net = net;
  s->d = device_of(net, params, seed);
  stimuli_to_device(s, stimulus, n_stimuli);
  s->n_blocks = lif_device_blocks(&s->d);
  s->leg_steps = steps_of_leg(net);
  for (int i = 0; i < 2; i++) leg_init(&s->leg[i], s);
  pinned_room_for(s, LEG_SPIKES);
  /* Room at once: a list that grows is copied and its pages are met for the first time, again and again. */
  s->row_room = ENOUGH_SPIKES + 2 * LEG_SPIKES;
  s->mine.row = NEW(uint32_t, s->row_room);
  CHECK_CUDA(cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking));
  *state = s;
  return fine();
}

static void close(struct lif *s) {
  struct lif_device *d = &s->d;
  for (int i = 0; i < 2; i++) leg_free(&s->leg[i]);
  CHECK_CUDA(cudaStreamDestroy(s->copies));
  for (int k = 0; k < s->n_stimuli; k++) gpu_free((void *)s->stimulus_host[k].step);
  gpu_free((void *)d->stimulus), gpu_free((void *)d->touch_ptr), gpu_free((void *)d->touch),
      gpu_free(d->touch_now);
  gpu_free(d->potential), gpu_free(d->counter), gpu_free(d->ring), gpu_free((void *)d->out_ptr);
  gpu_free((void *)d->out), gpu_free((void *)d->id), gpu_free((void *)d->mute);
  gpu_free(d->arrived), gpu_free(d->fault), gpu_free(d->fault_value), gpu_free(d->tally);
  gpu_pinned_free(s->row_pinned), gpu_free(s->row_sent);
  mem_free(s->stimulus_host), mem_free(s->mine.row), mem_free(s->mine.step_ptr);
  mem_free(s);
}

/* ---- state in and out ---- */

static int64_t sum_at(const struct lif *s, const void *ring, int64_t at) {
  return s->d.wide ? ((const int64_t *)ring)[at] : ((const int32_t *)ring)[at];
}

static void set_sum(const struct lif *s, void *ring, int64_t at, int64_t sum) {
  if (s->d.wide)
    ((int64_t *)ring)[at] = sum;
  else
    ((int32_t *)ring)[at] = (int32_t)sum;
}

static size_t ring_bytes(const struct lif *s) {
  return (size_t)s->d.slots * (size_t)s->d.n * (s->d.wide ? sizeof(int64_t) : sizeof(int32_t));
}

/* Where the sum of neuron i due at `step` stands. */
static int64_t place_of(const struct lif *s, lidx i, int64_t step) {
  return step % s->d.slots * s->d.n + i;
}

static void write(struct lif *s, int64_t step, uint32_t trial, const int32_t *potential,
                  const uint16_t *counter, const int64_t *ring) {
  const int delays = s->net->max_delay;
  const lidx n = s->d.n;
  s->step = step, s->d.trial = trial;
  gpu_put(s->d.potential, potential, (size_t)n * sizeof *potential);
  gpu_put(s->d.counter, counter, (size_t)n * sizeof *counter);
  void *sums = mem_zero((int64_t)ring_bytes(s), 1);
  for (lidx i = 0; i < n; i++)
    for (int k = 0; k < delays; k++)
      set_sum(s, sums, place_of(s, i, step + k), ring[(int64_t)i * delays + k]);
  gpu_put(s->d.ring, sums, ring_bytes(s));
  mem_free(sums);
  if (s->d.touch_ptr)
    CHECK_CUDA(cudaMemcpyAsync(s->d.touch_now, s->d.touch_ptr, (size_t)n * sizeof(uint32_t),
                               cudaMemcpyDeviceToDevice, gpu_stream()));
  const unsigned long long none = ~0ull;
  gpu_put(s->d.fault, &none, sizeof none);
}

static void read(struct lif *s, int32_t *potential, uint16_t *counter, int64_t *ring) {
  const int delays = s->net->max_delay;
  const lidx n = s->d.n;
  gpu_get(potential, s->d.potential, (size_t)n * sizeof *potential);
  gpu_get(counter, s->d.counter, (size_t)n * sizeof *counter);
  void *sums = mem_alloc((int64_t)ring_bytes(s), 1);
  gpu_get(sums, s->d.ring, ring_bytes(s));
  for (lidx i = 0; i < n; i++)
    for (int k = 0; k < delays; k++)
      ring[(int64_t)i * delays + k] = sum_at(s, sums, place_of(s, i, s->step + k));
  mem_free(sums);
}

static void potentials(struct lif *s, lidx n, const lidx *neuron, int32_t *potential) {
  int32_t *all = NEW(int32_t, s->d.n);
  gpu_get(all, s->d.potential, (size_t)s->d.n * sizeof *all);
  for (lidx i = 0; i < n; i++) potential[i] = all[neuron[i]];
  mem_free(all);
}

/* ---- legs ---- */

static void copy_back(void *pinned, const void *there, size_t bytes) {
  CHECK_CUDA(cudaMemcpyAsync(pinned, there, bytes, cudaMemcpyDeviceToHost, gpu_stream()));
}

/* Steps step .. step + n - 1, their spikes listed, their counts on the way to the host. */
static void leg_start(struct lif *s, struct leg *leg, int64_t step, int n, bool delivers) {
  leg->step = step, leg->n = n;
  CHECK_CUDA(cudaMemsetAsync(s->d.tally, 0, 2 * sizeof *s->d.tally, gpu_stream()));
  lif_device_run(&s->d, s->n_blocks, step, n, delivers, leg->mask);
  lif_device_list(&s->d, n, leg->mask, leg->count, leg->row);
  copy_back(leg->facts->count, leg->count, (size_t)n * sizeof(int32_t));
  copy_back(&leg->facts->fault, s->d.fault, sizeof leg->facts->fault);
  copy_back(&leg->facts->fault_value, s->d.fault_value, sizeof leg->facts->fault_value);
  copy_back(leg->facts->tally, s->d.tally, sizeof leg->facts->tally);
  CHECK_CUDA(cudaEventRecord(leg->done, gpu_stream()));
}

/* The launch packs (steps from its first, phase, node) in one number. */
static struct lif_fault fault_of(const struct leg *leg) {
  const unsigned long long key = leg->facts->fault;
  if (key == ~0ull) return (struct lif_fault){.step = INT64_MAX};
  return (struct lif_fault){.step = leg->step + (int64_t)(key >> 49),
                            .phase = (int)(key >> 48 & 1),
                            .node = (nodeid)(key & ((1ull << 48) - 1)),
                            .value = leg->facts->fault_value};
}

static void rows_to_host(struct lif *s, const struct leg *leg, int64_t n) {
  pinned_room_for(s, n);
  if (n == 0) return;
  CHECK_CUDA(cudaMemcpyAsync(s->row_pinned, leg->row, (size_t)n * sizeof *leg->row, cudaMemcpyDeviceToHost,
                             s->copies));
  CHECK_CUDA(cudaStreamSynchronize(s->copies));
}

/* The leg's spikes behind those that `mine` has. */
static void leg_finish(struct lif *s, const struct leg *leg, struct lif_tally *tally,
                       struct lif_fault *fault) {
  struct lif_spikes *mine = &s->mine;
  CHECK_CUDA(cudaEventSynchronize(leg->done));
  int64_t n = 0;
  for (int k = 0; k < leg->n; k++) n += leg->facts->count[k];
  s->spikes_per_step = (double)n / leg->n;
  rows_to_host(s, leg, n);
  if (mine->n + n > s->row_room)
    mine->row = mem_grow(mine->row, s->row_room = (mine->n + n) * 3 / 2, sizeof *mine->row);
  if (mine->n_steps + leg->n + 1 > s->step_room)
    mine->step_ptr =
        mem_grow(mine->step_ptr, s->step_room = (mine->n_steps + leg->n + 1) * 2, sizeof *mine->step_ptr);
  if (n > 0) memcpy(mine->row + mine->n, s->row_pinned, (size_t)n * sizeof *mine->row);
  for (int k = 0; k < leg->n; k++) {
    mine->step_ptr[mine->n_steps++] = mine->n;
    mine->n += leg->facts->count[k];
  }
  mine->step_ptr[mine->n_steps] = mine->n;
  tally->sent += (int64_t)leg->facts->tally[0], tally->events += (int64_t)leg->facts->tally[1];
  *fault = fault_of(leg);
}

/* From the activity seen last. */
static int leg_length(const struct lif *s, int64_t left) {
  int64_t steps = s->leg_steps;
  if (s->spikes_per_step * (double)steps > LEG_SPIKES) steps = (int64_t)(LEG_SPIKES / s->spikes_per_step);
  if (steps < s->net->min_delay) steps = s->leg_steps < s->net->min_delay ? s->leg_steps : s->net->min_delay;
  return (int)(left < steps ? left : steps);
}

static int64_t run(struct lif *s, int64_t n, struct lif_spikes *mine, struct lif_tally *tally,
                   struct lif_fault *fault) {
  *tally = (struct lif_tally){0, 0};
  s->mine.n = s->mine.n_steps = 0;
  const int64_t start = s->step;
  int64_t queued = leg_length(s, n);
  bool more = true;
  leg_start(s, &s->leg[0], start, (int)queued, true);
  for (int i = 0; more; i ^= 1) {
    const int next = leg_length(s, n - queued);
    more = next > 0 && s->mine.n < ENOUGH_SPIKES;
    if (more) leg_start(s, &s->leg[i ^ 1], start + queued, next, true);
    if (more) queued += next;
    leg_finish(s, &s->leg[i], tally, fault);
    if (fault->step != INT64_MAX) break;
  }
  s->step = start + s->mine.n_steps;
  *mine = s->mine;
  return s->mine.n_steps;
}

static void integrate(struct lif *s, int n, struct lif_spikes *mine, struct lif_fault *fault) {
  struct lif_tally none = {0, 0};
  s->mine.n = s->mine.n_steps = 0;
  fault->step = INT64_MAX;
  while (s->mine.n_steps < n && fault->step == INT64_MAX) {
    leg_start(s, &s->leg[0], s->step + s->mine.n_steps, leg_length(s, n - s->mine.n_steps), false);
    leg_finish(s, &s->leg[0], &none, fault);
  }
  *mine = s->mine;
}

static void deliver(struct lif *s, int n, const struct lif_spikes *all) {
  if (all->n > s->sent_room) {
    gpu_free(s->row_sent);
    s->sent_room = all->n + all->n / 2;
    s->row_sent = GPU_ZERO(uint32_t, s->sent_room);
  }
  gpu_put(s->row_sent, all->row, (size_t)all->n * sizeof *all->row);
  for (int k = 0; k < n; k++)
    lif_device_deliver(&s->d, s->step + k, all->step_ptr[k + 1] - all->step_ptr[k],
                       s->row_sent + all->step_ptr[k]);
  s->step += n;
}

const struct lif_backend lif_cuda = {.open = open,
                                     .close = close,
                                     .write = write,
                                     .read = read,
                                     .integrate = integrate,
                                     .deliver = deliver,
                                     .run = run,
                                     .potentials = potentials};
