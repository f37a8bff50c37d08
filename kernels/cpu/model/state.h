/* What the files of the cpu model share. */
#ifndef FASCICLE_MODEL_STATE_H
#define FASCICLE_MODEL_STATE_H

#include "contract/model.h"

/* The optimiser works on so many parameters at a time; their squares are summed first, so that the
 * sum does not depend on the number of threads. */
enum { MODEL_CHUNK = 1 << 14 };

struct model {
  struct model_shape shape;
  struct model_layout at;
  int n_threads;
  bool want_gradient;
  float *array[MODEL_ARRAYS];
  float *scale;          /* [n_edges] c */
  float *leak;           /* [n_own] sigmoid(rho), as last loaded */
  int32_t *token;        /* [T][B] */
  float *table;          /* [n_in][V] drive of each token */
  float *embedding_cols; /* [W][V] the embedding, transposed */
  double *d_table;       /* [n_in][V] */
  float *logit;          /* [T][V][B] */
  double nats;
  double *position_nats; /* [T] */
  int64_t padded;        /* V rounded up to whole vectors */
  float *d_logit_rows;   /* [T][B][padded] gradient of the logits, transposed */
  float *d_readout_part; /* [n_out][padded] */
  double *d_readout_sum; /* [n_out][padded] */
  double *chunk_sum;     /* [all parameters / MODEL_CHUNK + 1] of squares_add */
  double squares;
  struct model_figures figures[MODEL_FIGURES_KEPT];
  int64_t noted, read; /* figures so far */
};

/* Where block b of an array begins. */
static inline float *model_at(const struct model *m, enum model_array which,
                              enum model_block block) {
  return m->array[which] + m->at.at[block];
}

/* Whether [first, first + n) are parameters. */
static inline bool model_has_range(const struct model *m, int64_t first, int64_t n) {
  return first >= 0 && n >= 0 && first + n <= m->at.at[MODEL_BLOCKS];
}

/* Whether all n tokens, or targets, are at least `least` and below the size of the vocabulary. */
static inline bool model_has_tokens(const struct model *m, const int32_t *token, int64_t n,
                                    int32_t least) {
  for (int64_t i = 0; i < n; i++)
    if (token[i] < least || token[i] >= m->shape.vocabulary) return false;
  return true;
}

void model_drive(struct model *m, const int32_t *token, float *drive);
void model_drive_gradient(struct model *m, const float *d_drive);
void model_readout(struct model *m, const float *output);
void model_loss(struct model *m, const int32_t *target, double scale);
void model_readout_gradient(struct model *m, const float *output, float *d_output);
void model_squares_add(struct model *m, int64_t first, int64_t n);
void model_update(struct model *m, int64_t first, int64_t n, const struct adamw *how);

#endif
