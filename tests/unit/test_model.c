/* ranks: 1 */
/* The cpu model against plain loops in double: drive, logits, loss, every
 * gradient; optimiser steps. */
#include "kernels/interface/backends.h"
#include "check.h"
#include "core/log.h"
#include "core/mem.h"
#include "contract/model.h"
#include "core/rng.h"

#include <math.h>

static uint32_t draws;
static double normal(void) {
  return rng_normal(rng_draw(11, draws++, 0, 0, 0));
}

static const struct model_backend *ops;

struct reference {
  struct model_shape s;
  struct model_layout at;
  double *w, *d_w; /* all parameters, their gradient */
  int32_t *token, *target;
  double *drive, *output, *d_drive, *d_output;
  double nats;
};

static double *block(struct reference *r, double *of, int b) {
  return of + r->at.at[b];
}

static void reference_drive(struct reference *r) {
  const struct model_shape *s = &r->s;
  const int W = s->embedding, B = s->batch;
  for (int t = 0; t < s->steps; t++)
    for (int i = 0; i < s->n_in; i++)
      for (int b = 0; b < B; b++) {
        const double *p = block(r, r->w, MODEL_PROJECTION) + i * (W + 1);
        const double *e = block(r, r->w, MODEL_EMBEDDING) + r->token[t * B + b] * W;
        double sum = p[W];
        for (int w = 0; w < W; w++) sum += p[w] * e[w];
        r->drive[(t * s->n_in + i) * B + b] = sum;
      }
}

/* Loss of the first `used` columns, and all gradients of scale * loss when d_w is wanted. */
static void reference_loss(struct reference *r, int used, double scale) {
  const struct model_shape *s = &r->s;
  const int V = s->vocabulary, W = s->embedding, B = s->batch;
  double *x = NEW(double, V);
  r->nats = 0;
  memset(r->d_w, 0, (size_t)r->at.at[MODEL_BLOCKS] * sizeof(double));
  memset(r->d_output, 0, (size_t)(s->steps * s->n_out * B) * sizeof(double));
  for (int t = 0; t < s->steps; t++)
    for (int b = 0; b < used; b++) {
      double total = 0;
      for (int v = 0; v < V; v++) {
        x[v] = block(r, r->w, MODEL_READOUT_BIAS)[v];
        for (int o = 0; o < s->n_out; o++)
          x[v] += block(r, r->w, MODEL_READOUT)[o * V + v] * r->output[(t * s->n_out + o) * B + b];
        total += exp(x[v]);
      }
      const int y = r->target[t * B + b];
      r->nats += log(total) - x[y];
      for (int v = 0; v < V; v++) {
        const double d = scale * (exp(x[v]) / total - (v == y));
        block(r, r->d_w, MODEL_READOUT_BIAS)[v] += d;
        for (int o = 0; o < s->n_out; o++) {
          block(r, r->d_w, MODEL_READOUT)[o * V + v] += d * r->output[(t * s->n_out + o) * B + b];
          r->d_output[(t * s->n_out + o) * B + b] += d * block(r, r->w, MODEL_READOUT)[o * V + v];
        }
      }
    }
  for (int t = 0; t < s->steps; t++)
    for (int i = 0; i < s->n_in; i++)
      for (int b = 0; b < B; b++) {
        const double d = r->d_drive[(t * s->n_in + i) * B + b];
        const int k = r->token[t * B + b];
        const double *p = block(r, r->w, MODEL_PROJECTION) + i * (W + 1);
        double *d_p = block(r, r->d_w, MODEL_PROJECTION) + i * (W + 1);
        for (int w = 0; w < W; w++) {
          d_p[w] += d * block(r, r->w, MODEL_EMBEDDING)[k * W + w];
          block(r, r->d_w, MODEL_EMBEDDING)[k * W + w] += d * p[w];
        }
        d_p[W] += d;
      }
  mem_free(x);
}

static double *random_doubles(int64_t n, double size) {
  double *x = NEW(double, n);
  for (int64_t i = 0; i < n; i++) x[i] = (double)(float)(size * normal());
  return x;
}

static struct reference reference_init(struct model_shape s) {
  struct reference r = {.s = s, .at = model_layout_of(&s)};
  const int64_t TB = (int64_t)s.steps * s.batch;
  r.w = random_doubles(r.at.at[MODEL_BLOCKS], 0.3);
  r.d_w = NEW_ZERO(double, r.at.at[MODEL_BLOCKS]);
  r.token = NEW(int32_t, TB), r.target = NEW(int32_t, TB);
  for (int64_t i = 0; i < TB; i++) {
    const struct rng_block d = rng_draw(5, (uint32_t)i, 0, 0, 0);
    r.token[i] = (int32_t)rng_below(d.v[0], d.v[1], (uint64_t)s.vocabulary);
    r.target[i] = (int32_t)rng_below(d.v[2], d.v[3], (uint64_t)s.vocabulary);
  }
  r.drive = NEW(double, TB *s.n_in), r.output = random_doubles(TB * s.n_out, 0.5);
  r.d_drive = random_doubles(TB * s.n_in, 0.01), r.d_output = NEW(double, TB *s.n_out);
  return r;
}

static void reference_free(struct reference *r) {
  mem_free(r->w), mem_free(r->d_w), mem_free(r->token), mem_free(r->target), mem_free(r->drive);
  mem_free(r->output), mem_free(r->d_drive), mem_free(r->d_output);
}

static float *as_floats(const double *x, int64_t n) {
  float *y = NEW(float, n);
  for (int64_t i = 0; i < n; i++) y[i] = (float)x[i];
  return y;
}

/* Relative L2 error. */
static double distance(const float *x, const double *y, int64_t n) {
  double d = 0, size = 0;
  for (int64_t i = 0; i < n; i++) {
    d += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
    size += y[i] * y[i];
  }
  return sqrt(d / (size > 0 ? size : 1));
}

static void compare_gradients(struct model *m, struct reference *r) {
  for (int b = MODEL_EMBEDDING; b < MODEL_BLOCKS; b++)
    CHECK(distance(ops->array(m, MODEL_GRADIENT) + r->at.at[b], r->d_w + r->at.at[b],
                   r->at.at[b + 1] - r->at.at[b]) < 1e-6);
}

static void test_shape(struct model_shape s, int used, int n_threads) {
  struct reference r = reference_init(s);
  const int64_t TB = (int64_t)s.steps * s.batch, n = r.at.at[MODEL_BLOCKS];
  struct model *m;
  const int64_t before = mem_held();
  CHECK_FINE(ops->open(&s, true, n_threads, &m));
  const int64_t held = mem_held() - before, predicted = ops->bytes(&s, true);
  CHECK(llabs(held - predicted) <= 4096 + predicted / 50);
  for (int64_t i = 0; i < n; i++) ops->array(m, MODEL_PARAMETERS)[i] = (float)r.w[i];
  float *drive = NEW(float, TB *s.n_in), *d_output = NEW(float, TB *s.n_out);
  float *output = as_floats(r.output, TB * s.n_out), *d_drive = as_floats(r.d_drive, TB * s.n_in);
  const double scale = 1.0 / (double)(used * s.steps);
  reference_drive(&r), reference_loss(&r, used, scale);
  ops->drive(m, r.token, drive);
  CHECK(distance(drive, r.drive, TB * s.n_in) < 1e-6);
  ops->readout(m, output);
  for (int t = 0; t < s.steps; t++)
    for (int b = used; b < s.batch; b++) r.target[t * s.batch + b] = -1;
  ops->loss(m, r.target, scale);
  CHECK(fabs(ops->nats(m) - r.nats) < 1e-6 * r.nats);
  ops->readout_gradient(m, output, d_output);
  CHECK(distance(d_output, r.d_output, TB * s.n_out) < 1e-6);
  ops->drive_gradient(m, d_drive);
  compare_gradients(m, &r);
  mem_free(drive), mem_free(d_output), mem_free(output), mem_free(d_drive);
  ops->close(m);
  reference_free(&r);
}

/* The reference's own gradient against central differences of its loss. */
static void test_reference(void) {
  struct model_shape s = {
      .vocabulary = 5, .embedding = 3, .batch = 2, .steps = 3, .n_in = 4, .n_out = 6};
  struct reference r = reference_init(s);
  reference_loss(&r, 2, 1);
  double *d = NEW(double, r.at.at[MODEL_BLOCKS]);
  memcpy(d, r.d_w, (size_t)r.at.at[MODEL_BLOCKS] * sizeof *d);
  for (int64_t i = r.at.at[MODEL_READOUT]; i < r.at.at[MODEL_BLOCKS]; i++) {
    const double keep = r.w[i], h = 1e-5;
    r.w[i] = keep + h, reference_loss(&r, 2, 1);
    const double up = r.nats;
    r.w[i] = keep - h, reference_loss(&r, 2, 1);
    CHECK(fabs((up - r.nats) / (2 * h) - d[i]) < 1e-7);
    r.w[i] = keep;
  }
  mem_free(d), reference_free(&r);
}

/* v = c theta, a = sigmoid(rho) and back. */
static void test_core(void) {
  struct model_shape s = {
      .vocabulary = 2, .embedding = 1, .batch = 1, .steps = 1, .n_edges = 5, .n_own = 3};
  struct model *m;
  CHECK_FINE(ops->open(&s, true, 1, &m));
  const struct model_layout at = model_layout_of(&s);
  float *w = ops->array(m, MODEL_PARAMETERS), *g = ops->array(m, MODEL_GRADIENT);
  const float scale[5] = {1, 0.5f, 2, 0.25f, 3}, d[5] = {1, 2, 3, 4, 5};
  for (int e = 0; e < 5; e++) w[at.at[MODEL_EDGES] + e] = (float)(e - 2);
  for (int i = 0; i < 3; i++)
    w[at.at[MODEL_LEAK] + i] = (float)(2 * i - 2), w[at.at[MODEL_BIAS] + i] = (float)i;
  ops->set_scale(m, scale);
  float value[5], leak[3], bias[3];
  ops->load_core(m, value, leak, bias);
  ops->take_core(m, d, d, d);
  for (int e = 0; e < 5; e++) {
    CHECK(value[e] == scale[e] * (float)(e - 2));
    CHECK(g[at.at[MODEL_EDGES] + e] == scale[e] * d[e]);
  }
  for (int i = 0; i < 3; i++) {
    const double a = 1 / (1 + exp(2.0 - 2 * i));
    CHECK(fabs((double)leak[i] - a) < 1e-7 && bias[i] == (float)i);
    CHECK(fabs((double)g[at.at[MODEL_LEAK] + i] - a * (1 - a) * (double)d[i]) < 1e-6);
    CHECK(g[at.at[MODEL_BIAS] + i] == d[i]);
  }
  const float x[4] = {0.96f, -0.96f, 0.95f, 0};
  CHECK_EQ(ops->count_beyond(m, x, 4, 0.95f), 2);
  ops->close(m);
}

/* A value that is not finite makes the loss not finite, wherever it stands. */
static void test_not_finite(void) {
  struct model_shape s = {.vocabulary = 7,
                          .embedding = 2,
                          .batch = 3,
                          .steps = 2,
                          .n_in = 1,
                          .n_out = 2,
                          .adds_bias = true};
  struct model *m;
  CHECK_FINE(ops->open(&s, false, 1, &m));
  const int32_t target[6] = {0, 1, 2, 3, 4, 5};
  float output[12] = {0};
  const float bad[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3; i++) {
    ops->array(m, MODEL_PARAMETERS)[model_layout_of(&s).at[MODEL_READOUT_BIAS] + 6] = bad[i];
    ops->readout(m, output);
    ops->loss(m, target, 1);
    if (i < 2) CHECK(!isfinite(ops->nats(m)));
  }
  ops->close(m);
}

/* AdamW against its definition in double, twenty steps. */
static void test_update(void) {
  enum { N = 37 };
  struct model_shape s = {.vocabulary = 1, .embedding = 1, .batch = 1, .steps = 1, .n_edges = N};
  struct model *m;
  CHECK_FINE(ops->open(&s, true, 2, &m));
  float *w = ops->array(m, MODEL_PARAMETERS), *g = ops->array(m, MODEL_GRADIENT);
  double x[N], m1[N] = {0}, m2[N] = {0}, squares = 0;
  for (int i = 0; i < N; i++) x[i] = w[i] = (float)normal();
  for (int step = 1; step <= 20; step++) {
    const struct adamw how = {.rate = 1e-2 / step,
                              .decay = 0.01,
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .eps = 1e-8,
                              .clip = 1,
                              .step = step};
    squares = 0;
    for (int i = 0; i < N; i++) {
      g[i] = (float)(normal() * (i % 5) * (step % 2 ? 1 : 0.01)); /* clipped and not */
      squares += (double)g[i] * (double)g[i];
    }
    for (int i = 0; i < N; i++) {
      const double d = fmin(1, 1 / sqrt(squares)) * (double)g[i];
      m1[i] = 0.9 * m1[i] + 0.1 * d, m2[i] = 0.999 * m2[i] + 0.001 * d * d;
      const double mhat = m1[i] / (1 - pow(0.9, step)), vhat = m2[i] / (1 - pow(0.999, step));
      x[i] = x[i] * (1 - how.rate * 0.01) - how.rate * mhat / (sqrt(vhat) + 1e-8);
    }
    ops->squares_clear(m), ops->squares_add(m, 0, 20), ops->squares_add(m, 20, N - 20);
    CHECK(fabs(ops->squares(m) - squares) <= 1e-12 * squares);
    ops->update(m, 0, N, &how);
    ops->figures_note(m);
    if (step > 1) CHECK(ops->figures(m).squares > 0); /* one behind */
  }
  CHECK(ops->figures(m).squares == ops->squares(m));
  ops->squares_set(m, INFINITY);
  ops->update(m, 0, N,
              &(struct adamw){.rate = 1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .step = 21});
  CHECK(distance(w, x, N) < 1e-6);
  CHECK(distance(ops->array(m, MODEL_MOMENT1), m1, N) < 1e-6);
  CHECK(distance(ops->array(m, MODEL_MOMENT2), m2, N) < 1e-6);
  ops->close(m);
}

/* Bits do not depend on the number of threads. */
static void test_threads(void) {
  struct model_shape s = {.vocabulary = 65,
                          .embedding = 32,
                          .batch = 32,
                          .steps = 16,
                          .n_in = 100,
                          .n_out = 130,
                          .adds_bias = true};
  const int64_t n = model_layout_of(&s).at[MODEL_BLOCKS], TB = 16 * 32;
  float *gradient[2], *output = NEW(float, TB * 130), *d_output = NEW(float, TB * 130),
                      *drive = NEW(float, TB * 100);
  int32_t *token = NEW(int32_t, TB);
  for (int64_t i = 0; i < TB * 130; i++) output[i] = (float)normal();
  for (int64_t i = 0; i < TB; i++) token[i] = (int32_t)(i * 7 % 65);
  for (int run = 0; run < 2; run++) {
    struct model *m;
    CHECK_FINE(ops->open(&s, true, 1 + 2 * run, &m));
    for (int64_t i = 0; i < n; i++) ops->array(m, MODEL_PARAMETERS)[i] = sinf((float)i);
    ops->drive(m, token, drive), ops->readout(m, output), ops->loss(m, token, 1e-3);
    ops->readout_gradient(m, output, d_output), ops->drive_gradient(m, drive);
    gradient[run] = NEW(float, n);
    memcpy(gradient[run], ops->array(m, MODEL_GRADIENT), (size_t)n * sizeof(float));
    ops->close(m);
  }
  CHECK(!memcmp(gradient[0], gradient[1], (size_t)n * sizeof(float)));
  mem_free(gradient[0]), mem_free(gradient[1]), mem_free(output), mem_free(d_output),
      mem_free(drive);
  mem_free(token);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  ops = backend_cpu.model;
  test_reference();
  test_shape((struct model_shape){.vocabulary = 65,
                                  .embedding = 32,
                                  .batch = 32,
                                  .steps = 6,
                                  .n_edges = 3,
                                  .n_own = 2,
                                  .n_in = 20,
                                  .n_out = 50,
                                  .adds_bias = true},
             32, 2);
  test_shape((struct model_shape){.vocabulary = 7,
                                  .embedding = 5,
                                  .batch = 5,
                                  .steps = 3,
                                  .n_in = 3,
                                  .n_out = 301,
                                  .adds_bias = true},
             3, 1);
  test_shape((struct model_shape){.vocabulary = 33,
                                  .embedding = 4,
                                  .batch = 40,
                                  .steps = 5,
                                  .n_in = 9,
                                  .n_out = 13,
                                  .adds_bias = true},
             40, 3);
  test_shape((struct model_shape){.vocabulary = 3,
                                  .embedding = 2,
                                  .batch = 1,
                                  .steps = 1,
                                  .n_in = 1,
                                  .n_out = 1,
                                  .adds_bias = true},
             1, 1);
  test_core();
  test_not_finite();
  test_update();
  test_threads();
  return test_end();
}
