/* Synthetic connectomes as graphs in memory. */
#include "synthetic.h"
#include "core/mem.h"
#include "core/rng.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>

/* Last counter words of the draws here; generate.c has 0x20000001 onwards. */
enum { FOR_BODY = 0x21000001, FOR_TYPE };

enum { FIRST_BODY = 10001, BODY_GAP = 8, CLASS_CYCLE = 8 };
enum transmitter { ACETYLCHOLINE, GABA, GLUTAMATE, N_TRANSMITTERS };
static const char *const transmitter_names[] = {"acetylcholine", "gaba", "glutamate"};
static const double transmitter_shares[] = {0.72, 0.15, 0.13};
enum superclass { DESCENDING, INTRINSIC, SENSORY, N_CLASSES };
static const char *const class_names[] = {"descending", "intrinsic", "sensory"};

/* Positions of the node columns. */
enum { TYPE, SUPERCLASS, TRANSMITTER, SIGN, MODULE };

/* ---- columns: label 0 is "" (missing), the others in byte order ---- */

static struct node_column enumeration(const char *name, int n, const char *const *label,
                                      int64_t n_nodes) {
  struct node_column c = {.name = mem_string(name), .n_labels = n + 1, .label = NEW(char *, n + 1)};
  c.label[0] = mem_string("");
  for (int i = 0; i < n; i++) c.label[i + 1] = mem_string(label[i]);
  c.code = NEW(uint32_t, n_nodes);
  return c;
}

/* PREFIX0 .. PREFIX<n - 1>, with leading zeros so that byte order is the order of numbers. */
static struct node_column numbered(const char *name, char prefix, int n, int64_t n_nodes) {
  char text[32];
  const int digits = snprintf(text, sizeof text, "%d", n - 1);
  struct node_column c = {.name = mem_string(name), .n_labels = n + 1, .label = NEW(char *, n + 1)};
  c.label[0] = mem_string("");
  for (int i = 0; i < n; i++) {
    snprintf(text, sizeof text, "%c%0*d", prefix, digits, i);
    c.label[i + 1] = mem_string(text);
  }
  c.code = NEW(uint32_t, n_nodes);
  return c;
}

/* u uniform: floor(K u^2) is k with chance sqrt((k + 1) / K) - sqrt(k / K). */
static int type_of(const struct synthetic *o, nodeid node) {
  const struct rng_block b = rng_draw(o->model.seed, (uint32_t)node, 0, 0, FOR_TYPE);
  const double u = rng_unit(b.v[0], b.v[1]);
  return (int)(o->types * u * u);
}

static enum superclass class_of(int type) {
  return type % CLASS_CYCLE == 1 ? SENSORY : type % CLASS_CYCLE == 2 ? DESCENDING : INTRINSIC;
}

/* Common types first, each takes the transmitter that is furthest from its share. */
static uint8_t *transmitters_of_types(int types) {
  uint8_t *of_type = NEW(uint8_t, types);
  double missing[N_TRANSMITTERS];
  for (int t = 0; t < N_TRANSMITTERS; t++) missing[t] = transmitter_shares[t];
  for (int k = 0; k < types; k++) {
    int most = 0;
    for (int t = 1; t < N_TRANSMITTERS; t++)
      if (missing[t] > missing[most]) most = t;
    of_type[k] = (uint8_t)most;
    missing[most] -= sqrt((k + 1.0) / types) - sqrt((double)k / types);
  }
  return of_type;
}

static void add_columns(const struct synthetic *o, struct connectome *g) {
  const int64_t n = g->n_nodes;
  uint8_t *of_type = transmitters_of_types(o->types);
  g->n_columns = o->model.modular ? MODULE + 1 : MODULE;
  struct node_column *c = g->column = NEW_ZERO(struct node_column, g->n_columns);
  c[TYPE] = numbered("type", 'T', o->types, n);
  c[SUPERCLASS] = enumeration("superclass", N_CLASSES, class_names, n);
  c[TRANSMITTER] = enumeration("transmitter", N_TRANSMITTERS, transmitter_names, n);
  c[SIGN] = (struct node_column){.name = mem_string("sign"), .i64 = NEW(int64_t, n)};
  if (o->model.modular) c[MODULE] = numbered("module", 'M', generate_n_modules(&o->model), n);
#pragma omp parallel for
  for (int64_t v = 0; v < n; v++) {
    const int type = type_of(o, v);
    c[TYPE].code[v] = (uint32_t)type + 1;
    c[SUPERCLASS].code[v] = (uint32_t)class_of(type) + 1;
    c[TRANSMITTER].code[v] = of_type[type] + 1u;
    c[SIGN].i64[v] = of_type[type] == ACETYLCHOLINE ? 1 : -1;
    if (o->model.modular) c[MODULE].code[v] = (uint32_t)generate_module(&o->model, v) + 1;
  }
  mem_free(of_type);
}

static void add_body_ids(const struct synthetic *o, struct connectome *g) {
  g->body_id = NEW(uint64_t, g->n_nodes);
  for (int64_t v = 0; v < g->n_nodes; v++) {
    const struct rng_block b = rng_draw(o->model.seed, (uint32_t)v, 0, 0, FOR_BODY);
    g->body_id[v] = FIRST_BODY + BODY_GAP * (uint64_t)v + b.v[0] % BODY_GAP;
  }
}

static void add_edges(const struct synthetic *o, struct connectome *g) {
  const eidx n = g->n_edges;
  const int64_t *sign = g->column[SIGN].i64;
  const uint64_t seed = o->model.seed;
  g->source = NEW(uint32_t, n), g->target = NEW(uint32_t, n);
  generate_edges(&o->model, omp_get_max_threads(), g->source, g->target);
  g->count = NEW(uint32_t, n), g->impulse = NEW(int16_t, n);
  g->constant_delay = o->min_delay;
  if (o->min_delay < o->max_delay) g->delay = NEW(uint16_t, n);
#pragma omp parallel for
  for (eidx e = 0; e < n; e++) {
    const uint32_t s = g->source[e], t = g->target[e];
    g->count[e] = generate_count(seed, s, t);
    g->impulse[e] = (int16_t)(sign[s] * (int64_t)g->count[e]);
    if (g->delay) g->delay[e] = generate_delay(seed, s, t, o->min_delay, o->max_delay);
  }
}

void synthetic_make(const struct synthetic *o, struct connectome *g) {
  *g = (struct connectome){.population = mem_string(o->population),
                           .n_nodes = o->model.n_nodes,
                           .n_edges = o->model.n_edges};
  add_body_ids(o, g);
  add_columns(o, g);
  add_edges(o, g);
}
