/* LIF on one GPU, or one of several: what struct lif_backend promises, by the kernels of
 * kernels/cuda/lif/kernels.cu. */
#include "state.h"
#include "exchange.h"
#include "core/mem.h"

#include <string.h>

/* ---- open and close ---- */

static struct lif_device device_of(const struct lif_net *net, const struct lif_params *p,
                                   uint64_t seed, int n_trials) {
  struct lif_device d = {.n = net->n_own,
                         .n_words = (net->n_own + 31) / 32,
                         .n_trials = n_trials,
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
  d.width = n_trials == 1 ? d.n : 32 * d.n_words * n_trials;
  if (!p->model) d.potential = GPU_ZERO(int32_t, d.width);
  d.counter = GPU_ZERO(uint16_t, d.width);
  d.ring = gpu_zero((int64_t)lif_model_rings(p->model) * d.slots * d.width,
                    net->wide ? sizeof(int64_t) : sizeof(int32_t));
  d.trial = GPU_ZERO(uint32_t, n_trials);
  d.arrived = GPU_ZERO(unsigned long long, 3);
  return d;
}

static void close(struct lif_engine *s) {
  struct lif_device *d = &s->d;
  lif_gpu_exchange_close(s->exchange);
  if (s->mine) lif_launches_free(s);
  lif_gpu_model_close(s);
  lif_inputs_free(s);
  gpu_free(d->potential), gpu_free(d->counter), gpu_free(d->ring), gpu_free((void *)d->trial);
  gpu_free(d->arrived), gpu_free(s->result), gpu_free(s->row_sent);
  mem_free(s);
}

static struct status open_together(const struct lif_net *net, const struct lif_params *params,
                                   const struct lif_stimulus *stimulus, int n_stimuli,
                                   uint64_t seed, int n_trials, struct lif_engine **state) {
  if (net->stream)
    return failure(EXIT_USAGE, "a GPU streams its edges from host memory, not from the file: bug");
  struct lif_engine *s = NEW_ZERO(struct lif_engine, 1);
  s->net = net, s->n_trials = n_trials;
  s->d = device_of(net, params, seed, n_trials);
  s->result = GPU_ZERO(struct lif_result, 1);
  s->d.fault = &s->result->fault, s->d.fault_value = &s->result->fault_value;
  s->d.tally = s->result->tally[0];
  const struct status pinned = lif_inputs_init(s, stimulus, n_stimuli);
  if (pinned.code) {
    close(s);
    return pinned;
  }
  if (params->model) lif_gpu_model_open(s, params->model, stimulus, n_stimuli);
  s->n_blocks = lif_device_blocks(&s->d);
  lif_launches_init(s);
  *state = s;
  return fine();
}

static struct status open(const struct lif_net *net, const struct lif_params *params,
                          const struct lif_stimulus *stimulus, int n_stimuli, uint64_t seed,
                          int n_threads, struct lif_engine **state) {
  (void)n_threads;
  return open_together(net, params, stimulus, n_stimuli, seed, 1, state);
}

/* ---- state in and out ---- */

static int64_t sum_at(const struct lif_engine *s, const void *ring, int64_t at) {
  return s->d.wide ? ((const int64_t *)ring)[at] : ((const int32_t *)ring)[at];
}

static void set_sum(const struct lif_engine *s, void *ring, int64_t at, int64_t sum) {
  if (s->d.wide)
    ((int64_t *)ring)[at] = sum;
  else
    ((int32_t *)ring)[at] = (int32_t)sum;
}

/* Of one trial's neurons in a slot. */
static size_t slot_bytes(const struct lif_engine *s) {
  return (size_t)s->d.n * (s->d.wide ? sizeof(int64_t) : sizeof(int32_t));
}

/* Where trial k begins in arrays of all trials. */
static int64_t base_of(const struct lif_engine *s, int k) {
  return 32ll * s->d.n_words * k;
}

static char *slot_of(const struct lif_engine *s, int k, int ring, int slot) {
  return (char *)s->d.ring + (((int64_t)ring * s->d.slots + slot) * s->d.width + base_of(s, k)) *
                                 (int64_t)(s->d.wide ? sizeof(int64_t) : sizeof(int32_t));
}

/* Sums of neuron i due at step + d: ring[i][d]; slots without one are cleared. */
static void write_ring(struct lif_engine *s, int k, int r, int64_t step, const int64_t *ring) {
  const int delays = s->net->max_delay, slots = s->d.slots;
  void *sums = mem_alloc((int64_t)slot_bytes(s), 1);
  for (int d = 0; d < slots; d++) {
    for (lidx i = 0; i < s->d.n; i++)
      set_sum(s, sums, i, d < delays ? ring[(int64_t)i * delays + d] : 0);
    gpu_put(slot_of(s, k, r, (int)((step + d) % slots)), sums, slot_bytes(s));
  }
  mem_free(sums);
}

static void read_ring(const struct lif_engine *s, int k, int r, int64_t *ring) {
  const int delays = s->net->max_delay;
  void *sums = mem_alloc((int64_t)slot_bytes(s), 1);
  for (int d = 0; d < delays; d++) {
    gpu_get(sums, slot_of(s, k, r, (int)((s->step + d) % s->d.slots)), slot_bytes(s));
    for (lidx i = 0; i < s->d.n; i++) ring[(int64_t)i * delays + d] = sum_at(s, sums, i);
  }
  mem_free(sums);
}

static int n_components(const struct lif_engine *s) {
  return s->has_model ? s->model.shape.n_components : 0;
}

static int n_rings(const struct lif_engine *s) {
  return s->has_model ? s->model.n_rings : 1;
}

static void write_trial(struct lif_engine *s, int k, uint32_t trial,
                        const struct lif_state *values) {
  const lidx n = s->d.n;
  const int64_t at = base_of(s, k);
  s->step = values->step, s->d.n_trials = s->n_trials;
  gpu_put((uint32_t *)s->d.trial + k, &trial, sizeof trial);
  if (!s->has_model)
    gpu_put(s->d.potential + at, values->potential, (size_t)n * sizeof *values->potential);
  for (int c = 0; c < n_components(s); c++)
    gpu_put(s->model.component + (int64_t)c * s->d.width + at, values->component + (int64_t)c * n,
            (size_t)n * sizeof *values->component);
  gpu_put(s->d.counter + at, values->counter, (size_t)n * sizeof *values->counter);
  for (int r = 0; r < n_rings(s); r++)
    write_ring(s, k, r, values->step, values->ring + (int64_t)r * n * s->net->max_delay);
  if (s->d.touch_ptr)
    CHECK_CUDA(cudaMemcpyAsync(s->d.touch_now + at, s->d.touch_ptr, (size_t)n * sizeof(uint32_t),
                               cudaMemcpyDeviceToDevice, gpu_stream()));
  const unsigned long long none = ~0ull;
  gpu_put(s->d.fault, &none, sizeof none);
}

static void write(struct lif_engine *s, uint32_t trial, const struct lif_state *values) {
  write_trial(s, 0, trial, values);
}

static void read_trial(struct lif_engine *s, int k, struct lif_state *values) {
  const lidx n = s->d.n;
  if (!s->has_model)
    gpu_get(values->potential, s->d.potential + base_of(s, k),
            (size_t)n * sizeof *values->potential);
  for (int c = 0; c < n_components(s); c++)
    gpu_get(values->component + (int64_t)c * n,
            s->model.component + (int64_t)c * s->d.width + base_of(s, k),
            (size_t)n * sizeof *values->component);
  gpu_get(values->counter, s->d.counter + base_of(s, k), (size_t)n * sizeof *values->counter);
  for (int r = 0; r < n_rings(s); r++)
    read_ring(s, k, r, values->ring + (int64_t)r * n * s->net->max_delay);
}

static void read(struct lif_engine *s, struct lif_state *values) {
  read_trial(s, 0, values);
}

static void values_of(struct lif_engine *s, int k, int component, lidx n, const lidx *neuron,
                      int64_t *value) {
  const size_t bytes = s->has_model ? sizeof(int64_t) : sizeof(int32_t);
  const int64_t at = (int64_t)component * s->d.width + base_of(s, k);
  const char *there = s->has_model ? (char *)s->model.component : (char *)s->d.potential;
  char *all = mem_alloc(s->d.n, bytes);
  gpu_get(all, there + at * (int64_t)bytes, (size_t)s->d.n * bytes);
  for (lidx i = 0; i < n; i++)
    value[i] = s->has_model ? ((int64_t *)all)[neuron[i]] : ((int32_t *)all)[neuron[i]];
  mem_free(all);
}

static void values(struct lif_engine *s, int component, lidx n, const lidx *neuron,
                   int64_t *value) {
  values_of(s, 0, component, n, neuron, value);
}

/* ---- steps ---- */

static int64_t run(struct lif_engine *s, int64_t n, struct lif_spikes *mine,
                   struct lif_tally *tally, struct lif_fault *fault) {
  int faulty;
  return lif_launches_run(s, 1, n, mine, tally, fault, &faulty);
}

static void deliver(struct lif_engine *s, int n, const struct lif_spikes *all) {
  if (all->n > s->sent_room) {
    gpu_free(s->row_sent);
    s->sent_room = all->n + all->n / 2;
    s->row_sent = GPU_ZERO(uint32_t, s->sent_room);
  }
  gpu_put(s->row_sent, all->row, (size_t)all->n * sizeof *all->row);
  for (int k = 0; k < n; k++) {
    const int64_t n_spikes = all->step_ptr[k + 1] - all->step_ptr[k];
    const uint32_t *row = s->row_sent + all->step_ptr[k];
    if (s->has_model)
      lif_gpu_model_deliver(&s->d, &s->model, s->step + k, n_spikes, row);
    else
      lif_device_deliver(&s->d, s->step + k, n_spikes, row);
  }
  s->step += n;
}

/* Edges in host memory, or a linear model: the devices do not exchange spikes by themselves. */
static bool join(struct lif_engine *s, const struct comm *comm, const gidx *first_of_rank) {
  int64_t fits[2] = {s->launch_steps, !s->net->on_host && !s->has_model};
  comm_min_i64(comm, fits, 2);
  s->launch_steps = (int)fits[0];
  if (fits[1]) s->exchange = lif_gpu_exchange_open(comm, &s->d, first_of_rank);
  return s->exchange;
}

static int worthwhile(lidx n_own) {
  return lif_device_trials(n_own);
}

static const struct lif_together together = {.most = LIF_TRIALS,
                                             .worthwhile = worthwhile,
                                             .open = open_together,
                                             .write = write_trial,
                                             .read = read_trial,
                                             .run = lif_launches_run,
                                             .values = values_of};

const struct lif_backend lif_cuda = {.open = open,
                                     .close = close,
                                     .write = write,
                                     .read = read,
                                     .integrate = lif_launches_integrate,
                                     .deliver = deliver,
                                     .run = run,
                                     .join = join,
                                     .values = values,
                                     .together = &together};
