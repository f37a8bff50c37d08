/* A whole artifact back in memory, and its digest computed again. */
#include "inside.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>

static void load_nodes(struct connectome_file *file, struct connectome *g) {
  connectome_body_ids(file, 0, g->n_nodes, g->body_id = NEW(uint64_t, g->n_nodes));
  if (file->facts.has_names) g->name = connectome_names(file);
  char **names = connectome_column_names(file);
  while (names[g->n_columns]) g->n_columns++;
  g->column = NEW_ZERO(struct node_column, g->n_columns);
  for (int i = 0; i < g->n_columns; i++) connectome_column(file, names[i], &g->column[i]);
  for (int i = 0; i < g->n_columns; i++) mem_free(names[i]);
  mem_free(names);
}

static void load_edges(struct connectome_file *file, struct connectome *g) {
  const eidx n = g->n_edges;
  connectome_sources(file, 0, n, g->source = NEW(uint32_t, n));
  connectome_targets(file, 0, n, g->target = NEW(uint32_t, n));
  connectome_impulses(file, 0, n, g->impulse = NEW(int16_t, n));
  if (file->facts.has_counts) connectome_counts(file, 0, n, g->count = NEW(uint32_t, n));
  g->constant_delay = (uint16_t)file->facts.min_delay;
  if (!file->facts.constant_delay) connectome_delays(file, 0, n, g->delay = NEW(uint16_t, n));
}

static void load_order(struct connectome_file *file, struct connectome *g) {
  if (!file->facts.ordered) return;
  connectome_row_of_node(file, g->row_of_node = NEW(uint32_t, g->n_nodes));
  connectome_node_of_row(file, g->node_of_row = NEW(uint32_t, g->n_nodes));
  g->n_blocks = file->facts.n_blocks;
  if (g->n_blocks) connectome_blocks(file, g->block = NEW(int64_t, (int64_t)g->n_blocks + 1));
  int64_t seed = 0;
  char *method = h5_text(&file->h5, "/order", "method");
  snprintf(g->order_method, sizeof g->order_method, "%s", method ? method : "");
  mem_free(method);
  if (h5_number(&file->h5, "/order", "seed", &seed)) g->order_seed = (int)seed;
  h5_number(&file->h5, "/order", "cut", &g->order_cut);
}

struct status connectome_load(const char *path, struct connectome *graph) {
  struct connectome_file *file;
  *graph = (struct connectome){0};
  TRY(connectome_open_alone(path, &file));
  graph->population = mem_string(file->facts.population);
  graph->n_nodes = file->facts.n_nodes, graph->n_edges = file->facts.n_edges;
  graph->packed = file->facts.packed;
  load_nodes(file, graph);
  load_edges(file, graph);
  load_order(file, graph);
  load_scx(file, graph);
  graph->provenance = connectome_provenance(file);
  connectome_close(file);
  return fine();
}

/* ---- verification ---- */

/* The sum of edge hashes over edges [first, end), in pieces; counts are read for
 * their stored checksums. */
static struct sum128 hash_share(struct connectome_file *file, eidx first, eidx end) {
  enum { PIECE = 16 * H5_CHUNK };
  const eidx room = end - first < PIECE ? end - first : PIECE;
  uint32_t *source = NEW(uint32_t, room), *target = NEW(uint32_t, room);
  int16_t *impulse = NEW(int16_t, room);
  uint16_t *delay = NEW(uint16_t, room);
  struct sum128 sum = {0};
  for (eidx at = first; at < end; at += PIECE) {
    const eidx n = end - at < PIECE ? end - at : PIECE;
    if (file->facts.has_counts) connectome_counts(file, at, n, source);
    connectome_sources(file, at, n, source);
    connectome_targets(file, at, n, target);
    connectome_impulses(file, at, n, impulse);
    connectome_delays(file, at, n, delay);
    sum128_add(&sum, edges_sum(n, source, target, impulse, delay, 0));
  }
  mem_free(source), mem_free(target), mem_free(impulse), mem_free(delay);
  return sum;
}

static struct sum128 sum_over(const struct comm *comm, struct sum128 mine) {
  struct sum128 *all = NEW(struct sum128, comm->size), sum = {0};
  comm_gather(comm, &mine, sizeof mine, all);
  for (int r = 0; r < comm->size; r++) sum128_add(&sum, all[r]);
  mem_free(all);
  return sum;
}

static struct status compare(const char *path, const char *what, const char *stored,
                             const char *computed) {
  if (!strcmp(stored, computed)) return fine();
  return failure(
      EXIT_INPUT,
      "%s: damaged: the %s digest is %.16s..., but the file says %.16s...; make the file again",
      path, what, computed, stored);
}

static struct status verify_graph(struct connectome_file *file, const char *path,
                                  struct sum128 edges) {
  const int64_t n = file->facts.n_nodes;
  char digest[DIGEST_TEXT];
  uint64_t *body_id = NEW(uint64_t, n);
  connectome_body_ids(file, 0, n, body_id);
  char **names = file->facts.has_names ? connectome_names(file) : NULL;
  graph_digest(n, body_id, names, edges, digest);
  for (int64_t i = 0; names && i < n; i++) mem_free(names[i]);
  mem_free(names), mem_free(body_id);
  return compare(path, "graph", file->facts.graph_digest, digest);
}

static struct status verify_order(struct connectome_file *file, const char *path) {
  char digest[DIGEST_TEXT];
  const int64_t n = file->facts.n_nodes;
  uint32_t *node_of_row = NEW(uint32_t, n), *row_of_node = NEW(uint32_t, n);
  int64_t *block = NEW(int64_t, (int64_t)file->facts.n_blocks + 1);
  connectome_node_of_row(file, node_of_row);
  connectome_blocks(file, block);
  order_digest(n, file->facts.ordered ? node_of_row : NULL, file->facts.n_blocks, block, digest);
  connectome_row_of_node(file, row_of_node);
  bool inverse = true;
  for (int64_t i = 0; i < n; i++) inverse = inverse && row_of_node[node_of_row[i]] == i;
  mem_free(node_of_row), mem_free(row_of_node), mem_free(block);
  if (!inverse)
    return failure(EXIT_INPUT,
                   "%s: damaged: row_of_node and node_of_row of /order do not belong together",
                   path);
  return compare(path, "order", file->facts.order_digest, digest);
}

/* The edges of [first, end) in the source-major copy, hashed as those of the
 * graph are: by node ids. */
static struct sum128 hash_out(struct connectome_file *file, eidx first, eidx end) {
  enum { PIECE = 16 * H5_CHUNK };
  const int64_t n_nodes = file->facts.n_nodes;
  const eidx room = end - first < PIECE ? end - first : PIECE;
  eidx *ptr = NEW(eidx, n_nodes + 1);
  uint32_t *node_of_row = NEW(uint32_t, n_nodes);
  struct lif_edge *edge = NEW(struct lif_edge, room);
  struct sum128 sum = {0};
  connectome_out_ptr(file, 0, n_nodes + 1, ptr);
  connectome_node_of_row(file, node_of_row);
  gidx row = 0;
  for (eidx at = first; at < end; at += PIECE) {
    const eidx n = end - at < PIECE ? end - at : PIECE;
    connectome_out(file, at, n, edge);
    for (eidx e = 0; e < n; e++) {
      while (row < n_nodes && ptr[row + 1] <= at + e) row++;
      const nodeid source = row < n_nodes ? (nodeid)node_of_row[row] : -1;
      sum128_add(&sum,
                 edge_hash(source, node_of_row[edge[e].target], edge[e].weight, edge[e].delay));
    }
  }
  mem_free(ptr), mem_free(node_of_row), mem_free(edge);
  return sum;
}

struct status connectome_verify(const struct comm *comm, struct connectome_file *file,
                                const char *path) {
  const eidx n = file->facts.n_edges;
  const eidx first = n / comm->size * comm->rank + n % comm->size * comm->rank / comm->size;
  const eidx end =
      n / comm->size * (comm->rank + 1) + n % comm->size * (comm->rank + 1) / comm->size;
  const struct sum128 edges = sum_over(comm, hash_share(file, first, end));
  struct status s = fine();
  if (file->facts.streamable) {
    const struct sum128 out = sum_over(comm, hash_out(file, first, end));
    if (out.low != edges.low || out.high != edges.high)
      s = failure(EXIT_INPUT,
                  "%s: damaged: /out does not hold the edges of the graph; make the file again",
                  path);
  }
  if (comm->rank == 0 && !s.code) s = verify_graph(file, path, edges);
  if (comm->rank == 0 && !s.code) s = verify_order(file, path);
  return agree(comm, s);
}
