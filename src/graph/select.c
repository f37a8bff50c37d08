/* Neurons chosen by ids, names, labels or indices. */
#include "select.h"
#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

/* Columns of labels and of numbers apart. */
static void list_names(struct neurons *neurons) {
  char **name = connectome_column_names(neurons->file);
  int n = 0, n_labels = 0, n_numbers = 0;
  while (name[n]) n++;
  neurons->column = NEW_ZERO(char *, n + 1), neurons->number = NEW_ZERO(char *, n + 1);
  for (int i = 0; i < n; i++)
    if (connectome_has_labels(neurons->file, name[i]))
      neurons->column[n_labels++] = name[i];
    else
      neurons->number[n_numbers++] = name[i];
  mem_free(name);
}

static void free_names(char **names) {
  for (char **name = names; name && *name; name++) mem_free(*name);
  mem_free(names);
}

void neurons_load(struct connectome_file *file, struct neurons *neurons) {
  const struct connectome_facts *facts = connectome_facts(file);
  *neurons = (struct neurons){.n = facts->n_nodes, .body_id = NEW(uint64_t, facts->n_nodes)};
  snprintf(neurons->population, sizeof neurons->population, "%s", facts->population);
  connectome_body_ids(file, 0, neurons->n, neurons->body_id);
  if (facts->has_names) neurons->name = connectome_names(file);
  connectome_column(file, "type", &neurons->type);
  neurons->file = file;
  list_names(neurons);
}

void neurons_free(struct neurons *neurons) {
  for (int64_t i = 0; neurons->name && i < neurons->n; i++) mem_free(neurons->name[i]);
  mem_free(neurons->name), mem_free(neurons->body_id);
  node_column_free(&neurons->type);
  free_names(neurons->column), free_names(neurons->number);
  *neurons = (struct neurons){0};
}

void neurons_label(const struct neurons *neurons, nodeid node, char text[64]) {
  if (neurons->name)
    snprintf(text, 64, "%s", neurons->name[node]);
  else
    snprintf(text, 64, "%llu", (unsigned long long)neurons->body_id[node]);
}

void selection_free(struct selection *selection) {
  mem_free(selection->node);
  *selection = (struct selection){0};
}

/* ---- names that no neuron has ---- */

static void add_unknown(struct unknown *unknown, const char *kind, const json_t *value,
                        const char *where) {
  char *shown = json_line(value);
  const size_t at = strlen(unknown->text);
  char item[256];
  const char *entry = strstr(where, ": "); /* the configuration's own name is said once, in front */
  snprintf(item, sizeof item, "%s%s %.100s (%s)", unknown->n ? ", " : "", kind, shown,
           entry ? entry + 2 : where);
  if (at + strlen(item) + 5 < sizeof unknown->text)
    strcpy(unknown->text + at, item);
  else if (at >= 4 && strcmp(unknown->text + at - 3, "..."))
    strcpy(unknown->text + at, " ...");
  unknown->n++;
  free(shown);
}

struct status unknown_status(const struct unknown *unknown, const char *source) {
  if (unknown->n == 0) return fine();
  return failure(EXIT_USAGE,
                 "%s: the graph has no neuron of %s: %s; `fascicle inspect` shows what it holds",
                 source, unknown->n == 1 ? "this name" : "these names", unknown->text);
}

/* ---- one key of a SELECT ---- */

struct chooser {
  const struct neurons *neurons;
  const char *where;
  struct unknown *unknown;
  uint8_t *chosen; /* [n] */
};

static struct status choose_body_id(struct chooser *c, const json_t *value) {
  uint64_t id;
  TRY(json_big_id(value, c->where, &id));
  int64_t low = 0, high = c->neurons->n; /* first body id >= id */
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (c->neurons->body_id[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < c->neurons->n && c->neurons->body_id[low] == id)
    c->chosen[low] = 1;
  else
    add_unknown(c->unknown, "body id", value, c->where);
  return fine();
}

static struct status choose_name(struct chooser *c, const json_t *value) {
  if (!json_is_string(value)) return failure(EXIT_USAGE, "%s: names must be strings", c->where);
  int64_t low = 0, high = c->neurons->n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (strcmp(c->neurons->name[middle], json_string_value(value)) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < c->neurons->n && !strcmp(c->neurons->name[low], json_string_value(value)))
    c->chosen[low] = 1;
  else
    add_unknown(c->unknown, "name", value, c->where);
  return fine();
}

static struct status choose_label(struct chooser *c, const struct node_column *column,
                                  const char *kind, const json_t *value) {
  if (!json_is_string(value)) return failure(EXIT_USAGE, "%s: %ss must be strings", c->where, kind);
  int64_t found = 0;
  for (int label = 0; label < column->n_labels; label++) {
    if (strcmp(column->label[label], json_string_value(value))) continue;
    for (int64_t i = 0; i < c->neurons->n; i++)
      if (column->code[i] == (uint32_t)label) c->chosen[i] = 1, found++;
  }
  if (!found) add_unknown(c->unknown, kind, value, c->where);
  return fine();
}

static struct status choose_type(struct chooser *c, const json_t *value) {
  return choose_label(c, &c->neurons->type, "type", value);
}

static struct status choose_index(struct chooser *c, const json_t *value) {
  if (!json_is_integer(value)) return failure(EXIT_USAGE, "%s: indices must be integers", c->where);
  const int64_t i = json_integer_value(value);
  if (i >= 0 && i < c->neurons->n)
    c->chosen[i] = 1;
  else
    add_unknown(c->unknown, "index", value, c->where);
  return fine();
}

static const struct {
  const char *key;
  struct status (*choose)(struct chooser *c, const json_t *value);
} rules[] = {{"body_ids", choose_body_id},
             {"names", choose_name},
             {"types", choose_type},
             {"indices", choose_index}};
enum { N_RULES = sizeof rules / sizeof *rules };

/* The columns that neurons can be chosen by, for a message: "side, superclass", or "none". */
static void list_columns(const struct neurons *neurons, char *list, size_t size) {
  size_t at = 0;
  snprintf(list, size, "none");
  for (char **name = neurons->column; name && *name && at < size; name++)
    at += (size_t)snprintf(list + at, size - at, "%s%s", at ? ", " : "", *name);
}

static struct status no_column(const struct chooser *c, const char *key) {
  char list[400];
  list_columns(c->neurons, list, sizeof list);
  if (!strcmp(key, "types"))
    return failure(EXIT_USAGE,
                   "%s: \"types\": the graph has no column \"type\"; columns that it has: %s (each "
                   "can be a key, as in {\"superclass\": [\"motor\"]})",
                   c->where, list);
  return failure(
      EXIT_USAGE,
      "%s: unknown key \"%s\": neurons are chosen by body_ids, names, types, indices, or "
      "a column of labels; columns that the graph has: %s",
      c->where, key, list);
}

static struct status holds_numbers(const struct chooser *c, const char *key) {
  char list[400];
  list_columns(c->neurons, list, sizeof list);
  return failure(EXIT_USAGE,
                 "%s: column \"%s\" of the graph holds numbers; neurons are chosen by labels; "
                 "columns of labels that it has: %s",
                 c->where, key, list);
}

static bool has_name(char **names, const char *key) {
  for (char **name = names; name && *name; name++)
    if (!strcmp(*name, key)) return true;
  return false;
}

/* A key that is a column of the graph. */
static struct status choose_by_column(struct chooser *c, const char *key, const json_t *list) {
  struct node_column column = {0};
  if (has_name(c->neurons->number, key)) return holds_numbers(c, key);
  if (!has_name(c->neurons->column, key)) return no_column(c, key);
  if (!json_is_array(list))
    return failure(EXIT_USAGE, "%s: \"%s\" must be a list [ ]", c->where, key);
  connectome_column(c->neurons->file, key, &column);
  struct status s = column.code ? fine() : no_column(c, key);
  for (size_t i = 0; i < json_array_size(list) && !s.code; i++)
    s = choose_label(c, &column, key, json_array_get(list, i));
  node_column_free(&column);
  return s;
}

static bool is_rule(const char *key) {
  for (int rule = 0; rule < N_RULES; rule++)
    if (!strcmp(rules[rule].key, key)) return true;
  return false;
}

static struct status choose_by_key(struct chooser *c, const json_t *select, int rule) {
  const json_t *list = json_object_get(select, rules[rule].key);
  if (!list) return fine();
  if (!json_is_array(list))
    return failure(EXIT_USAGE, "%s: \"%s\" must be a list [ ]", c->where, rules[rule].key);
  if (rules[rule].choose == choose_name && !c->neurons->name)
    return failure(EXIT_USAGE,
                   "%s: the neurons of this graph have numbers, not names; use body_ids", c->where);
  if (rules[rule].choose == choose_body_id && c->neurons->name)
    return failure(EXIT_USAGE, "%s: the neurons of this graph have names, not numbers; use names",
                   c->where);
  if (rules[rule].choose == choose_type && !c->neurons->type.code) return no_column(c, "types");
  for (size_t i = 0; i < json_array_size(list); i++)
    TRY(rules[rule].choose(c, json_array_get(list, i)));
  return fine();
}

/* ---- a whole SELECT ---- */

static struct status choose(struct chooser *c, const json_t *select) {
  if (json_is_string(select) && !strcmp(json_string_value(select), "all")) {
    memset(c->chosen, 1, (size_t)c->neurons->n);
    return fine();
  }
  if (!json_is_object(select) || json_object_size(select) == 0)
    return failure(
        EXIT_USAGE,
        "%s: neurons are chosen by \"all\" or an object with body_ids, names, types, indices or "
        "columns of labels",
        c->where);
  const char *key;
  json_t *list;
  json_object_foreach((json_t *)select, key, list) if (!is_rule(key))
      TRY(choose_by_column(c, key, list));
  for (int rule = 0; rule < N_RULES; rule++) TRY(choose_by_key(c, select, rule));
  return fine();
}

static void list_chosen(const struct chooser *c, struct selection *selection) {
  for (int64_t i = 0; i < c->neurons->n; i++) selection->n += c->chosen[i];
  selection->node = NEW(nodeid, selection->n);
  for (int64_t i = 0, at = 0; i < c->neurons->n; i++)
    if (c->chosen[i]) selection->node[at++] = i;
}

struct status select_neurons(const struct neurons *neurons, const json_t *select, const char *where,
                             struct unknown *unknown, struct selection *selection) {
  *selection = (struct selection){0};
  struct chooser c = {neurons, where, unknown, NEW_ZERO(uint8_t, neurons->n + 1)};
  const struct status s = choose(&c, select);
  if (!s.code) list_chosen(&c, selection);
  mem_free(c.chosen);
  return s;
}
