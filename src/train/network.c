/* Loads the share of the graph that a run trains on, and who is driven and read out. */
#include "network.h"
#include "partition/halo.h"
#include "core/mem.h"
#include "core/numbers.h"

#include <stdlib.h>
#include <string.h>

/* ---- degrees ---- */

static void count_sources(const struct graph *g, int64_t *count) {
  for (eidx e = 0; e < g->near.n_edges; e++) count[g->first + g->near.col[e]]++;
  for (eidx e = 0; e < g->far.n_edges; e++) count[g->halo_gid[g->far.col[e] - g->n_own]]++;
}

static void find_degrees(struct network *n) {
  const int64_t N = n->facts.n_nodes;
  int64_t *in = NEW_ZERO(int64_t, N), *out = NEW_ZERO(int64_t, N);
  for (lidx i = 0; i < n->share.n_own; i++)
    in[n->share.first + i] = n->share.row_ptr[i + 1] - n->share.row_ptr[i];
  count_sources(&n->graph, out);
  comm_sum_i64(&n->grid->replica_comm, in, N);
  comm_sum_i64(&n->grid->replica_comm, out, N);
  n->in_degree = NEW(int32_t, N), n->out_degree = NEW(int32_t, N);
  for (int64_t row = 0; row < N; row++)
    n->in_degree[row] = (int32_t)in[row], n->out_degree[row] = (int32_t)out[row];
  mem_free(in), mem_free(out);
}

/* ---- roles ---- */

struct candidate {
  int32_t degree;
  uint32_t node;
  gidx row;
};

static int higher_degree(const void *a, const void *b) {
  const struct candidate *x = a, *y = b;
  if (x->degree != y->degree) return x->degree > y->degree ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

static void keep_own(const struct share *share, struct role *role) {
  while (role->first < role->n && role->row[role->first] < share->first) role->first++;
  int64_t last = role->first;
  while (last < role->n && role->row[last] < share->first + share->n_own) last++;
  role->n_own = (lidx)(last - role->first);
  role->own = NEW(lidx, role->n_own);
  for (lidx i = 0; i < role->n_own; i++)
    role->own[i] = (lidx)(role->row[role->first + i] - share->first);
}

static void choose(const struct network *n, const int32_t *degree, int64_t wanted,
                   struct role *role) {
  const int64_t N = n->facts.n_nodes;
  struct candidate *all = NEW(struct candidate, N);
  for (gidx row = 0; row < N; row++)
    all[row] = (struct candidate){degree[row], n->node_of_row[row], row};
  qsort(all, (size_t)N, sizeof *all, higher_degree);
  *role = (struct role){.n = wanted, .row = NEW(gidx, wanted)};
  for (int64_t i = 0; i < wanted; i++) role->row[i] = all[i].row;
  sort_i64(role->row, wanted);
  mem_free(all);
  keep_own(&n->share, role);
}

static struct status enough_nodes(const char *path, const char *key, int64_t wanted, int64_t have) {
  if (wanted <= have) return fine();
  return failure(EXIT_USAGE, "\"%s\" is %lld, but %s has %lld neurons; choose at most so many", key,
                 (long long)wanted, path, (long long)have);
}

/* ---- the whole ---- */

struct status network_open(const struct comm *world, const struct grid *grid, const char *path,
                           int64_t n_input, int64_t n_output, struct network *n) {
  *n = (struct network){.grid = grid};
  TRY(connectome_open(world, path, &n->file));
  n->facts = *connectome_facts(n->file);
  TRY(enough_nodes(path, "n_input", n_input, n->facts.n_nodes));
  TRY(enough_nodes(path, "n_output", n_output, n->facts.n_nodes));
  n->first_of_rank = NEW(gidx, grid->parts + 1);
  load_split(world, n->file, grid->parts, n->first_of_rank);
  share_load(n->file, n->first_of_rank[grid->part], n->first_of_rank[grid->part + 1], &n->share);
  struct status s =
      load_graph(&grid->replica_comm, n->file, n->first_of_rank, grid->exchange, &n->graph);
  if (s.code) return failure(s.code, "%s: %.900s", path, s.text);
  n->node_of_row = NEW(uint32_t, n->facts.n_nodes);
  connectome_node_of_row(n->file, n->node_of_row);
  find_degrees(n);
  choose(n, n->out_degree, n_input, &n->input);
  choose(n, n->in_degree, n_output, &n->output);
  return fine();
}

static void role_free(struct role *role) {
  mem_free(role->row), mem_free(role->own);
}

void network_close(struct network *n) {
  if (n->file) connectome_close(n->file);
  graph_free(&n->graph);
  share_free(&n->share);
  role_free(&n->input), role_free(&n->output);
  mem_free(n->first_of_rank), mem_free(n->node_of_row), mem_free(n->in_degree),
      mem_free(n->out_degree);
  *n = (struct network){0};
}

nodeid network_node(const struct network *n, lidx row) {
  const struct graph *g = &n->graph;
  return n->node_of_row[row < g->n_own ? g->first + row : g->halo_gid[row - g->n_own]];
}

static void visit_rows(const struct csr *csr, const eidx *in_file, eidx first, network_edge *visit,
                       void *self) {
  for (lidx i = 0; i < csr->n_rows; i++)
    for (eidx e = csr->row_ptr[i]; e < csr->row_ptr[i + 1]; e++)
      visit(self, first + e, csr->col[e], i, in_file[e]);
}

void network_edges(const struct network *n, network_edge *visit, void *self) {
  visit_rows(&n->graph.near, n->graph.near_edge, 0, visit, self);
  visit_rows(&n->graph.far, n->graph.far_edge, n->graph.near.n_edges, visit, self);
}

eidx network_n_edges(const struct network *n) {
  return n->graph.near.n_edges + n->graph.far.n_edges;
}
