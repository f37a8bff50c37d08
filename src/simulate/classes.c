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

/* A class in the making: that of `parent`, then what entry `entry` says; BARE: no refractory time.
 */
enum { NO_ENTRY = -1, BARE = -2 };
struct derived {
  int parent, entry;
  json_t *neuron; /* all keys */
  bool bare;
};

struct classes {
  int n, room;
  struct derived *of;
};

static struct status add(struct classes *c, const char *where, struct derived d) {
  if (c->n == LIF_MOST_CLASSES)
    return failure(EXIT_USAGE, "%s: more than %d classes of neurons come about", where,
                   LIF_MOST_CLASSES);
  if (c->n == c->room) c->of = mem_grow(c->of, c->room = 2 * c->room + 8, sizeof *c->of);
  c->of[c->n++] = d;
  return fine();
}

static void free_classes(struct classes *c) {
  for (int k = 0; k < c->n; k++) json_decref(c->of[k].neuron);
  mem_free(c->of);
}

/* The class that `parent` becomes by an entry, made where it is the first. */
static struct status derive(struct classes *c, int parent, int entry, const json_t *keys,
                            const char *where, int *class) {
  for (*class = 0; *class < c->n; ++*class)
    if (c->of[*class].parent == parent && c->of[*class].entry == entry) return fine();
  json_t *neuron = json_copy(c->of[parent].neuron);
  const char *key;
  json_t *value;
  if (keys)
    json_object_foreach((json_t *)keys, key, value) if (strcmp(key, "neurons"))
        json_object_set(neuron, key, value);
  return add(c, where,
             (struct derived){parent, entry, neuron, c->of[parent].bare || entry == BARE});
}

static struct status apply(struct lif_reader *r, struct classes *c, const struct selection *to,
                           int entry, const json_t *keys, const char *where) {
  uint16_t *of = r->config->linear.class_of_node;
  for (int64_t i = 0; i < to->n; i++) {
    int class;
    TRY(derive(c, of[to->node[i]], entry, keys, where, &class));
    of[to->node[i]] = (uint16_t) class;
  }
  return fine();
}

static struct status apply_entry(struct lif_reader *r, struct classes *c, const json_t *entry,
                                 int k) {
  struct selection to = {0};
  char where[LIF_WHERE];
  snprintf(where, sizeof where, "%s: classes[%d]", r->source, k);
  struct status s = lif_take_neurons(r, entry, where, &to);
  if (!s.code) s = apply(r, c, &to, k, entry, where);
  selection_free(&to);
  return s;
}

static struct status apply_all(struct lif_reader *r, struct classes *c, const json_t *json) {
  json_t *list;
  int n;
  TRY(lif_take_list(r, json, "classes", &list, &n));
  for (int k = 0; k < n; k++) TRY(apply_entry(r, c, json_array_get(list, (size_t)k), k));
  for (int k = 0; k < r->config->n_inputs; k++)
    if (r->config->input[k].no_refractory)
      TRY(apply(r, c, &r->config->input[k].neurons, BARE, NULL, r->source));
  return fine();
}

static void where_of(const struct lif_reader *r, const struct derived *d, char *where) {
  if (d->entry >= 0)
    snprintf(where, LIF_WHERE, "%s: classes[%d]", r->source, d->entry);
  else
    snprintf(where, LIF_WHERE, "%s: neuron", r->source);
}

static struct status read_each(struct lif_reader *r, const struct classes *c) {
  struct lif_model_config *m = &r->config->linear;
  char where[LIF_WHERE];
  m->n_classes = c->n;
  m->neuron = NEW_ZERO(struct lif_neuron, c->n), m->bare = NEW_ZERO(bool, c->n);
  for (int k = 0; k < c->n; k++) {
    where_of(r, &c->of[k], where);
    TRY(lif_neuron_read(m->kind, c->of[k].neuron, where, r->config->dt_ms, &m->neuron[k]));
    m->bare[k] = c->of[k].bare;
  }
  return lif_model_build(m->kind, m->neuron, m->bare, c->n, r->config->dt_ms, m->weight, r->source,
                         &m->model, &m->units);
}

struct status lif_read_classes(struct lif_reader *r, const json_t *json) {
  struct lif_model_config *m = &r->config->linear;
  struct classes c = {0};
  json_t *base = json_object_get(json, "neuron");
  if (!json_is_object(base))
    return failure(EXIT_USAGE, "%s: \"neuron\" must be an object { } with the model's parameters",
                   r->source);
  m->class_of_node = NEW_ZERO(uint16_t, r->neurons->n);
  struct status s =
      add(&c, r->source, (struct derived){NO_ENTRY, NO_ENTRY, json_incref(base), false});
  if (!s.code) s = apply_all(r, &c, json);
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
  mem_free(m->neuron), mem_free(m->bare), mem_free(m->class_of_node), mem_free(m->quantile);
  lif_model_free(&m->model);
  *m = (struct lif_model_config){0};
}
