/* The recurrence's entries of the cpu backend: memory and names around recur_window. */
#include "core/mem.h"
#include "contract/recurrence.h"
#include "kernels/interface/recur_calls.h"
#include "kernels/interface/recur_window.h"
#include "recur.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SHARES = 512 };

struct recur {
  struct recur_window window;
  struct recur_calls calls;
  eidx n_edges;
  void *memory;
  lidx *in_slot, *out_slot;
  float *value, *leak, *bias, *drive, *d_output;
  eidx *out_ptr, *out_edge;
  lidx *out_col;
  lidx target_cut[MAX_SHARES + 1], source_cut[MAX_SHARES + 1], halo_cut[MAX_SHARES + 1];
};

static eidx edges_of(const struct recur_net *net) {
  return net->graph->near.n_edges + net->graph->far.n_edges;
}

static void set_sizes(struct recur_window *w, const struct recur_net *net) {
  w->batch = net->shape.batch, w->steps = net->shape.steps, w->microsteps = net->shape.microsteps;
  w->n_own = net->graph->n_own, w->n_halo = net->graph->n_halo;
  w->n_in = net->n_in, w->n_out = net->n_out;
  w->all_states = net->want_gradient, w->mixed = net->mixed;
}

static void list_inputs(struct arrays *list, struct recur *r, const struct recur_net *net) {
  const int64_t columns = (int64_t)net->shape.steps * net->shape.batch;
  ARRAY_ZERO(list, r->value, edges_of(net));
  ARRAY_ZERO(list, r->leak, net->graph->n_own), ARRAY_ZERO(list, r->bias, net->graph->n_own);
  ARRAY_ZERO(list, r->drive, net->n_in * columns);
  if (net->want_gradient) ARRAY_ZERO(list, r->d_output, net->n_out * columns);
}

static void list_outputs(struct arrays *list, struct recur *r, const struct recur_net *net) {
  struct recur_window *w = &r->window;
  const int64_t columns = (int64_t)net->shape.steps * net->shape.batch;
  ARRAY(list, w->output, net->n_out * columns);
  if (!net->want_gradient) return;
  ARRAY(list, w->d_value, edges_of(net));
  ARRAY(list, w->d_leak, net->graph->n_own), ARRAY(list, w->d_bias, net->graph->n_own);
  ARRAY(list, w->d_drive, net->n_in * columns);
}

static void list_tables(struct arrays *list, struct recur *r, const struct recur_net *net) {
  ARRAY(list, r->in_slot, net->graph->n_own), ARRAY(list, r->out_slot, net->graph->n_own);
  if (!net->want_gradient) return;
  ARRAY(list, r->out_ptr, (int64_t)net->graph->n_own + net->graph->n_halo + 1);
  ARRAY(list, r->out_col, edges_of(net)), ARRAY(list, r->out_edge, edges_of(net));
}

/* Everything in r->memory. */
static struct arrays arrays_of(struct recur *r, const struct recur_net *net) {
  struct arrays list = {0};
  set_sizes(&r->window, net);
  list_inputs(&list, r, net);
  list_outputs(&list, r, net);
  list_tables(&list, r, net);
  recur_window_list(&list, &r->window, edges_of(net), true);
  return list;
}

static int64_t bytes(const struct recur_net *net) {
  struct recur r = {.memory = NULL};
  const struct arrays arrays = arrays_of(&r, net);
  return arrays_place(&arrays, NULL, RECUR_ALIGN) + (int64_t)sizeof r;
}

static void fill_slots(lidx *slot, lidx n_own, const lidx *row, lidx n) {
  for (lidx i = 0; i < n_own; i++) slot[i] = -1;
  for (lidx i = 0; i < n; i++) slot[row[i]] = i;
}

static void wire(struct recur *r, const struct graph *g) {
  struct recur_window *w = &r->window;
  w->value = r->value, w->leak = r->leak, w->bias = r->bias, w->drive = r->drive,
  w->d_output = r->d_output;
  w->in_slot = r->in_slot, w->out_slot = r->out_slot;
  w->near = (struct recur_edges){g->near.row_ptr, g->near.col, r->value};
  w->far = (struct recur_edges){g->far.row_ptr, g->far.col, r->value + g->near.n_edges};
  w->target_cut = r->target_cut, w->source_cut = r->source_cut, w->halo_cut = r->halo_cut;
  recur_cut(0, g->n_own, g->near.row_ptr, g->n_halo > 0 ? g->far.row_ptr : NULL, w->n_threads,
            r->target_cut);
  if (!w->all_states) return;
  recur_transpose(g->n_own, g->n_halo, &w->near, &w->far, r->out_ptr, r->out_col, r->out_edge);
  w->out = (struct recur_edges){r->out_ptr, r->out_col, w->out_value};
  w->out_edge = r->out_edge;
  recur_cut(0, g->n_own, r->out_ptr, NULL, w->n_threads, r->source_cut);
  recur_cut(g->n_own, g->n_own + g->n_halo, r->out_ptr, NULL, w->n_threads, r->halo_cut);
}

static struct status choose_isa(struct recur_window *w) {
  w->isa = w->mixed ? &recur_plain : recur_isa_find(NULL);
  if (w->isa) return fine();
  return failure(
      EXIT_USAGE,
      "FASCICLE_SIMD=%s: not known, or not for this processor; use plain, or leave it unset",
      getenv("FASCICLE_SIMD"));
}

/* A cold start, halo rows included. */
static void clear_state(struct recur_window *w) {
  const size_t n = ((size_t)w->n_own + (size_t)w->n_halo) * (size_t)w->batch;
  if (n > 0) memset(recur_state(w, 0), 0, n * sizeof(float));
}

static struct status open_recur(const struct recur_net *net, int n_threads, struct recur **state) {
  struct recur *r = mem_zero(1, sizeof *r);
  *state = NULL;
  r->calls = recur_calls_of(net);
  const struct arrays arrays = arrays_of(r, net);
  r->memory = mem_alloc(arrays_place(&arrays, NULL, RECUR_ALIGN), 1);
  arrays_place(&arrays, r->memory, RECUR_ALIGN);
  arrays_clear(&arrays);
  r->n_edges = edges_of(net);
  r->window.n_threads = n_threads < 1 ? 1 : n_threads > MAX_SHARES ? MAX_SHARES : n_threads;
  fill_slots(r->in_slot, net->graph->n_own, net->in, net->n_in);
  fill_slots(r->out_slot, net->graph->n_own, net->out, net->n_out);
  wire(r, net->graph);
  clear_state(&r->window);
  const struct status s = choose_isa(&r->window);
  if (s.code)
    mem_free(r->memory), mem_free(r);
  else
    *state = r;
  return s;
}

static void close_recur(struct recur *r) {
  if (r) mem_free(r->memory);
  mem_free(r);
}

static float *value(struct recur *r) {
  return r->value;
}
static float *leak(struct recur *r) {
  return r->leak;
}
static float *bias(struct recur *r) {
  return r->bias;
}
static float *drive(struct recur *r) {
  return r->drive;
}
static float *output(struct recur *r) {
  return r->window.output;
}
static float *d_value(struct recur *r) {
  return r->window.d_value;
}
static float *d_leak(struct recur *r) {
  return r->window.d_leak;
}
static float *d_bias(struct recur *r) {
  return r->window.d_bias;
}
static float *d_drive(struct recur *r) {
  return r->window.d_drive;
}
static float *d_output(struct recur *r) {
  return r->d_output;
}
static float *d_state(struct recur *r) {
  return r->window.d_state;
}
static float *state_k(struct recur *r, int k) {
  ASSERT(k >= 0 && k <= r->calls.K);
  return recur_state(&r->window, k);
}
static void carry(struct recur *r) {
  const struct recur_window *w = &r->window;
  recur_calls_carry(&r->calls);
  const float *last = recur_state(w, w->steps * w->microsteps);
  const size_t n = (size_t)w->n_own * (size_t)w->batch;
  if (last != recur_state(w, 0) && n > 0) memcpy(recur_state(w, 0), last, n * sizeof *last);
}

/* In (0, 1), as far as floats go, and 0 before they are set. */
static bool leaks_fit(const struct recur_window *w) {
  for (lidx i = 0; i < w->n_own; i++)
    if (!(w->leak[i] >= 0 && w->leak[i] <= 1)) return false;
  return true;
}

static void forward_begin(struct recur *r) {
  recur_calls_forward_begin(&r->calls);
  ASSERT(
      leaks_fit(&r->window)); /* nothing to prepare: values are read in the order they stand in */
}
static void forward_near(struct recur *r, int k) {
  recur_calls_forward_near(&r->calls, k);
  recur_forward_near(&r->window, k);
}
static void forward_far(struct recur *r, int k) {
  recur_calls_forward_far(&r->calls, k);
  recur_forward_far(&r->window, k);
}
static void backward_begin(struct recur *r) {
  recur_calls_backward_begin(&r->calls);
  recur_backward_begin(&r->window);
}
static void backward_far(struct recur *r, int k) {
  recur_calls_backward_far(&r->calls, k);
  recur_backward_far(&r->window, k);
}
static void backward_near(struct recur *r, int k) {
  recur_calls_backward_near(&r->calls, k);
  recur_backward_near(&r->window, k);
}
static void backward_end(struct recur *r) {
  recur_calls_backward_end(&r->calls);
  recur_backward_end(&r->window);
}
static void window_forward(struct recur *r) {
  ASSERT(!r->calls.split && leaks_fit(&r->window));
  recur_calls_window_forward(&r->calls);
  recur_window_forward(&r->window);
}
static void window_backward(struct recur *r) {
  ASSERT(!r->calls.split);
  recur_calls_window_backward(&r->calls);
  recur_window_backward(&r->window);
}

const struct recur_backend recur_cpu = {.open = open_recur,
                                        .close = close_recur,
                                        .bytes = bytes,
                                        .value = value,
                                        .leak = leak,
                                        .bias = bias,
                                        .drive = drive,
                                        .output = output,
                                        .d_value = d_value,
                                        .d_leak = d_leak,
                                        .d_bias = d_bias,
                                        .d_drive = d_drive,
                                        .d_output = d_output,
                                        .state = state_k,
                                        .carry = carry,
                                        .d_state = d_state,
                                        .forward_begin = forward_begin,
                                        .forward_near = forward_near,
                                        .forward_far = forward_far,
                                        .backward_begin = backward_begin,
                                        .backward_far = backward_far,
                                        .backward_near = backward_near,
                                        .backward_end = backward_end,
                                        .window_forward = window_forward,
                                        .window_backward = window_backward};
