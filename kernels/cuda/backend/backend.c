/* The cuda backend: one GPU per rank. */
#include "kernels/interface/backends.h"
#include "kernels/cuda/gpu/gauge.h"
#include "kernels/cuda/gpu/gpu.h"
#include "kernels/cuda/gpu/start.h"

extern const struct lif_backend lif_cuda;
extern const struct recur_backend recur_cuda;
extern const struct model_backend model_cuda;

const struct backend backend_cuda = {.name = "cuda",
                                     .start = gpu_start,
                                     .stop = gpu_stop,
                                     .describe = gpu_describe,
                                     .put = gpu_put,
                                     .get = gpu_get,
                                     .peak = gpu_peak,
                                     .own_memory = true,
                                     .identity = gpu_identity,
                                     .free_bytes = gpu_free_bytes,
                                     .copy_rate = gpu_copy_rate,
                                     .gather_rate = gpu_gather_rate,
                                     .upload_rate = gpu_upload_rate,
                                     .lif = &lif_cuda,
                                     .recur = &recur_cuda,
                                     .model = &model_cuda};
