/* The graph of the public library: checks, and the edges by target and by source. */
#include "api.h"
#include "core/arrays.h"
#include "kernels/interface/recur_window.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_error[256] = "";
static _Thread_local int last_code;

const char *fascicle_last_error(void) {
  return last_error;
}

int fascicle_api_version(void) {
  return FASCICLE_API_VERSION;
}

int api_failure(int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  last_code = code;
  return code;
}

int api_last_code(void) {
  return last_code;
}

/* ---- checks ---- */

static int check_edges(const struct fascicle_graph_spec *s) {
  for (int64_t e = 0; e < s->n_edges; e++)
    for (int end = 0; end < 2; end++) {
      const int64_t node = end ? s->target[e] : s->source[e];
      if (node < 0 || node >= s->n_nodes)
        return api_failure(FASCICLE_BAD_ARGUMENT, "edge %lld: %s %lld is not a node (0 .. %lld)",
                           (long long)e, end ? "target" : "source", (long long)node,
                           (long long)s->n_nodes - 1);
    }
  return FASCICLE_OK;
}

static int check_spec(const struct fascicle_graph_spec *s) {
  if (s->device != FASCICLE_CPU && s->device != FASCICLE_CUDA)
    return api_failure(FASCICLE_BAD_ARGUMENT, "device %d is not known", (int)s->device);
  const int code = s->device == FASCICLE_CUDA ? api_gpu_check(s->device_index) : FASCICLE_OK;
  if (code) return code;
  if (s->n_nodes < 1 || s->n_nodes > INT32_MAX - 1)
    return api_failure(FASCICLE_BAD_ARGUMENT, "n_nodes = %lld is not in 1 .. 2^31 - 2",
                       (long long)s->n_nodes);
  if (s->n_edges < 0 || (s->n_edges > 0 && (!s->source || !s->target)))
    return api_failure(FASCICLE_BAD_ARGUMENT, "n_edges = %lld needs source and target",
                       (long long)s->n_edges);
  if (s->n_inputs < 0 || (s->n_inputs > 0 && !s->input_nodes))
    return api_failure(FASCICLE_BAD_ARGUMENT, "n_inputs = %lld needs input_nodes",
                       (long long)s->n_inputs);
  if (s->output_nodes && s->n_outputs < 0)
    return api_failure(FASCICLE_BAD_ARGUMENT, "n_outputs = %lld is negative",
                       (long long)s->n_outputs);
  return check_edges(s);
}

/* slot[node] = place in `nodes`; -1 elsewhere */
static int fill_slots(const char *name, lidx *slot, lidx n_nodes, const int64_t *nodes, int64_t n) {
  for (lidx i = 0; i < n_nodes; i++) slot[i] = -1;
  for (int64_t i = 0; i < n; i++) {
    if (nodes[i] < 0 || nodes[i] >= n_nodes)
      return api_failure(FASCICLE_BAD_ARGUMENT, "%s[%lld] = %lld is not a node (0 .. %d)", name,
                         (long long)i, (long long)nodes[i], n_nodes - 1);
    if (slot[nodes[i]] >= 0)
      return api_failure(FASCICLE_BAD_ARGUMENT, "%s[%lld] = %lld appears twice", name, (long long)i,
                         (long long)nodes[i]);
    slot[nodes[i]] = (lidx)i;
  }
  return FASCICLE_OK;
}

/* ---- order ---- */

/* Stable counting sort of the edges in `order` (NULL: 0, 1, ..) by key; ptr [N +
 * 1] receives the starts. */
static void sort_edges(const int64_t *key, lidx n_nodes, eidx n_edges, const eidx *order, eidx *ptr,
                       eidx *sorted) {
  memset(ptr, 0, ((size_t)n_nodes + 1) * sizeof *ptr);
  for (eidx e = 0; e < n_edges; e++) ptr[key[e] + 1]++;
  for (lidx i = 0; i < n_nodes; i++) ptr[i + 1] += ptr[i];
  for (eidx e = 0; e < n_edges; e++) {
    const eidx edge = order ? order[e] : e;
    sorted[ptr[key[edge]]++] = edge;
  }
  memmove(ptr + 1, ptr, (size_t)n_nodes * sizeof *ptr);
  ptr[0] = 0;
}

/* out_ptr and out_edge are scratch until recur_transpose fills them. */
static void order_edges(struct fascicle_graph *g, const struct fascicle_graph_spec *s) {
  sort_edges(s->source, g->n_nodes, g->n_edges, NULL, g->out_ptr, g->out_edge);
  sort_edges(s->target, g->n_nodes, g->n_edges, g->out_edge, g->in_ptr, g->caller);
  for (eidx e = 0; e < g->n_edges; e++) g->in_source[e] = (lidx)s->source[g->caller[e]];
  const struct recur_edges by_target = {.ptr = g->in_ptr, .col = g->in_source};
  recur_transpose(g->n_nodes, 0, &by_target, NULL, g->out_ptr, g->out_target, g->out_edge);
}

/* Everything that a graph holds, but for what is on a GPU. */
static struct arrays arrays_of(struct fascicle_graph *g) {
  const int64_t nodes = g->n_nodes, edges = g->n_edges;
  struct arrays list = {0};
  ARRAY(&list, g->in_ptr, nodes + 1), ARRAY(&list, g->out_ptr, nodes + 1);
  ARRAY(&list, g->in_source, edges), ARRAY(&list, g->out_target, edges);
  ARRAY(&list, g->caller, edges), ARRAY(&list, g->out_edge, edges);
  ARRAY(&list, g->in_slot, nodes), ARRAY(&list, g->out_slot, nodes);
  return list;
}

static int fill(struct fascicle_graph *g, const struct fascicle_graph_spec *s) {
  const struct arrays arrays = arrays_of(g);
  if (!arrays_try_open(&arrays))
    return api_failure(FASCICLE_OUT_OF_MEMORY, "no memory for %lld edges", (long long)s->n_edges);
  int code = fill_slots("input_nodes", g->in_slot, g->n_nodes, s->input_nodes, s->n_inputs);
  if (code) return code;
  code = fill_slots("output_nodes", g->out_slot, g->n_nodes, s->output_nodes,
                    s->output_nodes ? s->n_outputs : 0);
  if (code) return code;
  for (lidx i = 0; i < g->n_nodes && !s->output_nodes; i++) g->out_slot[i] = i;
  order_edges(g, s);
  return FASCICLE_OK;
}

int fascicle_graph_create(const struct fascicle_graph_spec *spec, struct fascicle_graph **graph) {
  if (!spec || !graph) return api_failure(FASCICLE_BAD_ARGUMENT, "spec and graph must not be NULL");
  *graph = NULL;
  int code = check_spec(spec);
  if (code) return code;
  struct fascicle_graph *g = calloc(1, sizeof *g);
  if (!g) return api_failure(FASCICLE_OUT_OF_MEMORY, "no memory for a graph");
  g->n_nodes = (lidx)spec->n_nodes, g->n_edges = spec->n_edges, g->n_in = (lidx)spec->n_inputs;
  g->n_out = spec->output_nodes ? (lidx)spec->n_outputs : g->n_nodes;
  code = fill(g, spec);
  if (!code && spec->device == FASCICLE_CUDA) code = api_gpu_create(g, spec->device_index);
  if (code)
    fascicle_graph_destroy(g);
  else
    *graph = g;
  return code;
}

void fascicle_graph_destroy(struct fascicle_graph *g) {
  if (!g) return;
  api_gpu_destroy(g->gpu);
  const struct arrays arrays = arrays_of(g);
  arrays_close(&arrays);
  free(g);
}
