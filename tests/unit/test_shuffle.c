/* ranks: 1 */
/* The degree-preserving shuffle: uniform over all graphs with the same degrees where these can be
 * counted; self-loops and repeated pairs; properties permuted within classes. */
#include "check.h"
#include "partition/generate.h"
#include "core/mem.h"
#include "partition/shuffle.h"

#include <math.h>

/* One edge in, one edge out, no self-loop: the 9 permutations of 4 without a fixed point. Over many
 * seeds each must come out equally often (chi-square, 8 degrees of freedom). */
static void test_uniform(void) {
  enum { N = 4, SEEDS = 18000, GRAPHS = 9 };
  int64_t seen[256] = {0}, met = 0;
  for (int seed = 0; seed < SEEDS; seed++) {
    uint32_t source[N] = {1, 2, 3, 0}, target[N] = {0, 1, 2, 3};
    const struct shuffle_input in = {N, N, target, source, NULL, 1, (uint64_t)seed, 1};
    struct shuffle_facts facts;
    shuffle_edges(&in, &facts);
    seen[source[0] | source[1] << 2 | source[2] << 4 | source[3] << 6]++;
  }
  double chi = 0;
  const double expected = (double)SEEDS / GRAPHS;
  for (int i = 0; i < 256; i++)
    if (seen[i]) met++, chi += pow((double)seen[i] - expected, 2) / expected;
  CHECK_EQ(met, GRAPHS);
  CHECK(chi < 27); /* passed by chance 999 times in 1,000 */
}

/* Two hubs among many: rows of very different length, shuffled by several threads. */
static void test_threads(void) {
  const struct generate_model model = {.n_nodes = 4000, .n_edges = 120000, .seed = 6};
  uint32_t *old = NEW(uint32_t, model.n_edges), *target = NEW(uint32_t, model.n_edges);
  uint32_t *one = NEW(uint32_t, model.n_edges), *three = NEW(uint32_t, model.n_edges);
  generate_edges(&model, 2, old, target);
  const size_t bytes = (size_t)model.n_edges * sizeof *old;
  memcpy(one, old, bytes), memcpy(three, old, bytes);
  struct shuffle_input in = {model.n_nodes, model.n_edges, target, one, NULL, 1, 5, 1};
  struct shuffle_facts a, b;
  shuffle_edges(&in, &a);
  in.source = three, in.n_threads = 3;
  shuffle_edges(&in, &b);
  CHECK(!memcmp(one, three, bytes));
  CHECK_EQ(a.swaps, b.swaps);
  CHECK(a.swaps >= 10 * model.n_edges);
  /* Kept by chance: sum over pairs of the chance d_in d_out / E, squared;
   * about a few per cent here. */
  CHECK(a.kept < model.n_edges / 10);
  mem_free(old), mem_free(target), mem_free(one), mem_free(three);
}

/* Self-loops stay where they are; so do repeated pairs; none is made. */
static void test_odd_edges(void) {
  enum { N = 40, E = 3 * N + 2 };
  uint32_t source[E], target[E];
  int m = 0;
  for (uint32_t v = 0; v < N; v++) {
    if (v == 7)
      source[m] = 9, target[m++] = v, source[m] = 9, target[m++] = v; /* 9 -> 7 three times */
    source[m] = v == 7 ? 9 : (v + 2) % N, target[m++] = v;
    source[m] = v % 5 ? (v + 11) % N : v, target[m++] = v; /* every fifth has a self-loop */
    source[m] = (v + 17) % N, target[m++] = v;
  }
  CHECK_EQ(m, E);
  const struct shuffle_input in = {N, E, target, source, NULL, 1, 8, 2};
  struct shuffle_facts facts;
  shuffle_edges(&in, &facts);
  CHECK_EQ(facts.self_loops, N / 5);
  CHECK_EQ(facts.repeated, 2);
  for (int e = 0; e < E; e++)
    if (source[e] == target[e]) CHECK_EQ(source[e] % 5, 0);
}

static void test_properties(void) {
  enum { N = 90, E = 5 * N };
  uint32_t source[E], target[E], class_of[N];
  for (uint32_t v = 0; v < N; v++) class_of[v] = v % 3;
  for (int e = 0; e < E; e++) target[e] = (uint32_t)(N - 1 - e / 5), source[e] = (uint32_t)(e % N);
  const struct shuffle_input in = {N, E, target, source, class_of, 3, 2, 2};
  eidx from[E];
  shuffle_properties(&in, from);
  char used[E] = {0};
  int moved = 0;
  for (int e = 0; e < E; e++) {
    CHECK(from[e] >= 0 && from[e] < E && !used[from[e]]++);
    CHECK_EQ(class_of[target[e]], class_of[target[from[e]]]);
    moved += from[e] != e;
  }
  CHECK(moved > E * 9 / 10);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  test_uniform();
  test_threads();
  test_odd_edges();
  test_properties();
  CHECK_EQ(mem_held(), 0);
  return test_end();
}
