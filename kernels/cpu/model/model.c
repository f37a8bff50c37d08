/* The cpu model: memory, and the way between the parameters and the recurrence. */
#include "model.h"
#include "core/clones.h"
#include "core/mem.h"
#include "state.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };

static int64_t padded_vocabulary(const struct model_shape *s) {
  return (s->vocabulary + LANES - 1) / LANES * (int64_t)LANES;
}

static void open_gradient(struct model *m) {
  const struct model_shape *s = &m->shape;
  const int64_t n = m->at.at[MODEL_BLOCKS];
  for (int a = MODEL_GRADIENT; a < MODEL_ARRAYS; a++) m->array[a] = NEW_ZERO(float, n);
  m->d_table = NEW(double, s->n_in *(int64_t)s->vocabulary);
  m->d_logit_rows = NEW_ZERO(float, (int64_t)s->steps * s->batch * m->padded);
  m->d_readout_part = NEW(float, s->n_out * m->padded);
  m->d_readout_sum = NEW(double, s->n_out * m->padded);
  m->chunk_sum = NEW(double, n / MODEL_CHUNK + 1);
}

static struct status open_model(const struct model_shape *s, bool want_gradient, int n_threads,
                                struct model **model) {
  struct model *m = *model = NEW_ZERO(struct model, 1);
  m->shape = *s;
  m->at = model_layout_of(s);
  m->n_threads = n_threads;
  m->padded = padded_vocabulary(s);
  m->array[MODEL_PARAMETERS] = NEW_ZERO(float, m->at.at[MODEL_BLOCKS]);
  m->scale = NEW(float, s->n_edges);
  for (eidx e = 0; e < s->n_edges; e++) m->scale[e] = 1;
  m->leak = NEW_ZERO(float, s->n_own);
  m->token = NEW_ZERO(int32_t, (int64_t)s->steps * s->batch);
  m->table = NEW(float, s->n_in *(int64_t)s->vocabulary);
  m->embedding_cols = NEW(float, (int64_t)s->embedding * s->vocabulary);
  m->logit = NEW(float, (int64_t)s->steps * s->vocabulary * s->batch);
  m->position_nats = NEW_ZERO(double, s->steps);
  if (want_gradient) open_gradient(m);
  return fine();
}

static void close_model(struct model *m) {
  if (!m) return;
  for (int a = 0; a < MODEL_ARRAYS; a++) mem_free(m->array[a]);
  mem_free(m->scale), mem_free(m->leak), mem_free(m->token), mem_free(m->table),
      mem_free(m->embedding_cols);
  mem_free(m->d_table), mem_free(m->logit), mem_free(m->position_nats), mem_free(m->d_logit_rows);
  mem_free(m->d_readout_part), mem_free(m->d_readout_sum), mem_free(m->chunk_sum);
  mem_free(m);
}

static int64_t bytes(const struct model_shape *s, bool want_gradient) {
  const int64_t n = model_layout_of(s).at[MODEL_BLOCKS], V = s->vocabulary,
                TB = (int64_t)s->steps * s->batch;
  const int64_t kept =
      4 * (n + s->n_edges + s->n_own + s->n_in * V + s->embedding * V + TB * (V + 1)) +
      8 * (int64_t)s->steps + (int64_t)sizeof(struct model);
  if (!want_gradient) return kept;
  const int64_t P = padded_vocabulary(s);
  return kept + 12 * n + 8 * s->n_in * V + 4 * TB * P + 12 * s->n_out * P +
         8 * (n / MODEL_CHUNK + 1);
}

static float *array(struct model *m, enum model_array which) {
  return m->array[which];
}

static void set_scale(struct model *m, const float *scale) {
  if (m->shape.n_edges) memcpy(m->scale, scale, (size_t)m->shape.n_edges * sizeof *scale);
}

VECTOR_CLONES static void multiply(const float *restrict x, const float *restrict y, int64_t n,
                                   float *restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] * y[i];
}

/* v = c theta;  a = 1 / (1 + exp(-rho)) */
static void load_core(struct model *m, float *value, float *leak, float *bias) {
  const float *rho = model_at(m, MODEL_PARAMETERS, MODEL_LEAK);
  multiply(m->scale, model_at(m, MODEL_PARAMETERS, MODEL_EDGES), m->shape.n_edges, value);
  for (lidx i = 0; i < m->shape.n_own; i++)
    leak[i] = m->leak[i] = (float)(1 / (1 + exp(-(double)rho[i])));
  if (m->shape.n_own == 0) return;
  memcpy(bias, model_at(m, MODEL_PARAMETERS, MODEL_BIAS), (size_t)m->shape.n_own * sizeof *bias);
}

/* dtheta = c dv;  drho = a (1 - a) da */
static void take_core(struct model *m, const float *d_value, const float *d_leak,
                      const float *d_bias) {
  float *d_rho = model_at(m, MODEL_GRADIENT, MODEL_LEAK);
  multiply(m->scale, d_value, m->shape.n_edges, model_at(m, MODEL_GRADIENT, MODEL_EDGES));
  for (lidx i = 0; i < m->shape.n_own; i++) d_rho[i] = m->leak[i] * (1 - m->leak[i]) * d_leak[i];
  if (m->shape.n_own == 0) return;
  memcpy(model_at(m, MODEL_GRADIENT, MODEL_BIAS), d_bias, (size_t)m->shape.n_own * sizeof *d_bias);
}

static float *logit(struct model *m) {
  return m->logit;
}

static double nats(struct model *m) {
  return m->nats;
}

static void squares_clear(struct model *m) {
  m->squares = 0;
}

static double squares(struct model *m) {
  return m->squares;
}

static void squares_set(struct model *m, double squares_of_all) {
  m->squares = squares_of_all;
}

static void figures_note(struct model *m) {
  m->figures[m->noted++ % MODEL_FIGURES_KEPT] = (struct model_figures){m->nats, m->squares};
}

static struct model_figures figures(struct model *m) {
  return m->figures[m->read++ % MODEL_FIGURES_KEPT];
}

static int64_t count_beyond(struct model *m, const float *x, int64_t n, float level) {
  (void)m;
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) count += fabsf(x[i]) > level;
  return count;
}

const struct model_backend model_cpu = {.open = open_model,
                                        .close = close_model,
                                        .bytes = bytes,
                                        .array = array,
                                        .set_scale = set_scale,
                                        .load_core = load_core,
                                        .take_core = take_core,
                                        .drive = model_drive,
                                        .readout = model_readout,
                                        .logit = logit,
                                        .loss = model_loss,
                                        .nats = nats,
                                        .readout_gradient = model_readout_gradient,
                                        .drive_gradient = model_drive_gradient,
                                        .squares_clear = squares_clear,
                                        .squares_add = model_squares_add,
                                        .squares = squares,
                                        .squares_set = squares_set,
                                        .update = model_update,
                                        .figures_note = figures_note,
                                        .figures = figures,
                                        .count_beyond = count_beyond};
