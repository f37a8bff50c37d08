/* The node table and the transmitter table. */
#include "convert.h"
#include "core/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct node_labels *nodes_column(struct nodes *nodes, const char *name) {
  for (int i = 0; i < nodes->n_columns; i++)
    if (!strcmp(nodes->column[i].name, name)) return &nodes->column[i];
  return NULL;
}

/* The label of one node: a counted string. */
static char *label_of(const struct node_labels *column, uint32_t index) {
  return ids_text(&column->labels, column->code[index]);
}

static struct node_labels *add_column(struct nodes *nodes, const char *name) {
  nodes->column = mem_grow(nodes->column, nodes->n_columns + 1, sizeof *nodes->column);
  struct node_labels *c = &nodes->column[nodes->n_columns++];
  *c = (struct node_labels){.name = mem_string(name)};
  ids_init(&c->labels, true);
  ids_name(&c->labels, "", 0, true); /* label 0: missing */
  return c;
}

static void push_code(struct node_labels *c, uint32_t code) {
  if (c->n == c->capacity) {
    c->capacity = c->capacity ? 2 * c->capacity : 1024;
    c->code = mem_grow(c->code, c->capacity, sizeof *c->code);
  }
  c->code[c->n++] = code;
}

/* Values for all of n ids: those that are new have none. */
static void fill_column(struct node_labels *c, int64_t n) {
  if (c->number && c->n < n) c->number = mem_grow(c->number, n, sizeof *c->number);
  while (c->number && c->n < n) c->number[c->n++] = NAN;
  while (c->n < n) push_code(c, 0);
}

void nodes_fill(struct nodes *nodes) {
  const int64_t n = nodes->ids.n;
  for (int i = 0; i < nodes->n_columns; i++) fill_column(&nodes->column[i], n);
  if (nodes->n_flags == n) return;
  nodes->is_node = mem_grow(nodes->is_node, n, sizeof *nodes->is_node);
  memset(nodes->is_node + nodes->n_flags, true, (size_t)(n - nodes->n_flags));
  nodes->n_flags = n;
}

static void free_column(struct node_labels *c) {
  ids_free(&c->labels);
  mem_free(c->name), mem_free(c->code), mem_free(c->number);
}

void nodes_free(struct nodes *nodes) {
  for (int i = 0; i < nodes->n_columns; i++) free_column(&nodes->column[i]);
  ids_free(&nodes->ids);
  mem_free(nodes->column), mem_free(nodes->is_node);
  *nodes = (struct nodes){0};
}

/* ---- reading a table keyed by id ---- */

/* A table whose rows give one code per column to the id in its first wanted column. */
struct keyed {
  const struct convert_options *o;
  struct nodes *nodes;
  struct table *table;
  struct input_account *account;
  int first_column, n_columns;       /* in nodes->column */
  int n_labels;                      /* text columns wanted after the id */
  int n_chosen;                      /* of n_columns: these decide whether a row repeats another */
  bool fall_back;                    /* one column, from the first label that is not empty */
  bool may_add;                      /* ids that are not known become nodes */
  bool *seen;                        /* [ids.n], when nothing is added */
  int same, other, unknown, similar; /* reasons */
};

/* Columns of labels that one table gives, at most; want and code arrays are of this size. */
enum { MAX_LABELS = 4096 };

static uint32_t code_of(struct keyed *k, const struct table_batch *b, int column, int64_t row) {
  struct ids *labels = &k->nodes->column[k->first_column + column].labels;
  uint32_t code = 0;
  for (int l = k->fall_back ? 0 : column; l < (k->fall_back ? k->n_labels : column + 1) && !code;
       l++) {
    const struct span s = table_text(&b->column[1 + l], row);
    code = ids_name(labels, s.at, s.n, true);
  }
  return code;
}

static struct status differing(const struct keyed *k, uint32_t index, int64_t row, int column,
                               uint32_t code) {
  const struct node_labels *c = &k->nodes->column[k->first_column + column];
  char *id = ids_text(&k->nodes->ids, index), *old = label_of(c, index),
       *new = ids_text(&c->labels, code);
  const struct status s = failure(EXIT_INPUT,
                                  "%s: row %lld: id %s occurs again with %s '%s', before it was "
                                  "'%s'; choose with --repeated-ids "
                                  "first or last",
                                  table_path(k->table), (long long)row, id, c->name, new, old);
  mem_free(id), mem_free(old), mem_free(new);
  return s;
}

/* A repeat that differs only in labels that nobody chose. */
static struct status take_similar(struct keyed *k, uint32_t index, const uint32_t *code) {
  const bool last = !strcmp(k->o->repeated_ids, "last");
  if (k->similar < 0)
    k->similar = account_reason(k->account,
                                "repeat of an id that differs only in labels that were not chosen; "
                                "the %s row was taken",
                                last ? "last" : "first");
  k->account->reason[k->similar].rows++;
  for (int c = 0; last && c < k->n_columns; c++)
    k->nodes->column[k->first_column + c].code[index] = code[c];
  return fine();
}

/* A row for an id that already has codes. */
static struct status take_repeat(struct keyed *k, uint32_t index, int64_t row,
                                 const uint32_t *code) {
  int differs = -1;
  for (int c = k->n_columns - 1; c >= 0; c--)
    if (k->nodes->column[k->first_column + c].code[index] != code[c]) differs = c;
  if (differs < 0) return k->account->reason[k->same].rows++, fine();
  if (differs >= k->n_chosen) return take_similar(k, index, code);
  const char *policy = k->o->repeated_ids;
  if (!strcmp(policy, "refuse")) return differing(k, index, row, differs, code[differs]);
  if (k->other < 0)
    k->other =
        account_reason(k->account, "the id occurs with other values; the %s row was taken", policy);
  k->account->reason[k->other].rows++;
  if (!strcmp(policy, "last"))
    for (int c = 0; c < k->n_columns; c++)
      k->nodes->column[k->first_column + c].code[index] = code[c];
  return fine();
}

static struct status take_keyed_row(struct keyed *k, const struct table_batch *b, int64_t i) {
  struct ids *ids = &k->nodes->ids;
  const int64_t before = ids->n;
  uint32_t index, code[MAX_LABELS];
  if (ids->names) {
    const struct span s = span_trim(table_text(&b->column[0], i));
    if (!s.n)
      return failure(EXIT_INPUT, "%s: row %lld: the id is empty", table_path(k->table),
                     (long long)(b->first_row + i));
    const struct span raw = table_text(&b->column[0], i);
    index = ids_name(ids, raw.at, raw.n, k->may_add);
  } else {
    index = ids_number(ids, b->column[0].id[i], k->may_add);
  }
  if (index == NO_INDEX || (!k->may_add && !k->nodes->is_node[index]))
    return k->account->reason[k->unknown].rows++, fine();
  for (int c = 0; c < k->n_columns; c++) code[c] = code_of(k, b, c, i);
  if (k->may_add ? ids->n == before : k->seen[index])
    return take_repeat(k, index, b->first_row + i, code);
  for (int c = 0; c < k->n_columns; c++) {
    struct node_labels *column = &k->nodes->column[k->first_column + c];
    if (k->may_add)
      push_code(column, code[c]);
    else
      column->code[index] = code[c];
  }
  if (!k->may_add) k->seen[index] = true;
  k->account->kept++;
  return fine();
}

static struct status read_keyed(struct keyed *k, const char *what) {
  struct progress progress = progress_start(what, "bytes", 0, table_facts(k->table)->bytes);
  k->same = account_reason(k->account, "identical repeat of an id");
  k->other = k->similar = -1;
  struct table_batch b = {.n = 1};
  while (b.n) {
    TRY(next_batch(k->table, &b, &progress));
    for (int64_t i = 0; i < b.n; i++) TRY(take_keyed_row(k, &b, i));
  }
  account_table(k->account, k->table);
  return fine();
}

/* ---- the node table ---- */

/* A name that a column of the graph cannot have. */
static bool is_taken(const char *name) {
  return !*name || !strcmp(name, "sign") || !strcmp(name, ".") || !strcmp(name, "..") ||
         is_reserved_column(name) || strchr(name, '/');
}

static struct status choose_named(struct keyed *k, const struct column_choices *choices,
                                  struct table_want *want, int *n) {
  for (int i = 1; i < choices->n; i++) {
    const struct column_choice *c = &choices->item[i];
    if (is_taken(c->key))
      return failure(
          EXIT_USAGE,
          "--%s: the name '%s' is taken by the file format; choose another, such as cell_%s",
          choices->option, c->key, c->key);
    TRY(choice_find(c, k->table, choices->option, false, &want[*n].column));
    if (want[*n].column < 0) continue;
    want[(*n)++].kind = TABLE_TEXT;
    add_column(k->nodes, c->key);
    json_object_set_new(k->account->columns, c->key,
                        json_string(table_column_name(k->table, want[*n - 1].column)));
  }
  return fine();
}

/* Is a column already wanted, or its name given to another? "transmitter" gives signs only where it
 * is asked for. */
static bool is_spoken_for(struct keyed *k, const struct table_want *want, int n, int column) {
  const char *name = table_column_name(k->table, column);
  for (int i = 0; i < n; i++)
    if (want[i].column == column) return true;
  return nodes_column(k->nodes, name) || !strcmp(name, "transmitter");
}

/* Every further column that may hold labels or numbers; drop_others looks at what they hold. */
static struct status choose_others(struct keyed *k, struct table_want *want, int *n) {
  for (int i = 0; i < table_n_columns(k->table); i++) {
    const char *name = table_column_name(k->table, i);
    if (is_taken(name) || !table_may_keep(k->table, i) || is_spoken_for(k, want, *n, i)) continue;
    if (*n == MAX_LABELS)
      return failure(EXIT_INPUT,
                     "%s: has more than %d columns of labels; choose with --node-columns and "
                     "--labels named",
                     table_path(k->table), MAX_LABELS - 1);
    want[(*n)++] = (struct table_want){i, TABLE_TEXT};
    add_column(k->nodes, name);
  }
  return fine();
}

static struct status choose_node_columns(struct keyed *k, struct column_choices *choices) {
  struct table_want want[MAX_LABELS];
  int n = 1;
  want[0].kind = k->nodes->ids.names ? TABLE_TEXT : TABLE_ID;
  TRY(choice_find(&choices->item[0], k->table, choices->option, true, &want[0].column));
  json_object_set_new(k->account->columns, "id",
                      json_string(table_column_name(k->table, want[0].column)));
  k->first_column = k->nodes->n_columns;
  TRY(choose_named(k, choices, want, &n));
  k->n_chosen = n - 1;
  if (table_has_header(k->table) && strcmp(k->o->labels, "named")) TRY(choose_others(k, want, &n));
  k->n_labels = k->n_columns = n - 1;
  return table_select(k->table, want, n);
}

static struct span label_at(const struct node_labels *c, int64_t l) {
  return (struct span){c->labels.text + c->labels.at[l], c->labels.at[l + 1] - c->labels.at[l]};
}

/* Labels repeat, and not all of them are numbers. */
static bool holds_labels(const struct node_labels *c) {
  enum { FEW = 1000 };
  int64_t rows = 0;
  for (int64_t i = 0; i < c->n; i++) rows += c->code[i] != 0;
  if (c->labels.n - 1 > FEW && 2 * (c->labels.n - 1) > rows) return false;
  for (int64_t l = 1; l < c->labels.n; l++) {
    if (!span_is_number(label_at(c, l))) return true;
  }
  return false;
}

/* The number that a label stands for; "" and what other programs write for no number: NAN. False:
 * none, or an integer that a double cannot hold. */
static bool number_of(struct span s, double *x) {
  static const char *const none[] = {"nan", "NaN", "NA"};
  int64_t whole;
  if (!s.n) return *x = NAN, true;
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    if (s.n == (int64_t)strlen(none[i]) && !memcmp(s.at, none[i], (size_t)s.n))
      return *x = NAN, true;
  if (!span_real(s, x)) return false;
  for (int64_t i = 0; i < s.n; i++)
    if (strchr(".eE", s.at[i])) return true;
  return fabs(*x) < 0x1p53 || (!span_count(s, &whole) && fabs(*x) < 0x1p62 && (int64_t)*x == whole);
}

/* Turn a column of nothing but numbers, one at least, into numbers. */
static bool take_numbers(struct node_labels *c) {
  const int64_t n_labels = c->labels.n;
  double *value = NEW(double, n_labels);
  bool all = true, some = false;
  for (int64_t l = 0; l < n_labels && all; l++) {
    all = number_of(span_trim(label_at(c, l)), &value[l]);
    some |= all && !isnan(value[l]);
  }
  if (all && some) {
    c->number = NEW(double, c->n);
    for (int64_t i = 0; i < c->n; i++) c->number[i] = value[c->code[i]];
    mem_free(c->code), ids_free(&c->labels);
    c->code = NULL, c->capacity = 0;
  }
  mem_free(value);
  return all && some;
}

/* Of the columns that nobody chose those stay that hold labels, or numbers. */
static void drop_others(struct keyed *k) {
  struct nodes *nodes = k->nodes;
  const int first = k->first_column + k->n_chosen;
  int n = first;
  for (int i = first; i < k->first_column + k->n_columns; i++) {
    struct node_labels *c = &nodes->column[i];
    if (take_numbers(c) || holds_labels(c)) {
      json_object_set_new(k->account->columns, c->name, json_string(c->name));
      nodes->column[n++] = *c;
      continue;
    }
    if (!k->account->left_out) k->account->left_out = json_array();
    json_array_append_new(k->account->left_out, json_string(c->name));
    free_column(c);
  }
  nodes->n_columns = n;
}

/* Superclass or status decides; the label must have been read. */
static struct status apply_rule(const struct convert_options *o, struct keyed *k) {
  struct nodes *nodes = k->nodes;
  nodes_fill(nodes);
  const bool traced = !strcmp(o->node_rule, "traced");
  if (!traced && strcmp(o->node_rule, "superclass")) return fine();
  const char *name = traced ? "status" : "superclass";
  struct node_labels *column = nodes_column(nodes, name);
  if (!column)
    return failure(
        EXIT_USAGE,
        "%s: --node-rule %s needs the column '%s', which the table does not have; name it: "
        "--node-columns %s=COLUMN",
        table_path(k->table), o->node_rule, name, name);
  const uint32_t wanted = traced ? ids_name(&column->labels, "Traced", 6, false) : 0;
  const int reason = account_reason(k->account, traced ? "status is not Traced" : "no superclass");
  for (int64_t i = 0; i < nodes->ids.n; i++) {
    nodes->is_node[i] = traced ? column->code[i] == wanted : column->code[i] != 0;
    if (nodes->is_node[i]) continue;
    k->account->kept--;
    k->account->reason[reason].rows++;
  }
  if (k->account->kept == 0)
    return failure(EXIT_INPUT, "%s: none of its %lld rows is a neuron by --node-rule %s",
                   table_path(k->table), (long long)table_facts(k->table)->rows, o->node_rule);
  return fine();
}

static struct status read_nodes(const struct convert_options *o, struct keyed *k,
                                struct column_choices *choices) {
  const struct column_default column[] = {{"id", "bodyId|root_id", "1", !k->nodes->ids.names},
                                          {"type", "type|primary_type", NULL, false},
                                          {"side", "somaSide|side", NULL, false},
                                          {"superclass", "superclass|super_class", NULL, false},
                                          {"status", "status", NULL, false}};
  const struct table_input input = {
      .path = o->nodes,
      .format = {o->node_delimiter, o->node_header, "--node-delimiter", "--node-header"},
      .option = "node-columns",
      .columns = o->node_columns,
      .column = column,
      .n_columns = sizeof column / sizeof *column,
      .open = true};
  TRY(table_open_input(&input, &k->table, choices));
  TRY(choose_node_columns(k, choices));
  TRY(read_keyed(k, "nodes"));
  drop_others(k);
  return apply_rule(o, k);
}

struct status nodes_read(const struct convert_options *o, struct nodes *nodes,
                         struct account *account) {
  struct keyed k = {
      .o = o, .nodes = nodes, .may_add = true, .account = account_input(account, "nodes")};
  struct column_choices choices = {0};
  const struct status s = read_nodes(o, &k, &choices);
  choices_free(&choices);
  table_close(k.table);
  return s;
}

/* ---- the transmitter table ---- */

static struct status choose_label_columns(struct keyed *k, struct column_choices *choices) {
  struct table_want want[MAX_CHOICES];
  int n = 0;
  for (int i = 0; i < choices->n; i++) {
    TRY(choice_find(&choices->item[i], k->table, choices->option, i < 2, &want[n].column));
    if (want[n].column < 0) continue;
    want[n++].kind = i || k->nodes->ids.names ? TABLE_TEXT : TABLE_ID;
    json_object_set_new(k->account->columns, choices->item[i].key,
                        json_string(table_column_name(k->table, want[n - 1].column)));
  }
  k->n_labels = n - 1;
  k->n_columns = k->n_chosen = 1;
  k->fall_back = true;
  k->first_column = k->nodes->n_columns;
  add_column(k->nodes, "transmitter");
  nodes_fill(k->nodes);
  return table_select(k->table, want, n);
}

static struct status read_transmitters(const struct convert_options *o, struct keyed *k,
                                       struct column_choices *choices) {
  const struct column_default column[] = {{"id", "body|bodyId|root_id", "1", !k->nodes->ids.names},
                                          {"label", "consensus_nt|consensusNt|nt_type", "2", false},
                                          {"label2", NULL, NULL, false},
                                          {"label3", NULL, NULL, false}};
  const struct table_input input = {.path = o->transmitters,
                                    .format = {o->transmitter_delimiter, o->transmitter_header,
                                               "--transmitter-delimiter", "--transmitter-header"},
                                    .option = "transmitter-columns",
                                    .columns = o->transmitter_columns,
                                    .column = column,
                                    .n_columns = sizeof column / sizeof *column};
  TRY(table_open_input(&input, &k->table, choices));
  TRY(choose_label_columns(k, choices));
  k->unknown = account_reason(k->account, "no such node");
  k->seen = NEW_ZERO(bool, k->nodes->ids.n);
  return read_keyed(k, "transmitters");
}

struct status transmitters_read(const struct convert_options *o, struct nodes *nodes,
                                struct account *account) {
  if (nodes_column(nodes, "transmitter"))
    return failure(EXIT_USAGE,
                   "--transmitters: --node-columns already names a transmitter column; give one");
  struct keyed k = {.o = o, .nodes = nodes, .account = account_input(account, "transmitters")};
  struct column_choices choices = {0};
  const struct status s = read_transmitters(o, &k, &choices);
  choices_free(&choices);
  mem_free(k.seen);
  table_close(k.table);
  return s;
}
