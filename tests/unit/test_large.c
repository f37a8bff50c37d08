/* ranks: 1 */
/* 64 bits where a hundred thousand million edges need them: offsets, splits, plans; with a
 * FILE (a sparse artifact that tests/cli/test_large.py makes) also what is read from
 * behind the 2^32nd edge. */
#include "kernels/interface/backends.h"
#include "check.h"
#include "lif/net.h"
#include "graph/load.h"
#include "core/mem.h"
#include "cost/cost.h"
#include "partition/rows.h"

static const eidx hundred_billion = 100000000000;

/* n rows whose offsets climb to `edges` by uneven steps. */
static eidx *offsets(gidx n, eidx edges) {
  eidx *ptr = NEW(eidx, n + 1);
  for (gidx i = 0; i <= n; i++) ptr[i] = (eidx)((__int128)edges * i / n * (n + i) / (2 * n));
  return ptr;
}

static void test_split(gidx n, int parts) {
  eidx *ptr = offsets(n, hundred_billion);
  gidx *first = NEW(gidx, parts + 1);
  CHECK_EQ(ptr[n], hundred_billion);
  rows_split(n, ptr, NULL, 0, parts, first);
  const double mean = (double)(ptr[n] + n) / parts, widest = (double)(ptr[n] - ptr[n - 1]) + 1;
  for (int p = 0; p < parts; p++) {
    const double weight = (double)(ptr[first[p + 1]] - ptr[first[p]] + first[p + 1] - first[p]);
    CHECK(weight > mean - widest && weight < mean + widest);
    CHECK_EQ(rows_owner(first, parts, first[p]), p);
  }
  mem_free(ptr), mem_free(first);
}

/* A share of over 2^32 edges, and arrays of over 2^63 bits. */
static void test_plan(void) {
  struct plan_graph g = {.n_nodes = 70000000,
                         .n_edges = hundred_billion,
                         .min_delay = 1,
                         .max_delay = 8,
                         .parts = 16,
                         .per_host = 8,
                         .far_share = -1};
  plan_guess(HALO_AUTO, &g);
  const struct plan_share *s = plan_largest(&g);
  CHECK_EQ(s->near + s->far, hundred_billion / 16);
  CHECK(g.all && s->n_halo == g.n_nodes - s->n_own && s->peers == 15 && s->peers_host == 7);
  CHECK_EQ(g.needed, 15 * g.n_nodes);
  const struct plan_memory lif = plan_simulate_memory(&g, s, 0);
  CHECK(lif.total > 8 * (hundred_billion / 16) && lif.total < 12 * (hundred_billion / 16));
  const struct plan_training training = {.shape = {32, 64, 2},
                                         .vocabulary = 65,
                                         .embedding = 32,
                                         .n_input = 1,
                                         .n_output = 1,
                                         .replicas = 1};
  const struct plan_memory train = plan_train_memory(&backend_cpu, &g, s, &training);
  const double states = 129.0 * (double)g.n_nodes * 128, edges = (double)(hundred_billion / 16);
  CHECK((double)train.total > states + 30 * edges && (double)train.total < states + 80 * edges);
  plan_graph_free(&g);
}

/* ---- the file ---- */

enum {
  TAIL = 300,
  ROWS = 3
}; /* the last rows hold so many edges; edge e has source e % 1000, impulse -e % 100 */

static void test_tail(struct connectome_file *file) {
  const struct connectome_facts *f = connectome_facts(file);
  const gidx n = f->n_nodes;
  struct share share;
  CHECK_EQ(f->n_edges, hundred_billion);
  share_load(file, n - ROWS, n, &share);
  CHECK_EQ(share.first_edge, hundred_billion - TAIL);
  CHECK_EQ(share.n_edges, TAIL);
  uint32_t source[TAIL];
  int16_t impulse[TAIL];
  connectome_sources(file, share.first_edge, TAIL, source);
  connectome_impulses(file, share.first_edge, TAIL, impulse);
  for (int i = 0; i < TAIL; i++) {
    const eidx e = share.first_edge + i;
    CHECK(source[i] == e % 1000 && impulse[i] == -(e % 100));
  }
  share_free(&share);
}

static void test_parts(struct connectome_file *file, int parts) {
  gidx *first = NEW(gidx, parts + 1);
  load_split(&world, file, parts, first);
  CHECK_EQ(first[parts], connectome_facts(file)->n_nodes);
  for (int p = 0; p < parts; p++) CHECK(first[p + 1] > first[p]);
  mem_free(first);
}

/* The last rows as a share of the integrate-and-fire network: every edge at its source. */
static void test_net(struct connectome_file *file) {
  const gidx n = connectome_facts(file)->n_nodes;
  struct lif_net net;
  lif_net_load(file, n - ROWS, n, &net);
  CHECK_EQ(net.n_own, ROWS);
  CHECK_EQ(net.out_ptr[n], TAIL);
  lif_net_free(&net);
}

/* The last two sources have 50 edges each; the second last excites the last. */
static void test_out(struct connectome_file *file) {
  const gidx n = connectome_facts(file)->n_nodes;
  eidx ptr[3];
  struct lif_edge edge[100];
  connectome_out_ptr(file, n - 2, 3, ptr);
  CHECK_EQ(ptr[0], hundred_billion - 100);
  CHECK_EQ(ptr[1], hundred_billion - 50);
  connectome_out(file, ptr[0], 100, edge);
  for (int i = 0; i < 100; i++) {
    const bool excites = i == 49;
    CHECK_EQ(edge[i].target, excites ? n - 1 : i % 50);
    CHECK_EQ(edge[i].weight, excites ? 5000 : -i);
    CHECK_EQ(edge[i].delay, 1);
  }
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  test_split(1000000, 1024);
  test_split(70000, 7);
  test_plan();
  if (argc > 1) {
    struct connectome_file *file;
    CHECK_FINE(connectome_open(&world, argv[1], &file));
    test_tail(file);
    test_parts(file, 1024);
    test_parts(file, 7);
    test_net(file);
    test_out(file);
    connectome_close(file);
  }
  CHECK_EQ(mem_held(), 0);
  return test_end();
}
