/* recur_gpu.h where the build has no CUDA. */
#include "kernels/interface/recur_gpu.h"

static struct recur_gpu_result none(void) {
  return (struct recur_gpu_result){RECUR_GPU_NO_DEVICE, "this library was built without CUDA"};
}

struct recur_gpu_result recur_gpu_check(int device) {
  (void)device;
  return none();
}

struct recur_gpu_result recur_gpu_open(const struct recur_net *net, const eidx *caller, int device,
                                       struct recur_gpu **tables) {
  (void)net, (void)caller, (void)device;
  *tables = NULL;
  return none();
}

void recur_gpu_close(struct recur_gpu *tables) {
  (void)tables;
}

int64_t recur_gpu_workspace(const struct recur_net *net, const struct recur_gpu_window *shape) {
  (void)net, (void)shape;
  return -1;
}

struct recur_gpu_result recur_gpu_forward(const struct recur_gpu *tables,
                                          const struct recur_gpu_window *w) {
  (void)tables, (void)w;
  return none();
}

struct recur_gpu_result recur_gpu_backward(const struct recur_gpu *tables,
                                           const struct recur_gpu_window *w) {
  (void)tables, (void)w;
  return none();
}
