/* ranks: 1 */
/* Synthetic connectomes: exact counts, no pair twice, the degree shapes of the reference graphs,
 * the same graph for any number of threads, dense and tiny cases, modules, synapse counts. */
#include "check.h"
#include "partition/generate.h"
#include "core/mem.h"

#include <math.h>

struct edges {
  struct generate_model model;
  uint32_t *source, *target;
};

static struct edges make(struct generate_model model, int n_threads) {
  struct edges g = {model, NEW(uint32_t, model.n_edges), NEW(uint32_t, model.n_edges)};
  CHECK_FINE(generate_check(&model));
  generate_edges(&model, n_threads, g.source, g.target);
  return g;
}

static void edges_free(struct edges *g) {
  mem_free(g->source), mem_free(g->target);
}

/* Sorted strictly by (target, source): so no pair twice; no self-loop. */
static void check_edges(const struct edges *g) {
  bool good = true;
  for (eidx e = 0; e < g->model.n_edges; e++) {
    good &= g->source[e] < g->model.n_nodes && g->target[e] < g->model.n_nodes;
    good &= g->source[e] != g->target[e];
    good &= e == 0 || g->target[e] > g->target[e - 1] ||
            (g->target[e] == g->target[e - 1] && g->source[e] > g->source[e - 1]);
  }
  CHECK(good);
}

static void check_near(double x, double wanted, double part) {
  checks_run++;
  if (fabs(x - wanted) > part * wanted)
    DIE(1, "%g is not within %g %% of %g", x, 100 * part, wanted);
}

static void test_shape(int64_t nodes, eidx edges, double median, double mean, double most) {
  struct edges g = make((struct generate_model){.n_nodes = nodes, .n_edges = edges, .seed = 1}, 2);
  check_edges(&g);
  const struct degree_facts in = generate_degrees(nodes, edges, g.target);
  check_near((double)in.median, median, 0.1);
  check_near(in.mean, mean, 0.1);
  check_near((double)in.most, most, 0.1);
  const struct degree_facts out = generate_degrees(nodes, edges, g.source);
  CHECK(out.most > in.most / 2 && out.most < in.most * 3 / 2);
  edges_free(&g);
}

static void test_threads_and_seeds(bool modular) {
  struct generate_model model = {.n_nodes = 2000, .n_edges = 50000, .seed = 9, .modular = modular};
  struct edges a = make(model, 1), b = make(model, 3);
  const size_t bytes = (size_t)model.n_edges * sizeof(uint32_t);
  CHECK(!memcmp(a.source, b.source, bytes) && !memcmp(a.target, b.target, bytes));
  model.seed = 10;
  struct edges c = make(model, 2);
  CHECK(memcmp(a.source, c.source, bytes) != 0);
  check_edges(&a), check_edges(&c);
  edges_free(&a), edges_free(&b), edges_free(&c);
}

static void test_modules(void) {
  struct generate_model model = {.n_nodes = 10000, .n_edges = 1100000, .seed = 2, .modular = true};
  struct edges g = make(model, 2);
  check_edges(&g);
  eidx inside = 0;
  for (eidx e = 0; e < model.n_edges; e++)
    inside += generate_module(&model, g.source[e]) == generate_module(&model, g.target[e]);
  check_near((double)inside / (double)model.n_edges, 0.77, 0.03);
  CHECK_EQ(generate_n_modules(&model), 12);
  const struct degree_facts in = generate_degrees(model.n_nodes, model.n_edges, g.target);
  check_near((double)in.median, 84, 0.1);
  edges_free(&g);
}

/* From empty to complete, both models. */
static void test_corners(void) {
  const struct {
    int64_t nodes;
    eidx edges;
  } corner[] = {{1, 0},   {2, 1},     {2, 2},       {3, 5},   {10, 0},
                {10, 90}, {40, 1559}, {300, 60000}, {5000, 3}};
  for (int modular = 0; modular < 2; modular++)
    for (size_t i = 0; i < sizeof corner / sizeof *corner; i++) {
      struct edges g = make((struct generate_model){.n_nodes = corner[i].nodes,
                                                    .n_edges = corner[i].edges,
                                                    .seed = 3,
                                                    .modular = modular},
                            2);
      check_edges(&g);
      edges_free(&g);
    }
  struct generate_model model = {.n_nodes = 10, .n_edges = 91};
  CHECK_EQ(generate_check(&model).code, EXIT_USAGE);
  model = (struct generate_model){.n_nodes = 0};
  CHECK_EQ(generate_check(&model).code, EXIT_USAGE);
}

static void test_properties(void) {
  enum { N = 200000 };
  int64_t sum = 0, three = 0, five = 0, delays[6] = {0};
  uint32_t most = 0;
  for (nodeid i = 0; i < N; i++) {
    const uint32_t c = generate_count(4, i, i % 1000);
    CHECK(c >= 1 && c <= 2591);
    sum += c, three += c >= 3, five += c >= 5, most = c > most ? c : most;
    const uint16_t d = generate_delay(4, i, i % 1000, 2, 5);
    CHECK(d >= 2 && d <= 5);
    delays[d]++;
  }
  check_near((double)sum / N, 4.85, 0.05);
  check_near((double)three / N, 0.41, 0.03);
  check_near((double)five / N, 0.244, 0.03);
  CHECK(most > 500);
  for (int d = 2; d <= 5; d++) check_near((double)delays[d], N / 4.0, 0.03);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  test_shape(5000, 524324, 86, 105, 778);
  test_shape(10000, 1100000, 84, 110, 1009);
  test_shape(160514, 10402842, 28, 65, 7776);
  test_threads_and_seeds(false);
  test_threads_and_seeds(true);
  test_modules();
  test_corners();
  test_properties();
  CHECK_EQ(mem_held(), 0);
  return test_end();
}
