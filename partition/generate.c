/* Synthetic edges: degrees first, then the sources of each target. */
#include "generate.h"
#include "core/mem.h"
#include "core/numbers.h"
#include "permute.h"
#include "core/rng.h"

#include <math.h>
#include <stdlib.h>

/* What a draw is for: the last counter word, so that no two purposes share a number. */
enum purpose { FOR_MODULE = 0x20000002, FOR_SOURCE, FOR_WAITING_TIME, FOR_COUNT, FOR_DELAY };
enum { FOR_IN_RANK, FOR_OUT_RANK }; /* streams of permute */

enum { MOST_SYNAPSES = 2591, MOST_MODULES = 64, NEIGHBOURS = 4 };
static const double share_inside = 0.80, share_beside = 0.15;

/* ---- shape of the degrees ---- */

/* Spread of the lognormal and largest degree over mean, by number of nodes. */
static const struct anchor {
  double nodes, sigma, top;
} anchors[] = {{1000, 0.38, 3.26},
               {5000, 0.632, 7.41},
               {10000, 0.734, 9.17},
               {160514, 1.298, 119.6},
               {211577, 1.25, 77}};
enum { N_ANCHORS = sizeof anchors / sizeof *anchors };

static struct anchor shape_of(double nodes) {
  if (nodes <= anchors[0].nodes) return anchors[0];
  for (int i = 1; i < N_ANCHORS; i++) {
    const struct anchor a = anchors[i - 1], b = anchors[i];
    if (nodes > b.nodes) continue;
    const double f = log(nodes / a.nodes) / log(b.nodes / a.nodes);
    return (struct anchor){nodes, a.sigma + f * (b.sigma - a.sigma), a.top * pow(b.top / a.top, f)};
  }
  return anchors[N_ANCHORS - 1];
}

static double normal_below(double z) {
  return 0.5 * erfc(-z * M_SQRT1_2);
}

/* z with normal_below(z) = u: Newton's steps from the middle; the derivative is the density. */
static double normal_quantile(double u) {
  if (u > 0.5) return -normal_quantile(1 - u);
  double z =
      -sqrt(-2 * log(u)) + 0.8; /* right to 0.8 or so, and below the root's far side for tiny u */
  if (z > 0) z = 0;
  for (int i = 0; i < 60; i++) {
    const double density = 0.3989422804014327 * exp(-0.5 * z * z);
    double step = (normal_below(z) - u) / density;
    if (step > 0.5) step = 0.5;
    if (step < -0.5) step = -0.5;
    z -= step;
    if (fabs(step) < 1e-13) break;
  }
  return z;
}

/* weight [n]: the relative size of the degree at rank r: exp(sigma z), z a normal quantile cut so
 * that the largest is `top` times the mean. Ascending in r. */
static void fill_quantiles(int64_t n, int n_threads, double *weight) {
  const struct anchor shape = shape_of((double)n);
  /* top * mean = exp(sigma z_top), mean of the uncut lognormal = exp(sigma^2 / 2) */
  const double z_top = (log(shape.top) + 0.5 * shape.sigma * shape.sigma) / shape.sigma;
  const double whole = normal_below(z_top);
#pragma omp parallel for num_threads(n_threads)
  for (int64_t r = 0; r < n; r++)
    weight[r] = exp(shape.sigma * normal_quantile((r + 0.5) / (double)n * whole));
  if (n > 1) weight[n - 1] = exp(shape.sigma * z_top);
}

static double clipped_sum(int64_t n, const double *weight, double scale, double limit) {
  double sum = 0;
  for (int64_t r = 0; r < n; r++) sum += fmin(weight[r] * scale, limit);
  return sum;
}

/* The factor that makes the clipped weights sum to `total`. */
static double find_scale(int64_t n, const double *weight, double total, double limit) {
  double low = 0, high = 1;
  while (clipped_sum(n, weight, high, limit) < total && high < 1e300) high *= 2;
  for (int i = 0; i < 60; i++) {
    const double middle = 0.5 * (low + high);
    if (clipped_sum(n, weight, middle, limit) < total)
      low = middle;
    else
      high = middle;
  }
  return high;
}

/* first [n + 1]: where each target's edges start; in-degrees sum to n_edges exactly, none over n -
 * 1. The running sum of the exact degrees is rounded, so no error adds up. */
static void fill_degrees(const struct generate_model *m, const double *weight, eidx *first) {
  const int64_t n = m->n_nodes, limit = n - 1;
  const double scale = find_scale(n, weight, (double)m->n_edges, (double)limit);
  int64_t *degree = NEW(int64_t, n);
  double exact = 0;
  eidx given = 0;
  for (int64_t r = 0; r < n; r++) {
    exact += fmin(weight[r] * scale, (double)limit);
    eidx d = (eidx)llround(exact) - given;
    if (d > limit) d = limit;
    if (d > m->n_edges - given) d = m->n_edges - given;
    degree[r] = d < 0 ? 0 : d;
    given += degree[r];
  }
  for (int64_t r = n - 1; given < m->n_edges; r = r ? r - 1 : n - 1)
    if (degree[r] < limit) degree[r]++, given++;
  first[0] = 0;
  for (int64_t i = 0; i < n; i++)
    first[i + 1] = first[i] + degree[permute(m->seed, FOR_IN_RANK, 0, (uint64_t)n, (uint64_t)i)];
  mem_free(degree);
}

/* ---- modules ---- */

int generate_n_modules(const struct generate_model *model) {
  if (!model->modular) return 1;
  const int wanted = (int)(sqrt((double)model->n_nodes) / 8);
  return wanted < 4 ? 4 : wanted > MOST_MODULES ? MOST_MODULES : wanted;
}

int generate_module(const struct generate_model *model, nodeid node) {
  const struct rng_block b = rng_draw(model->seed, (uint32_t)node, 0, 0, FOR_MODULE);
  return (int)rng_below(b.v[0], b.v[1], (uint64_t)generate_n_modules(model));
}

/* ---- drawing from weights ---- */

/* Walker's alias method: slot k gives node[k] with chance keep[k] / 2^32, otherwise node[other[k]].
 */
struct alias_table {
  int64_t n;
  const uint32_t *node;
  uint32_t *keep, *other;
};

struct pool {
  const struct generate_model *model;
  const double *weight; /* [n_nodes] of each node as a source */
  int n_modules;
  int64_t *module_first; /* [n_modules + 1] into member */
  uint32_t *member;      /* [n_nodes] nodes by module */
  uint16_t *module_of;   /* [n_nodes] */
  uint32_t *keep, *other, *keep_all, *other_all, *everyone;
  double *module_weight; /* [n_modules] */
  double all_weight;
};

/* Slots with less than the mean are filled up by those with more. */
static void alias_fill(int64_t n, const uint32_t *node, const double *weight, uint32_t *keep,
                       uint32_t *other) {
  double total = 0;
  for (int64_t k = 0; k < n; k++) total += weight[node[k]];
  double *left = NEW(double, n);
  uint32_t *small = NEW(uint32_t, n), *large = NEW(uint32_t, n);
  int64_t n_small = 0, n_large = 0;
  for (int64_t k = 0; k < n; k++) {
    left[k] = weight[node[k]] * (double)n / total;
    if (left[k] < 1)
      small[n_small++] = (uint32_t)k;
    else
      large[n_large++] = (uint32_t)k;
    keep[k] = UINT32_MAX, other[k] = (uint32_t)k;
  }
  while (n_small && n_large) {
    const uint32_t s = small[--n_small], l = large[n_large - 1];
    keep[s] = (uint32_t)fmin(left[s] * 4294967296.0, 4294967295.0), other[s] = l;
    left[l] -= 1 - left[s];
    if (left[l] < 1) n_large--, small[n_small++] = l;
  }
  mem_free(left), mem_free(small), mem_free(large);
}

static uint32_t alias_draw(const struct alias_table *table, struct rng_block b) {
  const uint64_t k = ((uint64_t)b.v[0] * (uint64_t)table->n) >> 32;
  return table->node[b.v[1] <= table->keep[k] ? k : table->other[k]];
}

static void sort_members(struct pool *p) {
  const int64_t n = p->model->n_nodes;
  for (int64_t i = 0; i < n; i++) {
    p->module_of[i] = (uint16_t)generate_module(p->model, i);
    p->module_first[p->module_of[i] + 1]++;
  }
  for (int m = 0; m < p->n_modules; m++) p->module_first[m + 1] += p->module_first[m];
  int64_t *at = NEW(int64_t, p->n_modules);
  for (int m = 0; m < p->n_modules; m++) at[m] = p->module_first[m];
  for (int64_t i = 0; i < n; i++) p->member[at[p->module_of[i]]++] = (uint32_t)i;
  mem_free(at);
}

static struct pool pool_init(const struct generate_model *model, const double *weight) {
  const int64_t n = model->n_nodes;
  struct pool p = {.model = model, .weight = weight, .n_modules = generate_n_modules(model)};
  p.everyone = NEW(uint32_t, n), p.keep_all = NEW(uint32_t, n), p.other_all = NEW(uint32_t, n);
  for (int64_t i = 0; i < n; i++) p.everyone[i] = (uint32_t)i, p.all_weight += weight[i];
  alias_fill(n, p.everyone, weight, p.keep_all, p.other_all);
  if (!model->modular) return p;
  p.module_first = NEW_ZERO(int64_t, p.n_modules + 1);
  p.member = NEW(uint32_t, n), p.module_of = NEW(uint16_t, n);
  p.keep = NEW(uint32_t, n), p.other = NEW(uint32_t, n);
  p.module_weight = NEW_ZERO(double, p.n_modules);
  sort_members(&p);
  for (int m = 0; m < p.n_modules; m++) {
    const int64_t first = p.module_first[m], size = p.module_first[m + 1] - first;
    for (int64_t k = 0; k < size; k++) p.module_weight[m] += weight[p.member[first + k]];
    alias_fill(size, p.member + first, weight, p.keep + first, p.other + first);
  }
  return p;
}

static void pool_free(struct pool *p) {
  mem_free(p->everyone), mem_free(p->keep_all), mem_free(p->other_all);
  mem_free(p->module_first), mem_free(p->member), mem_free(p->module_of);
  mem_free(p->keep), mem_free(p->other), mem_free(p->module_weight);
}

/* The neighbours on the ring of modules: -2, -1, +1, +2. */
static int module_beside(const struct pool *p, int module, int k) {
  static const int step[NEIGHBOURS] = {-2, -1, 1, 2};
  return (module + step[k] + p->n_modules) % p->n_modules;
}

/* One source for a target: choose own module, a neighbour or everyone, then a member by weight. */
static uint32_t draw_source(const struct pool *p, uint32_t target, uint32_t attempt) {
  const struct rng_block b = rng_draw(p->model->seed, target, attempt, 0, FOR_SOURCE);
  struct alias_table table = {p->model->n_nodes, p->everyone, p->keep_all, p->other_all};
  if (p->model->modular) {
    const double u = b.v[2] * 0x1p-32;
    int module = p->module_of[target];
    if (u >= share_inside) module = module_beside(p, module, b.v[3] % NEIGHBOURS);
    const int64_t first = p->module_first[module], size = p->module_first[module + 1] - first;
    if (u < share_inside + share_beside && size > 0)
      table = (struct alias_table){size, p->member + first, p->keep + first, p->other + first};
  }
  return alias_draw(&table, b);
}

/* The chance that one draw of the target's gives this source, up to a factor. */
static double chance(const struct pool *p, uint32_t target, uint32_t source) {
  double density = 1 / p->all_weight;
  if (p->model->modular) {
    density *= 1 - share_inside - share_beside;
    const int at = p->module_of[target], from = p->module_of[source];
    if (at == from) density += share_inside / p->module_weight[from];
    for (int k = 0; k < NEIGHBOURS; k++)
      if (module_beside(p, at, k) == from)
        density += share_beside / NEIGHBOURS / p->module_weight[from];
  }
  return density * p->weight[source];
}

/* ---- the sources of one target ---- */

struct candidate {
  double time;
  uint32_t source;
};

struct scratch {
  uint64_t *taken;             /* a bit for each node */
  struct candidate *candidate; /* [n_nodes] once a dense row was met */
};

static int by_time(const void *a, const void *b) {
  const struct candidate *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return (x->source > y->source) - (x->source < y->source);
}

static int by_id(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Many of all nodes are wanted: every node draws an exponential waiting time with its chance as
 * rate, and the first `degree` to arrive are taken. The same distribution as drawing one after
 * the other without putting back (Efraimidis and Spirakis, 2006), at a cost that does not depend
 * on how full the row is. */
static void sample_dense_row(const struct pool *p, uint32_t target, int64_t degree,
                             struct scratch *s) {
  const int64_t n = p->model->n_nodes;
  if (!s->candidate) s->candidate = NEW(struct candidate, n);
  int64_t k = 0;
  for (int64_t j = 0; j < n; j++) {
    if (j == target) continue;
    const struct rng_block b = rng_draw(p->model->seed, (uint32_t)j, target, 0, FOR_WAITING_TIME);
    s->candidate[k++] = (struct candidate){
        -log(1 - rng_unit(b.v[0], b.v[1])) / chance(p, target, (uint32_t)j), (uint32_t)j};
  }
  qsort(s->candidate, (size_t)k, sizeof *s->candidate, by_time);
  for (int64_t i = 0; i < degree; i++) {
    const uint32_t j = s->candidate[i].source;
    s->taken[j >> 6] |= (uint64_t)1 << (j & 63);
  }
}

/* Few are wanted: draw until there are enough different ones. Lists them in the order drawn. */
static void draw_row(const struct pool *p, uint32_t target, int64_t degree, struct scratch *s,
                     uint32_t *list) {
  uint32_t attempt = 0;
  for (int64_t k = 0; k < degree;) {
    const uint32_t j = draw_source(p, target, attempt++);
    const uint64_t bit = (uint64_t)1 << (j & 63);
    if (j == target || s->taken[j >> 6] & bit) continue;
    s->taken[j >> 6] |= bit;
    list[k++] = j;
  }
}

/* The taken nodes in ascending order; leaves the bits cleared. */
static void collect_row(int64_t n_nodes, int64_t degree, struct scratch *s, uint32_t *list,
                        bool listed) {
  enum { WORDS_PER_SORTED = 24 }; /* a sort step costs as much as scanning this many words */
  const int64_t n_words = n_nodes / 64 + 1;
  if (listed && degree * WORDS_PER_SORTED < n_words) {
    for (int64_t k = 0; k < degree; k++) s->taken[list[k] >> 6] = 0;
    qsort(list, (size_t)degree, sizeof *list, by_id);
    return;
  }
  int64_t k = 0;
  for (int64_t w = 0; w < n_words && k < degree; w++) {
    for (uint64_t bits = s->taken[w]; bits; bits &= bits - 1)
      list[k++] = (uint32_t)(w * 64 + __builtin_ctzll(bits));
    s->taken[w] = 0;
  }
}

static void make_row(const struct pool *p, uint32_t target, int64_t degree, struct scratch *s,
                     uint32_t *list) {
  enum { DENSE = 8 }; /* from one in eight on, drawn rows collide too often */
  const int64_t n = p->model->n_nodes;
  if (degree == 0) return;
  const bool dense = degree > n / DENSE;
  if (dense)
    sample_dense_row(p, target, degree, s);
  else
    draw_row(p, target, degree, s, list);
  collect_row(n, degree, s, list, !dense);
}

struct status generate_check(const struct generate_model *model) {
  const int64_t n = model->n_nodes;
  if (n < 1 || n >= UINT32_MAX)
    return failure(EXIT_USAGE, "--nodes %lld: it must lie in 1..%lld", (long long)n,
                   (long long)UINT32_MAX - 1);
  const __int128 most = (__int128)n * (n - 1);
  if (model->n_edges < 0 || model->n_edges > most)
    return failure(EXIT_USAGE,
                   "--edges %lld: %lld nodes have room for 0..%lld edges without self-loops",
                   (long long)model->n_edges, (long long)n, (long long)most);
  return fine();
}

void generate_edges(const struct generate_model *model, int n_threads, uint32_t *source,
                    uint32_t *target) {
  const int64_t n = model->n_nodes;
  double *quantile = NEW(double, n), *weight = NEW(double, n);
  eidx *first = NEW(eidx, n + 1);
  fill_quantiles(n, n_threads, quantile);
  fill_degrees(model, quantile, first);
#pragma omp parallel for num_threads(n_threads)
  for (int64_t i = 0; i < n; i++)
    weight[i] = quantile[permute(model->seed, FOR_OUT_RANK, 0, (uint64_t)n, (uint64_t)i)];
  mem_free(quantile);
  struct pool pool = pool_init(model, weight);
#pragma omp parallel num_threads(n_threads)
  {
    struct scratch s = {.taken = NEW_ZERO(uint64_t, n / 64 + 1)};
#pragma omp for schedule(dynamic, 256)
    for (int64_t i = 0; i < n; i++) {
      make_row(&pool, (uint32_t)i, first[i + 1] - first[i], &s, source + first[i]);
      for (eidx e = first[i]; e < first[i + 1]; e++) target[e] = (uint32_t)i;
    }
    mem_free(s.taken), mem_free(s.candidate);
  }
  pool_free(&pool);
  mem_free(weight), mem_free(first);
}

/* ---- properties of edges ---- */

uint32_t generate_count(uint64_t seed, nodeid source, nodeid target) {
  const double mu = 0.354, sigma = 1.489;
  const struct rng_block b = rng_draw(seed, (uint32_t)source, (uint32_t)target, 0, FOR_COUNT);
  const double y = 1 + floor(exp(mu + sigma * rng_normal(b)));
  return y > MOST_SYNAPSES ? MOST_SYNAPSES : (uint32_t)y;
}

uint16_t generate_delay(uint64_t seed, nodeid source, nodeid target, uint16_t low, uint16_t high) {
  const struct rng_block b = rng_draw(seed, (uint32_t)source, (uint32_t)target, 0, FOR_DELAY);
  return (uint16_t)(low + rng_below(b.v[0], b.v[1], (uint64_t)(high - low) + 1));
}

struct degree_facts generate_degrees(int64_t n_nodes, eidx n_edges, const uint32_t *end) {
  if (n_nodes == 0) return (struct degree_facts){0};
  int64_t *degree = NEW_ZERO(int64_t, n_nodes);
  for (eidx e = 0; e < n_edges; e++) degree[end[e]]++;
  sort_i64(degree, n_nodes);
  const struct degree_facts facts = {degree[0], degree[n_nodes / 2], degree[n_nodes - 1],
                                     (double)n_edges / (double)n_nodes};
  mem_free(degree);
  return facts;
}
