/* The character model on the device: what the host code hands to the kernels. All
 * pointers are device pointers. */
#ifndef FASCICLE_MODEL_DEVICE_H
#define FASCICLE_MODEL_DEVICE_H

#include "contract/adamw.h"
#include "kernels/cuda/gpu/gpu.h"
#include "kernels/cuda/layout/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct model_device {
  int V, W, B, T;
  int n_in, n_out;
};

/* z = x y */
void model_device_multiply(const float *x, const float *y, int64_t n, float *z);
/* leak = kept = 1 / (1 + exp(-rho));  d_rho = kept (1 - kept) d_leak */
void model_device_sigmoid(const float *rho, int64_t n, float *leak, float *kept);
void model_device_sigmoid_gradient(const float *kept, const float *d_leak, int64_t n, float *d_rho);
void model_device_fill(float *x, int64_t n, float value);

/* table [n_in][V] = each row's bias, the last column of projection [n_in][W + 1]. */
void model_device_table_start(const struct model_device *m, const float *projection, float *table);
/* drive [T][n_in][B] = table [n_in][V] by token [T][B]. */
void model_device_drive(const struct model_device *m, const float *table, const int32_t *token,
                        float *drive);

/* d_table [n_in][V] from d_drive, by the positions of each token: position [T B] sorted by token,
 * first [V + 1]. Then the gradient of projection [n_in][W + 1]. */
void model_device_drive_gradient(const struct model_device *m, const float *d_drive,
                                 const int32_t *position, const int32_t *first,
                                 const float *embedding, float *d_table, float *d_projection);

/* logit [T][V][B] = bias [V] + rows [V][T B], each left out where it is NULL. */
void model_device_logits(const struct model_device *m, const float *bias, const float *rows,
                         float *logit);
/* Logits become scale (softmax - one at the target); nats [T B] of each position, *sum of all. */
void model_device_loss(const struct model_device *m, const int32_t *target, double scale,
                       float *logit, double *nats, double *sum);

/* rows [n][T B] from by_time [T][n][B]. */
void model_device_by_row(const struct model_device *m, int n, const float *by_time, float *rows);
/* sums [n] of rows [n][T B]. */
void model_device_row_sums(const struct model_device *m, int n, const float *rows, float *sums);

/* *sum += sum of x^2; `parts` has room for MODEL_PARTS doubles. */
void model_device_squares(const float *x, int64_t n, double *parts, double *sum);
void model_device_count_beyond(const float *x, int64_t n, float level, unsigned long long *count);

/* One step of n parameters w with gradient g and moments m, v. Clipped by the norm sqrt(*squares);
 * nothing changes where that is not finite. */
void model_device_adamw(const struct adamw_factors *f, const double *squares, int64_t n, float *w,
                        const float *g, float *m, float *v);

#ifdef __cplusplus
}
#endif
#endif
