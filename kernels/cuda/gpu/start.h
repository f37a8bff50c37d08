/* The entries of backend_cuda that concern the device as a whole. */
#ifndef FASCICLE_GPU_START_H
#define FASCICLE_GPU_START_H

#include "core/fail.h"
#include "gpu.h"

struct status gpu_start(int local_rank);
void gpu_stop(void);
void gpu_describe(char *text, size_t size);
void gpu_identity(char id[16]);

/* Whether this binary holds code that the current device runs: one empty launch. */
cudaError_t gpu_can_launch(void);

#endif
