/* What never changes while a net is simulated, to the device. */
#include "state.h"
#include "core/mem.h"

#include <math.h>
#include <stdlib.h>

_Static_assert(sizeof(struct lif_edge) == 8, "an edge is one 8-byte load");

/* ---- stimuli ---- */

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
static void touches_to_device(struct lif_engine *s, const struct lif_stimulus *stimulus,
                              int n_stimuli) {
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
    for (lidx i = 0; i < from->n; i++)
      touch[ptr[from->neuron[i] + 1]++] = touch_of(from, order[o].stimulus);
  }
  s->d.touch_ptr = GPU_COPY_OF(uint32_t, ptr, (int64_t)n + 1);
  s->d.touch_now = GPU_ZERO(uint32_t, s->d.width);
  for (int k = 0; k < s->n_trials; k++)
    gpu_put(s->d.touch_now + 32ll * s->d.n_words * k, ptr, (size_t)n * sizeof *ptr);
  s->d.touch = GPU_COPY_OF(struct lif_touch, touch, ptr[n]);
  mem_free(ptr), mem_free(touch), mem_free(order);
}

static void stimuli_to_device(struct lif_engine *s, const struct lif_stimulus *stimulus,
                              int n_stimuli) {
  s->n_stimuli = n_stimuli;
  if (n_stimuli == 0) return;
  s->stimulus_host = NEW(struct lif_device_stimulus, n_stimuli);
  for (int k = 0; k < n_stimuli; k++) s->stimulus_host[k] = stimulus_to_device(&stimulus[k]);
  s->d.stimulus = GPU_COPY_OF(struct lif_device_stimulus, s->stimulus_host, n_stimuli);
  touches_to_device(s, stimulus, n_stimuli);
}

/* ---- edges ---- */

static void edges_to_device(struct lif_engine *s) {
  s->d.out = (const uint2 *)gpu_copy_of(s->net->out, s->net->n_edges, sizeof(struct lif_edge));
}

/* The edges stay where they are, pinned, so that the device reads them by itself. */
static struct status edges_on_host(struct lif_engine *s) {
  const struct lif_net *net = s->net;
  struct lif_host_edges *host = &s->d.host;
  if (net->n_edges == 0) return fine();
  const cudaError_t code = gpu_pin((void *)net->out, (size_t)net->n_edges * sizeof *net->out);
  if (code != cudaSuccess)
    return failure(
        EXIT_DEVICE,
        "--residency streamed: %lld bytes of edges cannot be pinned in host memory: %s; use "
        "--residency resident, or --device cpu",
        (long long)(net->n_edges * (eidx)sizeof *net->out), cudaGetErrorString(code));
  host->edge = (const uint2 *)gpu_pinned_at((void *)net->out);
  host->room = net->device_room / (int64_t)sizeof *net->out;
  if (host->room > net->n_edges) host->room = net->n_edges;
  s->d.out = (const uint2 *)gpu_zero(host->room, sizeof *net->out);
  host->kept = GPU_ZERO(int64_t, net->n_global);
  CHECK_CUDA(
      cudaMemsetAsync(host->kept, 0xff, (size_t)net->n_global * sizeof *host->kept, gpu_stream()));
  host->used = GPU_ZERO(unsigned long long, 1);
  return fine();
}

struct status lif_inputs_init(struct lif_engine *s, const struct lif_stimulus *stimulus,
                              int n_stimuli) {
  const struct lif_net *net = s->net;
  if (net->on_host) TRY(edges_on_host(s));
  if (!net->on_host) edges_to_device(s);
  s->d.out_ptr = GPU_COPY_OF(int64_t, net->out_ptr, net->n_global + 1);
  s->d.id = GPU_COPY_OF(int64_t, net->id, net->n_own);
  if (net->mute) s->d.mute = GPU_COPY_OF(uint8_t, net->mute, net->n_own);
  stimuli_to_device(s, stimulus, n_stimuli);
  return fine();
}

void lif_inputs_free(struct lif_engine *s) {
  struct lif_device *d = &s->d;
  for (int k = 0; k < s->n_stimuli; k++) gpu_free((void *)s->stimulus_host[k].step);
  gpu_free((void *)d->stimulus), gpu_free((void *)d->touch_ptr), gpu_free((void *)d->touch);
  gpu_free(d->touch_now);
  mem_free(s->stimulus_host);
  if (d->host.edge) gpu_unpin((void *)s->net->out);
  gpu_free(d->host.kept), gpu_free(d->host.used);
  gpu_free((void *)d->out_ptr), gpu_free((void *)d->out), gpu_free((void *)d->id),
      gpu_free((void *)d->mute);
}
