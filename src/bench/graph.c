/* The graph that a benchmark runs on: read, or drawn and split over the ranks. */
#include "graph.h"

#include "io/graph/connectome.h"
#include "partition/halo.h"
#include "core/json.h"
#include "graph/load.h"
#include "core/mem.h"
#include "partition/order.h"
#include "partition/rows.h"

#include <stdio.h>
#include <string.h>

/* ---- where from ---- */

/* The model of a generated file, else the file's name. */
static void name_file(struct connectome_file *file, struct bench_source *s) {
  const char *slash = strrchr(s->path, '/'), *model = NULL;
  char *provenance = connectome_provenance(file);
  json_t *json = NULL;
  if (!json_from_text(provenance, s->path, &json).code)
    model = json_string_value(json_object_get(json_object_get(json, "generate"), "model"));
  snprintf(s->name, sizeof s->name, "%.80s%s",
           model   ? model
           : slash ? slash + 1
                   : s->path,
           model && s->ordered ? ", ordered" : "");
  json_decref(json);
  mem_free(provenance);
}

struct status bench_source_look(const struct comm *comm, struct bench_source *s) {
  if (!s->path) {
    s->n_nodes = s->model.n_nodes, s->n_edges = s->model.n_edges;
    snprintf(s->name, sizeof s->name, "%s%s", s->model.modular ? "modular" : "lognormal",
             s->ordered ? ", ordered" : "");
    return agree(comm, generate_check(&s->model));
  }
  struct connectome_file *file;
  TRY(connectome_open(comm, s->path, &file));
  const struct connectome_facts *facts = connectome_facts(file);
  s->n_nodes = facts->n_nodes, s->n_edges = facts->n_edges, s->ordered = facts->ordered;
  name_file(file, s);
  connectome_close(file);
  return fine();
}

/* ---- from a file ---- */

/* `first` [size + 1] is made where it is NULL. */
static struct status load(const struct comm *comm, const char *path, enum halo_kind kind,
                          gidx **first, struct graph *graph) {
  struct connectome_file *file;
  TRY(connectome_open(comm, path, &file));
  if (!*first) {
    *first = NEW(gidx, comm->size + 1);
    load_split(comm, file, comm->size, *first);
  }
  const struct status s = load_graph(comm, file, *first, kind, graph);
  connectome_close(file);
  return s;
}

/* ---- from a model ---- */

/* Edges by their ends; after `relabel` the ends are rows. */
struct ends {
  eidx n;
  uint32_t *source, *target;
  gidx *block; /* [n_blocks + 1] row boundaries of the order's parts, or NULL */
  int n_blocks;
};

static struct status relabel(const struct generate_model *model, struct ends *ends) {
  const struct order_input input = {.n_nodes = model->n_nodes,
                                    .n_edges = ends->n,
                                    .source = ends->source,
                                    .target = ends->target,
                                    .parts = 64,
                                    .seed = 1};
  struct order order = {0};
  TRY(order_compute(&input, &order));
  for (eidx e = 0; e < ends->n; e++) {
    ends->source[e] = order.row_of_node[ends->source[e]];
    ends->target[e] = order.row_of_node[ends->target[e]];
  }
  ends->block = order.block, ends->n_blocks = order.parts;
  order.block = NULL;
  order_free(&order);
  return fine();
}

/* Stable counting sort by `key`; row_ptr [n_rows + 1] receives the starts. */
static void sort_by(uint32_t *key, uint32_t *other, eidx n, gidx n_rows, eidx *row_ptr) {
  uint32_t *sorted_key = NEW(uint32_t, n), *sorted_other = NEW(uint32_t, n);
  memset(row_ptr, 0, ((size_t)n_rows + 1) * sizeof *row_ptr);
  for (eidx e = 0; e < n; e++) row_ptr[key[e] + 1]++;
  for (gidx i = 0; i < n_rows; i++) row_ptr[i + 1] += row_ptr[i];
  for (eidx e = 0; e < n; e++) {
    const eidx at = row_ptr[key[e]]++;
    sorted_key[at] = key[e], sorted_other[at] = other[e];
  }
  memmove(row_ptr + 1, row_ptr, (size_t)n_rows * sizeof *row_ptr);
  row_ptr[0] = 0;
  if (n > 0)
    memcpy(key, sorted_key, (size_t)n * sizeof *key),
        memcpy(other, sorted_other, (size_t)n * sizeof *other);
  mem_free(sorted_key), mem_free(sorted_other);
}

static void keep_share(const struct comm *comm, const struct ends *ends, const eidx *row_ptr,
                       enum halo_kind kind, struct bench_graph *made) {
  const gidx first = made->first_of_rank[comm->rank], last = made->first_of_rank[comm->rank + 1];
  const eidx n = row_ptr[last] - row_ptr[first];
  made->row_ptr = NEW(eidx, last - first + 1), made->source = NEW(gidx, n);
  for (gidx i = first; i <= last; i++) made->row_ptr[i - first] = row_ptr[i] - row_ptr[first];
  for (eidx e = 0; e < n; e++) made->source[e] = ends->source[row_ptr[first] + e];
  graph_build(comm, made->first_of_rank, made->row_ptr, made->source, kind, &made->graph);
}

static struct status make(const struct comm *comm, const struct bench_source *from,
                          enum halo_kind kind, int n_threads, struct bench_graph *made) {
  const struct generate_model *model = &from->model;
  const gidx n = model->n_nodes;
  struct ends ends = {.n = model->n_edges,
                      .source = NEW(uint32_t, model->n_edges),
                      .target = NEW(uint32_t, model->n_edges)};
  eidx *row_ptr = NEW(eidx, n + 1);
  generate_edges(model, n_threads, ends.source, ends.target);
  struct status s = agree(comm, from->ordered ? relabel(model, &ends) : fine());
  if (!s.code) {
    sort_by(ends.source, ends.target, ends.n, n, row_ptr);
    sort_by(ends.target, ends.source, ends.n, n, row_ptr);
    made->first_of_rank = NEW(gidx, comm->size + 1);
    rows_split(n, row_ptr, ends.block, ends.n_blocks, comm->size, made->first_of_rank);
    keep_share(comm, &ends, row_ptr, kind, made);
  }
  mem_free(ends.source), mem_free(ends.target), mem_free(ends.block), mem_free(row_ptr);
  return s;
}

/* ---- all ---- */

struct status bench_graph_init(const struct comm *comm, const struct bench_source *from,
                               enum halo_kind kind, int n_threads, struct bench_graph *made) {
  *made = (struct bench_graph){.from = from};
  return from->path ? load(comm, from->path, kind, &made->first_of_rank, &made->graph)
                    : make(comm, from, kind, n_threads, made);
}

struct status bench_graph_again(const struct comm *comm, const struct bench_graph *made,
                                enum halo_kind kind, struct graph *graph) {
  gidx *first = made->first_of_rank;
  if (made->from->path) return load(comm, made->from->path, kind, &first, graph);
  graph_build(comm, first, made->row_ptr, made->source, kind, graph);
  return fine();
}

void bench_graph_free(struct bench_graph *made) {
  graph_free(&made->graph);
  mem_free(made->first_of_rank), mem_free(made->row_ptr), mem_free(made->source);
  memset(made, 0, sizeof *made);
}
