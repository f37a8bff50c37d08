/* ranks: 1 2 3 4 7 */
/* A rank's share read from the artifact is the share built from arrays, ordered and not, constant
 * delays and none, parallel edges and self-loops, more ranks than nodes. */
#include "check.h"
#include "io/graph/connectome.h"
#include "lif/net.h"
#include "graph/load.h"
#include "core/mem.h"
#include "core/rng.h"

#include <unistd.h>

static char path[300];

/* Node i's id is 10 i; half of all edges end at node 0. */
static void make_graph(struct connectome *g, int64_t n, eidx n_edges, bool delays, bool ordered,
                       int largest) {
  *g = (struct connectome){.population = mem_string("test"),
                           .n_nodes = n,
                           .n_edges = n_edges,
                           .constant_delay = 3,
                           .body_id = NEW(uint64_t, n)};
  for (int64_t i = 0; i < n; i++) g->body_id[i] = 10 * (uint64_t)i;
  g->source = NEW(uint32_t, n_edges), g->target = NEW(uint32_t, n_edges),
  g->impulse = NEW(int16_t, n_edges);
  if (delays) g->delay = NEW(uint16_t, n_edges);
  for (eidx e = 0; e < n_edges; e++) {
    const struct rng_block r = rng_draw(3, (uint32_t)e, 0, 0, 0);
    g->source[e] = r.v[0] % (uint32_t)n, g->target[e] = e % 2 ? 0 : r.v[1] % (uint32_t)n;
    g->impulse[e] = (int16_t)(largest - (int)(r.v[2] % 100));
    if (delays) g->delay[e] = (uint16_t)(2 + r.v[3] % 7);
  }
  g->provenance = mem_string("{}");
  if (!ordered) return;
  g->row_of_node = NEW(uint32_t, n), g->node_of_row = NEW(uint32_t, n);
  for (int64_t i = 0; i < n; i++)
    g->row_of_node[i] = (uint32_t)(n - 1 - i), g->node_of_row[n - 1 - i] = (uint32_t)i;
  g->n_blocks = 1, g->block = NEW(int64_t, 2);
  g->block[0] = 0, g->block[1] = n;
}

static int by_edge(const void *a, const void *b) {
  return memcmp(a, b, sizeof(struct lif_edge));
}

/* Targets ascend in both; edges with the same target may stand in any order. */
static void check_row(const struct lif_edge *got, struct lif_edge *wanted, eidx n) {
  struct lif_edge *copy = NEW(struct lif_edge, n);
  for (eidx e = 0; e < n; e++) CHECK_EQ(got[e].target, wanted[e].target);
  if (n) memcpy(copy, got, (size_t)n * sizeof *got);
  if (n)
    qsort(copy, (size_t)n, sizeof *copy, by_edge),
        qsort(wanted, (size_t)n, sizeof *wanted, by_edge);
  CHECK(n == 0 || !memcmp(copy, wanted, (size_t)n * sizeof *copy));
  mem_free(copy);
}

static void check_net(const struct lif_net *got, const struct lif_net *wanted) {
  CHECK_EQ(got->n_global, wanted->n_global);
  CHECK_EQ(got->first, wanted->first);
  CHECK_EQ(got->n_own, wanted->n_own);
  CHECK_EQ(got->n_edges, wanted->n_edges);
  CHECK_EQ(got->min_delay, wanted->min_delay);
  CHECK_EQ(got->max_delay, wanted->max_delay);
  CHECK_EQ(got->wide, wanted->wide);
  for (lidx i = 0; i < got->n_own; i++) CHECK_EQ(got->id[i], wanted->id[i]);
  for (gidx j = 0; j < got->n_global; j++) {
    CHECK_EQ(got->out_ptr[j + 1], wanted->out_ptr[j + 1]);
    check_row(got->out + got->out_ptr[j], (struct lif_edge *)wanted->out + wanted->out_ptr[j],
              got->out_ptr[j + 1] - got->out_ptr[j]);
  }
}

static void check_graph(int64_t n, eidx n_edges, bool delays, bool ordered, int largest) {
  struct connectome graph;
  struct connectome_file *file;
  struct lif_net read, built;
  gidx *first = NEW(gidx, world.size + 1);
  make_graph(&graph, n, n_edges, delays, ordered, largest);
  uint16_t *constant = NEW(uint16_t, n_edges);
  for (eidx e = 0; e < n_edges; e++) constant[e] = 3;
  if (world.rank == 0) CHECK_FINE(connectome_write(&graph, path, false, true));
  comm_barrier(&world);
  CHECK_FINE(connectome_open(&world, path, &file));
  load_split(&world, file, world.size, first);
  lif_net_load(file, first[world.rank], first[world.rank + 1], &read);
  const struct lif_edges edges = {.n_nodes = n,
                                  .n_edges = n_edges,
                                  .source = graph.source,
                                  .target = graph.target,
                                  .weight = graph.impulse,
                                  .delay = delays ? graph.delay : constant,
                                  .row_of_node = graph.row_of_node};
  lif_net_build(&edges, first[world.rank], first[world.rank + 1], &built);
  check_net(&read, &built);
  connectome_close(file), comm_barrier(&world);
  if (world.rank == 0) unlink(path);
  lif_net_free(&read), lif_net_free(&built), connectome_free(&graph), mem_free(first),
      mem_free(constant);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  int pid = (int)getpid();
  comm_share(&world, &pid, sizeof pid, 0);
  snprintf(path, sizeof path, "/tmp/fascicle_lif_load_%d.h5", pid);
  for (int ordered = 0; ordered < 2; ordered++) {
    check_graph(211, 30000, true, ordered, 90);
    check_graph(211, 30000, false, ordered, 90);
    check_graph(3, 20, true, ordered, 90);
    check_graph(5, 0, false, ordered, 90);
    check_graph(2, 150000, true, ordered, INT16_MAX); /* sums beyond int32 */
  }
  return test_end();
}
