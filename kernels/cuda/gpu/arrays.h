/* Lists of arrays (core/arrays.h) in device memory. */
#ifndef FASCICLE_GPU_ARRAYS_H
#define FASCICLE_GPU_ARRAYS_H

#include "core/arrays.h"
#include "gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As gpu_zero for each. */
void gpu_arrays_open(const struct arrays *list);

/* The same, filled with what stands in a like list of host arrays. */
void gpu_arrays_copy(const struct arrays *list, const struct arrays *host);

/* As gpu_free for each; pointers become NULL. */
void gpu_arrays_close(const struct arrays *list);

#ifdef __cplusplus
}
#endif
#endif
