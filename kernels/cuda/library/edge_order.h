/* Between the layouts of the public library and those of the kernels; all arrays on the device. */
#ifndef FASCICLE_EDGE_ORDER_H
#define FASCICLE_EDGE_ORDER_H

#include "kernels/cuda/gpu/queue.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* to[e] = from[order[e]], and to[order[e]] = from[e]; n of them. */
void edge_order_gather(struct gpu_queue *queue, float *to, const float *from, const uint32_t *order,
                       int64_t n);
void edge_order_scatter(struct gpu_queue *queue, float *to, const float *from,
                        const uint32_t *order, int64_t n);

/* n matrices: to [n][columns][rows] = from [n][rows][columns] */
void edge_order_flip(struct gpu_queue *queue, float *to, const float *from, int n, int64_t rows,
                     int64_t columns);

#ifdef __cplusplus
}
#endif
#endif
