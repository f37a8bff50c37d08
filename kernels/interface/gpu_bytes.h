/* Bytes that backend_cuda would hold, counted from the lists of its arrays: in every build, with or
 * without CUDA, and without a GPU. From counts of the net alone (row_ptr and col are not read). The
 * persistent window, which depends on the GPU, is not looked at; it takes about as much. */
#ifndef FASCICLE_GPU_BYTES_H
#define FASCICLE_GPU_BYTES_H

#include "contract/model.h"
#include "contract/recurrence.h"

#ifdef __cplusplus
extern "C" {
#endif

int64_t gpu_recur_bytes(const struct recur_net *net);
int64_t gpu_model_bytes(const struct model_shape *shape, bool want_gradient);

/* The most host memory that the recurrence takes temporarily, while its tables are made. */
int64_t gpu_recur_host_bytes(const struct recur_net *net);

#ifdef __cplusplus
}
#endif
#endif
