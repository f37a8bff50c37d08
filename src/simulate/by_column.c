/* Parameters of neurons that node columns of the graph give: neurons with equal values become one
 * class. */
#include "config_inside.h"
#include "core/digest.h"
#include "core/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

static struct lif_column *find(const struct lif_model_config *m, const char *name) {
  for (int i = 0; i < m->n_columns; i++)
    if (!strcmp(m->column[i].name, name)) return &m->column[i];
  return NULL;
}

/* The values of a column, read at its first use. */
static struct status column_values(struct lif_reader *r, const char *name, const char *where,
                                   const double **value) {
  struct lif_model_config *m = &r->config->linear;
  struct lif_column *c = find(m, name);
  if (!c) {
    double *read;
    struct sha256 hash;
    TRY(neurons_numbers(r->neurons, name, where, &read));
    m->column = mem_grow(m->column, m->n_columns + 1, sizeof *m->column);
    c = &m->column[m->n_columns++];
    *c = (struct lif_column){.name = mem_string(name), .value = read};
    sha256_init(&hash);
    sha256_add(&hash, read, (size_t)r->neurons->n * sizeof *read);
    sha256_end(&hash, c->digest);
  }
  *value = c->value;
  return fine();
}

static void drop_values(struct lif_model_config *m) {
  for (int i = 0; i < m->n_columns; i++) mem_free(m->column[i].value), m->column[i].value = NULL;
}

/* ---- references: {"column": NAME} in place of a number ---- */

struct reference {
  const char *key, *inner; /* "adaptation" and a key of it, or a key and NULL; key NULL: none */
  const char *column;
  const double *value; /* [nodes] */
};

static const char *column_of(const json_t *value) {
  return json_object_size(value) == 1 ? json_string_value(json_object_get(value, "column")) : NULL;
}

/* The first one among the parameters of a class. The texts belong to `neuron`. */
static struct reference reference_of(const json_t *neuron) {
  const char *key, *inner;
  json_t *value, *part;
  json_object_foreach((json_t *)neuron, key, value) {
    if (column_of(value)) return (struct reference){.key = key, .column = column_of(value)};
    if (strcmp(key, "adaptation")) continue;
    json_object_foreach(value, inner, part) if (column_of(part)) return (struct reference){
        .key = key, .inner = inner, .column = column_of(part)};
  }
  return (struct reference){0};
}

static struct status find_references(struct lif_reader *r, const struct lif_classes *c,
                                     struct reference *ref, bool *some) {
  char where[LIF_WHERE];
  *some = false;
  for (int k = 0; k < c->n; k++) {
    ref[k] = c->of[k].empty ? (struct reference){0} : reference_of(c->of[k].neuron);
    if (!ref[k].key) continue;
    lif_class_where(r, &c->of[k], where);
    TRY(column_values(r, ref[k].column, where, &ref[k].value));
    *some = true;
  }
  return fine();
}

/* Parameters with a number in place of the reference: a new object. */
static json_t *with_number(const json_t *neuron, const struct reference *ref, double number) {
  json_t *copy = json_copy((json_t *)neuron), *to = copy;
  if (ref->inner) {
    to = json_copy(json_object_get(neuron, ref->key));
    json_object_set_new(copy, ref->key, to);
  }
  json_object_set_new(to, ref->inner ? ref->inner : ref->key, json_real(number));
  return copy;
}

/* ---- splitting ---- */

/* A neuron whose class has a reference. */
struct member {
  int class;
  nodeid node;
  double value;
};

static int by_value(const void *a, const void *b) {
  const struct member *x = a, *y = b;
  if (x->class != y->class) return x->class < y->class ? -1 : 1;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

static struct status no_value(const struct lif_reader *r, const struct lif_classes *c,
                              const struct reference *ref, const struct member *m) {
  char where[LIF_WHERE], label[64];
  lif_class_where(r, &c->of[m->class], where);
  neurons_label(r->neurons, m->node, label);
  return failure(EXIT_USAGE,
                 "%s: \"%s\" by column \"%s\": neuron %s has no value in %s; give it one by an "
                 "entry of \"classes\", or in the node table",
                 where, ref->inner ? ref->inner : ref->key, ref->column, label,
                 connectome_path(r->neurons->file));
}

/* The neurons of all classes with a reference, sorted by value: *member [returned n]. */
static struct status list_members(const struct lif_reader *r, const struct lif_classes *c,
                                  const struct reference *ref, struct member **member, int64_t *n) {
  const uint16_t *of = r->config->linear.class_of_node;
  *member = NEW(struct member, r->neurons->n);
  *n = 0;
  for (nodeid v = 0; v < r->neurons->n; v++) {
    if (!ref[of[v]].key) continue;
    const struct member m = {of[v], v, ref[of[v]].value[v]};
    if (!isfinite(m.value)) return no_value(r, c, &ref[m.class], &m);
    (*member)[(*n)++] = m;
  }
  if (*n) qsort(*member, (size_t)*n, sizeof **member, by_value);
  return fine();
}

/* The class of a group that begins with member m. */
static struct lif_derived group_of(const struct lif_derived *parent, const struct reference *ref,
                                   const struct member *m) {
  struct lif_derived d = *parent;
  char columns[200];
  snprintf(columns, sizeof columns, "%s%s\"%.60s\"", parent->columns ? parent->columns : "",
           parent->columns ? ", " : "", ref->column);
  d.neuron = with_number(parent->neuron, ref, m->value);
  d.columns = mem_string(columns), d.node = m->node;
  return d;
}

/* Every group of equal values becomes a class; the first of a class takes its number. `old`: the
 * classes as they were. */
static struct status make_groups(struct lif_reader *r, struct lif_classes *c,
                                 const struct lif_derived *old, const struct reference *ref,
                                 const struct member *m, int64_t n) {
  uint16_t *of = r->config->linear.class_of_node;
  int class = 0;
  for (int64_t i = 0; i < n; i++) {
    const bool begins = i == 0 || m[i].class != m[i - 1].class;
    if (begins || m[i].value != m[i - 1].value) {
      const struct lif_derived d = group_of(&old[m[i].class], &ref[m[i].class], &m[i]);
      class = begins ? m[i].class : c->n;
      if (begins)
        c->of[class] = d;
      else
        TRY(lif_classes_add(c, r->source, d));
    }
    of[m[i].node] = (uint16_t) class;
  }
  return fine();
}

/* One reference of each class that has some. */
static struct status split_once(struct lif_reader *r, struct lif_classes *c,
                                const struct reference *ref) {
  const int n_old = c->n;
  struct member *member;
  int64_t n;
  struct status s = list_members(r, c, ref, &member, &n);
  struct lif_derived *old = NEW(struct lif_derived, n_old);
  memcpy(old, c->of, (size_t)n_old * sizeof *old);
  for (int k = 0; k < n_old && !s.code; k++) c->of[k].empty |= ref[k].key != NULL;
  if (!s.code) s = make_groups(r, c, old, ref, member, n);
  for (int k = 0; k < n_old; k++)
    if (c->of[k].neuron != old[k].neuron) json_decref(old[k].neuron), mem_free(old[k].columns);
  mem_free(old), mem_free(member);
  return s;
}

/* Classes with references that no neuron is of go. */
static struct status drop_empty(struct lif_reader *r, struct lif_classes *c) {
  uint16_t *to = NEW(uint16_t, c->n), *of = r->config->linear.class_of_node;
  int n = 0;
  for (int k = 0; k < c->n; k++) {
    to[k] = (uint16_t)n;
    if (c->of[k].empty)
      lif_derived_free(&c->of[k]);
    else
      c->of[n++] = c->of[k];
  }
  c->n = n;
  for (nodeid v = 0; v < r->neurons->n; v++) of[v] = to[of[v]];
  mem_free(to);
  return n ? fine() : failure(EXIT_USAGE, "%s: the graph has no neurons", r->source);
}

struct status lif_split_by_columns(struct lif_reader *r, struct lif_classes *c) {
  struct status s = fine();
  for (bool some = true; some && !s.code;) {
    struct reference *ref = NEW(struct reference, c->n);
    s = find_references(r, c, ref, &some);
    if (!s.code && some) s = split_once(r, c, ref);
    mem_free(ref);
  }
  drop_values(&r->config->linear);
  return s.code ? s : drop_empty(r, c);
}
