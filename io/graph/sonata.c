/* A graph as the nodes and edges files that simulators of point neurons read. */
#include "inside.h"
#include "core/mem.h"

#include <string.h>

static void put_root(struct h5_file *h5) {
  const uint32_t magic = 0x0A7A, version[2] = {0, 1};
  h5_put_values(h5, "/", "magic", F_U32, 1, &magic);
  h5_put_values(h5, "/", "version", F_U32, 2, version);
}

static const char *population_of(const struct connectome *g) {
  return g->population ? g->population : "neurons";
}

static struct status write_nodes(const struct connectome *g, const struct sonata_form *form,
                                 const char *path) {
  struct h5_file h5;
  TRY(h5_create(path, &h5));
  put_root(&h5);
  put_nodes(&h5, population_of(g), g, form->type);
  h5_close(&h5);
  return fine();
}

/* ---- edges ---- */

static double weight_of(const struct connectome *g, const struct sonata_form *form, eidx e) {
  return g->impulse[e] * form->weight;
}

static double delay_of(const struct connectome *g, const struct sonata_form *form, eidx e) {
  const int steps = form->delay ? form->delay : g->delay ? g->delay[e] : g->constant_delay;
  return steps * form->dt_ms;
}

/* A column of doubles, piece by piece. */
static void put_reals(struct h5_file *h5, const struct connectome *g,
                      const struct sonata_form *form, const char *name,
                      double (*value)(const struct connectome *g, const struct sonata_form *form,
                                      eidx e)) {
  enum { PIECE = 4 * H5_CHUNK };
  char path[CONNECTOME_NAME];
  double *piece = NEW(double, g->n_edges < PIECE ? g->n_edges : PIECE);
  edge_path(population_of(g), name, path);
  h5_make_rows(h5, path, F_F64, g->n_edges, 1);
  for (eidx first = 0; first < g->n_edges; first += PIECE) {
    const eidx n = g->n_edges - first < PIECE ? g->n_edges - first : PIECE;
    for (eidx i = 0; i < n; i++) piece[i] = value(g, form, first + i);
    h5_put(h5, path, F_F64, first, n, piece);
  }
  mem_free(piece);
}

/* [n_nodes + 1] edges into each row; they stand in this order. */
static eidx *count_rows(const struct connectome *g) {
  eidx *row_ptr = NEW_ZERO(eidx, g->n_nodes + 1);
  for (eidx e = 0; e < g->n_edges; e++)
    row_ptr[(g->row_of_node ? g->row_of_node[g->target[e]] : g->target[e]) + 1]++;
  for (int64_t i = 0; i < g->n_nodes; i++) row_ptr[i + 1] += row_ptr[i];
  return row_ptr;
}

static struct status write_edges(const struct connectome *g, const struct sonata_form *form,
                                 const char *file) {
  struct h5_file h5;
  char path[CONNECTOME_NAME];
  TRY(h5_create(file, &h5));
  struct progress progress = progress_start("writing", "bytes", 0, 16 * g->n_edges);
  put_root(&h5);
  put_ends(&h5, population_of(g), g, &progress);
  put_reals(&h5, g, form, "0/syn_weight", weight_of);
  put_reals(&h5, g, form, "0/delay", delay_of);
  edge_path(population_of(g), "0/synapse_count", path);
  if (g->count) h5_write(&h5, path, F_U32, g->n_edges, 1, g->count);
  eidx *row_ptr = count_rows(g);
  put_index(&h5, population_of(g), g, row_ptr);
  mem_free(row_ptr);
  progress_wipe();
  h5_close(&h5);
  return fine();
}

struct status connectome_write_sonata(struct connectome *graph, const struct sonata_form *form,
                                      const char *nodes, const char *edges) {
  graph->packed = false;
  connectome_sort(graph);
  TRY(write_nodes(graph, form, nodes));
  return write_edges(graph, form, edges);
}
