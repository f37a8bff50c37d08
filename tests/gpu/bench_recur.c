/* Times one window of the recurrence on the GPU at the four shapes: bench_recur [--check] [--shape
 * I] [--batch B,B,..] [--mixed]. */
#include "kernels/interface/backends.h"
#include "core/mem.h"
#include "recur_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Median seconds of one window of `once`, by windows in a row between two waits. */
static double median(struct recur *r, void (*once)(struct recur *), int repeats, int in_a_row) {
  double *seconds = NEW(double, repeats);
  float word;
  for (int i = -2; i < repeats; i++) {
    const double start = now();
    for (int j = 0; j < in_a_row; j++) once(r);
    backend_cuda.get(&word, backend_cuda.recur->leak(r), sizeof word);
    if (i >= 0) seconds[i] = (now() - start) / in_a_row;
  }
  qsort(seconds, (size_t)repeats, sizeof *seconds, by_size);
  const double middle = seconds[repeats / 2];
  mem_free(seconds);
  return middle;
}

static void bench(const struct recur_case *c, bool check, bool mixed) {
  const struct recur_backend *be = backend_cuda.recur;
  struct recur_data d = recur_data(c);
  d.net.graph = &d.graph, d.net.mixed = mixed;
  struct recur *r;
  const struct status s = be->open(&d.net, 1, &r);
  if (s.code) DIE(s.code, "%s", s.text);
  recur_data_put(&d, r);
  be->window_forward(r), be->window_backward(r);
  if (check) recur_errors("check", &d, r);
  const int in_a_row = c->n <= 10000 ? 8 : 1;
  const double f = median(r, be->window_forward, 10, in_a_row),
               b = median(r, be->window_backward, 10, in_a_row);
  const double K = c->steps * c->microsteps,
               gathered = 4.0 * c->batch * (double)d.graph.near.n_edges * K;
  printf("N %6d E %8lld B %3d %s: forward %8.3f ms (%6.2f us, %4.1f TB/s)  backward %8.3f ms "
         "(%6.2f us, %4.1f "
         "TB/s)  total %8.3f ms  %.2f GB (predicted %.2f)\n",
         c->n, (long long)d.graph.near.n_edges, c->batch, mixed ? "mixed" : "fp32", f * 1e3,
         f * 1e6 / K, gathered / f / 1e12, b * 1e3, b * 1e6 / K, gathered / b / 1e12, (f + b) * 1e3,
         (double)backend_cuda.peak() / 1e9, (double)be->bytes(&d.net) / 1e9);
  fflush(stdout);
  be->close(r);
  recur_data_free(&d);
}

int main(int argc, char **argv) {
  const struct status s = backend_cuda.start(0);
  if (s.code) DIE(s.code, "%s", s.text);
  bool check = false, mixed = false;
  int only = -1;
  const char *batches = "32";
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--check")) check = true;
    if (!strcmp(argv[i], "--mixed")) mixed = true;
    if (!strcmp(argv[i], "--shape") && i + 1 < argc) only = atoi(argv[++i]);
    if (!strcmp(argv[i], "--batch") && i + 1 < argc) batches = argv[++i];
  }
  for (const char *at = batches; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    const int batch = atoi(at);
    const struct recur_case shape[] = {{5000, 524324, 0.65, batch, 64, 2, 0},
                                       {10000, 1100000, 0.7, batch, 64, 2, 0},
                                       {160514, 10402842, 1.28, batch, 64, 2, 0},
                                       {211577, 24678466, 1.25, batch, 64, 2, 0}};
    for (int i = 0; i < 4; i++)
      if (only < 0 || only == i) bench(&shape[i], check && i == 0, mixed);
  }
  backend_cuda.stop();
  return 0;
}
