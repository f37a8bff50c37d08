/* Steps on the device, many in a launch: while one runs, the host takes the spikes of the one
 * before. */
#include "state.h"
#include "exchange.h"
#include "core/mem.h"

#include <string.h>

enum {
  LAUNCH_SPIKES = 1 << 20
}; /* about so many spikes in a launch, so that the last one's copy is short */
enum { ENOUGH_SPIKES = 1 << 23 }; /* a run returns when it has so many */
enum { MANY_STEPS = 512 };        /* a small net has room for all its neurons in so many */

/* ---- room ---- */

static void launch_init(struct lif_launch *launch, const struct lif_engine *s) {
  const int64_t steps = (int64_t)s->launch_steps * s->n_trials;
  launch->mask = GPU_ZERO(uint32_t, steps * s->d.n_words);
  launch->row = GPU_ZERO(uint32_t, steps * s->d.n);
  launch->count = GPU_ZERO(int32_t, steps * lif_device_chunks(&s->d));
  launch->result = gpu_pinned(1, sizeof *launch->result);
  launch->count_host = gpu_pinned(steps * lif_device_chunks(&s->d), sizeof *launch->count_host);
  CHECK_CUDA(
      cudaEventCreateWithFlags(&launch->done, cudaEventDisableTiming | cudaEventBlockingSync));
}

static void launch_free(struct lif_launch *launch) {
  gpu_free(launch->mask), gpu_free(launch->row), gpu_free(launch->count);
  gpu_pinned_free(launch->result), gpu_pinned_free(launch->count_host);
  CHECK_CUDA(cudaEventDestroy(launch->done));
}

/* Rows are copied from the device straight to where the caller finds them, so their room is
 * pinned. It is there from the start: a list that grows is copied and its pages are met for the
 * first time, again and again. */
static void room_for_rows(struct lif_engine *s, int k, int64_t n) {
  struct lif_spikes *mine = &s->mine[k];
  if (n <= s->row_room[k]) return;
  s->row_room[k] = n + n / 2;
  uint32_t *row = gpu_pinned(s->row_room[k], sizeof *row);
  if (mine->n > 0) memcpy(row, mine->row, (size_t)mine->n * sizeof *row);
  gpu_pinned_free(mine->row);
  mine->row = row;
}

static void room_for_steps(struct lif_engine *s, int64_t n) {
  if (n + 1 <= s->step_room) return;
  s->step_room = (n + 1) * 2;
  for (int k = 0; k < s->n_trials; k++)
    s->mine[k].step_ptr = mem_grow(s->mine[k].step_ptr, s->step_room, sizeof(int64_t));
}

/* Ranks count different spikes of a launch that met a fault: launches of one length
 * cannot follow from these. */
static void forget_fault(struct lif_engine *s) {
  s->spikes_per_step = 0;
  CHECK_CUDA(cudaMemsetAsync(s->d.fault, 0xff, sizeof *s->d.fault, gpu_stream()));
}

void lif_launches_init(struct lif_engine *s) {
  s->launch_steps = lif_launch_steps(s->net->n_own, s->n_trials, s->net->min_delay);
  for (int i = 0; i < LIF_LAUNCHES; i++) launch_init(&s->launch[i], s);
  CHECK_CUDA(cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking));
  s->mine = NEW_ZERO(struct lif_spikes, s->n_trials);
  s->row_room = NEW_ZERO(int64_t, s->n_trials);
  const int64_t rows = (ENOUGH_SPIKES + 2 * LAUNCH_SPIKES) / s->n_trials,
                small = (int64_t)MANY_STEPS * s->d.n;
  for (int k = 0; k < s->n_trials; k++) room_for_rows(s, k, rows < small ? rows : small);
  room_for_steps(s, 2 * LIF_LAUNCH_STEPS);
  forget_fault(s);
}

void lif_launches_free(struct lif_engine *s) {
  for (int i = 0; i < LIF_LAUNCHES; i++) launch_free(&s->launch[i]);
  CHECK_CUDA(cudaStreamDestroy(s->copies));
  for (int k = 0; k < s->n_trials; k++)
    gpu_pinned_free(s->mine[k].row), mem_free(s->mine[k].step_ptr);
  mem_free(s->mine), mem_free(s->row_room);
}

/* ---- one launch ---- */

static void copy_back(void *pinned, const void *there, size_t bytes) {
  CHECK_CUDA(cudaMemcpyAsync(pinned, there, bytes, cudaMemcpyDeviceToHost, gpu_stream()));
}

/* Steps step .. step + n - 1; with `lists` their spikes listed and the counts
 * on the way to the host. */
static void launch_start(struct lif_engine *s, struct lif_launch *launch, int64_t step, int n,
                         bool delivers, bool lists) {
  launch->step = step, launch->n = n, launch->n_trials = s->d.n_trials;
  CHECK_CUDA(cudaMemsetAsync(s->d.tally, 0, sizeof s->result->tally, gpu_stream()));
  if (delivers && s->exchange)
    lif_gpu_exchange_run(s->exchange, &s->d, s->n_blocks, step, n, launch->mask);
  else if (s->has_model)
    lif_gpu_model_run(&s->d, &s->model, step, n, delivers, launch->mask);
  else
    lif_device_run(&s->d, s->n_blocks, step, n, delivers, launch->mask);
  if (lists) {
    lif_device_list(&s->d, n, launch->mask, launch->count, launch->row);
    const size_t counts = (size_t)n * (size_t)launch->n_trials * (size_t)lif_device_chunks(&s->d);
    copy_back(launch->count_host, launch->count, counts * sizeof *launch->count);
  }
  copy_back(launch->result, s->result, sizeof *s->result);
  CHECK_CUDA(cudaEventRecord(launch->done, gpu_stream()));
}

/* The launch packs (trial, steps from its first, phase, node) in one number. */
static struct lif_fault fault_of(const struct lif_launch *launch, int *faulty) {
  const unsigned long long key = launch->result->fault;
  if (key >= LIF_FAULT_ELSEWHERE) return (struct lif_fault){.step = LIF_NO_FAULT};
  const unsigned long long steps = (1ull << (LIF_TRIAL_BIT - LIF_STEP_BIT)) - 1;
  *faulty = (int)(key >> LIF_TRIAL_BIT);
  return (struct lif_fault){.step = launch->step + (int64_t)(key >> LIF_STEP_BIT & steps),
                            .phase = (int)(key >> LIF_PHASE_BIT & 7),
                            .node = (nodeid)(key & ((1ull << LIF_PHASE_BIT) - 1)),
                            .value = launch->result->fault_value};
}

static int64_t sum_of(const int32_t *count, int64_t n) {
  int64_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += count[i];
  return sum;
}

/* A trial's spikes of the launch, `row` on the device, behind those that it has. */
static void take_rows(struct lif_engine *s, int k, const int32_t *count, int n_steps,
                      const uint32_t *row) {
  struct lif_spikes *mine = &s->mine[k];
  const int chunks = lif_device_chunks(&s->d);
  const int64_t n = sum_of(count, (int64_t)n_steps * chunks);
  room_for_rows(s, k, mine->n + n);
  if (n > 0)
    CHECK_CUDA(cudaMemcpyAsync(mine->row + mine->n, row, (size_t)n * sizeof *row,
                               cudaMemcpyDeviceToHost, s->copies));
  for (int i = 0; i < n_steps; i++) {
    mine->step_ptr[mine->n_steps++] = mine->n;
    mine->n += sum_of(count + (int64_t)i * chunks, chunks);
  }
  mine->step_ptr[mine->n_steps] = mine->n;
}

static void take_launch(struct lif_engine *s, const struct lif_launch *launch) {
  const uint32_t *row = launch->row;
  room_for_steps(s, s->mine[0].n_steps + launch->n);
  for (int k = 0; k < launch->n_trials; k++) {
    const int64_t before = s->mine[k].n;
    take_rows(s, k, launch->count_host + (int64_t)k * launch->n * lif_device_chunks(&s->d),
              launch->n, row);
    row += s->mine[k].n - before;
  }
  s->spikes_per_step = (double)(row - launch->row) / launch->n;
  CHECK_CUDA(cudaStreamSynchronize(s->copies));
}

static void launch_finish(struct lif_engine *s, const struct lif_launch *launch, bool lists,
                          struct lif_tally *tally) {
  CHECK_CUDA(cudaEventSynchronize(launch->done));
  if (lists) take_launch(s, launch);
  for (int k = 0; k < launch->n_trials; k++) {
    const unsigned long long *counts = launch->result->tally[k];
    tally[k].sent += (int64_t)counts[LIF_SENT], tally[k].events += (int64_t)counts[LIF_EVENTS];
    tally[k].host_events += (int64_t)counts[LIF_HOST_EVENTS];
  }
  /* Launches must be of one length on all joined ranks: by what all know. */
  if (s->exchange) s->spikes_per_step = (double)launch->result->tally[0][LIF_SENT] / launch->n;
}

/* ---- launches ---- */

/* From the activity seen last. */
static int launch_length(const struct lif_engine *s, int64_t left) {
  int64_t steps = s->launch_steps;
  const int batch = s->net->min_delay;
  if (s->spikes_per_step * (double)steps > LAUNCH_SPIKES)
    steps = (int64_t)(LAUNCH_SPIKES / s->spikes_per_step);
  if (steps > batch) steps -= steps % batch;
  if (steps < batch) steps = s->launch_steps < batch ? s->launch_steps : batch;
  return (int)(left < steps ? left : steps);
}

static bool enough(const struct lif_engine *s, const struct lif_tally *tally) {
  if (s->exchange) return tally->sent >= ENOUGH_SPIKES;
  int64_t n = 0;
  for (int k = 0; k < s->n_trials; k++) n += s->mine[k].n;
  return n >= ENOUGH_SPIKES;
}

static bool is_faulty(const struct lif_launch *launch) {
  return launch->result->fault != ~0ull;
}

/* A launch that meets a fault still ends its batch. */
static int steps_made(const struct lif_engine *s, const struct lif_launch *launch,
                      const struct lif_fault *fault) {
  if (fault->step == LIF_NO_FAULT) return launch->n;
  const int batch = s->net->min_delay,
            until = ((int)(fault->step - launch->step) / batch + 1) * batch;
  return until < launch->n ? until : launch->n;
}

static void start_lists(struct lif_engine *s, int n_trials) {
  s->d.n_trials = n_trials;
  for (int k = 0; k < s->n_trials; k++) {
    s->mine[k].n = s->mine[k].n_steps = 0;
    s->mine[k].step_ptr[0] = 0;
  }
}

int64_t lif_launches_run(struct lif_engine *s, int n_trials, int64_t n, struct lif_spikes *mine,
                         struct lif_tally *tally, struct lif_fault *fault, int *faulty) {
  const int64_t start = s->step;
  const bool lists = mine != NULL;
  for (int k = 0; k < n_trials; k++) tally[k] = (struct lif_tally){0};
  start_lists(s, n_trials);
  int64_t queued = launch_length(s, n), made = 0;
  bool more = true, faulted = false;
  launch_start(s, &s->launch[0], start, (int)queued, true, lists);
  for (int i = 0; more; i ^= 1) {
    const int next = launch_length(s, n - queued);
    more = next > 0 && !enough(s, tally);
    if (more) launch_start(s, &s->launch[i ^ 1], start + queued, next, true, lists);
    if (more) queued += next;
    launch_finish(s, &s->launch[i], lists, tally);
    *fault = fault_of(&s->launch[i], faulty);
    made += steps_made(s, &s->launch[i], fault);
    faulted = is_faulty(&s->launch[i]);
    if (faulted) break;
  }
  if (faulted) forget_fault(s);
  s->step = start + made;
  for (int k = 0; k < n_trials && lists; k++) {
    if (s->mine[k].n_steps > made)
      s->mine[k].n_steps = (int)made, s->mine[k].n = s->mine[k].step_ptr[made];
    mine[k] = s->mine[k];
  }
  return made;
}

void lif_launches_integrate(struct lif_engine *s, int n, struct lif_spikes *mine,
                            struct lif_fault *fault) {
  struct lif_tally none = {0};
  int faulty;
  start_lists(s, 1);
  fault->step = LIF_NO_FAULT;
  while (s->mine->n_steps < n && fault->step == LIF_NO_FAULT) {
    launch_start(s, &s->launch[0], s->step + s->mine->n_steps,
                 launch_length(s, n - s->mine->n_steps), false, true);
    launch_finish(s, &s->launch[0], true, &none);
    *fault = fault_of(&s->launch[0], &faulty);
  }
  *mine = *s->mine;
}
