/* METIS 5.1 with 32-bit indices: every count is checked before it becomes an idx_t. METIS draws
 * from libc's rand(), one generator for the whole process, so two calls at once would not repeat:
 * calls are serial. It also traps SIGTERM while it runs, which is blocked meanwhile so that our own
 * handler sees it afterwards. */
#include "order.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/watchdog.h"

#include <metis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(idx_t) == 4, "the checks here are for METIS with 32-bit indices");

/* Subgraphs with fewer neighbours than this are divided several times, the best kept: it costs
 * nothing there, and evens out small parts. */
enum { SMALL = 300000, TRIES = 4 };

enum { PASSES = 8, SLACK = 200 }; /* of the refinement; a side at most 1 / SLACK over half */

/* A subgraph still to be divided: symmetric, sorted neighbours, no self-loops. */
struct subgraph {
  idx_t n;
  idx_t *first;        /* [n + 1] */
  idx_t *neighbour;    /* [first[n]] */
  idx_t *multiplicity; /* [first[n]] directed edges between the pair */
  idx_t *weight;       /* [n] in-degree + 1 */
  uint32_t *node;      /* [n] ascending node ids */
};

/* The net of a source: itself and its targets, the neurons that must have its state. A
 * part needs a row from elsewhere for every net that it shares, so halo rows = sum over
 * nets of (parts met - 1). */
struct nets {
  eidx *first;      /* [n_nodes + 1] into source */
  uint32_t *source; /* [n_edges] sources of each target: with the node itself, the nets it is in */
  idx_t (*pins)[2]; /* [n_nodes] members of each net on the two sides of the subgraph at hand; zero
                       between */
};

struct bisection {
  idx_t seed;
  struct nets nets;
  uint32_t *part_of_node;
  int64_t n_subgraphs, n_fallbacks;
  char why[40];             /* of the first fallback */
  struct progress progress; /* a neuron is placed once a level */
};

static void subgraph_free(struct subgraph *p) {
  mem_free(p->first), mem_free(p->neighbour), mem_free(p->multiplicity), mem_free(p->weight);
  mem_free(p->node);
  *p = (struct subgraph){0};
}

/* ---- the symmetric graph ---- */

/* Both directions of every edge as lists by node, each list ascending: edges are first
 * spread by one end, in any order; reading the lists of nodes 0, 1, 2 ... then appends
 * ascending ids everywhere. */
static uint32_t *sorted_neighbours(const struct order_input *in, const eidx *first) {
  const int64_t n = in->n_nodes;
  uint32_t *mixed = NEW(uint32_t, first[n]), *sorted = NEW(uint32_t, first[n]);
  eidx *at = NEW(eidx, n + 1);
  memcpy(at, first, (size_t)(n + 1) * sizeof *at);
  for (eidx e = 0; e < in->n_edges; e++) {
    const uint32_t s = in->source[e], t = in->target[e];
    if (s == t) continue;
    mixed[at[s]++] = t, mixed[at[t]++] = s;
  }
  memcpy(at, first, (size_t)(n + 1) * sizeof *at);
  for (int64_t v = 0; v < n; v++)
    for (eidx k = first[v]; k < first[v + 1]; k++) sorted[at[mixed[k]]++] = (uint32_t)v;
  mem_free(mixed), mem_free(at);
  return sorted;
}

/* Equal neighbours become one with their number. */
static void merge_neighbours(const eidx *first, const uint32_t *sorted, struct subgraph *p) {
  idx_t k = 0;
  for (idx_t v = 0; v < p->n; v++) {
    p->first[v] = k;
    for (eidx e = first[v]; e < first[v + 1]; e++)
      if (e > first[v] && sorted[e] == sorted[e - 1])
        p->multiplicity[k - 1]++;
      else
        p->neighbour[k] = (idx_t)sorted[e], p->multiplicity[k++] = 1;
  }
  p->first[p->n] = k;
}

static struct subgraph whole_graph(const struct order_input *in) {
  const int64_t n = in->n_nodes;
  struct subgraph p = {.n = (idx_t)n, .first = NEW(idx_t, n + 1), .weight = NEW(idx_t, n)};
  p.node = NEW(uint32_t, n);
  eidx *first = NEW_ZERO(eidx, n + 1);
  for (int64_t v = 0; v < n; v++) p.weight[v] = 1, p.node[v] = (uint32_t)v;
  for (eidx e = 0; e < in->n_edges; e++) {
    const uint32_t s = in->source[e], t = in->target[e];
    p.weight[t]++;
    if (s != t) first[s + 1]++, first[t + 1]++;
  }
  for (int64_t v = 0; v < n; v++) first[v + 1] += first[v];
  uint32_t *sorted = sorted_neighbours(in, first);
  p.neighbour = NEW(idx_t, first[n]), p.multiplicity = NEW(idx_t, first[n]);
  merge_neighbours(first, sorted, &p);
  mem_free(sorted), mem_free(first);
  return p;
}

/* ---- one bisection ---- */

static int64_t weight_of(const struct subgraph *p, const idx_t *side, idx_t which) {
  int64_t sum = 0;
  for (idx_t v = 0; v < p->n; v++)
    if (side[v] == which) sum += p->weight[v];
  return sum;
}

/* Cut the ascending nodes where the weight in front comes closest to half; both sides get a
 * node if there are two. */
static void balanced_split(const struct subgraph *p, idx_t *side) {
  int64_t total = 0, before = 0;
  for (idx_t v = 0; v < p->n; v++) total += p->weight[v];
  for (idx_t v = 0; v < p->n; v++) {
    side[v] = 2 * before + p->weight[v] > total;
    if (v == 0) side[v] = 0;
    if (v == p->n - 1 && v > 0) side[v] = 1;
    before += p->weight[v];
  }
}

/* NULL when the sides can be used, otherwise what is wrong with them. */
static const char *check_sides(const struct subgraph *p, const idx_t *side) {
  int64_t heaviest = 0;
  for (idx_t v = 0; v < p->n; v++) {
    if (side[v] != 0 && side[v] != 1) return "gave no valid side";
    if (p->weight[v] > heaviest) heaviest = p->weight[v];
  }
  const int64_t a = weight_of(p, side, 0), b = weight_of(p, side, 1);
  if (a == 0 || b == 0) return "left a side empty";
  const int64_t larger = a > b ? a : b, half = (a + b + 1) / 2;
  return larger > half + half / 10 + heaviest ? "left the sides unbalanced" : NULL;
}

static int call_metis(struct subgraph *p, idx_t seed, idx_t *side) {
  idx_t n_constraints = 1, n_sides = 2, cut, options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = seed;
  options[METIS_OPTION_UFACTOR] = 2; /* a side at most 0.2 % over half: six levels compound */
  options[METIS_OPTION_NCUTS] = p->first[p->n] < SMALL ? TRIES : 1;
  sigset_t term, old;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &old);
  watchdog_pause("METIS");
  const int code =
      METIS_PartGraphRecursive(&p->n, &n_constraints, p->first, p->neighbour, p->weight, NULL,
                               p->multiplicity, &n_sides, NULL, NULL, options, &cut, side);
  watchdog_resume();
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return code;
}

static void choose_sides(struct bisection *w, struct subgraph *p, idx_t *side) {
  w->n_subgraphs++;
  if (p->n <= 2 || p->first[p->n] == 0) { /* nothing to choose */
    balanced_split(p, side);
    return;
  }
  for (idx_t v = 0; v < p->n; v++) side[v] = -1;
  const int code = call_metis(p, w->seed, side);
  const char *fault = code == METIS_OK ? check_sides(p, side) : "failed";
  if (!fault) return;
  if (w->n_fallbacks++ == 0) {
    snprintf(w->why, sizeof w->why, "METIS %s", fault);
    log_warning("METIS %s (code %d) on a subgraph of %d neurons: balanced split by in-degree there",
                fault, code, (int)p->n);
  }
  balanced_split(p, side);
}

/* ---- fewer halo rows: METIS counts edges between the sides, we pay for
 * nets that are on both ---- */

static struct nets nets_init(const struct order_input *in) {
  struct nets nets = {.first = NEW_ZERO(eidx, in->n_nodes + 2),
                      .source = NEW(uint32_t, in->n_edges)};
  nets.pins = mem_zero(in->n_nodes, sizeof *nets.pins);
  for (eidx e = 0; e < in->n_edges; e++) nets.first[in->target[e] + 2]++;
  for (int64_t v = 0; v < in->n_nodes; v++) nets.first[v + 2] += nets.first[v + 1];
  for (eidx e = 0; e < in->n_edges; e++)
    nets.source[nets.first[in->target[e] + 1]++] = in->source[e];
  return nets;
}

static void nets_free(struct nets *nets) {
  mem_free(nets->first), mem_free(nets->source), mem_free(nets->pins);
}

/* Add `change` to the pins of all nets of a node on one side. */
static void change_pins(const struct nets *nets, uint32_t node, idx_t which, idx_t change) {
  nets->pins[node][which] += change;
  for (eidx e = nets->first[node]; e < nets->first[node + 1]; e++)
    nets->pins[nets->source[e]][which] += change;
}

/* +1 when the node is a net's last pin on its side and others are on the other;
 * -1 when all are on its. */
static idx_t net_gain(const idx_t pins[2], idx_t from) {
  return (pins[from] == 1 && pins[1 - from] > 0) - (pins[1 - from] == 0 && pins[from] > 1);
}

static idx_t move_gain(const struct nets *nets, uint32_t node, idx_t from) {
  idx_t gain = net_gain(nets->pins[node], from);
  for (eidx e = nets->first[node]; e < nets->first[node + 1]; e++)
    gain += net_gain(nets->pins[nets->source[e]], from);
  return gain;
}

/* Greedy: a node changes sides when that unites more nets than it divides and
 * the other side has room. */
static int64_t refine_pass(const struct nets *nets, const struct subgraph *p, int64_t limit,
                           int64_t weight[2], idx_t *side) {
  int64_t total = 0;
  for (idx_t v = 0; v < p->n; v++) {
    const idx_t from = side[v], to = 1 - from;
    if (weight[to] + p->weight[v] > limit || weight[from] == p->weight[v]) continue;
    const idx_t gain = move_gain(nets, p->node[v], from);
    if (gain <= 0) continue;
    change_pins(nets, p->node[v], from, -1), change_pins(nets, p->node[v], to, 1);
    weight[from] -= p->weight[v], weight[to] += p->weight[v];
    side[v] = to, total += gain;
  }
  return total;
}

static void refine_sides(const struct nets *nets, const struct subgraph *p, idx_t *side) {
  int64_t weight[2] = {weight_of(p, side, 0), weight_of(p, side, 1)};
  const int64_t half = (weight[0] + weight[1] + 1) / 2;
  const int64_t limit = half + half / SLACK;
  for (idx_t v = 0; v < p->n; v++) change_pins(nets, p->node[v], side[v], 1);
  for (int pass = 0; pass < PASSES; pass++)
    if (refine_pass(nets, p, limit, weight, side) < p->n / 1000 + 1) break;
  for (idx_t v = 0; v < p->n; v++) change_pins(nets, p->node[v], side[v], -1);
}

/* The nodes of one side with the edges among them. local [n]: a node's number within its side. */
static struct subgraph cut_out(const struct subgraph *p, const idx_t *side, const idx_t *local,
                               idx_t which) {
  idx_t n = 0;
  eidx n_neighbours = 0;
  for (idx_t v = 0; v < p->n; v++) {
    if (side[v] != which) continue;
    n++;
    for (idx_t k = p->first[v]; k < p->first[v + 1]; k++)
      n_neighbours += side[p->neighbour[k]] == which;
  }
  struct subgraph c = {.n = n, .first = NEW(idx_t, (int64_t)n + 1), .weight = NEW(idx_t, n)};
  c.node = NEW(uint32_t, n), c.neighbour = NEW(idx_t, n_neighbours);
  c.multiplicity = NEW(idx_t, n_neighbours);
  idx_t at = 0, i = 0;
  for (idx_t v = 0; v < p->n; v++) {
    if (side[v] != which) continue;
    c.first[i] = at, c.weight[i] = p->weight[v], c.node[i++] = p->node[v];
    for (idx_t k = p->first[v]; k < p->first[v + 1]; k++) {
      if (side[p->neighbour[k]] != which) continue;
      c.neighbour[at] = local[p->neighbour[k]], c.multiplicity[at++] = p->multiplicity[k];
    }
  }
  c.first[n] = at;
  return c;
}

static void halve(struct bisection *w, struct subgraph *p, struct subgraph child[2]) {
  idx_t *side = NEW(idx_t, p->n), *local = NEW(idx_t, p->n), n[2] = {0, 0};
  choose_sides(w, p, side);
  refine_sides(&w->nets, p, side);
  for (idx_t v = 0; v < p->n; v++) local[v] = n[side[v]]++;
  for (idx_t which = 0; which < 2; which++) child[which] = cut_out(p, side, local, which);
  mem_free(side), mem_free(local);
}

/* Consumes the subgraph. Parts [first, first + n) are filled from it. */
static void bisect(struct bisection *w, struct subgraph *p, int first, int n) {
  if (n == 1) {
    for (idx_t v = 0; v < p->n; v++) w->part_of_node[p->node[v]] = (uint32_t)first;
    subgraph_free(p);
    return;
  }
  struct subgraph child[2];
  halve(w, p, child);
  subgraph_free(p);
  progress_add(&w->progress, child[0].n + child[1].n);
  bisect(w, &child[0], first, n / 2);
  bisect(w, &child[1], first + n / 2, n / 2);
}

/* ---- the whole ---- */

static struct status check_input(const struct order_input *in) {
  if (in->parts < 1 || in->parts > 65536 || (in->parts & (in->parts - 1)))
    return failure(EXIT_USAGE, "--parts %d: it must be a power of two from 1 to 65536", in->parts);
  if (in->n_nodes + in->n_edges > INT32_MAX || 2 * in->n_edges > INT32_MAX)
    return failure(
        EXIT_USAGE,
        "%lld neurons and %lld edges are too many to order: METIS here has 32-bit indices, at most "
        "%d edges; use --no-order",
        (long long)in->n_nodes, (long long)in->n_edges, INT32_MAX / 2);
  for (eidx e = 0; e < in->n_edges; e++)
    if (in->source[e] >= in->n_nodes || in->target[e] >= in->n_nodes)
      return failure(EXIT_INPUT, "edge %lld (%u to %u) leaves the %lld nodes", (long long)e,
                     in->source[e], in->target[e], (long long)in->n_nodes);
  return fine();
}

/* Nodes by (part, id): a counting sort. */
static void number_rows(int64_t n_nodes, const uint32_t *part_of_node, struct order *order) {
  order->row_of_node = NEW(uint32_t, n_nodes), order->node_of_row = NEW(uint32_t, n_nodes);
  order->block = NEW_ZERO(gidx, order->parts + 1);
  for (int64_t v = 0; v < n_nodes; v++) order->block[part_of_node[v] + 1]++;
  for (int p = 0; p < order->parts; p++) order->block[p + 1] += order->block[p];
  gidx *at = NEW(gidx, order->parts);
  memcpy(at, order->block, (size_t)order->parts * sizeof *at);
  for (int64_t v = 0; v < n_nodes; v++) {
    const gidx row = at[part_of_node[v]]++;
    order->row_of_node[v] = (uint32_t)row, order->node_of_row[row] = (uint32_t)v;
  }
  mem_free(at);
}

static void name_method(const struct bisection *w, struct order *order) {
  if (w->n_fallbacks == 0)
    snprintf(order->method, sizeof order->method,
             "METIS %d.%d.%d nested bisection, refined for halo rows", METIS_VER_MAJOR,
             METIS_VER_MINOR, METIS_VER_SUBMINOR);
  else
    snprintf(order->method, sizeof order->method, "balanced split %lld of %lld (%s)",
             (long long)w->n_fallbacks, (long long)w->n_subgraphs, w->why);
}

struct status order_compute(const struct order_input *input, struct order *order) {
  *order = (struct order){.parts = input->parts};
  TRY(check_input(input));
  struct bisection w = {.seed = input->seed, .part_of_node = NEW_ZERO(uint32_t, input->n_nodes)};
  if (input->n_nodes > 0) {
    int levels = 0;
    while (1 << levels < input->parts) levels++;
    w.progress = progress_start("ordering", "placements", 0, input->n_nodes * levels);
    w.nets = nets_init(input);
    struct subgraph whole = whole_graph(input);
    bisect(&w, &whole, 0, input->parts);
    progress_wipe();
  }
  nets_free(&w.nets);
  number_rows(input->n_nodes, w.part_of_node, order);
  for (eidx e = 0; e < input->n_edges; e++)
    order->cut += w.part_of_node[input->source[e]] != w.part_of_node[input->target[e]];
  name_method(&w, order);
  mem_free(w.part_of_node);
  return fine();
}

void order_free(struct order *order) {
  mem_free(order->row_of_node), mem_free(order->node_of_row), mem_free(order->block);
  *order = (struct order){0};
}
