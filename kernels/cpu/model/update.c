/* The optimiser on flat arrays. */
#include "core/clones.h"
#include "state.h"

#include <math.h>

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
  ASSERT(m->want_gradient && model_has_range(m, first, n));
  const float *x = m->array[MODEL_GRADIENT] + first;
  const int64_t n_chunks = (n + MODEL_CHUNK - 1) / MODEL_CHUNK;
#pragma omp parallel for num_threads(m->n_threads) schedule(static)
  for (int64_t c = 0; c < n_chunks; c++) {
    const int64_t at = c * MODEL_CHUNK, left = n - at;
    m->chunk_sum[c] = squares(x + at, left < MODEL_CHUNK ? left : MODEL_CHUNK);
  }
  double sum = 0;
  for (int64_t c = 0; c < n_chunks; c++) sum += m->chunk_sum[c];
  m->squares += sum;
}

/* adamw.h has the formula. `scale` clips the gradient. */
VECTOR_CLONES static void adamw_run(const struct adamw_factors *factors, float scale, int64_t n,
                                    float *restrict w, const float *restrict gradient,
                                    float *restrict m, float *restrict v) {
  const struct adamw_factors f = *factors;
  for (int64_t i = 0; i < n; i++) {
    const float g = scale * gradient[i];
    m[i] = f.beta1 * m[i] + f.rest1 * g;
    v[i] = f.beta2 * v[i] + f.rest2 * g * g;
    w[i] = f.keep * w[i] - f.rate * m[i] / (sqrtf(v[i]) * f.root + f.eps);
  }
}

void model_update(struct model *m, int64_t first, int64_t n, const struct adamw *how) {
  ASSERT(m->want_gradient && model_has_range(m, first, n));
  if (!isfinite(m->squares)) return;
  const struct adamw_factors f = adamw_factors_of(how);
  const float scale = (float)adamw_clip(how->clip, sqrt(m->squares));
#pragma omp parallel for num_threads(m->n_threads) schedule(static)
  for (int64_t at = 0; at < n; at += MODEL_CHUNK)
    adamw_run(&f, scale, n - at < MODEL_CHUNK ? n - at : MODEL_CHUNK,
              m->array[MODEL_PARAMETERS] + first + at, m->array[MODEL_GRADIENT] + first + at,
              m->array[MODEL_MOMENT1] + first + at, m->array[MODEL_MOMENT2] + first + at);
}
