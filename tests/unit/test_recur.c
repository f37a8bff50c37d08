/* ranks: 1 */
/* The recurrence of one rank: every SIMD path against a dense float64 model, that model
 * against finite differences. */
#include "check.h"
#include "kernels/interface/backends.h"
#include "contract/recurrence.h"
#include "recur_model.h"
#include "kernels/interface/recur_round.h"
#include "kernels/interface/recur_window.h"

static const struct recur_backend *be;

struct run {
  struct graph graph;
  struct recur_net net;
  struct recur *state;
};

static lidx *rows_from(const int *x, int n) {
  lidx *y = NEW(lidx, n);
  for (int i = 0; i < n; i++) y[i] = x[i];
  return y;
}

static void put(float *to, const double *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = (float)from[i];
}

static void put_inputs(const struct run *r, const struct model *m) {
  const int64_t TB = (int64_t)m->T * m->B;
  put(be->value(r->state), m->value, m->E);
  put(be->leak(r->state), m->leak, m->N);
  put(be->bias(r->state), m->bias, m->N);
  put(be->drive(r->state), m->drive, TB * m->n_in);
  put(be->state(r->state, 0), m->start, (int64_t)m->N * m->B);
  if (r->net.want_gradient) put(be->d_output(r->state), m->d_output, TB * m->n_out);
}

static void run_open(struct run *r, const struct model *m, int n_threads, bool want_gradient) {
  memset(r, 0, sizeof *r);
  r->graph = (struct graph){.n_global = m->N, .n_own = m->N};
  r->graph.near = (struct csr){m->N, m->E, m->row_ptr, rows_from(m->source, (int)m->E)};
  r->graph.far = (struct csr){m->N, 0, NEW_ZERO(eidx, m->N + 1), NULL};
  r->net = (struct recur_net){.graph = &r->graph,
                              .n_in = m->n_in,
                              .n_out = m->n_out,
                              .in = rows_from(m->in, m->n_in),
                              .out = rows_from(m->out, m->n_out),
                              .shape = {m->B, m->T, m->M},
                              .mixed = m->mixed,
                              .want_gradient = want_gradient};
  CHECK_FINE(be->open(&r->net, n_threads, &r->state));
  put_inputs(r, m);
}

static void run_close(struct run *r) {
  be->close(r->state);
  mem_free(r->graph.near.col), mem_free(r->graph.far.row_ptr);
  mem_free((void *)r->net.in), mem_free((void *)r->net.out);
}

static double worst, limit = 1e-6;

static void compare(const struct run *r, const struct model *m, const struct model_result *want) {
  const int64_t TB = (int64_t)m->T * m->B;
  const double error[] = {
      model_error(be->output(r->state), want->output, TB * m->n_out),
      model_error(be->d_value(r->state), want->d_value, m->E),
      model_error(be->d_leak(r->state), want->d_leak, m->N),
      model_error(be->d_bias(r->state), want->d_bias, m->N),
      model_error(be->d_drive(r->state), want->d_drive, TB * m->n_in),
      model_error(be->d_state(r->state), want->d_start, (int64_t)m->N * m->B),
  };
  static const char *const name[] = {"output", "d_value", "d_leak", "d_bias", "d_drive", "d_start"};
  for (int i = 0; i < 6; i++) {
    checks_run++;
    if (!(error[i] < limit))
      DIE(1, "%s: relative error %.3g at B=%d T=%d M=%d, FASCICLE_SIMD=%s", name[i], error[i], m->B,
          m->T, m->M, getenv("FASCICLE_SIMD"));
    if (error[i] > worst) worst = error[i];
  }
}

/* Calls for each instruction set that this machine has. */
static void with_each_isa(void (*run)(const struct model *, const struct model_result *),
                          const struct model *m) {
  struct model_result want = model_run(m);
  for (const struct recur_isa *const *isa = recur_isas; *isa; isa++) {
    if (!(*isa)->usable()) continue;
    setenv("FASCICLE_SIMD", (*isa)->name, 1);
    run(m, &want);
  }
  unsetenv("FASCICLE_SIMD");
  model_result_free(&want);
}

static void against_model(const struct model *m, const struct model_result *want) {
  struct run r;
  run_open(&r, m, 2, true);
  be->window_forward(r.state);
  be->window_backward(r.state);
  compare(&r, m, want);
  run_close(&r);
}

static void test_shapes(void) {
  static const int batch[] = {1, 4, 32, 40, 13, 71};
  for (int i = 0; i < 6; i++)
    for (int M = 1; M <= (i < 4 ? 3 : 1); M++) {
      struct model m = model_init(300, 30, batch[i], 6, M);
      with_each_isa(against_model, &m);
      model_free(&m);
    }
  if (world.rank == 0) printf("largest relative error %.3g\n", worst);
}

/* Any float, against the definition in float64. */
static void test_rounding(void) {
  for (uint32_t i = 0; i < 200000; i++) {
    const float x = bits_float(rng_draw(8, i, 0, 0, 0).v[0]);
    if (isnan(x)) continue;
    const double half = model_nearest(x, 11, -14), bfloat = model_nearest(x, 8, -126);
    CHECK(round_half(x) == (fabs(half) < 65536 ? (float)half : copysignf(INFINITY, x)));
    CHECK(round_bfloat(x) == (float)bfloat);
  }
  static const float ties[] = {2049,  2051,  0x1.8p-25f, 0x1p-25f,
                               65519, 65520, 0x1.01p0f,  0x1.03p0f};
  static const float half[] = {2048, 2052, 0x1p-24f, 0, 65504, INFINITY, 0x1.01p0f, 0x1.03p0f};
  static const float bfloat[] = {2048, 2048, 0x1.8p-25f, 0x1p-25f, 65536, 65536, 1, 0x1.04p0f};
  for (int i = 0; i < 8; i++)
    CHECK(round_half(-ties[i]) == -half[i] && round_bfloat(ties[i]) == bfloat[i]);
  CHECK(isnan(round_half(NAN)) && isnan(round_bfloat(-NAN)) && isinf(round_half(-INFINITY)));
}

/* A last digit in float32 now and then turns a rounding to 16 bits over, and each turn makes more
 * of them in the next microstep: so one character only, and a bar a twentieth of what the
 * rounding itself changes. */
static void test_mixed(void) {
  struct model m = model_init(300, 30, 13, 1, 2);
  for (int i = 0; i < m.N; i += 9) m.leak[i] = (float)0.02;
  struct model_result exact = model_run(&m);
  m.mixed = true;
  struct model_result want = model_run(&m);
  struct run r;
  run_open(&r, &m, 2, true);
  be->window_forward(r.state), be->window_backward(r.state);
  limit = 2e-5;
  compare(&r, &m, &want);
  limit = 1e-6;
  CHECK(model_error(be->d_value(r.state), exact.d_value, m.E) > 4e-4);
  run_close(&r);
  model_result_free(&exact), model_result_free(&want), model_free(&m);
}

static void test_one_step(void) {
  struct model m = model_init(300, 30, 32, 1, 1);
  with_each_isa(against_model, &m);
  model_free(&m);
}

static void test_extreme_leaks(void) {
  struct model m = model_init(300, 30, 8, 5, 2);
  static const double leak[] = {1e-6, 1e-3, 0.02, 0.0999, 0.1001, 0.999, 0.999999};
  for (int i = 0; i < m.N; i++) m.leak[i] = (float)leak[i % 7];
  with_each_isa(against_model, &m);
  model_free(&m);
}

/* Most nodes are pinned near +-1, where 1 - p^2 has lost its digits in any float32 arithmetic. */
static void test_saturation(void) {
  struct model m = model_init(100, 20, 32, 4, 2);
  for (int64_t e = 0; e < m.E; e++) m.value[e] *= 4;
  for (int64_t i = 0; i < m.T * m.n_in * m.B; i++) m.drive[i] = (float)(m.drive[i] * 30);
  limit = 1e-5;
  with_each_isa(against_model, &m);
  limit = 1e-6;
  model_free(&m);
}

/* The last node has no edges: s -> tanh(b), at the rate of its leak. */
static void decays(const struct model *m, const struct model_result *want) {
  struct run r;
  (void)want;
  run_open(&r, m, 1, false);
  be->window_forward(r.state);
  const float *s = be->state(r.state, m->T * m->M) + (int64_t)(m->N - 1) * m->B;
  for (int b = 0; b < m->B; b++) CHECK(fabs(s[b] - tanh(m->bias[m->N - 1])) < 1e-6);
  run_close(&r);
}

static void test_lonely_node(void) {
  struct model m = model_init(50, 10, 3, 40, 2);
  m.leak[m.N - 1] = 0.5;
  m.in[m.n_in - 1] = m.N - 2;
  with_each_isa(decays, &m);
  model_free(&m);
}

static void all_zero(const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) CHECK(x[i] == 0);
}

static void no_gradient(const struct model *m, const struct model_result *want) {
  struct run r;
  (void)want;
  run_open(&r, m, 2, true);
  be->window_forward(r.state);
  be->window_backward(r.state);
  memset(be->d_output(r.state), 0, sizeof(float) * (size_t)(m->T * m->n_out * m->B));
  be->window_backward(r.state); /* and nothing is left of the first */
  all_zero(be->d_value(r.state), m->E), all_zero(be->d_leak(r.state), m->N),
      all_zero(be->d_bias(r.state), m->N);
  all_zero(be->d_drive(r.state), m->T * m->n_in * m->B),
      all_zero(be->d_state(r.state), m->N * m->B);
  run_close(&r);
}

static void test_no_gradient(void) {
  struct model m = model_init(60, 10, 5, 3, 2);
  with_each_isa(no_gradient, &m);
  model_free(&m);
}

/* Any number of threads, run after run, whole window or microstep by microstep: the same bits. */
static void same_bits(const struct model *m, const struct model_result *want) {
  struct run a, b;
  (void)want;
  run_open(&a, m, 1, true);
  be->window_forward(a.state), be->window_backward(a.state);
  for (int n_threads = 1; n_threads <= 7; n_threads++) {
    run_open(&b, m, n_threads, true);
    be->forward_begin(b.state);
    const int K = m->T * m->M;
    for (int k = 0; k < K && n_threads % 2; k++)
      be->forward_near(b.state, k), be->forward_far(b.state, k);
    if (n_threads % 2 == 0) be->window_forward(b.state);
    be->backward_begin(b.state);
    for (int k = K - 1; k >= 0 && n_threads % 2; k--)
      be->backward_far(b.state, k), be->backward_near(b.state, k);
    if (n_threads % 2)
      be->backward_end(b.state);
    else
      be->window_backward(b.state);
    const size_t row = sizeof(float) * (size_t)m->B;
    CHECK(!memcmp(be->output(a.state), be->output(b.state), row * (size_t)(m->T * m->n_out)));
    CHECK(!memcmp(be->d_value(a.state), be->d_value(b.state), sizeof(float) * (size_t)m->E));
    CHECK(!memcmp(be->d_leak(a.state), be->d_leak(b.state), sizeof(float) * (size_t)m->N));
    CHECK(!memcmp(be->d_bias(a.state), be->d_bias(b.state), sizeof(float) * (size_t)m->N));
    CHECK(!memcmp(be->d_drive(a.state), be->d_drive(b.state), row * (size_t)(m->T * m->n_in)));
    CHECK(!memcmp(be->d_state(a.state), be->d_state(b.state), row * (size_t)m->N));
    run_close(&b);
  }
  run_close(&a);
}

static void test_same_bits(void) {
  struct model m = model_init(200, 30, 36, 3, 2);
  m.leak[7] = (float)0.01;
  with_each_isa(same_bits, &m);
  model_free(&m);
}

static void test_bytes(void) {
  struct model m = model_init(200, 30, 36, 3, 2);
  for (int want_gradient = 0; want_gradient < 2; want_gradient++) {
    struct run r;
    run_open(&r, &m, 2, want_gradient);
    const int64_t with = mem_held();
    be->close(r.state);
    CHECK_EQ(be->bytes(&r.net), with - mem_held());
    r.state = NULL;
    run_close(&r);
  }
  model_free(&m);
}

/* ---- the model itself: central differences of its loss ---- */

static double loss_at(const struct model *m) {
  struct model_result r = model_run(m);
  const double loss = r.loss;
  model_result_free(&r);
  return loss;
}

static void differentiate(struct model *m, double *x, const double *gradient, int64_t n,
                          int64_t stride) {
  const double h = 1e-5;
  for (int64_t i = 0; i < n; i += stride) {
    const double at = x[i];
    x[i] = at + h;
    const double above = loss_at(m);
    x[i] = at - h;
    const double below = loss_at(m), want = (above - below) / (2 * h);
    x[i] = at;
    CHECK(fabs(gradient[i] - want) < 1e-6 * (1 + fabs(want)));
  }
}

static void test_model(void) {
  struct model m = model_init(50, 8, 3, 3, 2);
  m.leak[3] = 1e-3, m.leak[4] = 0.999;
  struct model_result r = model_run(&m);
  differentiate(&m, m.value, r.d_value, m.E, 3);
  differentiate(&m, m.leak, r.d_leak, m.N, 1);
  differentiate(&m, m.bias, r.d_bias, m.N, 1);
  differentiate(&m, m.drive, r.d_drive, (int64_t)m.T * m.n_in * m.B, 2);
  differentiate(&m, m.start, r.d_start, (int64_t)m.N * m.B, 2);
  model_result_free(&r);
  model_free(&m);
}

static void test_choice(void) {
  CHECK(!strcmp(recur_isa_find("plain")->name, "plain"));
  CHECK(recur_isa_find("mmx") == NULL);
  struct model m = model_init(20, 4, 2, 1, 1);
  struct run r;
  run_open(&r, &m, 1, false);
  setenv("FASCICLE_SIMD", "mmx", 1);
  struct recur *none;
  CHECK_EQ(be->open(&r.net, 1, &none).code, EXIT_USAGE);
  unsetenv("FASCICLE_SIMD");
  run_close(&r);
  model_free(&m);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  be = backend_cpu.recur;
  test_model();
  test_shapes();
  test_rounding();
  test_mixed();
  test_one_step();
  test_extreme_leaks();
  test_saturation();
  test_lonely_node();
  test_no_gradient();
  test_same_bits();
  test_bytes();
  test_choice();
  CHECK_EQ(mem_held(), 0);
  return test_end();
}
