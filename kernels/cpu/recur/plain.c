/* The recurrence in plain C: the specification that the SIMD paths are held against. */
#include "contract/recurrence.h"
#include "kernels/interface/recur_round.h"
#include "kernels/interface/recur_window.h"

#include <math.h>
#include <string.h>

static bool always(void) {
  return true;
}

/* A state as its readers along edges see it. */
static float seen(const struct recur_window *w, float s) {
  return w->mixed ? round_half(s) : s;
}

/* sum_e v_e s[col_e] for one row, added to `sum` [B] */
static void add_product(const struct recur_window *w, const struct recur_edges *edges, lidx row,
                        const float *state, float *sum) {
  for (eidx e = edges->ptr[row]; e < edges->ptr[row + 1]; e++) {
    const float v = edges->value[e], *s = state + (int64_t)edges->col[e] * w->batch;
    for (int b = 0; b < w->batch; b++) sum[b] += v * seen(w, s[b]);
  }
}

/* z += d_t + b */
static void add_input(const struct recur_window *w, int k, lidx row, float *z) {
  const lidx slot = w->in_slot[row];
  const float *drive =
      slot < 0 ? NULL : w->drive + ((int64_t)(k / w->microsteps) * w->n_in + slot) * w->batch;
  for (int c = 0; c < w->batch; c++) z[c] += drive ? drive[c] + w->bias[row] : w->bias[row];
}

/* s_{k+1} = (1 - a) s_k + a tanh(z) */
static void finish_row(const struct recur_window *w, int k, lidx row, float *z) {
  const int B = w->batch;
  const float a = w->leak[row], *s = recur_state(w, k) + (int64_t)row * B;
  float *next = recur_state(w, k + 1) + (int64_t)row * B;
  add_input(w, k, row, z);
  for (int b = 0; b < B; b++) next[b] = (1 - a) * s[b] + a * tanhf(z[b]);
  if ((k + 1) % w->microsteps == 0 && w->out_slot[row] >= 0)
    memcpy(w->output + ((int64_t)(k / w->microsteps) * w->n_out + w->out_slot[row]) * B, next,
           (size_t)B * sizeof *next);
}

static void forward(const struct recur_window *w, int k, enum recur_edge_set edges, lidx first,
                    lidx last) {
  const int B = w->batch;
  const float *s = recur_state(w, k);
  for (lidx i = first; i < last; i++) {
    /* z is formed where s_{k+1} will stand, unless the halo is awaited */
    float *z = (edges == RECUR_ALL_EDGES ? recur_state(w, k + 1) : w->near_sum) + (int64_t)i * B;
    if (edges != RECUR_FAR_EDGES) {
      memset(z, 0, (size_t)B * sizeof *z);
      add_product(w, &w->near, i, s, z);
    }
    if (edges == RECUR_FAR_EDGES) add_product(w, &w->far, i, s, z);
    if (edges != RECUR_NEAR_EDGES) finish_row(w, k, i, z);
  }
}

/* p_k of one row and column, from two states */
static float proposal(float before, float after, float a) {
  return (after - (1 - a) * before) / a;
}

/* p_k of a whole row from z_k, left in `p` [B] */
static void proposals_again(const struct recur_window *w, int k, lidx row, float *p) {
  memset(p, 0, (size_t)w->batch * sizeof *p);
  add_product(w, &w->near, row, recur_state(w, k), p);
  if (w->n_halo > 0) add_product(w, &w->far, row, recur_state(w, k), p);
  add_input(w, k, row, p);
  for (int b = 0; b < w->batch; b++) p[b] = tanhf(p[b]);
}

static void elementwise_row(const struct recur_window *w, int k, lidx row, const float *d_output,
                            float *d_drive) {
  const int B = w->batch;
  const float a = w->leak[row];
  const float *s = recur_state(w, k) + (int64_t)row * B,
              *next = recur_state(w, k + 1) + (int64_t)row * B;
  float *g = w->d_state + (int64_t)row * B, *q = recur_q(w, k) + (int64_t)row * B;
  const bool first_visit = (k + 1) % w->microsteps == 0;
  if (a < RECUR_SMALL_LEAK) proposals_again(w, k, row, q);
  for (int b = 0; b < B; b++) {
    const float p = a < RECUR_SMALL_LEAK ? q[b] : proposal(s[b], next[b], a);
    if (d_output) g[b] += d_output[b];
    const float exact = g[b] * a * fmaxf(0, 1 - p * p);
    w->sum_bias[row] += exact;
    w->sum_leak[row] += g[b] * (p - s[b]);
    if (d_drive) d_drive[b] = first_visit ? exact : d_drive[b] + exact;
    q[b] = w->mixed ? round_bfloat(exact) : exact;
    g[b] *= 1 - a;
  }
}

static void elementwise(const struct recur_window *w, int k, lidx first, lidx last) {
  const int64_t t = k / w->microsteps;
  const bool read_out = (k + 1) % w->microsteps == 0;
  for (lidx i = first; i < last; i++) {
    const lidx in = w->in_slot[i], out = w->out_slot[i];
    elementwise_row(w, k, i,
                    read_out && out >= 0 ? w->d_output + (t * w->n_out + out) * w->batch : NULL,
                    in >= 0 ? w->d_drive + (t * w->n_in + in) * w->batch : NULL);
  }
}

/* g[j] += v_e q[dst_e]  and  dv_e += q[dst_e] . s_k[j] */
static void transposed(const struct recur_window *w, int k, lidx first, lidx last) {
  const int B = w->batch;
  for (lidx j = first; j < last; j++) {
    const float *s = recur_state(w, k) + (int64_t)j * B;
    float *g = w->d_state + (int64_t)j * B;
    if (j >= w->n_own) memset(g, 0, (size_t)B * sizeof *g);
    for (eidx e = w->out.ptr[j]; e < w->out.ptr[j + 1]; e++) {
      const float v = w->out.value[e], *q = recur_q(w, k) + (int64_t)w->out.col[e] * B;
      float dv = 0;
      for (int b = 0; b < B; b++) {
        g[b] += v * q[b];
        dv += q[b] * seen(w, s[b]);
      }
      w->out_gradient[e] += dv;
    }
  }
}

static float bench_flops(int64_t rounds) {
  enum { N = RECUR_FLOPS_PER_ROUND / 2 };
  float x[N], sum = 0;
  for (int i = 0; i < N; i++) x[i] = (float)i;
  for (int64_t r = 0; r < rounds; r++)
    for (int i = 0; i < N; i++) x[i] = x[i] * 0.999f + 0.001f;
  for (int i = 0; i < N; i++) sum += x[i];
  return sum;
}

static float bench_gather(const float *rows, int width, const lidx *row, int64_t n) {
  float x[RECUR_GATHERED_FLOATS] = {0}, sum = 0;
  for (int64_t i = 0; i < n; i++)
    for (int b = 0; b < width; b++) x[b] += rows[(int64_t)row[i] * width + b];
  for (int b = 0; b < width; b++) sum += x[b];
  return sum;
}

const struct recur_isa recur_plain = {.name = "plain",
                                      .usable = always,
                                      .forward = forward,
                                      .elementwise = elementwise,
                                      .transposed = transposed,
                                      .bench_flops = bench_flops,
                                      .bench_gather = bench_gather};
