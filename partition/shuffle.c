/* Double-edge swaps that keep all degrees, by groups of rows. */
#include "shuffle.h"
#include "core/fail.h"
#include "core/mem.h"
#include "core/numbers.h"
#include "permute.h"
#include "core/rng.h"

#include <string.h>

enum { FOR_SWAP = 0x22000001 };                  /* last counter word */
enum { STREAM_ROWS = 2, STREAM_PROPERTIES = 3 }; /* of permute */
enum { SWAPS_PER_EDGE = 10, LEAST_ROUNDS = 8, MOST_ROUNDS = 60 };
/* Rounds after the decision to stop, which looks at the graph and so would favour some. */
enum { BLIND_ROUNDS = 2 };
enum {
  GROUP_ROWS = 16,
  GROUP_BITS = 1 << 20
};                                /* least rows; rows x edges: the bit matrix fits a near cache */
static const double still = 1e-3; /* share of kept edges */
static const uint32_t none = UINT32_MAX;

/* Rows by class, ascending node ids within one. */
struct rows {
  int n_classes;
  int64_t *class_first; /* [n_classes + 1] into node */
  uint32_t *node;       /* [n_nodes] */
  eidx *first;          /* [n_nodes] by node: where its edges begin */
  uint32_t *degree;     /* [n_nodes] by node */
};

static struct rows rows_init(const struct shuffle_input *in) {
  const int64_t n = in->n_nodes;
  struct rows rows = {.n_classes = in->class_of ? in->n_classes : 1};
  rows.class_first = NEW_ZERO(int64_t, rows.n_classes + 1);
  rows.node = NEW(uint32_t, n), rows.first = NEW_ZERO(eidx, n), rows.degree = NEW_ZERO(uint32_t, n);
  for (eidx e = 0; e < in->n_edges; e++) {
    const uint32_t t = in->target[e];
    if (e == 0 || in->target[e - 1] != t) {
      if (rows.degree[t])
        DIE(EXIT_INPUT,
            "the edges of target %u do not stand together: the graph's file is damaged; convert "
            "its tables "
            "again",
            t);
      rows.first[t] = e;
    }
    rows.degree[t]++;
  }
  for (int64_t v = 0; v < n; v++) rows.class_first[(in->class_of ? in->class_of[v] : 0) + 1]++;
  for (int c = 0; c < rows.n_classes; c++) rows.class_first[c + 1] += rows.class_first[c];
  int64_t *at = NEW(int64_t, rows.n_classes);
  memcpy(at, rows.class_first, (size_t)rows.n_classes * sizeof *at);
  for (int64_t v = 0; v < n; v++) rows.node[at[in->class_of ? in->class_of[v] : 0]++] = (uint32_t)v;
  mem_free(at);
  return rows;
}

static void rows_free(struct rows *rows) {
  mem_free(rows->class_first), mem_free(rows->node), mem_free(rows->first), mem_free(rows->degree);
}

/* ---- dealing rows into groups ---- */

struct deal {
  uint32_t *node; /* [n_nodes] rows in the order dealt */
  int64_t *group; /* [n_groups + 1] into node */
  int64_t n_groups;
};

/* Cut the dealt rows [first, last) of one class into groups; a small rest joins the last group. */
static void cut_groups(const struct rows *rows, struct deal *deal, int64_t first, int64_t last) {
  const int64_t groups_before = deal->n_groups;
  int64_t n_rows = 0, n_edges = 0;
  for (int64_t k = first; k < last; k++) {
    n_rows++, n_edges += rows->degree[deal->node[k]];
    if (n_rows < GROUP_ROWS || n_rows * n_edges < GROUP_BITS) continue;
    deal->group[++deal->n_groups] = k + 1;
    n_rows = n_edges = 0;
  }
  if (deal->group[deal->n_groups] == last) return;
  if (deal->n_groups > groups_before && n_rows * n_edges < GROUP_BITS / 4)
    deal->group[deal->n_groups] = last;
  else
    deal->group[++deal->n_groups] = last;
}

static void deal_rows(const struct shuffle_input *in, const struct rows *rows, int round,
                      struct deal *deal) {
  deal->n_groups = 0, deal->group[0] = 0;
  for (int c = 0; c < rows->n_classes; c++) {
    const int64_t first = rows->class_first[c], n = rows->class_first[c + 1] - first;
#pragma omp parallel for num_threads(in->n_threads)
    for (int64_t k = 0; k < n; k++)
      deal->node[first + (int64_t)permute(in->seed, STREAM_ROWS, (uint32_t)round, (uint64_t)n,
                                          (uint64_t)k)] = rows->node[first + k];
    cut_groups(rows, deal, first, first + n);
  }
}

/* ---- one group: sources get local numbers, rows are rows of a bit matrix ---- */

struct edge {
  uint32_t row, source; /* local numbers */
};

struct group {
  int64_t n_rows, n_sources, n_words,
      n;             /* n edges that may move: all but self-loops and repeated pairs */
  struct edge *edge; /* [n] */
  eidx *position;    /* [n] where each edge is */
  uint32_t *node_of; /* [n_sources] */
  uint64_t *has;     /* [n_rows][n_words]: bit s of row r: the row has that source */
  uint64_t *twice;   /* [n_words] sources that the row at hand has more than once */
  uint32_t *local;   /* [n_nodes] local number of a node as source, or `none` */
  int64_t edges_room, bits_room;
};

static bool bit_set(uint64_t *bits, uint32_t i) {
  const uint64_t bit = (uint64_t)1 << (i & 63);
  const bool was = bits[i >> 6] & bit;
  bits[i >> 6] |= bit;
  return was;
}

static bool bit_is(const uint64_t *bits, uint32_t i) {
  return bits[i >> 6] >> (i & 63) & 1;
}

static void bit_flip(uint64_t *bits, uint32_t i) {
  bits[i >> 6] ^= (uint64_t)1 << (i & 63);
}

static struct group group_init(int64_t n_nodes) {
  struct group g = {.local = NEW(uint32_t, n_nodes)};
  if (n_nodes) memset(g.local, 0xff, (size_t)n_nodes * sizeof *g.local);
  return g;
}

static void group_free(struct group *g) {
  mem_free(g->edge), mem_free(g->position), mem_free(g->node_of), mem_free(g->has),
      mem_free(g->twice);
  mem_free(g->local);
}

static void group_edges_room(struct group *g, int64_t n_edges) {
  if (n_edges <= g->edges_room) return;
  g->edges_room = n_edges + n_edges / 4;
  mem_free(g->edge), mem_free(g->position), mem_free(g->node_of);
  g->edge = NEW(struct edge, g->edges_room), g->position = NEW(eidx, g->edges_room);
  g->node_of = NEW(uint32_t, g->edges_room);
}

static void group_bits_room(struct group *g) {
  const int64_t want = (g->n_rows + 1) * g->n_words;
  if (want > g->bits_room) {
    g->bits_room = want + want / 4;
    mem_free(g->has), mem_free(g->twice);
    g->has = NEW(uint64_t, g->bits_room), g->twice = NEW(uint64_t, g->bits_room);
  }
  memset(g->has, 0, (size_t)(g->n_rows * g->n_words) * sizeof *g->has);
  memset(g->twice, 0, (size_t)g->n_words * sizeof *g->twice);
}

/* Local numbers in the order of first sight. */
static void number_sources(struct group *g, const struct shuffle_input *in, const struct rows *rows,
                           const uint32_t *node) {
  int64_t n_edges = 0;
  for (int64_t r = 0; r < g->n_rows; r++) n_edges += rows->degree[node[r]];
  group_edges_room(g, n_edges);
  g->n_sources = 0;
  for (int64_t r = 0; r < g->n_rows; r++) {
    const uint32_t *source = in->source + rows->first[node[r]];
    for (uint32_t k = 0; k < rows->degree[node[r]]; k++) {
      if (g->local[source[k]] != none) continue;
      g->local[source[k]] = (uint32_t)g->n_sources;
      g->node_of[g->n_sources++] = source[k];
    }
  }
  g->n_words = g->n_sources / 64 + 1;
}

static void load_row(struct group *g, const struct shuffle_input *in, const struct rows *rows,
                     uint32_t r, uint32_t node) {
  const eidx first = rows->first[node], end = first + rows->degree[node];
  uint64_t *has = g->has + r * g->n_words;
  bool repeats = false;
  for (eidx e = first; e < end; e++)
    if (bit_set(has, g->local[in->source[e]]))
      repeats = true, bit_set(g->twice, g->local[in->source[e]]);
  for (eidx e = first; e < end; e++) {
    const uint32_t s = g->local[in->source[e]];
    if (in->source[e] == node || (repeats && bit_is(g->twice, s))) continue;
    g->edge[g->n] = (struct edge){r, s}, g->position[g->n++] = e;
  }
  if (g->local[node] != none) bit_set(has, g->local[node]); /* so that no self-loop is made */
  if (repeats) memset(g->twice, 0, (size_t)g->n_words * sizeof *g->twice);
}

static void group_load(struct group *g, const struct shuffle_input *in, const struct rows *rows,
                       const uint32_t *node, int64_t n_rows) {
  g->n_rows = n_rows, g->n = 0;
  number_sources(g, in, rows, node);
  group_bits_room(g);
  for (int64_t r = 0; r < n_rows; r++) load_row(g, in, rows, (uint32_t)r, node[r]);
  if (g->n > UINT32_MAX)
    DIE(EXIT_RUNTIME, "a group of %lld edges is too large to shuffle", (long long)g->n);
}

static void group_store(const struct group *g, const struct shuffle_input *in) {
  for (int64_t i = 0; i < g->n; i++) in->source[g->position[i]] = g->node_of[g->edge[i].source];
  for (int64_t s = 0; s < g->n_sources; s++) g->local[g->node_of[s]] = none;
}

/* a -> b, c -> d  =>  c -> b, a -> d. Equal rows, equal sources and self-loops
 * show as a bit that is set. */
static bool try_swap(struct group *g, uint32_t i, uint32_t j) {
  struct edge *x = &g->edge[i], *y = &g->edge[j];
  uint64_t *b = g->has + x->row * g->n_words, *d = g->has + y->row * g->n_words;
  const uint32_t a = x->source, c = y->source;
  if (bit_is(b, c) | bit_is(d, a)) return false;
  bit_flip(b, a), bit_flip(b, c), bit_flip(d, c), bit_flip(d, a);
  x->source = c, y->source = a;
  return true;
}

static uint32_t below(uint32_t word, int64_t n) {
  return (uint32_t)(((uint64_t)word * (uint64_t)n) >> 32);
}

/* Five attempts for four edges, a number fixed beforehand: stopping at a number of accepted swaps
 * would tie the result's parity to the start. Returns the number accepted. */
static int64_t group_swap(struct group *g, uint64_t seed, uint32_t group, uint32_t round) {
  int64_t accepted = 0;
  if (g->n < 2 || g->n_rows < 2) return 0;
  const int64_t n_draws = (5 * g->n + 7) / 8; /* of two attempts each */
  for (int64_t k = 0; k < n_draws; k++) {
    const struct rng_block r = rng_draw(seed, (uint32_t)k, group, round, FOR_SWAP);
    accepted += try_swap(g, below(r.v[0], g->n), below(r.v[1], g->n));
    accepted += try_swap(g, below(r.v[2], g->n), below(r.v[3], g->n));
  }
  return accepted;
}

static int64_t shuffle_round(const struct shuffle_input *in, const struct rows *rows, int round,
                             struct deal *deal) {
  int64_t accepted = 0;
  deal_rows(in, rows, round, deal);
#pragma omp parallel num_threads(in->n_threads) reduction(+ : accepted)
  {
    struct group g = group_init(in->n_nodes);
#pragma omp for schedule(dynamic, 1)
    for (int64_t k = 0; k < deal->n_groups; k++) {
      group_load(&g, in, rows, deal->node + deal->group[k], deal->group[k + 1] - deal->group[k]);
      accepted += group_swap(&g, in->seed, (uint32_t)k, (uint32_t)round);
      group_store(&g, in);
    }
    group_free(&g);
  }
  return accepted;
}

/* ---- what is kept, and that nothing is broken ---- */

/* Edges whose pair the old graph has. */
static int64_t count_kept(const struct shuffle_input *in, const struct rows *rows,
                          const uint32_t *old) {
  int64_t kept = 0;
#pragma omp parallel num_threads(in->n_threads) reduction(+ : kept)
  {
    uint64_t *bits = NEW_ZERO(uint64_t, in->n_nodes / 64 + 1);
#pragma omp for schedule(dynamic, 256)
    for (int64_t v = 0; v < in->n_nodes; v++) {
      const eidx first = rows->first[v], end = first + rows->degree[v];
      for (eidx e = first; e < end; e++) bit_set(bits, old[e]);
      for (eidx e = first; e < end; e++) kept += bit_is(bits, in->source[e]);
      for (eidx e = first; e < end; e++) bits[old[e] >> 6] = 0;
    }
    mem_free(bits);
  }
  return kept;
}

/* All that must stay: a fingerprint of the (source, class of target) pairs as a sum over edges,
 * exact out-degrees, self-loops, repeated pairs. */
struct census {
  int64_t *out_degree; /* [n_nodes] */
  uint64_t mark;
  int64_t self_loops, repeated;
};

static struct census census_of(const struct shuffle_input *in, const struct rows *rows) {
  struct census c = {.out_degree = NEW_ZERO(int64_t, in->n_nodes)};
  uint64_t *bits = NEW_ZERO(uint64_t, in->n_nodes / 64 + 1);
  for (int64_t v = 0; v < in->n_nodes; v++) {
    const eidx first = rows->first[v], end = first + rows->degree[v];
    const uint64_t class_word = (uint64_t)(in->class_of ? in->class_of[v] : 0) << 32;
    for (eidx e = first; e < end; e++) {
      const uint32_t s = in->source[e];
      c.out_degree[s]++;
      c.mark += mix_u64(class_word | s);
      c.self_loops += s == (uint32_t)v;
      c.repeated += bit_set(bits, s);
    }
    for (eidx e = first; e < end; e++) bits[in->source[e] >> 6] = 0;
  }
  mem_free(bits);
  return c;
}

static void check_census(const struct shuffle_input *in, const struct census *before,
                         const struct census *after) {
  for (int64_t v = 0; v < in->n_nodes; v++)
    if (before->out_degree[v] != after->out_degree[v])
      DIE(EXIT_RUNTIME, "the shuffle is broken: node %lld had %lld outputs and has %lld",
          (long long)v, (long long)before->out_degree[v], (long long)after->out_degree[v]);
  if (before->mark != after->mark)
    DIE(EXIT_RUNTIME, "the shuffle is broken: outputs into classes have changed");
  if (before->self_loops != after->self_loops || before->repeated != after->repeated)
    DIE(EXIT_RUNTIME,
        "the shuffle is broken: self-loops %lld before, %lld after; repeated pairs %lld, %lld",
        (long long)before->self_loops, (long long)after->self_loops, (long long)before->repeated,
        (long long)after->repeated);
}

static void run_rounds(const struct shuffle_input *in, const struct rows *rows,
                       struct shuffle_facts *facts) {
  struct deal deal = {.node = NEW(uint32_t, in->n_nodes), .group = NEW(int64_t, in->n_nodes + 2)};
  uint32_t *old = NEW(uint32_t, in->n_edges);
  if (in->n_edges) memcpy(old, in->source, (size_t)in->n_edges * sizeof *old);
  facts->kept = in->n_edges;
  for (bool done = in->n_edges == 0; !done && facts->rounds < MOST_ROUNDS;) {
    facts->swaps += shuffle_round(in, rows, facts->rounds++, &deal);
    if (facts->rounds < LEAST_ROUNDS) continue;
    const int64_t before = facts->kept;
    facts->kept = count_kept(in, rows, old);
    const bool settled = (double)(before - facts->kept) < still * (double)in->n_edges;
    done = facts->swaps == 0 || (settled && facts->swaps >= SWAPS_PER_EDGE * in->n_edges);
  }
  for (int k = 0; k < BLIND_ROUNDS && facts->swaps; k++)
    facts->swaps += shuffle_round(in, rows, facts->rounds++, &deal);
  facts->kept = count_kept(in, rows, old);
  mem_free(old), mem_free(deal.node), mem_free(deal.group);
}

void shuffle_edges(const struct shuffle_input *in, struct shuffle_facts *facts) {
  struct rows rows = rows_init(in);
  struct census before = census_of(in, &rows);
  *facts = (struct shuffle_facts){0};
  run_rounds(in, &rows, facts);
  struct census after = census_of(in, &rows);
  check_census(in, &before, &after);
  facts->self_loops = after.self_loops, facts->repeated = after.repeated;
  mem_free(before.out_degree), mem_free(after.out_degree);
  rows_free(&rows);
}

void shuffle_properties(const struct shuffle_input *in, eidx *from) {
  struct rows rows = rows_init(in);
  eidx *slot = NEW(eidx, in->n_edges), n = 0;
  for (int c = 0; c < rows.n_classes; c++) {
    const eidx first = n;
    for (int64_t k = rows.class_first[c]; k < rows.class_first[c + 1]; k++)
      for (uint32_t i = 0; i < rows.degree[rows.node[k]]; i++)
        slot[n++] = rows.first[rows.node[k]] + i;
    const uint64_t m = (uint64_t)(n - first);
#pragma omp parallel for num_threads(in->n_threads)
    for (eidx k = first; k < n; k++)
      from[slot[k]] = slot[first + (eidx)permute(in->seed, STREAM_PROPERTIES, (uint32_t)c, m,
                                                 (uint64_t)(k - first))];
  }
  mem_free(slot);
  rows_free(&rows);
}
