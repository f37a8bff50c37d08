/* A window of the public library on the CPU: the caller's layouts around kernels/recur_window. */
#include "api.h"
#include "core/numbers.h"
#include "kernels/interface/recur_window.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 512 };

/* A window in the caller's workspace. */
struct call {
  struct recur_window window;
  float *value;   /* [E] by target */
  float *output;  /* [T][n_out][B]: output, later d_output */
  float *d_value; /* [E] by target */
  float *spare;   /* where gradients go that are not wanted */
  lidx *cut[2];   /* [threads + 1] of targets, of sources */
};

static int threads_of(const struct fascicle_shape *shape) {
  const int n = shape->n_threads > 0 ? shape->n_threads : omp_get_max_threads();
  return n < MAX_THREADS ? n : MAX_THREADS;
}

/* Everything that a window keeps in the workspace. */
static struct arrays arrays_of(struct call *c, const struct fascicle_graph *g,
                               const struct fascicle_shape *s) {
  struct recur_window *w = &c->window;
  const int64_t columns = (int64_t)s->steps * s->batch;
  struct arrays list = {0};
  w->batch = s->batch, w->steps = s->steps, w->microsteps = s->microsteps;
  w->n_own = g->n_nodes, w->n_in = g->n_in, w->n_out = g->n_out;
  w->all_states = s->want_gradient != 0;
  w->n_threads = threads_of(s);
  ARRAY(&list, c->value, g->n_edges), ARRAY(&list, c->output, g->n_out * columns);
  /* room for any number of threads, so that a later call may take another */
  for (int i = 0; i < 2; i++) ARRAY(&list, c->cut[i], MAX_THREADS + 1);
  if (w->all_states) {
    ARRAY(&list, c->d_value, g->n_edges);
    ARRAY(&list, c->spare, most_i64(g->n_in * columns, 2 * (int64_t)g->n_nodes));
  }
  recur_window_list(&list, w, g->n_edges, false);
  return list;
}

static void wire(struct call *c, const struct fascicle_graph *g, const struct fascicle_inputs *in) {
  struct recur_window *w = &c->window;
  w->in_slot = g->in_slot, w->out_slot = g->out_slot;
  w->near = (struct recur_edges){.ptr = g->in_ptr, .col = g->in_source, .value = c->value};
  w->out = (struct recur_edges){g->out_ptr, g->out_target, w->out_value};
  w->out_edge = g->out_edge;
  w->value = c->value, w->leak = in->leak, w->bias = in->bias, w->drive = in->drives;
  w->output = c->output, w->d_output = c->output;
  recur_cut(0, g->n_nodes, g->in_ptr, NULL, w->n_threads, c->cut[0]);
  recur_cut(0, g->n_nodes, g->out_ptr, NULL, w->n_threads, c->cut[1]);
  w->target_cut = c->cut[0], w->source_cut = c->cut[1];
}

int64_t api_cpu_workspace(const struct fascicle_graph *g, const struct fascicle_shape *shape) {
  struct call c = {0};
  const struct arrays arrays = arrays_of(&c, g, shape);
  return arrays_place(&arrays, NULL, RECUR_ALIGN);
}

/* Lays the window into the workspace. */
static int begin(struct call *c, const struct fascicle_graph *g, const struct api_call *call) {
  if (call->stream)
    return api_failure(FASCICLE_BAD_ARGUMENT, "stream must be NULL on FASCICLE_CPU");
  memset(c, 0, sizeof *c);
  c->window.isa = recur_isa_find(NULL);
  if (!c->window.isa)
    return api_failure(FASCICLE_BAD_ARGUMENT,
                       "FASCICLE_SIMD=%s: not known, or not for this processor",
                       getenv("FASCICLE_SIMD"));
  const struct arrays arrays = arrays_of(c, g, call->shape);
  arrays_place(&arrays, call->workspace, RECUR_ALIGN);
  wire(c, g, call->inputs);
  return FASCICLE_OK;
}

/* ---- layouts ---- */

/* to [columns][rows] = from [rows][columns], by blocks that fit the first cache */
static void flip(const float *from, int64_t rows, int64_t columns, float *to) {
  enum { BLOCK = 32 };
  for (int64_t i0 = 0; i0 < rows; i0 += BLOCK)
    for (int64_t j0 = 0; j0 < columns; j0 += BLOCK) {
      const int64_t i1 = i0 + BLOCK < rows ? i0 + BLOCK : rows,
                    j1 = j0 + BLOCK < columns ? j0 + BLOCK : columns;
      for (int64_t j = j0; j < j1; j++)
        for (int64_t i = i0; i < i1; i++) to[j * rows + i] = from[i * columns + j];
    }
}

/* The same for each of `n` matrices */
static void flip_each(int n, const float *from, int64_t rows, int64_t columns, float *to,
                      int n_threads) {
  const int64_t size = rows * columns;
#pragma omp parallel for num_threads(n_threads)
  for (int t = 0; t < n; t++) flip(from + t * size, rows, columns, to + t * size);
}

/* ---- passes ---- */

int api_cpu_forward(const struct fascicle_graph *g, const struct api_call *call, float *out,
                    float *state_end) {
  struct call c;
  const int code = begin(&c, g, call);
  if (code) return code;
  const struct recur_window *w = &c.window;
  const struct fascicle_inputs *inputs = call->inputs;
  const int64_t B = w->batch;
#pragma omp parallel for num_threads(w->n_threads)
  for (eidx e = 0; e < g->n_edges; e++) c.value[e] = inputs->edge_values[g->caller[e]];
  if (inputs->state0)
    flip(inputs->state0, B, g->n_nodes, recur_state(w, 0));
  else
    memset(recur_state(w, 0), 0, (size_t)g->n_nodes * B * sizeof(float));
  recur_window_forward(w);
  if (out) flip_each(w->steps, c.output, g->n_out, B, out, w->n_threads);
  if (state_end) flip(recur_state(w, w->steps * w->microsteps), g->n_nodes, B, state_end);
  return FASCICLE_OK;
}

int api_cpu_backward(const struct fascicle_graph *g, const struct api_call *call,
                     const float *d_out, const struct fascicle_gradients *gradients) {
  struct call c;
  const int code = begin(&c, g, call);
  if (code) return code;
  struct recur_window *w = &c.window;
  const int64_t B = w->batch;
  w->d_value = c.d_value;
  w->d_leak = gradients->leak ? gradients->leak : c.spare;
  w->d_bias = gradients->bias ? gradients->bias : c.spare + g->n_nodes;
  w->d_drive = gradients->drives ? gradients->drives : c.spare;
  flip_each(w->steps, d_out, B, g->n_out, c.output, w->n_threads);
  recur_window_backward(w);
  if (gradients->edge_values) {
#pragma omp parallel for num_threads(w->n_threads)
    for (eidx e = 0; e < g->n_edges; e++) gradients->edge_values[g->caller[e]] = c.d_value[e];
  }
  if (gradients->state0) flip(w->d_state, g->n_nodes, B, gradients->state0);
  return FASCICLE_OK;
}
