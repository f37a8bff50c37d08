/* LIF on the GPU against the plain loop (small nets) and the cpu backend (a large one): the same
 * bits, the same faults. */
#include "kernels/interface/backends.h"
#include "lif_case.h"
#include "core/mem.h"
#include "core/rng.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

static int failed;

static int32_t *potentials(lidx n, int32_t range) {
  int32_t *v = NEW(int32_t, n);
  for (lidx i = 0; i < n; i++)
    v[i] = (int32_t)(rng_draw(31, (uint32_t)i, 0, 0, 0).v[0] % (uint32_t)range) - range / 4;
  return v;
}

static void compare(const char *name, const struct lif_outcome *got,
                    const struct lif_outcome *want) {
  const bool same_fault =
      got->fault.step == want->fault.step &&
      (want->fault.step == INT64_MAX ||
       (got->fault.phase == want->fault.phase && got->fault.node == want->fault.node &&
        got->fault.value == want->fault.value));
  const bool good = same_fault && !strcmp(got->digest, want->digest);
  printf("%-34s %8lld spikes  %.16s  %s\n", name, (long long)want->spikes, got->digest,
         good ? "equal" : "DIFFERENT");
  if (!same_fault)
    printf("  fault: step %lld phase %d node %lld value %lld, wanted %lld %d %lld %lld\n",
           (long long)got->fault.step, got->fault.phase, (long long)got->fault.node,
           (long long)got->fault.value, (long long)want->fault.step, want->fault.phase,
           (long long)want->fault.node, (long long)want->fault.value);
  failed += !good;
}

enum { TRIALS = 3 };

/* Several trials at once. A trial runs to its end if none below it meets a fault. */
static void check_trials(const char *name, const struct lif_data *d, const struct lif_job *job,
                         const struct lif_backend *truth) {
  struct lif_outcome got[TRIALS];
  struct lif_job one = *job;
  bool whole = true;
  lif_outcomes(backend_cuda.lif, d, job, TRIALS, got);
  for (int k = 0; k < TRIALS && whole; k++, one.trial++) {
    const struct lif_outcome want = lif_outcome(truth, d, &one);
    compare(name, &got[k], &want);
    whole = want.fault.step == INT64_MAX;
  }
}

/* The device's other ways to run a net: by batches; several trials at once; with edges in host
 * memory and room on the device for a fifth of them, or for none. */
static void check_ways(struct lif_data *d, const struct lif_job *job,
                       const struct lif_outcome *want, const struct lif_backend *truth) {
  struct lif_job by_batches = *job;
  by_batches.by_batches = true;
  struct lif_outcome got = lif_outcome(backend_cuda.lif, d, &by_batches);
  compare("  in batches", &got, want);
  check_trials("  trials together", d, job, truth);
  d->net.on_host = true;
  for (int share = 0; share < 2; share++) {
    char name[64];
    d->net.device_room = d->net.n_edges * (eidx)sizeof *d->net.out * share / 5;
    got = lif_outcome(backend_cuda.lif, d, job);
    snprintf(name, sizeof name, "  %lld edges from the host", (long long)got.host_events);
    compare(name, &got, want);
  }
  check_trials("  and trials together", d, job, truth);
  d->net.on_host = false;
}

static void check(const char *name, const struct lif_case *c, const struct lif_params *p,
                  int64_t steps, const struct lif_backend *truth, int32_t kick) {
  struct lif_data d;
  lif_data_init(c, &d);
  const int64_t at[] = {7, 8, 21, 22};
  lidx some[3] = {1, c->n / 2, c->n - 1};
  const struct lif_stimulus stimulus[] = {
      {.kind = LIF_POISSON,
       .last_step = 100000,
       .value = kick,
       .probability = 0.02,
       .n = c->n,
       .neuron = d.all},
      {.kind = LIF_CURRENT,
       .index = 1,
       .first_step = 10,
       .last_step = 40,
       .value = kick / 8,
       .n = c->n / 3,
       .neuron = d.all},
      {.kind = LIF_SPIKES,
       .index = 2,
       .first_step = 7,
       .last_step = 22,
       .n = 3,
       .neuron = some,
       .n_steps = 4,
       .step = at},
      {.kind = LIF_POISSON,
       .index = 3,
       .first_step = 12,
       .last_step = 90,
       .value = -kick / 3,
       .probability = 0.3,
       .n = c->n / 2,
       .neuron = d.all},
  };
  int32_t *v = potentials(c->n, p->threshold > 0 ? p->threshold : 1000);
  const struct lif_job job = {.params = p,
                              .stimulus = stimulus,
                              .n_stimuli = 4,
                              .potential = v,
                              .steps = steps,
                              .trial = 3,
                              .n_threads = omp_get_max_threads()};
  const struct lif_outcome want = lif_outcome(truth, &d, &job);
  const struct lif_outcome alone = lif_outcome(backend_cuda.lif, &d, &job);
  compare(name, &alone, &want);
  if (c->n < 100000) check_ways(&d, &job, &want, truth);
  if (c->n > 250000) check_trials("  trials together", &d, &job, truth);
  mem_free(v);
  lif_data_free(&d);
}

static const struct lif_params usual = {
    .threshold = 1000, .reset = -20, .n_shifts = 2, .shift = {4, 7}, .refractory = 3};
static const struct lif_params tall = {
    .threshold = 2000000000, .reset = 1900000000, .n_shifts = 1, .shift = {31}};

static void check_quick(void) {
  const struct lif_params eager = {
      .threshold = -5, .reset = 0, .n_shifts = 1, .shift = {3}, .refractory = 0};
  const struct lif_backend *plain = &lif_plain;
  check("300, delays 1..8", &(struct lif_case){300, 9000, 1.0, 1, 8, 300, false, false}, &usual,
        300, plain, 1500);
  check("300, wide", &(struct lif_case){300, 9000, 1.0, 1, 8, 300, true, false}, &usual, 300, plain,
        1500);
  check("20, all fire, mutes", &(struct lif_case){20, 5000, 1.0, 1, 2, 9, false, true}, &eager, 60,
        plain, 100);
  check("400, overflow", &(struct lif_case){400, 9000, 1.0, 1, 3, 30000, true, false}, &tall, 200,
        plain, 300000000);
  check("1, no edges", &(struct lif_case){1, 0, 1.0, 1, 1, 1, false, false}, &usual, 50, plain,
        1500);
}

static void check_more(void) {
  const struct lif_params all_fire = {.threshold = -300, .reset = 0, .n_shifts = 1, .shift = {3}};
  const struct lif_backend *plain = &lif_plain;
  check("400, overflow, delays 4..6", &(struct lif_case){400, 9000, 1.0, 4, 6, 30000, false, true},
        &tall, 200, plain, 300000000);
  check("3000, delays 3..9, mutes", &(struct lif_case){3000, 90000, 1.3, 3, 9, 200, false, true},
        &usual, 200, plain, 1500);
  check("3000, delay 18", &(struct lif_case){3000, 90000, 1.3, 18, 18, 200, false, true}, &usual,
        200, plain, 1500);
  check("9000, delay 300", &(struct lif_case){9000, 90000, 1.3, 290, 300, 200, false, true}, &usual,
        700, plain, 1500);
  /* more than the registers hold, and in one step more spikes than a block lists at a time */
  check("300000", &(struct lif_case){300000, 1500000, 1.25, 1, 4, 200, false, true}, &usual, 24,
        backend_cpu.lif, 1500);
  check("300000, all fire", &(struct lif_case){300000, 600000, 1.0, 1, 2, 9, false, false},
        &all_fire, 6, backend_cpu.lif, 100);
}

/* gpu_test_lif [quick|full]: the smallest nets alone; or the full-size run
 * of 10,000 steps as well. */
int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  const struct status s = backend_cuda.start(0);
  if (s.code) DIE(s.code, "%s", s.text);
  check_quick();
  if (strcmp(how, "quick")) check_more();
  if (!strcmp(how, "full"))
    check("211577, lively", &(struct lif_case){211577, 24678466, 1.25, 1, 8, 40, false, false},
          &usual, 10000, backend_cpu.lif, 1500);
  backend_cuda.stop();
  printf(failed ? "%d comparisons failed\n" : "lif: all comparisons equal\n", failed);
  return failed > 0;
}
