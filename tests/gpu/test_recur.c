/* The recurrence on the GPU against float64: batches, microsteps, small leaks, odd graphs; and twice the same
 * bits. */
#include "backends.h"
#include "mem.h"
#include "recur_case.h"

#include <stdio.h>
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
  snprintf(name, sizeof name, "N %d E %lld B %d T %d M %d%s", c->n, (long long)c->edges, c->batch, c->steps,
           c->microsteps, c->small_leak > 0 ? " small" : "");
  const double worst = recur_errors(name, &d, r);
  const bool same = repeats(&d, r), good = worst < ALLOWED && same;
  if (!good)
    printf("FAILED: %s: error %.2e, %s\n", name, worst, same ? "repeats" : "does not repeat bit for bit");
  be->close(r);
  recur_data_free(&d);
  return good;
}

int main(void) {
  const struct status s = backend_cuda.start(0, 1);
  if (s.code) DIE(s.code, "%s", s.text);
  static const int batch[] = {1, 2, 4, 7, 8, 16, 32, 33, 40, 64, 70, 128};
  int failed = 0;
  for (size_t i = 0; i < sizeof batch / sizeof *batch; i++) {
    const struct recur_case c = {300, 9000, 1.0, batch[i], 5, 1 + (int)i % 3, 0};
    failed += !passes(&c);
  }
  const struct recur_case more[] = {{300, 9000, 1.0, 32, 5, 2, 0.3f}, {300, 9000, 1.0, 40, 1, 1, 0.3f},
                                    {50, 20000, 2.0, 32, 3, 2, 0},    {50, 20000, 2.0, 1, 3, 2, 0},
                                    {1000, 300, 1.0, 32, 3, 2, 0},    {70000, 400000, 1.5, 32, 2, 2, 0.1f},
                                    {20, 30000, 0.5, 8, 3, 3, 0},     {3000, 90000, 1.25, 16, 8, 2, 0}};
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) failed += !passes(&more[i]);
  backend_cuda.stop();
  printf(failed ? "%d cases failed\n" : "recurrence: all cases pass\n", failed);
  return failed > 0;
}
