/* Embedding and input projection. There are only V different tokens, so the drive of each is
 * computed once and looked up for every character; the backward pass sums by token first. */
#include "core/clones.h"
#include "core/mem.h"
#include "state.h"

#include <string.h>

static void transpose_embedding(struct model *m) {
  const int V = m->shape.vocabulary, W = m->shape.embedding;
  const float *embedding = model_at(m, MODEL_PARAMETERS, MODEL_EMBEDDING);
  for (int v = 0; v < V; v++)
    for (int w = 0; w < W; w++)
      m->embedding_cols[(int64_t)w * V + v] = embedding[(int64_t)v * W + w];
}

/* table[v] = bias + sum over w of weight[w] embedding[v][w] */
VECTOR_CLONES static void table_row(const float *weight, int W,
                                    const float *restrict embedding_cols, int V,
                                    float *restrict table) {
  for (int v = 0; v < V; v++) table[v] = weight[W];
  for (int w = 0; w < W; w++)
    for (int v = 0; v < V; v++) table[v] += weight[w] * embedding_cols[(int64_t)w * V + v];
}

void model_drive(struct model *m, const int32_t *token, float *drive) {
  const struct model_shape *s = &m->shape;
  const int V = s->vocabulary, W = s->embedding, B = s->batch;
  ASSERT(model_has_tokens(m, token, (int64_t)s->steps * B, 0));
  memcpy(m->token, token, (size_t)s->steps * (size_t)B * sizeof *token);
  transpose_embedding(m);
  const float *projection = model_at(m, MODEL_PARAMETERS, MODEL_PROJECTION);
#pragma omp parallel for num_threads(m->n_threads) schedule(static)
  for (lidx i = 0; i < s->n_in; i++) {
    float *table = m->table + (int64_t)i * V;
    table_row(projection + (int64_t)i * (W + 1), W, m->embedding_cols, V, table);
    for (int64_t t = 0; t < s->steps; t++)
      for (int b = 0; b < B; b++) drive[(t * s->n_in + i) * B + b] = table[m->token[t * B + b]];
  }
}

/* d_table[i][v] = sum of d_drive[t][i][b] over all (t, b) with token v */
static void sum_by_token(struct model *m, lidx i, const float *d_drive) {
  const struct model_shape *s = &m->shape;
  double *sum = m->d_table + (int64_t)i * s->vocabulary;
  memset(sum, 0, (size_t)s->vocabulary * sizeof *sum);
  for (int64_t t = 0; t < s->steps; t++) {
    const float *d = d_drive + (t * s->n_in + i) * s->batch;
    const int32_t *token = m->token + t * s->batch;
    for (int b = 0; b < s->batch; b++) sum[token[b]] += (double)d[b];
  }
}

/* A row of the projection's gradient: d_weight[w] = sum over v of d_table[v]
 * embedding[v][w]; its bias. */
static void projection_row(struct model *m, lidx i) {
  const int V = m->shape.vocabulary, W = m->shape.embedding;
  const double *d_table = m->d_table + (int64_t)i * V;
  float *d_row = model_at(m, MODEL_GRADIENT, MODEL_PROJECTION) + (int64_t)i * (W + 1);
  for (int w = 0; w < W; w++) {
    const float *column = m->embedding_cols + (int64_t)w * V;
    double sum = 0;
    for (int v = 0; v < V; v++) sum += d_table[v] * (double)column[v];
    d_row[w] = (float)sum;
  }
  double sum = 0;
  for (int v = 0; v < V; v++) sum += d_table[v];
  d_row[W] = (float)sum;
}

/* sum[w] += weight of token v's d_table times the projection, over input nodes [first, last) */
VECTOR_CLONES static void embedding_row(const double *d_table, int64_t V, const float *projection,
                                        int W, lidx n_in, double *restrict sum) {
  for (lidx i = 0; i < n_in; i++) {
    const double d = d_table[i * V];
    const float *row = projection + (int64_t)i * (W + 1);
    for (int w = 0; w < W; w++) sum[w] += d * (double)row[w];
  }
}

void model_drive_gradient(struct model *m, const float *d_drive) {
  const int V = m->shape.vocabulary, W = m->shape.embedding;
  ASSERT(m->want_gradient);
#pragma omp parallel for num_threads(m->n_threads) schedule(static)
  for (lidx i = 0; i < m->shape.n_in; i++) {
    sum_by_token(m, i, d_drive);
    projection_row(m, i);
  }
  const float *projection = model_at(m, MODEL_PARAMETERS, MODEL_PROJECTION);
  float *d_embedding = model_at(m, MODEL_GRADIENT, MODEL_EMBEDDING);
#pragma omp parallel num_threads(m->n_threads)
  {
    double *sum = NEW(double, W);
#pragma omp for schedule(static)
    for (int v = 0; v < V; v++) {
      memset(sum, 0, (size_t)W * sizeof *sum);
      embedding_row(m->d_table + v, V, projection, W, m->shape.n_in, sum);
      for (int w = 0; w < W; w++) d_embedding[(int64_t)v * W + w] = (float)sum[w];
    }
    mem_free(sum);
  }
}
