/* One window of the public library: the caller's layouts around kernels/recur_window. */
#include "api.h"
#include "recur_window.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, MAX_THREADS = 512 };

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

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static void place(struct call *c, const struct fascicle_graph *g, const struct fascicle_shape *s,
                  struct recur_room *room) {
  struct recur_window *w = &c->window;
  const int64_t columns = (int64_t)s->steps * s->batch;
  w->batch = s->batch, w->steps = s->steps, w->microsteps = s->microsteps;
  w->n_own = g->n_nodes, w->n_in = g->n_in, w->n_out = g->n_out;
  w->all_states = s->want_gradient != 0;
  w->n_threads = threads_of(s);
  c->value = recur_take(room, g->n_edges, sizeof(float));
  c->output = recur_take(room, g->n_out * columns, sizeof(float));
  /* room for any number of threads, so that a later call may take another */
  for (int i = 0; i < 2; i++) c->cut[i] = recur_take(room, MAX_THREADS + 1, sizeof(lidx));
  if (w->all_states) {
    c->d_value = recur_take(room, g->n_edges, sizeof(float));
    c->spare = recur_take(room, larger(g->n_in * columns, 2 * (int64_t)g->n_nodes), sizeof(float));
  }
  recur_window_place(w, g->n_edges, false, room);
}

static void wire(struct call *c, const struct fascicle_graph *g, const struct fascicle_inputs *in) {
  struct recur_window *w = &c->window;
  w->in_slot = g->in_slot, w->out_slot = g->out_slot;
  w->near = (struct recur_edges){.ptr = g->in_ptr, .col = g->in_source, .value = c->value};
  w->out.ptr = g->out_ptr, w->out.col = g->out_target, w->out_edge = g->out_edge;
  w->value = c->value, w->leak = in->leak, w->bias = in->bias, w->drive = in->drives;
  w->output = c->output, w->d_output = c->output;
  recur_cut(0, g->n_nodes, g->in_ptr, NULL, w->n_threads, c->cut[0]);
  recur_cut(0, g->n_nodes, g->out_ptr, NULL, w->n_threads, c->cut[1]);
  w->target_cut = c->cut[0], w->source_cut = c->cut[1];
}

static int check_shape(const struct fascicle_graph *g, const struct fascicle_shape *s) {
  if (!g || !s) return api_failure(FASCICLE_BAD_ARGUMENT, "graph and shape must not be NULL");
  if (s->batch < 1 || s->steps < 1 || s->microsteps < 1 || s->n_threads < 0 ||
      (int64_t)s->steps * s->microsteps > INT32_MAX)
    return api_failure(
        FASCICLE_BAD_ARGUMENT,
        "shape: batch %d, steps %d, microsteps %d must be at least 1 (steps x microsteps below 2^31), "
        "n_threads %d at least 0",
        s->batch, s->steps, s->microsteps, s->n_threads);
  return FASCICLE_OK;
}

/* Sizes whose bytes could leave int64 are refused before they are multiplied. */
static bool too_large(const struct fascicle_graph *g, const struct fascicle_shape *s) {
  const double kept = (double)s->steps * s->microsteps + 2;
  return kept * s->batch * ((double)g->n_nodes + 1) > 1e16;
}

int64_t fascicle_workspace_bytes(const struct fascicle_graph *graph, const struct fascicle_shape *shape) {
  if (check_shape(graph, shape)) return -1;
  if (too_large(graph, shape)) return api_failure(-1, "shape: a window of this size does not fit any memory");
  struct call c = {0};
  struct recur_room room = {0};
  place(&c, graph, shape, &room);
  return room.used + ALIGN; /* a workspace may start anywhere */
}

static int check_inputs(const struct fascicle_graph *g, const struct fascicle_inputs *in,
                        const void *stream) {
  if (stream) return api_failure(FASCICLE_BAD_ARGUMENT, "stream must be NULL on FASCICLE_CPU");
  if (!in || (!in->edge_values && g->n_edges > 0) || !in->leak || !in->bias || (!in->drives && g->n_in > 0))
    return api_failure(FASCICLE_BAD_ARGUMENT, "inputs: edge_values, leak, bias and drives must not be NULL");
  return FASCICLE_OK;
}

/* Checks all that both passes take, and lays the window into the workspace. */
static int begin(struct call *c, const struct fascicle_graph *g, const struct fascicle_shape *shape,
                 const struct fascicle_inputs *in, void *workspace, int64_t bytes, void *stream) {
  int code = check_shape(g, shape);
  if (!code) code = check_inputs(g, in, stream);
  if (code) return code;
  const int64_t want = fascicle_workspace_bytes(g, shape);
  if (want < 0) return FASCICLE_BAD_ARGUMENT;
  if (!workspace || bytes < want)
    return api_failure(FASCICLE_SMALL_WORKSPACE, "the workspace has %lld bytes, %lld are wanted",
                       (long long)(workspace ? bytes : 0), (long long)want);
  memset(c, 0, sizeof *c);
  c->window.isa = recur_isa_find(NULL);
  if (!c->window.isa)
    return api_failure(FASCICLE_BAD_ARGUMENT, "FASCICLE_SIMD=%s: not known, or not for this processor",
                       getenv("FASCICLE_SIMD"));
  const uintptr_t aligned = ((uintptr_t)workspace + ALIGN - 1) / ALIGN * ALIGN;
  struct recur_room room = {.memory = (char *)aligned};
  place(c, g, shape, &room);
  wire(c, g, in);
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
static void flip_each(int n, const float *from, int64_t rows, int64_t columns, float *to, int n_threads) {
  const int64_t size = rows * columns;
#pragma omp parallel for num_threads(n_threads)
  for (int t = 0; t < n; t++) flip(from + t * size, rows, columns, to + t * size);
}

/* ---- passes ---- */

int fascicle_forward(const struct fascicle_graph *g, const struct fascicle_shape *shape,
                     const struct fascicle_inputs *inputs, float *out, float *state_end, void *workspace,
                     int64_t bytes, void *stream) {
  struct call c;
  const int code = begin(&c, g, shape, inputs, workspace, bytes, stream);
  if (code) return code;
  const struct recur_window *w = &c.window;
  const int64_t B = shape->batch;
#pragma omp parallel for num_threads(w->n_threads)
  for (eidx e = 0; e < g->n_edges; e++) c.value[e] = inputs->edge_values[g->caller[e]];
  if (inputs->state0)
    flip(inputs->state0, B, g->n_nodes, recur_state(w, 0));
  else
    memset(recur_state(w, 0), 0, (size_t)g->n_nodes * B * sizeof(float));
  recur_window_forward(w);
  if (out) flip_each(shape->steps, c.output, g->n_out, B, out, w->n_threads);
  if (state_end) flip(recur_state(w, shape->steps * shape->microsteps), g->n_nodes, B, state_end);
  return FASCICLE_OK;
}

int fascicle_backward(const struct fascicle_graph *g, const struct fascicle_shape *shape,
                      const struct fascicle_inputs *inputs, const float *d_out,
                      const struct fascicle_gradients *gradients, void *workspace, int64_t bytes,
                      void *stream) {
  struct call c;
  const int code = begin(&c, g, shape, inputs, workspace, bytes, stream);
  if (code) return code;
  struct recur_window *w = &c.window;
  const int64_t B = shape->batch;
  if (!shape->want_gradient)
    return api_failure(FASCICLE_BAD_ARGUMENT, "the forward pass was run without want_gradient");
  if (!gradients || (!d_out && g->n_out > 0))
    return api_failure(FASCICLE_BAD_ARGUMENT, "d_out and gradients must not be NULL");
  w->d_value = c.d_value;
  w->d_leak = gradients->leak ? gradients->leak : c.spare;
  w->d_bias = gradients->bias ? gradients->bias : c.spare + g->n_nodes;
  w->d_drive = gradients->drives ? gradients->drives : c.spare;
  flip_each(shape->steps, d_out, B, g->n_out, c.output, w->n_threads);
  recur_window_backward(w);
  if (gradients->edge_values) {
#pragma omp parallel for num_threads(w->n_threads)
    for (eidx e = 0; e < g->n_edges; e++) gradients->edge_values[g->caller[e]] = c.d_value[e];
  }
  if (gradients->state0) flip(w->d_state, g->n_nodes, B, gradients->state0);
  return FASCICLE_OK;
}
