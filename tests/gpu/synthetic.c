/* Random graphs of given degrees for the GPU tests and benchmarks. */
#include "synthetic.h"
#include "core/mem.h"
#include "core/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

float synthetic_normal(uint64_t seed, uint32_t stream, int64_t i) {
  return (float)rng_normal(rng_draw(seed, stream, (uint32_t)i, (uint32_t)(i >> 32), 0));
}

static double *lognormal(lidx n, double sigma, uint64_t seed, uint32_t stream) {
  double *w = NEW(double, n);
  for (lidx i = 0; i < n; i++) w[i] = exp(sigma * (double)synthetic_normal(seed, stream, i));
  return w;
}

static int by_value(const void *a, const void *b) {
  return (*(const lidx *)a > *(const lidx *)b) - (*(const lidx *)a < *(const lidx *)b);
}

/* The first i with sum[i] > x */
static lidx find(const double *sum, lidx n, double x) {
  lidx low = 0, high = n - 1;
  while (low < high) {
    const lidx middle = low + (high - low) / 2;
    if (sum[middle] > x)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static void fill_row(struct graph *g, lidx i, const double *out_sum, uint64_t seed) {
  lidx *col = g->near.col + g->near.row_ptr[i];
  const eidx n = g->near.row_ptr[i + 1] - g->near.row_ptr[i];
  for (eidx e = 0; e < n; e++) {
    const struct rng_block b = rng_draw(seed, 3, (uint32_t)i, (uint32_t)e, 0);
    col[e] = find(out_sum, g->n_own, rng_unit(b.v[0], b.v[1]) * out_sum[g->n_own - 1]);
  }
  qsort(col, (size_t)n, sizeof *col, by_value);
}

struct graph synthetic_graph(lidx n, eidx edges, double sigma, uint64_t seed) {
  struct graph g = {.n_global = n, .n_own = n};
  double *in = lognormal(n, sigma, seed, 1), *out = lognormal(n, sigma, seed, 2), total = 0;
  for (lidx i = 0; i < n; i++) total += in[i];
  for (lidx i = 1; i < n; i++) out[i] += out[i - 1];
  g.near.n_rows = n;
  g.near.row_ptr = NEW_ZERO(eidx, (int64_t)n + 1);
  for (lidx i = 0; i < n; i++)
    g.near.row_ptr[i + 1] = g.near.row_ptr[i] + llround(in[i] / total * (double)edges);
  g.near.n_edges = g.near.row_ptr[n];
  g.near.col = NEW(lidx, g.near.n_edges);
#pragma omp parallel for schedule(dynamic, 64)
  for (lidx i = 0; i < n; i++) fill_row(&g, i, out, seed);
  mem_free(in), mem_free(out);
  return g;
}

void synthetic_free(struct graph *g) {
  mem_free(g->near.row_ptr), mem_free(g->near.col);
  memset(g, 0, sizeof *g);
}

double relative_error(const float *x, const double *y, int64_t n) {
  double error = 0, norm = 0;
  for (int64_t i = 0; i < n; i++) error += (x[i] - y[i]) * (x[i] - y[i]), norm += y[i] * y[i];
  return norm > 0 ? sqrt(error / norm) : sqrt(error);
}

/* ---- the recurrence in double ---- */

struct run {
  const struct recur_net *net;
  int64_t n, B, K, M;
  lidx *in_slot, *out_slot, *source_row; /* of each edge by source: its target */
  eidx *source_ptr, *source_edge;
  double *state, *proposal, *g, *q; /* [K + 1][n][B], [K][n][B], [n][B], [n][B] */
};

static void slots(lidx *slot, lidx n, lidx n_chosen, const lidx *row) {
  for (lidx i = 0; i < n; i++) slot[i] = -1;
  for (lidx i = 0; i < n_chosen; i++) slot[row[i]] = i;
}

static struct run run_init(const struct recur_net *net) {
  const struct csr *near = &net->graph->near;
  const int64_t n = net->graph->n_own, B = net->shape.batch, M = net->shape.microsteps,
                K = net->shape.steps * M;
  struct run r = {net,
                  n,
                  B,
                  K,
                  M,
                  NEW(lidx, n),
                  NEW(lidx, n),
                  NEW(lidx, near->n_edges),
                  NEW_ZERO(eidx, n + 2),
                  NEW(eidx, near->n_edges),
                  NEW_ZERO(double, (K + 1) * n * B),
                  NEW_ZERO(double, K *n *B),
                  NEW_ZERO(double, n *B),
                  NEW_ZERO(double, n *B)};
  slots(r.in_slot, (lidx)n, net->n_in, net->in), slots(r.out_slot, (lidx)n, net->n_out, net->out);
  for (eidx e = 0; e < near->n_edges; e++) r.source_ptr[near->col[e] + 2]++;
  for (int64_t j = 0; j < n; j++) r.source_ptr[j + 2] += r.source_ptr[j + 1];
  for (lidx i = 0; i < n; i++)
    for (eidx e = near->row_ptr[i]; e < near->row_ptr[i + 1]; e++) {
      const eidx at = r.source_ptr[near->col[e] + 1]++;
      r.source_row[at] = i, r.source_edge[at] = e;
    }
  return r;
}

static void run_free(struct run *r) {
  mem_free(r->in_slot), mem_free(r->out_slot), mem_free(r->source_row), mem_free(r->source_ptr);
  mem_free(r->source_edge), mem_free(r->state), mem_free(r->proposal), mem_free(r->g),
      mem_free(r->q);
}

static void forward(const struct run *w, struct reference *r, int64_t k) {
  const struct csr *near = &w->net->graph->near;
  const int64_t B = w->B, t = k / w->M;
  const double *s = w->state + k * w->n * B;
#pragma omp parallel for schedule(dynamic, 16)
  for (lidx i = 0; i < w->n; i++) {
    double *p = w->proposal + (k * w->n + i) * B, *next = w->state + ((k + 1) * w->n + i) * B;
    for (int64_t b = 0; b < B; b++)
      p[b] = r->bias[i] +
             (w->in_slot[i] < 0 ? 0.0 : r->drive[(t * w->net->n_in + w->in_slot[i]) * B + b]);
    for (eidx e = near->row_ptr[i]; e < near->row_ptr[i + 1]; e++)
      for (int64_t b = 0; b < B; b++) p[b] += (double)r->value[e] * s[near->col[e] * B + b];
    for (int64_t b = 0; b < B; b++) {
      p[b] = tanh(p[b]);
      next[b] = (1 - (double)r->leak[i]) * s[i * B + b] + (double)r->leak[i] * p[b];
    }
    if ((k + 1) % w->M == 0 && w->out_slot[i] >= 0)
      memcpy(r->output + (t * w->net->n_out + w->out_slot[i]) * B, next, (size_t)B * sizeof *next);
  }
}

static void elementwise(const struct run *w, struct reference *r, int64_t k) {
  const int64_t B = w->B, t = k / w->M;
#pragma omp parallel for
  for (lidx i = 0; i < w->n; i++)
    for (int64_t b = 0; b < B; b++) {
      const double a = r->leak[i], p = w->proposal[(k * w->n + i) * B + b],
                   s = w->state[(k * w->n + i) * B + b];
      double *g = w->g + i * B + b, *q = w->q + i * B + b;
      if ((k + 1) % w->M == 0 && w->out_slot[i] >= 0)
        *g += r->d_output[(t * w->net->n_out + w->out_slot[i]) * B + b];
      *q = *g * a * (1 - p * p);
      r->d_bias[i] += *q, r->d_leak[i] += *g * (p - s);
      if (w->in_slot[i] >= 0) r->d_drive[(t * w->net->n_in + w->in_slot[i]) * B + b] += *q;
      *g *= 1 - a;
    }
}

static void transposed(const struct run *w, struct reference *r, int64_t k) {
  const int64_t B = w->B;
#pragma omp parallel for schedule(dynamic, 16)
  for (lidx j = 0; j < w->n; j++)
    for (eidx x = w->source_ptr[j]; x < w->source_ptr[j + 1]; x++) {
      const double *q = w->q + w->source_row[x] * B, *s = w->state + (k * w->n + j) * B;
      const eidx e = w->source_edge[x];
      for (int64_t b = 0; b < B; b++) {
        w->g[j * B + b] += (double)r->value[e] * q[b];
        r->d_value[e] += q[b] * s[b];
      }
    }
}

void reference_run(struct reference *r) {
  struct run w = run_init(r->net);
  const int64_t T = r->net->shape.steps, B = w.B;
  r->output = NEW_ZERO(double, T * r->net->n_out * B),
  r->d_value = NEW_ZERO(double, r->net->graph->near.n_edges);
  r->d_leak = NEW_ZERO(double, w.n), r->d_bias = NEW_ZERO(double, w.n);
  r->d_drive = NEW_ZERO(double, T * r->net->n_in * B), r->d_state0 = NEW(double, w.n *B);
  for (int64_t i = 0; i < w.n * B; i++) w.state[i] = r->state0[i];
  for (int64_t k = 0; k < w.K; k++) forward(&w, r, k);
  for (int64_t k = w.K - 1; k >= 0; k--) elementwise(&w, r, k), transposed(&w, r, k);
  memcpy(r->d_state0, w.g, (size_t)(w.n * B) * sizeof(double));
  run_free(&w);
}

void reference_free(struct reference *r) {
  mem_free(r->output), mem_free(r->d_value), mem_free(r->d_leak), mem_free(r->d_bias);
  mem_free(r->d_drive), mem_free(r->d_state0);
}
