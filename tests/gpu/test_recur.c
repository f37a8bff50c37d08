/* The recurrence on the GPU against float64: batches, microsteps, small leaks, odd
 * graphs; and twice the same bits. gpu_test_recur [small]: only graphs of at most 100,000
 * edges, for slow tools. */
#include "kernels/interface/backends.h"
#include "core/mem.h"
#include "recur_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double ALLOWED = 1e-6;

static bool repeats(const struct recur_data *d, struct recur *r) {
  int64_t n;
  float *once = recur_results(d, r, &n);
  recur_data_put(d, r);
  backend_cuda.recur->window_forward(r), backend_cuda.recur->window_backward(r);
  float *twice = recur_results(d, r, &n);
  const bool same = !memcmp(once, twice, (size_t)n * sizeof *once);
  mem_free(once), mem_free(twice);
  return same;
}

static bool passes(const struct recur_case *c) {
  const struct recur_backend *be = backend_cuda.recur;
  struct recur_data d = recur_data(c);
  d.net.graph = &d.graph;
  struct recur *r;
  const struct status s = be->open(&d.net, 1, &r);
  if (s.code) DIE(s.code, "%s", s.text);
  recur_data_put(&d, r);
  be->window_forward(r), be->window_backward(r);
  char name[64];
  snprintf(name, sizeof name, "N %d E %lld B %d T %d M %d%s", c->n, (long long)c->edges, c->batch,
           c->steps, c->microsteps, c->small_leak > 0 ? " small" : "");
  const double worst = recur_errors(name, &d, r);
  const bool same = repeats(&d, r), good = worst < ALLOWED && same;
  if (!good)
    printf("FAILED: %s: error %.2e, %s\n", name, worst,
           same ? "repeats" : "does not repeat bit for bit");
  be->close(r);
  recur_data_free(&d);
  return good;
}

/* ---- mixed precision against the cpu backend, which is its specification ---- */

static void put(const struct recur_backend *be, struct recur *r, const struct recur_data *d) {
  const size_t n = (size_t)d->graph.n_own, TB = (size_t)(d->net.shape.steps * d->net.shape.batch);
  memcpy(be->value(r), d->value, sizeof(float) * (size_t)d->graph.near.n_edges);
  memcpy(be->leak(r), d->leak, sizeof(float) * n), memcpy(be->bias(r), d->bias, sizeof(float) * n);
  memcpy(be->drive(r), d->drive, sizeof(float) * TB * (size_t)d->net.n_in);
  memcpy(be->d_output(r), d->d_output, sizeof(float) * TB * (size_t)d->net.n_out);
  memcpy(be->state(r, 0), d->state0, sizeof(float) * n * (size_t)d->net.shape.batch);
}

static double apart(const float *there, const float *here, int64_t n) {
  float *got = NEW(float, n);
  double *want = NEW(double, n);
  backend_cuda.get(got, there, (size_t)n * sizeof *got);
  for (int64_t i = 0; i < n; i++) want[i] = here[i];
  const double error = relative_error(got, want, n);
  mem_free(got), mem_free(want);
  return error;
}

/* Worst of the two that all others go into. */
static double worst_apart(struct recur *gpu, struct recur *cpu, const struct recur_data *d) {
  const struct recur_backend *g = backend_cuda.recur, *c = backend_cpu.recur;
  const double value = apart(g->d_value(gpu), c->d_value(cpu), d->graph.near.n_edges),
               state = apart(g->d_state(gpu), c->d_state(cpu),
                             (int64_t)d->graph.n_own * d->net.shape.batch);
  return value > state || !(value <= state) ? value : state;
}

/* One character: a last digit now and then turns a rounding over, and each makes more in the next
 * microstep.
 */
static bool mixed_passes(lidx n, eidx edges, int batch, float small_leak) {
  static const double most = 5e-5;
  const struct recur_case c = {n, edges, 1.0, batch, 1, 2, small_leak};
  struct recur_data d = recur_data(&c);
  d.net.graph = &d.graph, d.net.mixed = true;
  struct recur *gpu, *cpu;
  const struct status s = backend_cuda.recur->open(&d.net, 1, &gpu);
  const struct status t = backend_cpu.recur->open(&d.net, 1, &cpu);
  if (s.code || t.code) DIE(EXIT_RUNTIME, "%s%s", s.text, t.text);
  recur_data_put(&d, gpu), put(backend_cpu.recur, cpu, &d);
  backend_cuda.recur->window_forward(gpu), backend_cuda.recur->window_backward(gpu);
  backend_cpu.recur->window_forward(cpu), backend_cpu.recur->window_backward(cpu);
  const double worst = worst_apart(gpu, cpu, &d);
  const bool same = repeats(&d, gpu), good = worst < most && same;
  printf("%smixed N %d B %d: %.1e from the cpu%s\n", good ? "" : "FAILED: ", n, batch, worst,
         same ? "" : ", bits differ");
  backend_cuda.recur->close(gpu), backend_cpu.recur->close(cpu);
  recur_data_free(&d);
  return good;
}

static int mixed_failures(void) {
  static const int batch[] = {1, 7, 8, 16, 32, 33, 40, 64, 128};
  int failed = !mixed_passes(300, 9000, 32, 0.3f) + !mixed_passes(66000, 90000, 32, 0.1f);
  for (size_t i = 0; i < sizeof batch / sizeof *batch; i++)
    failed += !mixed_passes(300, 9000, batch[i], 0);
  return failed;
}

/* ---- all shapes ---- */

static const struct recur_case odd[] = {
    {300, 9000, 1.0, 32, 5, 2, 0.3f},   {300, 9000, 1.0, 40, 1, 1, 0.3f},
    {50, 20000, 2.0, 32, 3, 2, 0},      {50, 20000, 2.0, 1, 3, 2, 0},
    {1000, 300, 1.0, 32, 3, 2, 0},      {70000, 400000, 1.5, 32, 2, 2, 0.1f},
    {20, 30000, 0.5, 8, 3, 3, 0},       {3000, 90000, 1.25, 16, 8, 2, 0},
    {70000, 400000, 1.5, 16, 2, 2, 0},  {70000, 400000, 1.5, 64, 2, 1, 0},
    {5000, 524324, 0.65, 32, 3, 2, 0},  {2000, 60000, 1.0, 24, 3, 1, 0.1f},
    {4900, 30000, 1.25, 32, 2, 3, 0},   {400, 120000, 0.3, 32, 4, 2, 0},
    {66000, 99000, 2.0, 16, 2, 2, 0.1f}};

/* Of the persistent window only the shapes that it may take. */
static int failures(bool persistent, eidx most_edges) {
  static const int batch[] = {1, 2, 4, 7, 8, 16, 24, 32, 33, 40, 64, 70, 96, 128, 160};
  setenv("FASCICLE_WINDOW", persistent ? "persistent" : "microsteps", 1);
  printf("%s\n", persistent ? "persistent window:" : "microstep by microstep:");
  int failed = 0;
  for (size_t i = 0; i < sizeof batch / sizeof *batch; i++) {
    const struct recur_case c = {300, 9000, 1.0, batch[i], 5, 1 + (int)i % 3, 0};
    if (!persistent || (batch[i] % 8 == 0 && batch[i] <= 32)) failed += !passes(&c);
  }
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
    if (odd[i].edges <= most_edges && (!persistent || (odd[i].batch % 8 == 0 && odd[i].n <= 5000)))
      failed += !passes(&odd[i]);
  return failed;
}

int main(int argc, char **argv) {
  const struct status s = backend_cuda.start(0);
  if (s.code) DIE(s.code, "%s", s.text);
  const eidx most = argc > 1 && !strcmp(argv[1], "small") ? 100000 : 1 << 30;
  const int failed = failures(false, most) + failures(true, most) + mixed_failures();
  backend_cuda.stop();
  printf(failed ? "%d cases failed\n" : "recurrence: all cases pass\n", failed);
  return failed > 0;
}
