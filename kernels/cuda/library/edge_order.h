/* Between the layouts of the public library and those of the kernels; all arrays on the device,
 * queued on gpu_stream(). */
#ifndef FASCICLE_EDGE_ORDER_H
#define FASCICLE_EDGE_ORDER_H

#include "kernels/cuda/gpu/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to[e] = from[order[e]], and to[order[e]] = from[e]; n of them. */
void edge_order_gather(float *to, const float *from, const uint32_t *order, int64_t n);
void edge_order_scatter(float *to, const float *from, const uint32_t *order, int64_t n);

/* n matrices: to [n][columns][rows] = from [n][rows][columns] */
void edge_order_flip(float *to, const float *from, int n, int64_t rows, int64_t columns);

#ifdef __cplusplus
}
#endif
#endif
