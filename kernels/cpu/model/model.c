/* The cpu model: memory; parameters to the recurrence and its gradients back. */
#include "model.h"
#include "core/arrays.h"
#include "core/clones.h"
#include "core/mem.h"
#include "state.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };

static int64_t padded_vocabulary(const struct model_shape *s) {
  return (s->vocabulary + LANES - 1) / LANES * (int64_t)LANES;
}

/* Every array of m, by its shape, layout and padding. */
static struct arrays arrays_of(struct model *m, bool want_gradient) {
  const struct model_shape *s = &m->shape;
  const int64_t n = m->at.at[MODEL_BLOCKS], V = s->vocabulary, TB = (int64_t)s->steps * s->batch;
  struct arrays list = {0};
  ARRAY_ZERO(&list, m->array[MODEL_PARAMETERS], n);
  ARRAY(&list, m->scale, s->n_edges), ARRAY_ZERO(&list, m->leak, s->n_own);
  ARRAY_ZERO(&list, m->token, TB), ARRAY(&list, m->table, s->n_in * V);
  ARRAY(&list, m->embedding_cols, s->embedding * V);
  ARRAY(&list, m->logit, TB * V), ARRAY_ZERO(&list, m->position_nats, s->steps);
  if (!want_gradient) return list;
  for (int a = MODEL_GRADIENT; a < MODEL_ARRAYS; a++) ARRAY_ZERO(&list, m->array[a], n);
  ARRAY(&list, m->d_table, s->n_in * V), ARRAY_ZERO(&list, m->d_logit_rows, TB * m->padded);
  ARRAY(&list, m->d_readout_part, s->n_out * m->padded);
  ARRAY(&list, m->d_readout_sum, s->n_out * m->padded);
  ARRAY(&list, m->chunk_sum, n / MODEL_CHUNK + 1);
  return list;
}

static struct model with_shape(const struct model_shape *s) {
  return (struct model){.shape = *s, .at = model_layout_of(s), .padded = padded_vocabulary(s)};
}

static struct status open_model(const struct model_shape *s, bool want_gradient, int n_threads,
                                struct model **model) {
  ASSERT(s->vocabulary >= 1 && s->embedding >= 1 && s->batch >= 0 && s->steps >= 1);
  ASSERT(s->n_edges >= 0 && s->n_own >= 0 && s->n_in >= 0 && s->n_out >= 0);
  struct model *m = *model = NEW(struct model, 1);
  *m = with_shape(s);
  m->n_threads = n_threads, m->want_gradient = want_gradient;
  const struct arrays arrays = arrays_of(m, want_gradient);
  arrays_open(&arrays);
  for (eidx e = 0; e < s->n_edges; e++) m->scale[e] = 1;
  return fine();
}

static void close_model(struct model *m) {
  if (!m) return;
  const struct arrays arrays = arrays_of(m, true);
  arrays_close(&arrays);
  mem_free(m);
}

static int64_t bytes(const struct model_shape *s, bool want_gradient) {
  struct model m = with_shape(s);
  const struct arrays arrays = arrays_of(&m, want_gradient);
  return arrays_bytes(&arrays) + (int64_t)sizeof m;
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
  ASSERT(m->want_gradient);
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
  ASSERT(m->noted - m->read < MODEL_FIGURES_KEPT);
  m->figures[m->noted++ % MODEL_FIGURES_KEPT] = (struct model_figures){m->nats, m->squares};
}

static struct model_figures figures(struct model *m) {
  ASSERT(m->read < m->noted);
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
