/* Times LIF steps on the GPU, spikes recorded: bench_lif. Cases as the program's bench has them:
 * `idle`, everybody leaks and nobody fires; `active`, a share of the neurons, drawn anew each step,
 * is made to fire.
 */
#include "kernels/interface/backends.h"
#include "lif_case.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* With `recorded` the spikes of every step come to the host. */
static void bench(const struct lif_data *d, const char *name, double share, int64_t steps,
                  bool recorded) {
  const struct lif_backend *be = backend_cuda.lif;
  const struct lif_params p = {.threshold = 1500000000, .n_shifts = 1, .shift = {12}};
  const struct lif_stimulus kick = {.kind = LIF_POISSON,
                                    .last_step = INT64_MAX,
                                    .value = 1900000000,
                                    .probability = share,
                                    .n = d->net.n_own,
                                    .neuron = d->all};
  struct lif_engine *state;
  const struct status s = be->open(&d->net, &p, &kick, share > 0, 9, 1, &state);
  if (s.code) DIE(s.code, "%s", s.text);
  int32_t *v = NEW(int32_t, d->net.n_own);
  for (lidx i = 0; i < d->net.n_own; i++) v[i] = share > 0 ? 1000 : 1000000000 + i;
  uint16_t *counter = NEW_ZERO(uint16_t, d->net.n_own);
  int64_t *ring = NEW_ZERO(int64_t, (int64_t)d->net.n_own * d->net.max_delay);
  be->write(state, 0, &(struct lif_state){.potential = v, .counter = counter, .ring = ring});
  double best = 1e9;
  int64_t spikes = 0, events = 0, made = 0;
  for (int repeat = 0; repeat < 4; repeat++) {
    struct lif_spikes mine;
    struct lif_tally tally;
    struct lif_fault fault;
    const double start = now();
    spikes = events = made = 0;
    while (made < steps) {
      made += be->run(state, steps - made, recorded ? &mine : NULL, &tally, &fault);
      if (fault.step != INT64_MAX)
        DIE(EXIT_RUNTIME, "overflow at step %lld", (long long)fault.step);
      spikes += tally.sent, events += tally.events;
    }
    const double seconds = (now() - start) / (double)made;
    if (repeat > 0 && seconds < best) best = seconds;
  }
  printf("%-8s %6.2f us/step  %9.0f spikes  %10.0f events a step  %.2e events/s  (%lld steps, "
         "spikes %s)\n",
         name, best * 1e6, (double)spikes / (double)made, (double)events / (double)made,
         (double)events / (double)made / best, (long long)made,
         recorded ? "copied to the host" : "not recorded");
  fflush(stdout);
  be->close(state);
  mem_free(v), mem_free(counter), mem_free(ring);
}

/* bench_lif [CASE]: one case, 0 to 3, or all. */
int main(int argc, char **argv) {
  const struct status s = backend_cuda.start(0);
  if (s.code) DIE(s.code, "%s", s.text);
  static const struct {
    const char *name;
    double share;
    int64_t steps;
  } cases[] = {
      {"idle", 0, 10000}, {"0.1 %", 0.001, 5000}, {"1 %", 0.01, 5000}, {"10 %", 0.1, 2000}};
  struct lif_data d;
  lif_data_init(&(struct lif_case){211577, 24678466, 1.25, 1, 8, 10, false, false}, &d);
  for (int i = 0; i < 4; i++)
    for (int recorded = 1; recorded >= 0 && (argc < 2 || atoi(argv[1]) == i); recorded--)
      bench(&d, cases[i].name, cases[i].share, cases[i].steps, recorded);
  printf("device memory %.2f GB\n", (double)backend_cuda.peak() / 1e9);
  lif_data_free(&d);
  backend_cuda.stop();
  return 0;
}
