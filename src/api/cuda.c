/* A window of the public library on one GPU: tables for each batch size;
 * kernels/interface/recur_gpu.h does the work. */
#include "api.h"
#include "kernels/interface/recur_gpu.h"

#include <pthread.h>
#include <stdlib.h>

/* Tables once made stay until the graph is destroyed. */
struct tables {
  int batch;
  bool want_gradient;
  struct recur_gpu *gpu_tables;
  struct tables *next;
};

struct api_gpu {
  int device;
  struct graph graph; /* lent by the graph's arrays */
  lidx *in, *out;     /* [n_in], [n_out] nodes by slot */
  pthread_mutex_t lock;
  struct tables *first; /* under the lock */
};

static int failure_of(struct recur_gpu_result result) {
  static const int code[] = {[RECUR_GPU_FINE] = FASCICLE_OK,
                             [RECUR_GPU_NO_DEVICE] = FASCICLE_NO_DEVICE,
                             [RECUR_GPU_NO_MEMORY] = FASCICLE_OUT_OF_MEMORY,
                             [RECUR_GPU_ERROR] = FASCICLE_DEVICE_ERROR};
  return result.code ? api_failure(code[result.code], "FASCICLE_CUDA: %s", result.text)
                     : FASCICLE_OK;
}

int api_gpu_check(int device) {
  return failure_of(recur_gpu_check(device));
}

static void nodes_of_slots(lidx *node, const lidx *slot, lidx n_nodes) {
  for (lidx i = 0; i < n_nodes; i++)
    if (slot[i] >= 0) node[slot[i]] = i;
}

int api_gpu_create(struct fascicle_graph *g, int device) {
  struct api_gpu *gpu = g->gpu = calloc(1, sizeof *gpu);
  if (!gpu) return api_failure(FASCICLE_OUT_OF_MEMORY, "no memory for a graph");
  pthread_mutex_init(&gpu->lock, NULL);
  gpu->device = device;
  gpu->graph.n_global = gpu->graph.n_own = g->n_nodes;
  gpu->graph.near = (struct csr){g->n_nodes, g->n_edges, g->in_ptr, g->in_source};
  gpu->in = malloc(((size_t)g->n_in + 1) * sizeof *gpu->in);
  gpu->out = malloc(((size_t)g->n_out + 1) * sizeof *gpu->out);
  if (!gpu->in || !gpu->out) return api_failure(FASCICLE_OUT_OF_MEMORY, "no memory for a graph");
  nodes_of_slots(gpu->in, g->in_slot, g->n_nodes);
  nodes_of_slots(gpu->out, g->out_slot, g->n_nodes);
  return FASCICLE_OK;
}

void api_gpu_destroy(struct api_gpu *gpu) {
  if (!gpu) return;
  for (struct tables *t = gpu->first, *next; t; t = next) {
    next = t->next;
    recur_gpu_close(t->gpu_tables);
    free(t);
  }
  pthread_mutex_destroy(&gpu->lock);
  free(gpu->in), free(gpu->out);
  free(gpu);
}

static struct recur_net net_of(const struct fascicle_graph *g, const struct fascicle_shape *shape) {
  return (struct recur_net){.graph = &g->gpu->graph,
                            .n_in = g->n_in,
                            .n_out = g->n_out,
                            .in = g->gpu->in,
                            .out = g->gpu->out,
                            .shape = {shape->batch, shape->steps, shape->microsteps},
                            .want_gradient = shape->want_gradient != 0};
}

static struct recur_gpu_result make_tables(const struct fascicle_graph *g,
                                           const struct fascicle_shape *shape,
                                           struct recur_gpu **gpu_tables) {
  const struct recur_net net = net_of(g, shape);
  struct tables *t = malloc(sizeof *t);
  if (!t)
    return (struct recur_gpu_result){RECUR_GPU_NO_MEMORY,
                                     "no memory for the tables of a batch size"};
  *t = (struct tables){shape->batch, net.want_gradient, NULL, g->gpu->first};
  const struct recur_gpu_result result =
      recur_gpu_open(&net, g->caller, g->gpu->device, &t->gpu_tables);
  if (result.code)
    free(t);
  else
    g->gpu->first = t, *gpu_tables = t->gpu_tables;
  return result;
}

/* The tables for a shape, made if they are new. */
static int tables_for(const struct fascicle_graph *g, const struct fascicle_shape *shape,
                      struct recur_gpu **gpu_tables) {
  struct recur_gpu_result result = {RECUR_GPU_FINE, NULL};
  *gpu_tables = NULL;
  pthread_mutex_lock(&g->gpu->lock);
  for (const struct tables *t = g->gpu->first; t && !*gpu_tables; t = t->next)
    if (t->batch == shape->batch && (t->want_gradient || !shape->want_gradient))
      *gpu_tables = t->gpu_tables;
  if (!*gpu_tables) result = make_tables(g, shape, gpu_tables);
  pthread_mutex_unlock(&g->gpu->lock);
  return failure_of(result);
}

static struct recur_gpu_window window_of(const struct api_call *call) {
  const struct fascicle_shape *s = call->shape;
  const struct fascicle_inputs *in = call->inputs;
  return (struct recur_gpu_window){.batch = s->batch,
                                   .steps = s->steps,
                                   .microsteps = s->microsteps,
                                   .want_gradient = s->want_gradient != 0,
                                   .edge_values = in->edge_values,
                                   .leak = in->leak,
                                   .bias = in->bias,
                                   .drives = in->drives,
                                   .state0 = in->state0,
                                   .workspace = call->workspace,
                                   .stream = call->stream};
}

int64_t api_gpu_workspace(const struct fascicle_graph *g, const struct fascicle_shape *shape) {
  struct recur_gpu *tables;
  if (tables_for(g, shape, &tables)) return -1;
  const struct recur_net net = net_of(g, shape);
  const struct fascicle_inputs none = {0};
  const struct recur_gpu_window w = window_of(&(struct api_call){.shape = shape, .inputs = &none});
  return recur_gpu_workspace(&net, &w);
}

/* The kernels move four floats at a time. */
static int check_aligned(const char *name, const float *array) {
  if ((uintptr_t)array % 16 == 0) return FASCICLE_OK;
  return api_failure(FASCICLE_BAD_ARGUMENT, "%s does not start at a multiple of 16 bytes", name);
}

int api_gpu_forward(const struct fascicle_graph *g, const struct api_call *call, float *out,
                    float *state_end) {
  struct recur_gpu *tables;
  struct recur_gpu_window w = window_of(call);
  int code = check_aligned("drives", w.drives);
  if (!code) code = tables_for(g, call->shape, &tables);
  if (code) return code;
  w.out = out, w.state_end = state_end;
  return failure_of(recur_gpu_forward(tables, &w));
}

int api_gpu_backward(const struct fascicle_graph *g, const struct api_call *call,
                     const float *d_out, const struct fascicle_gradients *gradients) {
  struct recur_gpu *tables;
  struct recur_gpu_window w = window_of(call);
  int code = check_aligned("drives", w.drives);
  if (!code) code = check_aligned("the gradient of drives", gradients->drives);
  if (!code) code = tables_for(g, call->shape, &tables);
  if (code) return code;
  w.d_out = d_out, w.d_edge_values = gradients->edge_values, w.d_leak = gradients->leak;
  w.d_bias = gradients->bias, w.d_drives = gradients->drives, w.d_state0 = gradients->state0;
  return failure_of(recur_gpu_backward(tables, &w));
}
