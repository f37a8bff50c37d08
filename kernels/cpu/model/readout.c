/* Readout and cross-entropy. */
#include "core/clones.h"
#include "matmul.h"
#include "state.h"

#include <math.h>
#include <string.h>

enum {
  LONGEST = 256, /* terms of one float sum before it is added to the total */
  FLUSH = 4,     /* characters summed in float before the double sum takes them */
  NODES = 48     /* output nodes in one task */
};

/* logit[v][b] = bias[v] + sum over o of readout[o][v] out[o][b], for one character */
static void readout_at(struct model *m, int64_t t, const float *output) {
  const struct model_shape *s = &m->shape;
  const int V = s->vocabulary, B = s->batch;
  const float *readout = model_at(m, MODEL_PARAMETERS, MODEL_READOUT);
  const float *bias = model_at(m, MODEL_PARAMETERS, MODEL_READOUT_BIAS);
  float *logit = m->logit + t * V * B;
  for (int v = 0; v < V; v++)
    for (int b = 0; b < B; b++) logit[(int64_t)v * B + b] = s->adds_bias ? bias[v] : 0;
  for (lidx o = 0; o < s->n_out; o += LONGEST)
    product(&(struct product){.a = readout + (int64_t)o * V,
                              .a_row = 1,
                              .a_col = V,
                              .b = output + (t * s->n_out + o) * B,
                              .b_row = B,
                              .c = logit,
                              .c_row = B,
                              .m = V,
                              .n = B,
                              .k = s->n_out - o < LONGEST ? s->n_out - o : LONGEST,
                              .add = true});
}

void model_readout(struct model *m, const float *output) {
#pragma omp parallel for num_threads(m->n_threads) schedule(static)
  for (int t = 0; t < m->shape.steps; t++) readout_at(m, t, output);
}

/* One column of logits, stride B, becomes scale (softmax - one at y); returns -log softmax[y]. */
static double column_loss(float *logit, int V, int B, int32_t y, double scale) {
  float highest = logit[0];
  for (int v = 1; v < V; v++) highest = fmaxf(highest, logit[(int64_t)v * B]);
  const double at_target = (double)logit[(int64_t)y * B] - (double)highest;
  double sum = 0;
  for (int v = 0; v < V; v++) {
    float *x = &logit[(int64_t)v * B];
    *x = expf(*x - highest);
    sum += (double)*x;
  }
  const float factor = (float)(scale / sum);
  for (int v = 0; v < V; v++) logit[(int64_t)v * B] *= factor;
  logit[(int64_t)y * B] -= (float)scale;
  return isfinite(sum) && isfinite(at_target) ? log(sum) - at_target : NAN;
}

static double no_loss(float *logit, int V, int B) {
  for (int v = 0; v < V; v++) logit[(int64_t)v * B] = 0;
  return 0;
}

void model_loss(struct model *m, const int32_t *target, double scale) {
  const int V = m->shape.vocabulary, B = m->shape.batch;
  ASSERT(model_has_tokens(m, target, (int64_t)m->shape.steps * B, -1));
#pragma omp parallel for num_threads(m->n_threads) schedule(static)
  for (int t = 0; t < m->shape.steps; t++) {
    float *logit = m->logit + (int64_t)t * V * B;
    const int32_t *y = target + (int64_t)t * B;
    double sum = 0;
    for (int b = 0; b < B; b++)
      sum += y[b] < 0 ? no_loss(logit + b, V, B) : column_loss(logit + b, V, B, y[b], scale);
    m->position_nats[t] = sum;
  }
  m->nats = 0;
  for (int t = 0; t < m->shape.steps; t++) m->nats += m->position_nats[t];
}

static void transpose_at(struct model *m, int64_t t) {
  const int V = m->shape.vocabulary, B = m->shape.batch;
  const float *from = m->logit + t * V * B;
  float *to = m->d_logit_rows + t * B * m->padded;
  for (int b = 0; b < B; b++)
    for (int v = 0; v < V; v++) to[b * m->padded + v] = from[(int64_t)v * B + b];
}

/* d_out[o][b] = sum over v of readout[o][v] d_logit[v][b] */
static void output_gradient_at(struct model *m, int64_t t, float *d_output) {
  const struct model_shape *s = &m->shape;
  product(&(struct product){.a = model_at(m, MODEL_PARAMETERS, MODEL_READOUT),
                            .a_row = s->vocabulary,
                            .a_col = 1,
                            .b = m->logit + t * s->vocabulary * s->batch,
                            .b_row = s->batch,
                            .c = d_output + t * s->n_out * s->batch,
                            .c_row = s->batch,
                            .m = s->n_out,
                            .n = s->batch,
                            .k = s->vocabulary});
}

VECTOR_CLONES static void flush(const float *restrict part, int64_t n, double *restrict sum) {
  for (int64_t i = 0; i < n; i++) sum[i] += (double)part[i];
}

/* d_readout[o][v] = sum over t, b of out_t[o][b] d_logit_t[v][b], for output nodes [o, o + n) */
static void readout_gradient_rows(struct model *m, lidx o, lidx n, const float *output) {
  const struct model_shape *s = &m->shape;
  float *part = m->d_readout_part + o * m->padded;
  double *sum = m->d_readout_sum + o * m->padded;
  memset(sum, 0, (size_t)(n * m->padded) * sizeof *sum);
  for (int64_t t = 0; t < s->steps; t++) {
    product(&(struct product){.a = output + (t * s->n_out + o) * s->batch,
                              .a_row = s->batch,
                              .a_col = 1,
                              .b = m->d_logit_rows + t * s->batch * m->padded,
                              .b_row = m->padded,
                              .c = part,
                              .c_row = m->padded,
                              .m = n,
                              .n = m->padded,
                              .k = s->batch,
                              .add = t % FLUSH != 0});
    if (t % FLUSH == FLUSH - 1 || t == s->steps - 1) flush(part, n * m->padded, sum);
  }
  float *to = model_at(m, MODEL_GRADIENT, MODEL_READOUT) + (int64_t)o * s->vocabulary;
  for (lidx i = 0; i < n; i++)
    for (int v = 0; v < s->vocabulary; v++)
      to[(int64_t)i * s->vocabulary + v] = (float)sum[i * m->padded + v];
}

static void readout_bias_gradient(struct model *m) {
  const int V = m->shape.vocabulary, B = m->shape.batch;
  float *d_bias = model_at(m, MODEL_GRADIENT, MODEL_READOUT_BIAS);
  for (int v = 0; v < V; v++) {
    double sum = 0;
    for (int64_t t = 0; t < m->shape.steps; t++)
      for (int b = 0; b < B; b++) sum += (double)m->logit[(t * V + v) * B + b];
    d_bias[v] = (float)sum;
  }
}

void model_readout_gradient(struct model *m, const float *output, float *d_output) {
  const lidx n_out = m->shape.n_out;
  ASSERT(m->want_gradient);
#pragma omp parallel num_threads(m->n_threads)
  {
#pragma omp for schedule(static)
    for (int t = 0; t < m->shape.steps; t++) {
      transpose_at(m, t);
      output_gradient_at(m, t, d_output);
    }
#pragma omp for schedule(dynamic)
    for (lidx o = 0; o < n_out; o += NODES)
      readout_gradient_rows(m, o, n_out - o < NODES ? n_out - o : NODES, output);
#pragma omp single
    readout_bias_gradient(m);
  }
}
