/* Controls: the edges of a graph rewired at random, with what is kept and what was lost. */
#include "shuffled.h"
#include "build.h"
#include "core/log.h"
#include "core/mem.h"
#include "partition/shuffle.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- classes ---- */

static const struct node_column *find_column(const struct connectome *g, const char *name) {
  for (int i = 0; i < g->n_columns; i++)
    if (!strcmp(g->column[i].name, name)) return &g->column[i];
  return NULL;
}

static struct status no_column(const char *path, const char *within, const struct connectome *g) {
  char names[600] = "";
  size_t at = 0;
  for (int i = 0; i < g->n_columns && at < sizeof names; i++)
    at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", g->column[i].name);
  return failure(EXIT_USAGE, "--shuffle-within %s: %s has no such node column; it has: %s", within,
                 path, g->n_columns ? names : "none");
}

static int by_value(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Integers as classes: the rank of each value among the distinct ones. */
static int classes_of_values(int64_t n, const int64_t *value, uint32_t *class_of) {
  int64_t *sorted = NEW(int64_t, n), m = 0;
  if (n) memcpy(sorted, value, (size_t)n * sizeof *sorted);
  qsort(sorted, (size_t)n, sizeof *sorted, by_value);
  for (int64_t i = 0; i < n; i++)
    if (i == 0 || sorted[i] != sorted[m - 1]) sorted[m++] = sorted[i];
  for (int64_t i = 0; i < n; i++)
    class_of[i] =
        (uint32_t)((int64_t *)bsearch(&value[i], sorted, (size_t)m, sizeof *sorted, by_value) -
                   sorted);
  mem_free(sorted);
  return (int)m;
}

static struct status take_classes(const char *path, const char *within, const struct connectome *g,
                                  struct shuffle_input *in, uint32_t **class_of) {
  *class_of = NULL;
  if (!within) return fine();
  const struct node_column *column = find_column(g, within);
  if (!column) return no_column(path, within, g);
  if (column->f64)
    return failure(
        EXIT_USAGE,
        "--shuffle-within %s: this column holds fractions; name one with labels or integers",
        within);
  in->class_of = *class_of = NEW(uint32_t, g->n_nodes);
  in->n_classes = column->n_labels;
  if (column->code && g->n_nodes)
    memcpy(*class_of, column->code, (size_t)g->n_nodes * sizeof(uint32_t));
  if (column->i64) in->n_classes = classes_of_values(g->n_nodes, column->i64, *class_of);
  return fine();
}

/* ---- what edges carry ---- */

/* The sign of each neuron's outputs (0: none that counts), or NULL when some neuron has both. */
static int8_t *signs_of_sources(const struct connectome *g) {
  int8_t *sign = NEW_ZERO(int8_t, g->n_nodes);
  for (eidx e = 0; e < g->n_edges; e++) {
    const int8_t here = (int8_t)((g->impulse[e] > 0) - (g->impulse[e] < 0));
    if (here && sign[g->source[e]] == -here) {
      mem_free(sign);
      return NULL;
    }
    if (here) sign[g->source[e]] = here;
  }
  return sign;
}

static void *permuted(const void *old, size_t bytes, eidx n, const eidx *from) {
  char *fresh = mem_alloc(n, bytes);
#pragma omp parallel for
  for (eidx e = 0; e < n; e++)
    memcpy(fresh + (size_t)e * bytes, (const char *)old + (size_t)from[e] * bytes, bytes);
  return fresh;
}

static void replace(void **array, size_t bytes, eidx n, const eidx *from) {
  if (!*array) return;
  void *fresh = permuted(*array, bytes, n, from);
  mem_free(*array);
  *array = fresh;
}

/* The properties move; then every impulse takes its new source's sign. */
static void permute_properties(const struct shuffle_input *in, struct connectome *g,
                               const int8_t *sign) {
  eidx *from = NEW(eidx, g->n_edges);
  shuffle_properties(in, from);
  replace((void **)&g->count, sizeof *g->count, g->n_edges, from);
  replace((void **)&g->delay, sizeof *g->delay, g->n_edges, from);
  replace((void **)&g->impulse, sizeof *g->impulse, g->n_edges, from);
  mem_free(from);
  for (eidx e = 0; sign && e < g->n_edges; e++)
    if (sign[g->source[e]]) g->impulse[e] = (int16_t)(sign[g->source[e]] * abs(g->impulse[e]));
}

static void drop_order(struct connectome *g) {
  mem_free(g->row_of_node), mem_free(g->node_of_row), mem_free(g->block);
  g->row_of_node = g->node_of_row = NULL, g->block = NULL, g->n_blocks = 0;
}

/* ---- provenance ---- */

static json_t *shuffle_json(const struct shuffle_input *in, const struct shuffle_facts *facts,
                            const char *within, bool by_source) {
  const double per_edge = in->n_edges ? (double)facts->swaps / (double)in->n_edges : 0;
  json_t *json = json_pack("{s:I, s:i, s:I, s:f, s:I, s:I, s:I, s:s}", "seed", (json_int_t)in->seed,
                           "rounds", facts->rounds, "swaps", (json_int_t)facts->swaps,
                           "swaps_per_edge", per_edge, "kept", (json_int_t)facts->kept,
                           "self_loops", (json_int_t)facts->self_loops, "repeated_pairs",
                           (json_int_t)facts->repeated, "signs", by_source ? "source" : "edge");
  if (within) json_object_set_new(json, "within", json_string(within));
  return json;
}

/* The old provenance stays inside the new one. */
static void set_provenance(const char *path, const char *digest, json_t *shuffle,
                           struct connectome *g) {
  json_t *old = NULL;
  if (!g->provenance || json_from_text(g->provenance, path, &old).code) old = json_object();
  json_t *json =
      json_pack("{s:s, s:[{s:s, s:s, s:o}], s:O}", "program", "fascicle " BUILD_VERSION, "inputs",
                "name", path, "graph_digest", digest, "provenance", old, "shuffle", shuffle);
  mem_free(g->provenance);
  g->provenance = json_line_kept(json);
  json_decref(json);
}

struct status shuffled_make(const struct shuffled *o, struct connectome *g, json_t *facts) {
  drop_order(g);
  struct shuffle_input in = {.n_nodes = g->n_nodes,
                             .n_edges = g->n_edges,
                             .target = g->target,
                             .source = g->source,
                             .seed = o->seed,
                             .n_threads = omp_get_max_threads()};
  uint32_t *class_of;
  TRY(take_classes(o->path, o->within, g, &in, &class_of));
  int8_t *sign = signs_of_sources(g);
  struct shuffle_facts done;
  shuffle_edges(&in, &done);
  permute_properties(&in, g, sign);
  json_t *json = shuffle_json(&in, &done, o->within, sign != NULL);
  json_object_set_new(facts, "shuffle", json);
  set_provenance(o->path, o->digest, json, g);
  mem_free(sign), mem_free(class_of);
  if (done.swaps < 10 * g->n_edges)
    log_warning(
        "%s: only %.1f swaps an edge were possible (10 are usual): the graph leaves little freedom",
        o->path, g->n_edges ? (double)done.swaps / (double)g->n_edges : 0.0);
  return fine();
}

void shuffled_print(const json_t *facts) {
  const json_t *s = json_object_get(facts, "shuffle");
  const double edges = (double)json_integer_value(json_object_get(facts, "edges"));
  const double kept = (double)json_integer_value(json_object_get(s, "kept"));
  printf("shuffle: %.1f swaps an edge in %lld rounds, %.2f %% of the old pairs remain; in- and "
         "out-degrees, "
         "%lld self-loops and %lld repeated pairs checked\n",
         json_real_value(json_object_get(s, "swaps_per_edge")),
         (long long)json_integer_value(json_object_get(s, "rounds")),
         edges > 0 ? 100 * kept / edges : 0.0,
         (long long)json_integer_value(json_object_get(s, "self_loops")),
         (long long)json_integer_value(json_object_get(s, "repeated_pairs")));
}
