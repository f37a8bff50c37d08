/* What `plan` asks of the layouts. */
#include "kernels/interface/gpu_bytes.h"
#include "model.h"
#include "recur.h"

int64_t gpu_recur_bytes(const struct recur_net *net) {
  return recur_expected_bytes(net, false);
}

int64_t gpu_model_bytes(const struct model_shape *shape, bool want_gradient) {
  struct model_arrays a;
  struct arrays list = {0};
  model_list(&list, &a, shape, want_gradient);
  return arrays_bytes(&list);
}

int64_t gpu_recur_host_bytes(const struct recur_net *net) {
  return recur_expected_host_bytes(net);
}
