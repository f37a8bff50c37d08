/* The character model in the memory of one GPU: its arrays, each listed once. Needs no CUDA. */
#ifndef FASCICLE_LAYOUT_MODEL_H
#define FASCICLE_LAYOUT_MODEL_H

#include "contract/model.h"
#include "core/arrays.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MODEL_PARTS = 512 }; /* partial sums of a sum over all parameters */

/* Device pointers; V tokens, T characters, B columns. */
struct model_arrays {
  float *array[MODEL_ARRAYS];
  float *scale, *leak;                  /* c [n_edges]; sigmoid(rho) [n_own] as last loaded */
  int32_t *token, *target;              /* [T][B] */
  int32_t *position, *first;            /* positions by token [T B], [V + 1]; for gradients */
  float *table, *d_table;               /* [n_in][V]; d_table for gradients */
  float *logit, *logit_rows, *out_rows; /* [T][V][B], [V][T B], [n_out][T B] */
  double *nats, *parts;                 /* [T B], [MODEL_PARTS] */
  double *sum;                          /* [2] nats, squares: struct model_figures */
  unsigned long long *count;            /* [1] */
};

/* All of them, by shape. */
void model_list(struct arrays *list, struct model_arrays *a, const struct model_shape *shape,
                bool want_gradient);

#ifdef __cplusplus
}
#endif
#endif
