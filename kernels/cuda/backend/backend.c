/* The cuda backend: one GPU per rank. */
#include "kernels/interface/backends.h"
#include "kernels/cuda/gpu/bandwidth.h"
#include "kernels/cuda/gpu/gpu.h"
#include "kernels/cuda/gpu/start.h"
#include "kernels/cuda/layout/persist.h"

#include <stdlib.h>

extern const struct lif_backend lif_cuda;
extern const struct recur_backend recur_cuda;
extern const struct model_backend model_cuda;

static struct status check_window(void) {
  const char *mode = getenv(PERSIST_MODE);
  if (!mode || persist_knows_mode(mode)) return fine();
  return failure(EXIT_USAGE,
                 "%s=%s in the environment: persistent or microsteps is wanted, or unset it",
                 PERSIST_MODE, mode);
}

static struct status start(int local_rank) {
  TRY(check_window());
  return gpu_start(local_rank);
}

const struct backend backend_cuda = {.name = "cuda",
                                     .is_built = true,
                                     .start = start,
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
