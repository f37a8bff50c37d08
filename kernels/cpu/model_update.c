/* The optimiser on flat arrays. */
#include "clones.h"
#include "model_state.h"

#include <math.h>

enum { CHUNK = 1 << 14 };

/* Eight running sums, so that the loop is a vector loop with a fixed order. */
VECTOR_CLONES static double squares(const float *x, int64_t n) {
  double sum[8] = {0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; l++) sum[l] += (double)x[i + l] * (double)x[i + l];
  for (; i < n; i++) sum[0] += (double)x[i] * (double)x[i];
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

void model_squares_add(struct model *m, int64_t first, int64_t n) {
  const float *x = m->array[MODEL_GRADIENT] + first;
  const int64_t n_chunks = (n + CHUNK - 1) / CHUNK;
#pragma omp parallel for num_threads(m->n_threads) schedule(static)
  for (int64_t c = 0; c < n_chunks; c++)
    m->chunk_sum[c] = squares(x + c * CHUNK, n - c * CHUNK < CHUNK ? n - c * CHUNK : CHUNK);
  double sum = 0;
  for (int64_t c = 0; c < n_chunks; c++) sum += m->chunk_sum[c];
  m->squares += sum;
}

struct factors {
  float scale, beta1, rest1, beta2, rest2, keep, rate, root, eps; /* rest = 1 - beta */
};

/* m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 * w = w (1 - lr decay) - lr mhat / (sqrt(vhat) + eps),  mhat = m / (1 - beta1^step), vhat = v / (1 -
 * beta2^step) */
VECTOR_CLONES static void adamw_run(const struct factors *factors, int64_t n, float *restrict w,
                                    const float *restrict gradient, float *restrict m, float *restrict v) {
  const struct factors f = *factors;
  for (int64_t i = 0; i < n; i++) {
    const float g = f.scale * gradient[i];
    m[i] = f.beta1 * m[i] + f.rest1 * g;
    v[i] = f.beta2 * v[i] + f.rest2 * g * g;
    w[i] = f.keep * w[i] - f.rate * m[i] / (sqrtf(v[i]) * f.root + f.eps);
  }
}

void model_update(struct model *m, int64_t first, int64_t n, const struct adamw *how) {
  if (!isfinite(m->squares)) return;
  const double correct1 = 1 - pow(how->beta1, (double)how->step);
  const double correct2 = 1 - pow(how->beta2, (double)how->step);
  const struct factors f = {.scale = (float)adamw_clip(how->clip, sqrt(m->squares)),
                            .beta1 = (float)how->beta1,
                            .rest1 = (float)(1 - how->beta1),
                            .beta2 = (float)how->beta2,
                            .rest2 = (float)(1 - how->beta2),
                            .keep = (float)(1 - how->rate * how->decay),
                            .rate = (float)(how->rate / correct1),
                            .root = (float)(1 / sqrt(correct2)),
                            .eps = (float)how->eps};
#pragma omp parallel for num_threads(m->n_threads) schedule(static)
  for (int64_t at = 0; at < n; at += CHUNK)
    adamw_run(&f, n - at < CHUNK ? n - at : CHUNK, m->array[MODEL_PARAMETERS] + first + at,
              m->array[MODEL_GRADIENT] + first + at, m->array[MODEL_MOMENT1] + first + at,
              m->array[MODEL_MOMENT2] + first + at);
}
