/* ranks: 1 2 3 4 7 */
/* Halo of global ids: every halo row must receive its own id, gradients must go home, and the two
 * halves of the edges must be the slice of the file again. Random graphs, empty ranks, no edges,
 * fewer rows than ranks. */
#include "kernels/interface/backends.h"
#include "check.h"
#include "partition/halo.h"
#include "core/mem.h"
#include "core/rng.h"
#include "partition/rows.h"

struct made {
  gidx n;
  eidx n_edges;
  eidx *row_ptr; /* [n + 1], the whole graph */
  gidx *source;
};

/* Row i has up to `most` sources; a few hub rows have many. Same on every rank. */
static struct made make(gidx n, int most, uint64_t seed) {
  struct made g = {.n = n, .row_ptr = NEW_ZERO(eidx, n + 1)};
  for (gidx i = 0; i < n; i++) {
    const struct rng_block b = rng_draw(seed, (uint32_t)i, 0, 0, 0);
    g.row_ptr[i + 1] =
        g.row_ptr[i] + (most ? b.v[0] % (uint32_t)(b.v[1] % 16 ? most + 1 : 8 * most + 1) : 0);
  }
  g.n_edges = g.row_ptr[n];
  g.source = NEW(gidx, g.n_edges);
  for (eidx e = 0; e < g.n_edges; e++) {
    const struct rng_block b = rng_draw(seed, (uint32_t)e, 1, 0, 0);
    g.source[e] = (gidx)rng_below(b.v[0], b.v[1], (uint64_t)n);
  }
  return g;
}

static void made_free(struct made *g) {
  mem_free(g->row_ptr), mem_free(g->source);
}

static gidx global_of(const struct graph *graph, lidx local) {
  return local < graph->n_own ? graph->first + local : graph->halo_gid[local - graph->n_own];
}

/* near and far, put back at their places, are the slice. */
static void check_edges(const struct graph *graph, const eidx *row_ptr, const gidx *source) {
  char *seen = NEW_ZERO(char, row_ptr[graph->n_own] + 1);
  for (int half = 0; half < 2; half++) {
    const struct csr *csr = half ? &graph->far : &graph->near;
    const eidx *edge = half ? graph->far_edge : graph->near_edge;
    CHECK_EQ(csr->n_rows, graph->n_own);
    CHECK_EQ(csr->row_ptr[csr->n_rows], csr->n_edges);
    for (lidx i = 0; i < csr->n_rows; i++)
      for (eidx k = csr->row_ptr[i]; k < csr->row_ptr[i + 1]; k++) {
        CHECK(edge[k] >= row_ptr[i] && edge[k] < row_ptr[i + 1]);
        CHECK(k == csr->row_ptr[i] || edge[k] > edge[k - 1]);
        CHECK((csr->col[k] < graph->n_own) == !half);
        CHECK_EQ(global_of(graph, csr->col[k]), source[edge[k]]);
        CHECK(!seen[edge[k]]++);
      }
  }
  CHECK_EQ(graph->near.n_edges + graph->far.n_edges, row_ptr[graph->n_own]);
  mem_free(seen);
}

/* As many halo rows as the edges need, or, in an all-gather, all that others own. */
static void check_halo_rows(const struct graph *graph, enum halo_kind kind) {
  char *used = NEW_ZERO(char, graph->n_halo + 1);
  for (eidx e = 0; e < graph->far.n_edges; e++) used[graph->far.col[e] - graph->n_own] = 1;
  if (kind != HALO_AUTO) CHECK_EQ(graph->halo.all, kind == HALO_ALL && world.size > 1);
  if (graph->halo.all) CHECK_EQ(graph->n_halo, graph->n_global - graph->n_own);
  lidx needed = 0;
  for (lidx s = 0; s < graph->n_halo; s++) {
    needed += used[s];
    CHECK(s == 0 || graph->halo_gid[s] > graph->halo_gid[s - 1]);
  }
  CHECK_EQ(needed, graph->halo.needed);
  if (!graph->halo.all) CHECK_EQ(needed, graph->n_halo);
  mem_free(used);
}

/* Own rows carry their global id in every column; halo rows start as rubbish. */
static void check_exchange(const struct comm *comm, const struct graph *graph, int width) {
  const int64_t n = (int64_t)graph->n_own + graph->n_halo;
  gidx *rows = NEW(gidx, n * width);
  for (int64_t i = 0; i < n * width; i++)
    rows[i] = i < (int64_t)graph->n_own * width ? graph->first + i / width : -7;
  comm->via->exchange_begin(comm, &graph->halo, rows, graph->n_own, (size_t)width * sizeof *rows);
  comm->via->exchange_end(comm, &graph->halo);
  for (int64_t i = 0; i < n * width; i++) CHECK_EQ(rows[i], global_of(graph, (lidx)(i / width)));
  mem_free(rows);
}

/* Each rank gives 1 per halo row: an own row must end with the number of ranks that hold it. */
static void check_reduce(const struct comm *comm, const struct graph *graph,
                         const struct made *made) {
  enum { WIDTH = 3 };
  const int64_t n = (int64_t)graph->n_own + graph->n_halo;
  float *rows = NEW_ZERO(float, n *WIDTH);
  for (int64_t i = (int64_t)graph->n_own * WIDTH; i < n * WIDTH; i++) rows[i] = 1;
  comm->via->reduce_begin(comm, &graph->halo, rows, graph->n_own, WIDTH);
  comm->via->reduce_end(comm, &graph->halo, rows, WIDTH);
  int64_t *needed = NEW_ZERO(int64_t, made->n + 1);
  for (int r = 0; r < comm->size; r++) {
    char *seen = NEW_ZERO(char, made->n + 1);
    const gidx low = graph->first_of_rank[r], high = graph->first_of_rank[r + 1];
    for (eidx e = made->row_ptr[low]; e < made->row_ptr[high]; e++) {
      const gidx s = made->source[e];
      if (s >= low && s < high) continue;
      needed[s] += !seen[s];
      seen[s] = 1;
    }
    mem_free(seen);
  }
  for (int64_t i = 0; i < (int64_t)graph->n_own * WIDTH; i++)
    CHECK_EQ(rows[i], graph->halo.all ? comm->size - 1 : needed[graph->first + i / WIDTH]);
  mem_free(needed), mem_free(rows);
}

static void check_kind(struct comm *comm, const struct made *made, const gidx *first,
                       enum halo_kind kind) {
  const gidx low = first[comm->rank], n = first[comm->rank + 1] - low;
  eidx *row_ptr = NEW(eidx, n + 1);
  for (gidx i = 0; i <= n; i++) row_ptr[i] = made->row_ptr[low + i] - made->row_ptr[low];
  const gidx *source = made->source + (made->n_edges ? made->row_ptr[low] : 0);
  struct graph graph;
  graph_build(comm, first, row_ptr, source, kind, &graph);
  CHECK_EQ(graph.n_own, n);
  CHECK_EQ(graph.first, low);
  check_edges(&graph, row_ptr, source);
  check_halo_rows(&graph, kind);
  check_exchange(comm, &graph, 1);
  check_exchange(comm, &graph, 5);
  check_reduce(comm, &graph, made);
  graph_free(&graph);
  mem_free(row_ptr);
}

static void check_graph(struct comm *comm, const struct made *made, const gidx *first) {
  for (enum halo_kind kind = HALO_AUTO; kind <= HALO_ALL; kind++)
    check_kind(comm, made, first, kind);
}

static void test_split(gidx n, int most, uint64_t seed) {
  struct made made = make(n, most, seed);
  gidx *first = NEW(gidx, world.size + 1);
  rows_split(n, made.row_ptr, NULL, 0, world.size, first);
  check_graph(&world, &made, first);
  mem_free(first);
  made_free(&made);
}

/* All rows on one rank: the others own nothing. */
static void test_one_owner(int owner) {
  struct made made = make(50, 4, 3);
  gidx *first = NEW(gidx, world.size + 1);
  for (int r = 0; r <= world.size; r++) first[r] = r <= owner ? 0 : 50;
  check_graph(&world, &made, first);
  mem_free(first);
  made_free(&made);
}

/* Uneven intervals with an empty rank in the middle. */
static void test_gap(void) {
  struct made made = make(300, 6, 4);
  gidx *first = NEW(gidx, world.size + 1);
  for (int r = 0; r <= world.size; r++) first[r] = 300 * (gidx)(r / 2 * 2) / world.size;
  first[world.size] = 300;
  check_graph(&world, &made, first);
  mem_free(first);
  made_free(&made);
}

/* Full graphs are gathered, sparse ones exchange halos; the choice is that
 * of all ranks together. */
static void test_choice(void) {
  CHECK(halo_takes_all(7, 8) && !halo_takes_all(6, 8) && !halo_takes_all(0, 0));
  CHECK(halo_takes_all((int64_t)1 << 40, (int64_t)1 << 40));
  for (int dense = 0; dense < 2; dense++) {
    struct made made = make(400, dense ? 400 : 2, 9);
    gidx *first = NEW(gidx, world.size + 1);
    rows_split(made.n, made.row_ptr, NULL, 0, world.size, first);
    const gidx low = first[world.rank], n = first[world.rank + 1] - low;
    eidx *row_ptr = NEW(eidx, n + 1);
    for (gidx i = 0; i <= n; i++) row_ptr[i] = made.row_ptr[low + i] - made.row_ptr[low];
    struct graph graph;
    graph_build(&world, first, row_ptr, made.source + made.row_ptr[low], HALO_AUTO, &graph);
    CHECK_EQ(graph.halo.all, dense && world.size > 1);
    graph_free(&graph);
    mem_free(row_ptr), mem_free(first);
    made_free(&made);
  }
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  CHECK_FINE(transport_mpi.open(&world));
  test_split(1000, 12, 1);
  test_split(129, 3, 2);
  test_split(64, 0, 5);
  test_split(3, 4, 6);
  test_split(1, 2, 7);
  test_split(0, 0, 8);
  for (int r = 0; r < world.size; r++) test_one_owner(r);
  test_gap();
  test_choice();
  transport_mpi.close(&world);
  CHECK_EQ(mem_held(), 0);
  return test_end();
}
