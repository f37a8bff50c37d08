/* The neurons of a model: parameters of all, overridden for classes of neurons. */
#include "config_inside.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>

static const struct config_key class_rows[] = {
    {"neurons", CONFIG_OTHER, .help = "who (NEURONS)"},
    {"...", CONFIG_OTHER, .initially = "",
     .help = "any keys of `neuron`; later entries win, key by key"}};
const struct config_table lif_classes_table = CONFIG_TABLE("Entry of `classes`", class_rows);

enum { NO_ENTRY = -1, BARE = -2 }; /* BARE: no refractory time */

void lif_derived_free(struct lif_derived *d) {
  json_decref(d->neuron), mem_free(d->columns);
}

struct status lif_classes_add(struct lif_classes *c, const char *where, struct lif_derived d) {
  if (c->n == LIF_MOST_CLASSES) {
    lif_derived_free(&d);
    return failure(EXIT_USAGE, "%s: more than %d classes of neurons come about", where,
                   LIF_MOST_CLASSES);
  }
  if (c->n == c->room) c->of = mem_grow(c->of, c->room = 2 * c->room + 8, sizeof *c->of);
  c->of[c->n++] = d;
  return fine();
}

static void free_classes(struct lif_classes *c) {
  for (int k = 0; k < c->n; k++) lif_derived_free(&c->of[k]);
  mem_free(c->of);
}

/* The class that `parent` becomes by an entry, made where it is the first. */
static struct status derive(struct lif_classes *c, int parent, int entry, const json_t *keys,
                            const char *where, int *class) {
  for (*class = 0; *class < c->n; ++*class)
    if (c->of[*class].parent == parent && c->of[*class].entry == entry) return fine();
  json_t *neuron = json_copy(c->of[parent].neuron);
  const char *key;
  json_t *value;
  if (keys)
    json_object_foreach((json_t *)keys, key, value) if (strcmp(key, "neurons"))
        json_object_set(neuron, key, value);
  return lif_classes_add(c, where,
                         (struct lif_derived){.parent = parent,
                                              .entry = entry,
                                              .neuron = neuron,
                                              .bare = c->of[parent].bare || entry == BARE});
}

static struct status apply(struct lif_reader *r, struct lif_classes *c, const struct selection *to,
                           int entry, const json_t *keys, const char *where) {
  uint16_t *of = r->config->linear.class_of_node;
  for (int64_t i = 0; i < to->n; i++) {
    int class;
    TRY(derive(c, of[to->node[i]], entry, keys, where, &class));
    of[to->node[i]] = (uint16_t) class;
  }
  return fine();
}

static struct status apply_entry(struct lif_reader *r, struct lif_classes *c, const json_t *entry,
                                 int k) {
  struct selection to = {0};
  char where[LIF_WHERE];
  snprintf(where, sizeof where, "%s: classes[%d]", r->source, k);
  struct status s = lif_take_neurons(r, entry, where, &to);
  if (!s.code) s = apply(r, c, &to, k, entry, where);
  selection_free(&to);
  return s;
}

static struct status apply_all(struct lif_reader *r, struct lif_classes *c, const json_t *json) {
  json_t *list;
  int n;
  TRY(lif_take_list(r, json, "classes", &list, &n));
  for (int k = 0; k < n; k++) TRY(apply_entry(r, c, json_array_get(list, (size_t)k), k));
  for (int k = 0; k < r->config->n_inputs; k++)
    if (r->config->input[k].no_refractory)
      TRY(apply(r, c, &r->config->input[k].neurons, BARE, NULL, r->source));
  return fine();
}

void lif_class_where(const struct lif_reader *r, const struct lif_derived *d,
                     char where[LIF_WHERE]) {
  char label[64];
  int n = d->entry >= 0 ? snprintf(where, LIF_WHERE, "%s: classes[%d]", r->source, d->entry)
                        : snprintf(where, LIF_WHERE, "%s: neuron", r->source);
  if (!d->columns || n >= LIF_WHERE) return;
  neurons_label(r->neurons, d->node, label);
  snprintf(where + n, (size_t)(LIF_WHERE - n), ", values of neuron %s by column %s", label,
           d->columns);
}

static struct status read_each(struct lif_reader *r, const struct lif_classes *c) {
  struct lif_model_config *m = &r->config->linear;
  char where[LIF_WHERE];
  m->n_classes = c->n;
  m->neuron = NEW_ZERO(struct lif_neuron, c->n), m->bare = NEW_ZERO(bool, c->n);
  for (int k = 0; k < c->n; k++) {
    lif_class_where(r, &c->of[k], where);
    TRY(lif_neuron_read(m->kind, c->of[k].neuron, where, r->config->dt_ms, &m->neuron[k]));
    if (c->of[k].columns) m->neuron[k].where = mem_string(where);
    m->bare[k] = c->of[k].bare;
  }
  return lif_model_build(m->kind, m->neuron, m->bare, c->n, r->config->dt_ms, m->weight, r->source,
                         &m->model, &m->units);
}

struct status lif_read_classes(struct lif_reader *r, const json_t *json) {
  struct lif_model_config *m = &r->config->linear;
  struct lif_classes c = {0};
  json_t *base = json_object_get(json, "neuron");
  if (!json_is_object(base))
    return failure(EXIT_USAGE, "%s: \"neuron\" must be an object { } with the model's parameters",
                   r->source);
  m->n_nodes = r->neurons->n;
  m->class_of_node = NEW_ZERO(uint16_t, m->n_nodes);
  struct status s = lif_classes_add(
      &c, r->source,
      (struct lif_derived){.parent = NO_ENTRY, .entry = NO_ENTRY, .neuron = json_incref(base)});
  if (!s.code) s = apply_all(r, &c, json);
  if (!s.code) s = lif_split_by_columns(r, &c);
  if (!s.code) s = read_each(r, &c);
  free_classes(&c);
  return s;
}

void lif_config_own_classes(struct lif_config *config, lidx n_own, const nodeid *id) {
  if (!config->linear.kind) return;
  uint16_t *class_of = NEW(uint16_t, n_own);
  for (lidx i = 0; i < n_own; i++) class_of[i] = config->linear.class_of_node[id[i]];
  config->linear.model.class_of = class_of;
}

void lif_model_config_free(struct lif_model_config *m) {
  for (int k = 0; m->neuron && k < m->n_classes; k++) mem_free(m->neuron[k].where);
  for (int i = 0; i < m->n_columns; i++) mem_free(m->column[i].name), mem_free(m->column[i].value);
  mem_free(m->column);
  mem_free(m->neuron), mem_free(m->bare), mem_free(m->class_of_node), mem_free(m->quantile);
  lif_model_free(&m->model);
  *m = (struct lif_model_config){0};
}
