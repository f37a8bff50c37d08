/* The recurrence and its gradients in float64 on a dense matrix, written from the mathematics
 * alone, and random networks to try it on. Everything is [node][batch] with batch contiguous. */
#ifndef FASCICLE_RECUR_MODEL_H
#define FASCICLE_RECUR_MODEL_H

#include "core/mem.h"
#include "core/rng.h"
#include "core/types.h"

#include <math.h>
#include <string.h>

/* A network with all inputs of one window; edges by target, sources ascending. */
struct model {
  int N, B, T, M, n_in, n_out;
  bool mixed; /* states and q are rounded to binary16 and bfloat16 where edges read them */
  int64_t E;
  int64_t *row_ptr; /* [N + 1] */
  int *source;      /* [E] */
  int *in, *out;    /* ascending */
  double *value, *leak, *bias;
  double *drive, *start, *d_output; /* [T][n_in][B], [N][B], [T][n_out][B] */
};

struct model_result {
  double *output, *d_value, *d_leak, *d_bias, *d_drive, *d_start,
      loss; /* loss = sum of d_output * output */
};

static inline double model_draw(int stream, int64_t i) {
  return rng_normal(rng_draw(12345, (uint32_t)i, (uint32_t)(i >> 32), (uint32_t)stream, 0));
}

/* n doubles that floats can hold */
static inline double *model_numbers(int stream, int64_t n, double scale) {
  double *x = NEW(double, n);
  for (int64_t i = 0; i < n; i++) x[i] = (float)(scale * model_draw(stream, i));
  return x;
}

/* n of N nodes, every (N / n)th, starting at `from` */
static inline int *model_nodes(int N, int n, int from) {
  int *node = NEW(int, n);
  for (int i = 0; i < n; i++) node[i] = (int)((int64_t)i * (N - from) / n) + from;
  return node;
}

/* In-degrees are log-normal around `degree`; the last node has no edges at
 * all. Sources are distinct. */
static inline void model_edges(struct model *m, double degree) {
  const int N = m->N;
  m->row_ptr = NEW_ZERO(int64_t, N + 1);
  m->source = NEW(int, (int64_t)N *N);
  for (int i = 0; i < N; i++) {
    m->row_ptr[i + 1] = m->row_ptr[i];
    const double share = degree * exp(0.8 * model_draw(1, i)) / N;
    for (int j = 0; j < N - 1 && i < N - 1; j++) {
      const struct rng_block r = rng_draw(99, (uint32_t)i, (uint32_t)j, 7, 0);
      if (rng_unit(r.v[0], r.v[1]) < share) m->source[m->row_ptr[i + 1]++] = j;
    }
  }
  m->E = m->row_ptr[N];
}

static inline struct model model_init(int N, double degree, int B, int T, int M) {
  struct model m = {.N = N, .B = B, .T = T, .M = M, .n_in = N / 5, .n_out = N / 4};
  model_edges(&m, degree);
  m.in = model_nodes(N, m.n_in, 0), m.out = model_nodes(N, m.n_out, 1);
  m.value = model_numbers(2, m.E, 1 / sqrt(degree));
  m.bias = model_numbers(3, N, 0.3);
  m.leak = model_numbers(4, N, 1);
  for (int i = 0; i < N; i++) m.leak[i] = (float)(1 / (1 + exp(-m.leak[i])));
  m.drive = model_numbers(5, (int64_t)T * m.n_in * B, 0.7);
  m.start = model_numbers(6, (int64_t)N * B, 0.4);
  m.d_output = model_numbers(7, (int64_t)T * m.n_out * B, 1);
  return m;
}

static inline void model_free(struct model *m) {
  mem_free(m->row_ptr), mem_free(m->source), mem_free(m->in), mem_free(m->out);
  mem_free(m->value), mem_free(m->leak), mem_free(m->bias), mem_free(m->drive), mem_free(m->start);
  mem_free(m->d_output);
}

static inline void model_result_free(struct model_result *r) {
  mem_free(r->output), mem_free(r->d_value), mem_free(r->d_leak), mem_free(r->d_bias),
      mem_free(r->d_drive);
  mem_free(r->d_start);
}

static inline double *model_dense(const struct model *m) {
  double *V = NEW_ZERO(double, (int64_t)m->N * m->N);
  for (int i = 0; i < m->N; i++)
    for (int64_t e = m->row_ptr[i]; e < m->row_ptr[i + 1]; e++)
      V[(int64_t)i * m->N + m->source[e]] += m->value[e];
  return V;
}

/* x to the nearest multiple of its last place: `digits` bits of significand,
 * exponents from `least` on. */
static inline double model_nearest(double x, int digits, int least) {
  if (x == 0) return 0;
  const int exponent = ilogb(x) < least ? least : ilogb(x);
  const double unit = ldexp(1, exponent - digits + 1);
  return nearbyint(x / unit) * unit;
}

/* What edges see of x [N][B]: a copy. */
static inline double *model_seen(const struct model *m, const double *x, int digits, int least) {
  const int64_t n = (int64_t)m->N * m->B;
  double *seen = NEW(double, n);
  for (int64_t i = 0; i < n; i++) seen[i] = m->mixed ? model_nearest(x[i], digits, least) : x[i];
  return seen;
}

static inline double *model_seen_state(const struct model *m, const double *s) {
  return model_seen(m, s, 11, -14);
}

/* y += A x, or A^T x; x, y [N][B] */
static inline void model_multiply(const struct model *m, const double *A, bool transposed,
                                  const double *x, double *y) {
  for (int i = 0; i < m->N; i++)
    for (int j = 0; j < m->N; j++) {
      const double a = transposed ? A[(int64_t)j * m->N + i] : A[(int64_t)i * m->N + j];
      if (a == 0) continue;
      for (int b = 0; b < m->B; b++) y[(int64_t)i * m->B + b] += a * x[(int64_t)j * m->B + b];
    }
}

/* states [K + 1][N][B] and proposals [K][N][B] */
static inline void model_forward(const struct model *m, const double *V, double *s, double *p) {
  const int64_t NB = (int64_t)m->N * m->B;
  memcpy(s, m->start, (size_t)NB * sizeof *s);
  for (int k = 0; k < m->T * m->M; k++, s += NB, p += NB) {
    for (int64_t x = 0; x < NB; x++) p[x] = m->bias[x / m->B];
    for (int i = 0; i < m->n_in; i++)
      for (int b = 0; b < m->B; b++)
        p[(int64_t)m->in[i] * m->B + b] += m->drive[((int64_t)(k / m->M) * m->n_in + i) * m->B + b];
    double *seen = model_seen_state(m, s);
    model_multiply(m, V, false, seen, p);
    mem_free(seen);
    for (int64_t x = 0; x < NB; x++) {
      const double a = m->leak[x / m->B];
      p[x] = tanh(p[x]);
      s[NB + x] = (1 - a) * s[x] + a * p[x];
    }
  }
}

static inline void model_read_out(const struct model *m, const double *s, struct model_result *r) {
  r->output = NEW(double, (int64_t)m->T * m->n_out * m->B);
  r->loss = 0;
  int64_t at = 0;
  for (int t = 0; t < m->T; t++)
    for (int i = 0; i < m->n_out; i++)
      for (int b = 0; b < m->B; b++, at++) {
        r->output[at] = s[((int64_t)(t + 1) * m->M * m->N + m->out[i]) * m->B + b];
        r->loss += r->output[at] * m->d_output[at];
      }
}

/* The steps of one microstep backwards: g [N][B] becomes dL/ds_k; q [N][B] is scratch. */
static inline void model_step_back(const struct model *m, const double *V, int k, const double *s,
                                   const double *p, double *g, double *q, struct model_result *r) {
  const int64_t NB = (int64_t)m->N * m->B, t = k / m->M;
  if ((k + 1) % m->M == 0)
    for (int i = 0; i < m->n_out; i++)
      for (int b = 0; b < m->B; b++)
        g[(int64_t)m->out[i] * m->B + b] += m->d_output[(t * m->n_out + i) * m->B + b];
  for (int64_t x = 0; x < NB; x++) {
    const int i = (int)(x / m->B);
    q[x] = g[x] * m->leak[i] * (1 - p[x] * p[x]);
    r->d_bias[i] += q[x];
    r->d_leak[i] += g[x] * (p[x] - s[x]);
    g[x] *= 1 - m->leak[i];
  }
  for (int i = 0; i < m->n_in; i++)
    for (int b = 0; b < m->B; b++)
      r->d_drive[(t * m->n_in + i) * m->B + b] += q[(int64_t)m->in[i] * m->B + b];
  double *seen = model_seen_state(m, s), *seen_q = model_seen(m, q, 8, -126);
  for (int i = 0; i < m->N; i++)
    for (int64_t e = m->row_ptr[i]; e < m->row_ptr[i + 1]; e++)
      for (int b = 0; b < m->B; b++)
        r->d_value[e] += seen_q[(int64_t)i * m->B + b] * seen[(int64_t)m->source[e] * m->B + b];
  model_multiply(m, V, true, seen_q, g);
  mem_free(seen), mem_free(seen_q);
}

static inline struct model_result model_run(const struct model *m) {
  const int64_t NB = (int64_t)m->N * m->B, K = (int64_t)m->T * m->M;
  double *V = model_dense(m), *s = NEW(double, (K + 1) * NB), *p = NEW(double, K *NB),
         *q = NEW(double, NB);
  struct model_result r = {.d_value = NEW_ZERO(double, m->E),
                           .d_leak = NEW_ZERO(double, m->N),
                           .d_bias = NEW_ZERO(double, m->N),
                           .d_drive = NEW_ZERO(double, (int64_t)m->T * m->n_in * m->B),
                           .d_start = NEW_ZERO(double, NB)};
  model_forward(m, V, s, p);
  model_read_out(m, s, &r);
  for (int64_t k = K - 1; k >= 0; k--)
    model_step_back(m, V, (int)k, s + k * NB, p + k * NB, r.d_start, q, &r);
  mem_free(V), mem_free(s), mem_free(p), mem_free(q);
  return r;
}

/* |x - y| / |y|; |x| where y is all zeros */
static inline double model_error(const float *x, const double *y, int64_t n) {
  double difference = 0, size = 0;
  for (int64_t i = 0; i < n; i++) difference += (x[i] - y[i]) * (x[i] - y[i]), size += y[i] * y[i];
  return size > 0 ? sqrt(difference / size) : sqrt(difference);
}

#endif
