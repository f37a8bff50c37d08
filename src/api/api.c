/* The calls of the public library that make a window: checks, then the CPU's or the GPU's entries.
 */
#include "api.h"

static int check_shape(const struct fascicle_graph *g, const struct fascicle_shape *s) {
  if (!g || !s) return api_failure(FASCICLE_BAD_ARGUMENT, "graph and shape must not be NULL");
  if (s->batch < 1 || s->steps < 1 || s->microsteps < 1 || s->n_threads < 0 ||
      (int64_t)s->steps * s->microsteps > INT32_MAX)
    return api_failure(FASCICLE_BAD_ARGUMENT,
                       "shape: batch %d, steps %d, microsteps %d must be at least 1 (steps x "
                       "microsteps below 2^31), "
                       "n_threads %d at least 0",
                       s->batch, s->steps, s->microsteps, s->n_threads);
  return FASCICLE_OK;
}

/* Sizes whose bytes could leave int64 are refused before they are multiplied. */
static bool too_large(const struct fascicle_graph *g, const struct fascicle_shape *s) {
  const double kept = (double)s->steps * s->microsteps + 2;
  return kept * s->batch * ((double)g->n_nodes + 1) > 1e16;
}

int64_t fascicle_workspace_bytes(const struct fascicle_graph *graph,
                                 const struct fascicle_shape *shape) {
  if (check_shape(graph, shape)) return -1;
  if (too_large(graph, shape))
    return api_failure(-1, "shape: a window of this size does not fit any memory");
  const int64_t bytes =
      graph->gpu ? api_gpu_workspace(graph, shape) : api_cpu_workspace(graph, shape);
  return bytes < 0 ? -1 : bytes + API_ALIGN; /* a workspace may start anywhere */
}

static int check_inputs(const struct fascicle_graph *g, const struct fascicle_inputs *in) {
  if (!in || (!in->edge_values && g->n_edges > 0) || !in->leak || !in->bias ||
      (!in->drives && g->n_in > 0))
    return api_failure(FASCICLE_BAD_ARGUMENT,
                       "inputs: edge_values, leak, bias and drives must not be NULL");
  return FASCICLE_OK;
}

/* Checks what both passes take. */
static int begin(struct api_call *call, const struct fascicle_graph *g, int64_t bytes) {
  int code = check_shape(g, call->shape);
  if (!code) code = check_inputs(g, call->inputs);
  if (code) return code;
  const int64_t want = fascicle_workspace_bytes(g, call->shape);
  if (want < 0) return api_last_code() > 0 ? api_last_code() : FASCICLE_BAD_ARGUMENT;
  if (!call->workspace || bytes < want)
    return api_failure(FASCICLE_SMALL_WORKSPACE, "the workspace has %lld bytes, %lld are wanted",
                       (long long)(call->workspace ? bytes : 0), (long long)want);
  call->workspace = (void *)(((uintptr_t)call->workspace + API_ALIGN - 1) / API_ALIGN * API_ALIGN);
  return FASCICLE_OK;
}

int fascicle_forward(const struct fascicle_graph *g, const struct fascicle_shape *shape,
                     const struct fascicle_inputs *inputs, float *out, float *state_end,
                     void *workspace, int64_t bytes, void *stream) {
  struct api_call call = {shape, inputs, workspace, stream};
  const int code = begin(&call, g, bytes);
  if (code) return code;
  return (g->gpu ? api_gpu_forward : api_cpu_forward)(g, &call, out, state_end);
}

int fascicle_backward(const struct fascicle_graph *g, const struct fascicle_shape *shape,
                      const struct fascicle_inputs *inputs, const float *d_out,
                      const struct fascicle_gradients *gradients, void *workspace, int64_t bytes,
                      void *stream) {
  struct api_call call = {shape, inputs, workspace, stream};
  const int code = begin(&call, g, bytes);
  if (code) return code;
  if (!shape->want_gradient)
    return api_failure(FASCICLE_BAD_ARGUMENT, "the forward pass was run without want_gradient");
  if (!gradients || (!d_out && g->n_out > 0))
    return api_failure(FASCICLE_BAD_ARGUMENT, "d_out and gradients must not be NULL");
  return (g->gpu ? api_gpu_backward : api_cpu_backward)(g, &call, d_out, gradients);
}
