/* AdamW with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay
 * regularization", ICLR 2019), as every backend makes it. With g the gradient, clipped, and t the
 * step, from 1:
 *
 *   m = beta1 m + (1 - beta1) g                    mhat = m / (1 - beta1^t)
 *   v = beta2 v + (1 - beta2) g^2                  vhat = v / (1 - beta2^t)
 *   w = w (1 - rate decay) - rate mhat / (sqrt(vhat) + eps)
 *
 * C and CUDA C++ both include this. */
#ifndef FASCICLE_ADAMW_H
#define FASCICLE_ADAMW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct adamw {
  double rate, decay, beta1, beta2, eps;
  double clip;  /* the gradient is scaled to this norm where it is longer; 0: never */
  int64_t step; /* 1 for the first */
};

/* What one step multiplies by, the same for every parameter:
 *
 *   w = keep w - rate m / (sqrt(v) root + eps) */
struct adamw_factors {
  double clip;
  float beta1, rest1, beta2, rest2; /* rest = 1 - beta */
  float keep, rate, root, eps;
};
struct adamw_factors adamw_factors_of(const struct adamw *how);

/* The factor that clips a gradient of this norm. */
double adamw_clip(double clip, double norm);

#ifdef __cplusplus
}
#endif
#endif
