/* Steps on the device in legs: while one runs, the host takes the spikes of the one before. */
#include "state.h"
#include "route.h"
#include "core/mem.h"

#include <string.h>

enum {
  LEG_SPIKES = 1 << 20
}; /* about so many spikes in a leg, so that the last one's copy is short */
enum { ENOUGH_SPIKES = 1 << 23 }; /* a run returns when it has so many */
enum { MANY_STEPS = 512 };        /* a small net has room for all its neurons in so many */

/* ---- room ---- */

static void leg_init(struct lif_leg *leg, const struct lif_engine *s) {
  const int64_t steps = (int64_t)s->leg_steps * s->n_trials;
  leg->mask = GPU_ZERO(uint32_t, steps * s->d.n_words);
  leg->row = GPU_ZERO(uint32_t, steps * s->d.n);
  leg->count = GPU_ZERO(int32_t, steps * lif_device_chunks(&s->d));
  leg->verdict = gpu_pinned(1, sizeof *leg->verdict);
  leg->count_here = gpu_pinned(steps * lif_device_chunks(&s->d), sizeof *leg->count_here);
  CHECK_CUDA(cudaEventCreateWithFlags(&leg->done, cudaEventDisableTiming | cudaEventBlockingSync));
}

static void leg_free(struct lif_leg *leg) {
  gpu_free(leg->mask), gpu_free(leg->row), gpu_free(leg->count);
  gpu_pinned_free(leg->verdict), gpu_pinned_free(leg->count_here);
  CHECK_CUDA(cudaEventDestroy(leg->done));
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

/* Ranks count different spikes of a launch that met a fault: legs of one length
 * cannot follow from these. */
static void forget_fault(struct lif_engine *s) {
  s->spikes_per_step = 0;
  CHECK_CUDA(cudaMemsetAsync(s->d.fault, 0xff, sizeof *s->d.fault, gpu_stream()));
}

void lif_legs_init(struct lif_engine *s) {
  s->leg_steps = lif_launch_steps(s->net->n_own, s->n_trials, s->net->min_delay);
  for (int i = 0; i < LIF_LAUNCHES; i++) leg_init(&s->leg[i], s);
  CHECK_CUDA(cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking));
  s->mine = NEW_ZERO(struct lif_spikes, s->n_trials);
  s->row_room = NEW_ZERO(int64_t, s->n_trials);
  const int64_t rows = (ENOUGH_SPIKES + 2 * LEG_SPIKES) / s->n_trials,
                small = (int64_t)MANY_STEPS * s->d.n;
  for (int k = 0; k < s->n_trials; k++) room_for_rows(s, k, rows < small ? rows : small);
  room_for_steps(s, 2 * LIF_LAUNCH_STEPS);
  forget_fault(s);
}

void lif_legs_free(struct lif_engine *s) {
  for (int i = 0; i < LIF_LAUNCHES; i++) leg_free(&s->leg[i]);
  CHECK_CUDA(cudaStreamDestroy(s->copies));
  for (int k = 0; k < s->n_trials; k++)
    gpu_pinned_free(s->mine[k].row), mem_free(s->mine[k].step_ptr);
  mem_free(s->mine), mem_free(s->row_room);
}

/* ---- one leg ---- */

static void copy_back(void *pinned, const void *there, size_t bytes) {
  CHECK_CUDA(cudaMemcpyAsync(pinned, there, bytes, cudaMemcpyDeviceToHost, gpu_stream()));
}

/* Steps step .. step + n - 1; with `lists` their spikes listed and the counts
 * on the way to the host. */
static void leg_start(struct lif_engine *s, struct lif_leg *leg, int64_t step, int n, bool delivers,
                      bool lists) {
  leg->step = step, leg->n = n, leg->n_trials = s->d.n_trials;
  CHECK_CUDA(cudaMemsetAsync(s->d.tally, 0, sizeof s->verdict->tally, gpu_stream()));
  if (delivers && s->road)
    lif_road_run(s->road, &s->d, s->n_blocks, step, n, leg->mask);
  else
    lif_device_run(&s->d, s->n_blocks, step, n, delivers, leg->mask);
  if (lists) {
    lif_device_list(&s->d, n, leg->mask, leg->count, leg->row);
    const size_t counts = (size_t)n * (size_t)leg->n_trials * (size_t)lif_device_chunks(&s->d);
    copy_back(leg->count_here, leg->count, counts * sizeof *leg->count);
  }
  copy_back(leg->verdict, s->verdict, sizeof *s->verdict);
  CHECK_CUDA(cudaEventRecord(leg->done, gpu_stream()));
}

/* The launch packs (trial, steps from its first, phase, node) in one number. */
static struct lif_fault fault_of(const struct lif_leg *leg, int *faulty) {
  const unsigned long long key = leg->verdict->fault;
  if (key >= LIF_FAULT_ELSEWHERE) return (struct lif_fault){.step = LIF_NO_FAULT};
  const unsigned long long steps = (1ull << (LIF_TRIAL_BIT - LIF_STEP_BIT)) - 1;
  *faulty = (int)(key >> LIF_TRIAL_BIT);
  return (struct lif_fault){.step = leg->step + (int64_t)(key >> LIF_STEP_BIT & steps),
                            .phase = (int)(key >> LIF_PHASE_BIT & 1),
                            .node = (nodeid)(key & ((1ull << LIF_PHASE_BIT) - 1)),
                            .value = leg->verdict->fault_value};
}

static int64_t sum_of(const int32_t *count, int64_t n) {
  int64_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += count[i];
  return sum;
}

/* A trial's spikes of the leg, `row` on the device, behind those that it has. */
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

static void take_leg(struct lif_engine *s, const struct lif_leg *leg) {
  const uint32_t *row = leg->row;
  room_for_steps(s, s->mine[0].n_steps + leg->n);
  for (int k = 0; k < leg->n_trials; k++) {
    const int64_t before = s->mine[k].n;
    take_rows(s, k, leg->count_here + (int64_t)k * leg->n * lif_device_chunks(&s->d), leg->n, row);
    row += s->mine[k].n - before;
  }
  s->spikes_per_step = (double)(row - leg->row) / leg->n;
  CHECK_CUDA(cudaStreamSynchronize(s->copies));
}

static void leg_finish(struct lif_engine *s, const struct lif_leg *leg, bool lists,
                       struct lif_tally *tally) {
  CHECK_CUDA(cudaEventSynchronize(leg->done));
  if (lists) take_leg(s, leg);
  for (int k = 0; k < leg->n_trials; k++) {
    const unsigned long long *counts = leg->verdict->tally[k];
    tally[k].sent += (int64_t)counts[LIF_SENT], tally[k].events += (int64_t)counts[LIF_EVENTS];
    tally[k].host_events += (int64_t)counts[LIF_HOST_EVENTS];
  }
  /* Legs must be of one length on all joined ranks: by what all know. */
  if (s->road) s->spikes_per_step = (double)leg->verdict->tally[0][LIF_SENT] / leg->n;
}

/* ---- legs ---- */

/* From the activity seen last. */
static int leg_length(const struct lif_engine *s, int64_t left) {
  int64_t steps = s->leg_steps;
  const int batch = s->net->min_delay;
  if (s->spikes_per_step * (double)steps > LEG_SPIKES)
    steps = (int64_t)(LEG_SPIKES / s->spikes_per_step);
  if (steps > batch) steps -= steps % batch;
  if (steps < batch) steps = s->leg_steps < batch ? s->leg_steps : batch;
  return (int)(left < steps ? left : steps);
}

static bool enough(const struct lif_engine *s, const struct lif_tally *tally) {
  if (s->road) return tally->sent >= ENOUGH_SPIKES;
  int64_t n = 0;
  for (int k = 0; k < s->n_trials; k++) n += s->mine[k].n;
  return n >= ENOUGH_SPIKES;
}

static bool is_faulty(const struct lif_leg *leg) {
  return leg->verdict->fault != ~0ull;
}

/* A launch that meets a fault still ends its batch. */
static int steps_made(const struct lif_engine *s, const struct lif_leg *leg,
                      const struct lif_fault *fault) {
  if (fault->step == LIF_NO_FAULT) return leg->n;
  const int batch = s->net->min_delay, until = ((int)(fault->step - leg->step) / batch + 1) * batch;
  return until < leg->n ? until : leg->n;
}

static void start_lists(struct lif_engine *s, int n_trials) {
  s->d.n_trials = n_trials;
  for (int k = 0; k < s->n_trials; k++) {
    s->mine[k].n = s->mine[k].n_steps = 0;
    s->mine[k].step_ptr[0] = 0;
  }
}

int64_t lif_legs_run(struct lif_engine *s, int n_trials, int64_t n, struct lif_spikes *mine,
                     struct lif_tally *tally, struct lif_fault *fault, int *faulty) {
  const int64_t start = s->step;
  const bool lists = mine != NULL;
  for (int k = 0; k < n_trials; k++) tally[k] = (struct lif_tally){0};
  start_lists(s, n_trials);
  int64_t queued = leg_length(s, n), made = 0;
  bool more = true, faulted = false;
  leg_start(s, &s->leg[0], start, (int)queued, true, lists);
  for (int i = 0; more; i ^= 1) {
    const int next = leg_length(s, n - queued);
    more = next > 0 && !enough(s, tally);
    if (more) leg_start(s, &s->leg[i ^ 1], start + queued, next, true, lists);
    if (more) queued += next;
    leg_finish(s, &s->leg[i], lists, tally);
    *fault = fault_of(&s->leg[i], faulty);
    made += steps_made(s, &s->leg[i], fault);
    faulted = is_faulty(&s->leg[i]);
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

void lif_legs_integrate(struct lif_engine *s, int n, struct lif_spikes *mine,
                        struct lif_fault *fault) {
  struct lif_tally none = {0};
  int faulty;
  start_lists(s, 1);
  fault->step = LIF_NO_FAULT;
  while (s->mine->n_steps < n && fault->step == LIF_NO_FAULT) {
    leg_start(s, &s->leg[0], s->step + s->mine->n_steps, leg_length(s, n - s->mine->n_steps), false,
              true);
    leg_finish(s, &s->leg[0], true, &none);
    *fault = fault_of(&s->leg[0], &faulty);
  }
  *mine = *s->mine;
}
