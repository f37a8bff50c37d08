/* ranks: 1 2 4 7 */
/* The artifact: what is written is what is read, in any input order, with and without an ordering,
 * and its digest is the graph's. */
#include "check.h"
#include "io/graph/connectome.h"
#include "io/files/files.h"
#include "core/mem.h"
#include "core/rng.h"

#include <unistd.h>

enum { NODES = 311, EDGES = 40000, LABELS = 3 };

static char folder[256];

static const char *in_folder(const char *name) {
  static char path[2][512];
  static int turn;
  turn = !turn;
  snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
  return path[turn];
}

static char **texts(int n, const char *format) {
  char **all = NEW(char *, n), text[64];
  for (int i = 0; i < n; i++) {
    snprintf(text, sizeof text, format, i);
    all[i] = mem_string(text);
  }
  return all;
}

static void add_columns(struct connectome *g) {
  g->n_columns = 3;
  g->column = NEW_ZERO(struct node_column, 3);
  g->column[0] = (struct node_column){
      .name = mem_string("type"), .n_labels = LABELS, .label = texts(LABELS, "T%d")};
  g->column[0].code = NEW(uint32_t, NODES);
  g->column[1] = (struct node_column){.name = mem_string("sign"), .i64 = NEW(int64_t, NODES)};
  g->column[2] = (struct node_column){.name = mem_string("size"), .f64 = NEW(double, NODES)};
  for (int i = 0; i < NODES; i++) {
    g->column[0].code[i] = (uint32_t)i % LABELS;
    g->column[1].i64[i] = i % 2 ? -1 : 1;
    g->column[2].f64[i] = 0.5 * i;
  }
}

/* Edge k of the test graph; node 0 has a very long row, the last 11 nodes have
 * no edge; pairs repeat. */
static void make_edge(struct connectome *g, eidx at, uint32_t k) {
  const struct rng_block r = rng_draw(7, k, 0, 0, 0);
  g->source[at] = r.v[0] % (NODES - 11);
  g->target[at] = k % 4 ? r.v[1] % (NODES - 11) : 0;
  g->impulse[at] = (int16_t)(r.v[2] % 4001 - 2000);
  g->count[at] = r.v[3] % 90000;
  if (g->delay) g->delay[at] = (uint16_t)(1 + r.v[3] % 8);
}

/* `step` (coprime to EDGES) deals the edges in another order. */
static struct connectome make(eidx n_edges, uint32_t step, bool delays, bool named) {
  struct connectome g = {
      .population = mem_string("test"), .n_nodes = NODES, .n_edges = n_edges, .constant_delay = 3};
  g.body_id = NEW(uint64_t, NODES);
  for (int i = 0; i < NODES; i++)
    g.body_id[i] = named ? (uint64_t)i : 9007199254740993ull + 7 * (uint64_t)i;
  if (named) g.name = texts(NODES, "n%05d");
  g.source = NEW(uint32_t, n_edges), g.target = NEW(uint32_t, n_edges),
  g.count = NEW(uint32_t, n_edges);
  g.impulse = NEW(int16_t, n_edges);
  if (delays) g.delay = NEW(uint16_t, n_edges);
  for (eidx e = 0; e < n_edges; e++) make_edge(&g, e, (uint32_t)((uint64_t)e * step % EDGES));
  add_columns(&g);
  g.provenance = mem_string("{\"program\": \"a test\", \"inputs\": []}");
  return g;
}

static void add_order(struct connectome *g) {
  g->row_of_node = NEW(uint32_t, NODES), g->node_of_row = NEW(uint32_t, NODES);
  for (uint32_t i = 0; i < NODES; i++)
    g->row_of_node[i] = i * 100 % NODES, g->node_of_row[i * 100 % NODES] = i;
  g->n_blocks = 2, g->block = NEW(int64_t, 3);
  g->block[0] = 0, g->block[1] = 150, g->block[2] = NODES;
  snprintf(g->order_method, sizeof g->order_method, "by hand");
  g->order_seed = 5, g->order_cut = 77;
}

/* Rank 0 writes, all learn how it went. */
static void write_file(struct connectome *g, const char *path, bool streamable) {
  struct status s = fine();
  if (world.rank == 0) s = connectome_write(g, path, streamable, true);
  CHECK_FINE(agree(&world, s));
}

static uint32_t row_of(const struct connectome *g, uint32_t node) {
  return g->row_of_node ? g->row_of_node[node] : node;
}

static void check_order_of_edges(const struct connectome *g) {
  bool right = true;
  for (eidx e = 1; e < g->n_edges; e++) {
    const uint32_t a = row_of(g, g->target[e - 1]), b = row_of(g, g->target[e]);
    right = right && (a < b || (a == b && g->source[e - 1] <= g->source[e]));
    if (a != b || g->source[e - 1] != g->source[e] || !g->delay) continue;
    right = right && (g->delay[e - 1] < g->delay[e] ||
                      (g->delay[e - 1] == g->delay[e] && g->impulse[e - 1] <= g->impulse[e]));
  }
  CHECK(right);
}

/* Each rank reads a share of the edges and compares with the sorted graph in memory. */
static void check_share(struct connectome_file *file, const struct connectome *g) {
  const eidx first = g->n_edges * world.rank / world.size,
             n = g->n_edges * (world.rank + 1) / world.size - first;
  uint32_t *u = NEW(uint32_t, n);
  int16_t *w = NEW(int16_t, n);
  uint16_t *d = NEW(uint16_t, n);
  connectome_sources(file, first, n, u);
  CHECK(!n || !memcmp(u, g->source + first, (size_t)n * sizeof *u));
  connectome_targets(file, first, n, u);
  CHECK(!n || !memcmp(u, g->target + first, (size_t)n * sizeof *u));
  connectome_counts(file, first, n, u);
  CHECK(!n || !memcmp(u, g->count + first, (size_t)n * sizeof *u));
  connectome_impulses(file, first, n, w);
  CHECK(!n || !memcmp(w, g->impulse + first, (size_t)n * sizeof *w));
  connectome_delays(file, first, n, d);
  bool same = true;
  for (eidx e = 0; e < n; e++)
    same = same && d[e] == (g->delay ? g->delay[first + e] : g->constant_delay);
  CHECK(same);
  mem_free(u), mem_free(w), mem_free(d);
}

static void check_rows(struct connectome_file *file, const struct connectome *g) {
  const gidx first = NODES * world.rank / world.size,
             n = NODES * (world.rank + 1) / world.size - first;
  eidx *ptr = NEW(eidx, n + 1), count = 0;
  connectome_row_ptr(file, first, n + 1, ptr);
  bool right = true;
  for (gidx i = 0; i < n; i++)
    for (eidx e = ptr[i]; e < ptr[i + 1]; e++, count++)
      right = right && row_of(g, g->target[e]) == first + i;
  CHECK(right);
  comm_sum_i64(&world, &count, 1);
  CHECK_EQ(count, g->n_edges);
  mem_free(ptr);
}

static void check_nodes(struct connectome_file *file, const struct connectome *g) {
  struct node_column c;
  uint64_t *id = NEW(uint64_t, NODES);
  connectome_body_ids(file, 0, NODES, id);
  CHECK(!memcmp(id, g->body_id, NODES * sizeof *id));
  mem_free(id);
  connectome_column(file, "type", &c);
  CHECK_EQ(c.n_labels, LABELS);
  CHECK_TEXT(c.label[2], "T2");
  CHECK(!memcmp(c.code, g->column[0].code, NODES * sizeof *c.code));
  node_column_free(&c);
  connectome_column(file, "sign", &c);
  CHECK(c.i64 && c.i64[1] == -1);
  node_column_free(&c);
  connectome_column(file, "size", &c);
  CHECK(c.f64 && c.f64[NODES - 1] == 0.5 * (NODES - 1));
  node_column_free(&c);
  connectome_column(file, "body_id", &c);
  CHECK(!c.name);
  char **names = connectome_column_names(file);
  CHECK_TEXT(names[0], "sign");
  CHECK_TEXT(names[2], "type");
  CHECK(!names[3]);
  for (int i = 0; i < 3; i++) mem_free(names[i]);
  mem_free(names);
}

static void check_facts(const struct connectome_facts *f, const struct connectome *g,
                        bool streamable) {
  CHECK_TEXT(f->population, "test");
  CHECK_EQ(f->n_nodes, NODES);
  CHECK_EQ(f->n_edges, g->n_edges);
  CHECK_EQ(f->ordered, g->row_of_node != NULL);
  CHECK_EQ(f->n_blocks, g->n_blocks);
  CHECK_EQ(f->has_names, g->name != NULL);
  CHECK_EQ(f->streamable, streamable);
  CHECK_EQ(f->min_delay, g->n_edges ? (g->delay ? 1 : 3) : 0);
  CHECK_EQ(f->max_delay, g->n_edges ? (g->delay ? 8 : 3) : 0);
  CHECK_EQ(f->parallel_edges, g->n_edges > 1);
  int64_t sum[NODES] = {0}, most = 0;
  for (eidx e = 0; e < g->n_edges; e++) sum[g->target[e]] += abs(g->impulse[e]);
  for (int i = 0; i < NODES; i++) most = sum[i] > most ? sum[i] : most;
  CHECK_EQ(f->max_in_impulse, most);
}

/* Every edge again, from the other side. */
static void check_out(struct connectome_file *file, const struct connectome *g) {
  eidx *ptr = NEW(eidx, NODES + 1);
  struct lif_edge *edge = NEW(struct lif_edge, g->n_edges);
  connectome_out_ptr(file, 0, NODES + 1, ptr);
  connectome_out(file, 0, g->n_edges, edge);
  CHECK_EQ(ptr[NODES], g->n_edges);
  struct sum128 from = {0}, to = {0};
  for (gidx i = 0; i < NODES; i++)
    for (eidx e = ptr[i]; e < ptr[i + 1]; e++) {
      if (e > ptr[i]) CHECK(edge[e - 1].target <= edge[e].target);
      sum128_add(&from, edge_hash(i, edge[e].target, edge[e].weight, edge[e].delay));
    }
  for (eidx e = 0; e < g->n_edges; e++)
    sum128_add(&to, edge_hash(row_of(g, g->source[e]), row_of(g, g->target[e]), g->impulse[e],
                              g->delay ? g->delay[e] : g->constant_delay));
  CHECK(from.low == to.low && from.high == to.high);
  mem_free(ptr), mem_free(edge);
}

/* Write, read, compare, verify; the digests go to the caller. */
static struct connectome_facts round_trip(struct connectome g, bool streamable) {
  const char *path = in_folder("graph.h5");
  struct connectome_file *file;
  write_file(&g, path, streamable);
  connectome_sort(&g); /* ranks above 0 did not write */
  check_order_of_edges(&g);
  CHECK_FINE(connectome_open(&world, path, &file));
  const struct connectome_facts facts = *connectome_facts(file);
  check_facts(&facts, &g, streamable);
  check_share(file, &g);
  check_rows(file, &g);
  check_nodes(file, &g);
  if (streamable) check_out(file, &g);
  CHECK_FINE(connectome_verify(&world, file, path));
  connectome_close(file);
  comm_barrier(&world);
  connectome_free(&g);
  return facts;
}

static void test_round_trips(void) {
  const struct connectome_facts plain = round_trip(make(EDGES, 1, true, false), false);
  const struct connectome_facts dealt = round_trip(make(EDGES, 17, true, false), true);
  CHECK_TEXT(plain.graph_digest, dealt.graph_digest);
  CHECK_TEXT(plain.order_digest, dealt.order_digest);
  struct connectome ordered = make(EDGES, 1237, true, false);
  add_order(&ordered);
  const struct connectome_facts by_order = round_trip(ordered, true);
  CHECK_TEXT(plain.graph_digest, by_order.graph_digest);
  CHECK(strcmp(plain.order_digest, by_order.order_digest));
  const struct connectome_facts equal_delays = round_trip(make(EDGES, 1, false, false), true);
  CHECK(strcmp(plain.graph_digest, equal_delays.graph_digest));
  const struct connectome_facts named = round_trip(make(EDGES, 1, true, true), false);
  CHECK(strcmp(plain.graph_digest, named.graph_digest));
  struct connectome packed = make(EDGES, 17, true, false);
  packed.packed = true;
  const struct connectome_facts in_chunks = round_trip(packed, false);
  CHECK_TEXT(plain.graph_digest, in_chunks.graph_digest);
  CHECK(in_chunks.packed && !plain.packed);
  round_trip(make(0, 1, true, false), true);
  round_trip(make(1, 1, false, false), false);
}

/* The whole graph through memory and back: same digests, same order, same provenance. */
static void test_load(void) {
  struct connectome g = make(EDGES, 3, true, true), back = {0};
  add_order(&g);
  write_file(&g, in_folder("a.h5"), false);
  CHECK_FINE(connectome_load(in_folder("a.h5"), &back));
  CHECK_EQ(back.order_cut, 77);
  CHECK_EQ(back.order_seed, 5);
  CHECK_EQ(back.block[1], 150);
  CHECK_TEXT(back.order_method, "by hand");
  CHECK_TEXT(back.provenance, g.provenance);
  CHECK_TEXT(back.name[5], "n00005");
  write_file(&back, in_folder("b.h5"), false);
  struct connectome_file *a, *b;
  CHECK_FINE(connectome_open(&world, in_folder("a.h5"), &a));
  CHECK_FINE(connectome_open(&world, in_folder("b.h5"), &b));
  CHECK_TEXT(connectome_facts(a)->graph_digest, connectome_facts(b)->graph_digest);
  CHECK_TEXT(connectome_facts(a)->order_digest, connectome_facts(b)->order_digest);
  connectome_close(a), connectome_close(b);
  connectome_free(&g), connectome_free(&back);
}

/* Many parallel edges of one pair must not take for ever. */
static void test_parallel_edges(void) {
  const eidx n = 400000;
  struct connectome g = {.n_nodes = 2, .n_edges = n};
  g.source = NEW_ZERO(uint32_t, n), g.target = NEW_ZERO(uint32_t, n);
  g.impulse = NEW(int16_t, n), g.delay = NEW(uint16_t, n);
  for (eidx e = 0; e < n; e++)
    g.impulse[e] = (int16_t)(n - e), g.delay[e] = (uint16_t)(1 + e * 7 % 5);
  connectome_sort(&g);
  check_order_of_edges(&g);
  connectome_free(&g);
}

static void expect(struct status s, int code, const char *word) {
  CHECK_EQ(s.code, code);
  if (!strstr(s.text, word)) DIE(1, "'%s' does not say '%s'", s.text, word);
  CHECK(!strchr(s.text, '\n'));
}

static void cut_file(const char *from, const char *to, double share) {
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  fseek(in, 0, SEEK_END);
  const long n = (long)((double)ftell(in) * share);
  rewind(in);
  for (long i = 0; i < n; i++) fputc(fgetc(in), out);
  fclose(in), fclose(out);
}

static void test_refusals(void) {
  struct connectome_file *file;
  struct connectome g = make(100, 1, true, false);
  write_file(&g, in_folder("good.h5"), false);
  expect(connectome_open(&world, in_folder("none.h5"), &file), EXIT_INPUT, "No such file");
  expect(connectome_open(&world, folder, &file), EXIT_INPUT, "folder");
  const double shares[] = {0, 0.1, 0.6, 0.99};
  for (int i = 0; i < 4; i++) {
    if (world.rank == 0) cut_file(in_folder("good.h5"), in_folder("cut.h5"), shares[i]);
    comm_barrier(&world);
    expect(connectome_open(&world, in_folder("cut.h5"), &file), EXIT_INPUT, "cut.h5");
    comm_barrier(&world);
  }
  expect(connectome_write(&g, in_folder("good.h5"), false, false), EXIT_OUTPUT, "--force");
  expect(connectome_write(&g, in_folder("no/such/graph.h5"), false, false), EXIT_OUTPUT,
         "No such file");
  g.source[5] = NODES;
  expect(connectome_write(&g, in_folder("bad.h5"), false, false), EXIT_INPUT, "311");
  CHECK(!file_exists(in_folder("bad.h5")) && !file_exists(in_folder("bad.h5.tmp")));
  connectome_free(&g);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  snprintf(folder, sizeof folder, "/tmp/fascicle-test-XXXXXX");
  if (world.rank == 0 && !mkdtemp(folder)) DIE(1, "no temporary folder");
  comm_share(&world, folder, sizeof folder, 0);
  test_round_trips();
  test_load();
  test_parallel_edges();
  test_refusals();
  comm_barrier(&world);
  if (world.rank == 0) {
    static const char *const made[] = {"graph.h5", "a.h5", "b.h5", "good.h5", "cut.h5"};
    for (int i = 0; i < 5; i++) CHECK_FINE(file_remove(in_folder(made[i])));
    CHECK(!rmdir(folder));
  }
  return test_end();
}
