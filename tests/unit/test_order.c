/* ranks: 1 */
/* data: yes */
/* The ordering: a valid nested permutation, whatever the order of edges; METIS' traps; quality
 * figures against counting by hand. */
#include "check.h"
#include "partition/generate.h"
#include "core/mem.h"
#include "partition/order.h"
#include "core/rng.h"

#include <inttypes.h>

static void check_order(const struct order_input *in, const struct order *o) {
  CHECK_EQ(o->parts, in->parts);
  CHECK_EQ(o->block[0], 0);
  CHECK_EQ(o->block[o->parts], in->n_nodes);
  for (int p = 0; p < o->parts; p++) {
    CHECK(o->block[p] <= o->block[p + 1]);
    for (gidx r = o->block[p]; r + 1 < o->block[p + 1]; r++)
      CHECK(o->node_of_row[r] < o->node_of_row[r + 1]);
  }
  for (int64_t v = 0; v < in->n_nodes; v++) {
    CHECK(o->row_of_node[v] < in->n_nodes);
    CHECK_EQ(o->node_of_row[o->row_of_node[v]], v);
  }
}

static void level_of(const struct order *o, int parts, gidx *first) {
  for (int p = 0; p <= parts; p++) first[p] = o->block[(int64_t)o->parts / parts * p];
}

/* Halo rows, cut and edges by looking at every pair of part and source. */
static void check_quality(const struct order_input *in, const uint32_t *row_of_node,
                          const gidx *first, int parts) {
  struct order_quality q;
  order_quality(in, row_of_node, first, parts, &q);
  int64_t cut = 0, halo = 0, most = 0, heaviest = 0;
  char *needed = NEW(char, in->n_nodes + 1);
  for (int p = 0; p < parts; p++) {
    int64_t mine = 0, edges = 0;
    memset(needed, 0, (size_t)in->n_nodes);
    for (eidx e = 0; e < in->n_edges; e++) {
      const gidx s = row_of_node[in->source[e]], t = row_of_node[in->target[e]];
      if (t < first[p] || t >= first[p + 1]) continue;
      edges++;
      if (s >= first[p] && s < first[p + 1]) continue;
      cut++, mine += !needed[in->source[e]], needed[in->source[e]] = 1;
    }
    halo += mine, most = mine > most ? mine : most, heaviest = edges > heaviest ? edges : heaviest;
  }
  mem_free(needed);
  CHECK_EQ(q.parts, parts);
  CHECK_EQ(q.cut, cut);
  CHECK_EQ(q.halo_rows, halo);
  CHECK_EQ(q.halo_rows_max, most);
  CHECK_EQ(q.gather_rows, (parts - 1) * in->n_nodes);
  if (in->n_edges) CHECK(q.edge_balance == (double)heaviest * parts / (double)in->n_edges);
}

static void test_modular(void) {
  const struct generate_model model = {
      .n_nodes = 3000, .n_edges = 60000, .seed = 5, .modular = true};
  uint32_t *source = NEW(uint32_t, model.n_edges), *target = NEW(uint32_t, model.n_edges);
  generate_edges(&model, 1, source, target);
  const struct order_input in = {model.n_nodes, model.n_edges, source, target, 64, 1};
  struct order o, again;
  CHECK_FINE(order_compute(&in, &o));
  CHECK(!strncmp(o.method, "METIS 5", 7));
  check_order(&in, &o);
  gidx first[129];
  for (int parts = 1; parts <= 64; parts *= 2) {
    level_of(&o, parts, first);
    check_quality(&in, o.row_of_node, first, parts);
    struct order_quality q;
    order_quality(&in, o.row_of_node, first, parts, &q);
    CHECK(q.edge_balance < (parts <= 16 ? 1.05 : 1.25));
    if (parts == 4) CHECK(q.cut < in.n_edges / 3); /* at random: 75 % */
    if (parts == 64) CHECK_EQ(q.cut, o.cut);
  }
  for (int p = 0; p <= 128; p++)
    first[p] = model.n_nodes * p / 128; /* more parts than one word of bits */
  check_quality(&in, o.row_of_node, first, 128);
  /* edges backwards: the same order */
  for (eidx a = 0, b = model.n_edges - 1; a < b; a++, b--) {
    const uint32_t s = source[a], t = target[a];
    source[a] = source[b], target[a] = target[b], source[b] = s, target[b] = t;
  }
  CHECK_FINE(order_compute(&in, &again));
  CHECK(!memcmp(o.row_of_node, again.row_of_node, (size_t)in.n_nodes * sizeof(uint32_t)));
  order_free(&again), order_free(&o);
  mem_free(source), mem_free(target);
}

/* A graph given by its edges, divided; every row must come out once whatever METIS says. */
static void try_graph(int64_t n, eidx m, const uint32_t *source, const uint32_t *target, int parts,
                      int least_full) {
  const struct order_input in = {n, m, source, target, parts, 1};
  struct order o;
  CHECK_FINE(order_compute(&in, &o));
  check_order(&in, &o);
  int full = 0;
  for (int p = 0; p < parts; p++) full += o.block[p + 1] > o.block[p];
  CHECK(full >= least_full);
  gidx *first = NEW(gidx, parts + 1);
  level_of(&o, parts, first);
  check_quality(&in, o.row_of_node, first, parts);
  mem_free(first);
  order_free(&o);
}

static void test_traps(void) {
  const uint32_t path_s[] = {0, 1}, path_t[] = {1, 2};
  try_graph(3, 2, path_s, path_t, 2, 2); /* METIS puts all three on one side and reports success */
  try_graph(3, 2, path_s, path_t, 4, 3);
  const uint32_t one_s[] = {0}, one_t[] = {1};
  try_graph(2, 1, one_s, one_t, 64, 2);
  try_graph(2, 0, NULL, NULL, 64, 2);
  try_graph(1, 0, NULL, NULL, 4, 1);
  try_graph(0, 0, NULL, NULL, 4, 0);
  try_graph(100, 0, NULL, NULL, 8, 8);
  const uint32_t loop[] = {0, 1, 2, 2, 2};
  try_graph(4, 5, loop, loop, 2, 2); /* only self-loops */
  uint32_t star_s[40], star_t[40];
  for (uint32_t i = 0; i < 40; i++) star_s[i] = i + 1, star_t[i] = 0;
  try_graph(41, 40, star_s, star_t, 8, 4); /* one node holds nearly all the weight */
}

/* Ten pairs with 2,591 parallel edges each beside single ones, all one way:
 * weights far apart, none back. */
static void test_extreme(void) {
  enum { N = 200, PAIRS = 10, PARALLEL = 2591 };
  uint32_t *source = NEW(uint32_t, N * 3 + PAIRS * PARALLEL),
           *target = NEW(uint32_t, N * 3 + PAIRS * PARALLEL);
  eidx m = 0;
  for (uint32_t v = 0; v < N; v++)
    for (uint32_t k = 1; k <= 3; k++) source[m] = v, target[m++] = (v + k * 7) % N;
  for (uint32_t i = 0; i < PAIRS * PARALLEL; i++)
    source[m] = i % PAIRS, target[m++] = 100 + 9 * (i % PAIRS);
  try_graph(N, m, source, target, 8, 8);
  const struct order_input in = {N, m, source, target, 2, 1};
  struct order o;
  CHECK_FINE(order_compute(&in, &o));
  CHECK(o.cut < PARALLEL); /* no pair is torn apart */
  order_free(&o);
  mem_free(source), mem_free(target);
}

static int by_id(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Ids to 0, 1, 2 ...; returns how many there are. */
static int64_t number_ids(int64_t n, const int64_t *id, uint32_t *node) {
  int64_t *sorted = NEW(int64_t, n), m = 0;
  memcpy(sorted, id, (size_t)n * sizeof *sorted);
  qsort(sorted, (size_t)n, sizeof *sorted, by_id);
  for (int64_t i = 0; i < n; i++)
    if (i == 0 || sorted[i] != sorted[m - 1]) sorted[m++] = sorted[i];
  for (int64_t i = 0; i < n; i++)
    node[i] =
        (uint32_t)((int64_t *)bsearch(&id[i], sorted, (size_t)m, sizeof *sorted, by_id) - sorted);
  mem_free(sorted);
  return m;
}

/* The larval brain against the figures published for direct k-way partitions of it by METIS: nested
 * halves may cost some halo rows more, not many. */
static void test_larva(void) {
  enum { EDGES = 119010 };
  static const struct {
    int parts;
    int64_t halo, gather;
  } known[] = {{2, 2028, 3554}, {4, 4484, 10662}, {8, 8615, 24878}};
  char path[1024];
  const char *asked = getenv("FASCICLE_TEST_DATA"), *source = getenv("SOURCE");
  if (!asked || !*asked)
    snprintf(path, sizeof path, "%s/../shared/data/larva_edges.txt", source ? source : ".");
  else
    snprintf(path, sizeof path, "%s/larva_edges.txt", asked);
  FILE *file = fopen(path, "r");
  if (!file && asked && *asked) DIE(1, "%s is missing", path);
  if (!file) {
    printf("skipped: %s is not here; tests/data/README.md names its origin\n", path);
    return;
  }
  int64_t *id = NEW(int64_t, 2 * EDGES);
  for (int e = 0; e < EDGES; e++)
    CHECK_EQ(fscanf(file, "%" SCNd64 " %" SCNd64 " %*f", &id[e], &id[EDGES + e]), 2);
  fclose(file);
  uint32_t *node = NEW(uint32_t, 2 * EDGES);
  const struct order_input in = {number_ids(2 * EDGES, id, node), EDGES, node, node + EDGES, 64, 1};
  CHECK_EQ(in.n_nodes, 3554);
  struct order o;
  CHECK_FINE(order_compute(&in, &o));
  check_order(&in, &o);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    gidx first[9];
    struct order_quality q;
    level_of(&o, known[i].parts, first);
    order_quality(&in, o.row_of_node, first, known[i].parts, &q);
    CHECK_EQ(q.gather_rows, known[i].gather);
    CHECK(q.halo_rows < known[i].halo);
    CHECK(q.edge_balance < 1.04);
  }
  order_free(&o);
  mem_free(id), mem_free(node);
}

static void test_refusals(void) {
  const uint32_t s[] = {0}, t[] = {5};
  struct order o;
  struct order_input in = {3, 1, s, t, 4, 1};
  CHECK_EQ(order_compute(&in, &o).code, EXIT_INPUT);
  in.parts = 3;
  CHECK_EQ(order_compute(&in, &o).code, EXIT_USAGE);
  in.parts = 4, in.n_edges = (eidx)1 << 31;
  struct status status = order_compute(&in, &o);
  CHECK_EQ(status.code, EXIT_USAGE);
  CHECK(strstr(status.text, "2147483648") != NULL);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  test_modular();
  test_traps();
  test_extreme();
  test_larva();
  test_refusals();
  CHECK_EQ(mem_held(), 0);
  return test_end();
}
