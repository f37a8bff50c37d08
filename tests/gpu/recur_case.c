/* Recurrences for the GPU tests, and their errors against float64. */
#include "recur_case.h"
#include "kernels/interface/backends.h"
#include "core/mem.h"
#include "core/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static float *normals(uint32_t stream, int64_t n, float scale) {
  float *x = NEW(float, n);
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) x[i] = scale * synthetic_normal(5, stream, i);
  return x;
}

static float *leaks(lidx n, float small_share) {
  float *a = NEW(float, n);
  for (lidx i = 0; i < n; i++) {
    const struct rng_block b = rng_draw(6, 0, (uint32_t)i, 0, 0);
    const float u = (float)rng_unit(b.v[0], b.v[1]);
    a[i] = (float)rng_unit(b.v[2], b.v[3]) < small_share ? 0.001f + 0.09f * u : 0.2f + 0.6f * u;
  }
  return a;
}

/* Every seventh row takes the drive, every fifth is read out. */
static lidx *every(lidx n, lidx step, lidx *n_chosen) {
  lidx *row = NEW(lidx, n / step + 1);
  *n_chosen = 0;
  for (lidx i = step / 2; i < n; i += step) row[(*n_chosen)++] = i;
  return row;
}

struct recur_data recur_data(const struct recur_case *c) {
  struct recur_data d = {.graph = synthetic_graph(c->n, c->edges, c->sigma, 1)};
  const lidx step = c->n > 1000 ? 40 : 5;
  d.in = every(c->n, step + 2, &d.net.n_in), d.out = every(c->n, step, &d.net.n_out);
  d.net.in = d.in, d.net.out = d.out;
  d.net.shape = (struct recur_shape){c->batch, c->steps, c->microsteps};
  d.net.want_gradient = true;
  const int64_t B = c->batch, T = c->steps;
  d.value = normals(1, d.graph.near.n_edges, 1);
  for (lidx i = 0; i < c->n; i++)
    for (eidx e = d.graph.near.row_ptr[i]; e < d.graph.near.row_ptr[i + 1]; e++)
      d.value[e] /= sqrtf((float)(d.graph.near.row_ptr[i + 1] - d.graph.near.row_ptr[i]));
  d.leak = leaks(c->n, c->small_leak), d.bias = normals(2, c->n, 0.1f);
  d.drive = normals(3, T * d.net.n_in * B, 1), d.d_output = normals(4, T * d.net.n_out * B, 1e-3f);
  d.state0 = normals(5, c->n * B, 0.3f);
  return d;
}

void recur_data_free(struct recur_data *d) {
  synthetic_free(&d->graph);
  mem_free(d->in), mem_free(d->out), mem_free(d->value), mem_free(d->leak), mem_free(d->bias);
  mem_free(d->drive), mem_free(d->d_output), mem_free(d->state0);
}

static size_t floats(int64_t n) {
  return (size_t)n * sizeof(float);
}

void recur_data_put(const struct recur_data *d, struct recur *r) {
  const struct backend *b = &backend_cuda;
  const int64_t n = d->graph.n_own, B = d->net.shape.batch, T = d->net.shape.steps;
  b->put(b->recur->value(r), d->value, floats(d->graph.near.n_edges));
  b->put(b->recur->leak(r), d->leak, floats(n)), b->put(b->recur->bias(r), d->bias, floats(n));
  b->put(b->recur->drive(r), d->drive, floats(T * d->net.n_in * B));
  b->put(b->recur->d_output(r), d->d_output, floats(T * d->net.n_out * B));
  b->put(b->recur->state(r, 0), d->state0, floats(n * B));
}

enum { PARTS = 6 };
struct part {
  const char *name;
  const float *at;
  int64_t n;
};

static void parts_of(const struct recur_data *d, struct recur *r, struct part *part) {
  const struct recur_backend *be = backend_cuda.recur;
  const int64_t n = d->graph.n_own, B = d->net.shape.batch, T = d->net.shape.steps;
  const struct part all[PARTS] = {{"output", be->output(r), T * d->net.n_out * B},
                                  {"d_value", be->d_value(r), d->graph.near.n_edges},
                                  {"d_leak", be->d_leak(r), n},
                                  {"d_bias", be->d_bias(r), n},
                                  {"d_drive", be->d_drive(r), T * d->net.n_in * B},
                                  {"d_state", be->d_state(r), n * B}};
  memcpy(part, all, sizeof all);
}

float *recur_results(const struct recur_data *d, struct recur *r, int64_t *n) {
  struct part part[PARTS];
  parts_of(d, r, part);
  *n = 0;
  for (int p = 0; p < PARTS; p++) *n += part[p].n;
  float *all = NEW(float, *n), *at = all;
  for (int p = 0; p < PARTS; at += part[p++].n) backend_cuda.get(at, part[p].at, floats(part[p].n));
  return all;
}

double recur_errors(const char *name, const struct recur_data *d, struct recur *r) {
  struct reference ref = {&d->net, d->value, d->leak, d->bias, d->drive, d->d_output, d->state0,
                          NULL,    NULL,     NULL,    NULL,    NULL,     NULL};
  reference_run(&ref);
  const double *want[PARTS] = {ref.output, ref.d_value, ref.d_leak,
                               ref.d_bias, ref.d_drive, ref.d_state0};
  struct part part[PARTS];
  parts_of(d, r, part);
  double worst = 0;
  printf("%-28s", name);
  for (int p = 0; p < PARTS; p++) {
    float *got = NEW(float, part[p].n);
    backend_cuda.get(got, part[p].at, floats(part[p].n));
    const double error = relative_error(got, want[p], part[p].n);
    printf(" %s %.1e", part[p].name, error);
    if (!(error <= worst)) worst = error;
    mem_free(got);
  }
  printf("\n");
  reference_free(&ref);
  return worst;
}
