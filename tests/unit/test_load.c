/* ranks: 1 2 3 4 7 */
/* From the artifact to a rank's share: splits on stored blocks, shares that tile the file, the
 * graph for training with its halo, ordered and not, more ranks than rows. */
#include "kernels/interface/backends.h"
#include "check.h"
#include "partition/halo.h"
#include "graph/load.h"
#include "core/mem.h"
#include "graph/reorder.h"
#include "partition/rows.h"
#include "graph/synthetic.h"

#include <unistd.h>

static char path[300];

static void make_file(int64_t nodes, eidx edges, int parts) {
  if (world.rank == 0) {
    const struct synthetic options = {
        .model = {.n_nodes = nodes, .n_edges = edges, .seed = 4, .modular = true},
        .min_delay = 1,
        .max_delay = 3,
        .types = 4,
        .population = "neurons"};
    struct connectome graph;
    synthetic_make(&options, &graph);
    if (parts) CHECK_FINE(reorder_graph(&graph, parts, 1));
    CHECK_FINE(connectome_write(&graph, path, false, true));
    connectome_free(&graph);
  }
  comm_barrier(&world);
}

static void check_split(struct connectome_file *file, int parts, const gidx *first) {
  const struct connectome_facts *facts = connectome_facts(file);
  CHECK(comm_equal(&world, first, (parts + 1) * (int64_t)sizeof *first));
  CHECK_EQ(first[0], 0);
  CHECK_EQ(first[parts], facts->n_nodes);
  for (int p = 0; p < parts; p++) CHECK(first[p] <= first[p + 1]);
  if (!facts->n_blocks || facts->n_blocks % parts) return;
  int64_t *block = NEW(int64_t, facts->n_blocks + 1);
  connectome_blocks(file, block);
  for (int p = 0; p <= parts; p++) CHECK_EQ(first[p], block[facts->n_blocks / parts * p]);
  mem_free(block);
}

/* Every edge of the share, as (source node, target node), against the whole file read by itself. */
static void check_share(struct connectome_file *file, const gidx *first,
                        const struct graph *graph) {
  const struct connectome_facts *facts = connectome_facts(file);
  struct share share;
  share_load(file, first[world.rank], first[world.rank + 1], &share);
  CHECK_EQ(share.n_own, graph->n_own);
  CHECK_EQ(share.n_edges, graph->near.n_edges + graph->far.n_edges);
  uint32_t *source = NEW(uint32_t, facts->n_edges), *target = NEW(uint32_t, facts->n_edges);
  uint32_t *node_of_row = NEW(uint32_t, facts->n_nodes);
  connectome_sources(file, 0, facts->n_edges, source),
      connectome_targets(file, 0, facts->n_edges, target);
  connectome_node_of_row(file, node_of_row);
  for (int half = 0; half < 2; half++) {
    const struct csr *csr = half ? &graph->far : &graph->near;
    const eidx *edge = half ? graph->far_edge : graph->near_edge;
    for (lidx i = 0; i < csr->n_rows; i++)
      for (eidx k = csr->row_ptr[i]; k < csr->row_ptr[i + 1]; k++) {
        const eidx at = share.first_edge + edge[k];
        const gidx row =
            half ? graph->halo_gid[csr->col[k] - graph->n_own] : graph->first + csr->col[k];
        CHECK_EQ(source[at], node_of_row[row]);
        CHECK_EQ(target[at], node_of_row[share.first + i]);
      }
  }
  mem_free(source), mem_free(target), mem_free(node_of_row);
  share_free(&share);
}

/* All ranks' edges are the file's; halo rows receive the node id of their source. */
static void check_graph(struct connectome_file *file, const gidx *first) {
  struct graph graph;
  CHECK_FINE(load_graph(&world, file, first, HALO_NEEDED, &graph));
  int64_t n_edges = graph.near.n_edges + graph.far.n_edges;
  comm_sum_i64(&world, &n_edges, 1);
  CHECK_EQ(n_edges, connectome_facts(file)->n_edges);
  check_share(file, first, &graph);
  gidx *rows = NEW(gidx, (int64_t)graph.n_own + graph.n_halo);
  for (lidx i = 0; i < graph.n_own; i++) rows[i] = graph.first + i;
  world.via->exchange_begin(&world, &graph.halo, rows, graph.n_own, sizeof *rows);
  world.via->exchange_end(&world, &graph.halo);
  for (lidx s = 0; s < graph.n_halo; s++) CHECK_EQ(rows[graph.n_own + s], graph.halo_gid[s]);
  mem_free(rows);
  graph_free(&graph);
}

static void test_file(int64_t nodes, eidx edges, int parts) {
  make_file(nodes, edges, parts);
  struct connectome_file *file;
  CHECK_FINE(connectome_open(&world, path, &file));
  gidx first[64];
  for (int p = 1; p <= 12; p++) {
    load_split(&world, file, p, first);
    check_split(file, p, first);
  }
  load_split(&world, file, world.size, first);
  check_graph(file, first);
  connectome_close(file);
}

/* Parallel edges are refused, on all ranks, with the remedy. */
static void test_parallel(void) {
  if (world.rank == 0) {
    const struct synthetic options = {.model = {.n_nodes = 9, .n_edges = 20, .seed = 4},
                                      .min_delay = 1,
                                      .max_delay = 1,
                                      .types = 1,
                                      .population = "neurons"};
    struct connectome graph;
    synthetic_make(&options, &graph);
    graph.source[1] = graph.source[0], graph.target[1] = graph.target[0];
    CHECK_FINE(connectome_write(&graph, path, false, true));
    connectome_free(&graph);
  }
  comm_barrier(&world);
  struct connectome_file *file;
  gidx first[64];
  struct graph graph;
  CHECK_FINE(connectome_open(&world, path, &file));
  load_split(&world, file, world.size, first);
  const struct status s = load_graph(&world, file, first, HALO_NEEDED, &graph);
  CHECK_EQ(s.code, EXIT_INPUT);
  CHECK(strstr(s.text, "--duplicates sum") != NULL);
  connectome_close(file);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  CHECK_FINE(transport_mpi.open(&world));
  if (world.rank == 0) {
    snprintf(path, sizeof path, "%s/fascicle_load_XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(path) != NULL);
    strcat(path, "/graph.h5");
  }
  comm_share(&world, path, sizeof path, 0);
  test_file(500, 9000, 0);
  test_file(500, 9000, 16);
  test_file(3, 4, 8);
  test_file(5, 0, 0);
  test_parallel();
  comm_barrier(&world);
  if (world.rank == 0) {
    unlink(path);
    *strrchr(path, '/') = 0;
    CHECK(rmdir(path) == 0);
  }
  transport_mpi.close(&world);
  CHECK_EQ(mem_held(), 0);
  return test_end();
}
