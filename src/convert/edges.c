/* The edge table: one pass, each row kept or dropped for one reason. */
#include "ranks.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PRE, POST, WEIGHT, DELAY, KIND, N_ROLES, MAX_WHERE = 64 };

/* --where COLUMN=VALUE: values of one column are alternatives, columns must all agree. */
struct filter {
  int column, want;
  char *value;
  int reason;
};

struct reading {
  const struct convert_options *o;
  struct nodes *nodes;
  struct edges *edges;
  struct table *table;
  struct input_account *account;
  struct column_choices choices;
  int want[N_ROLES]; /* place in the batch, -1: not wanted */
  int n_filters;
  struct filter filter[MAX_WHERE];
  struct ids kinds;
  bool kinds_matter;
  bool add; /* end points become nodes */
  int64_t room;
  bool *use; /* [room] rows of this batch that pass the filters */
  uint32_t *source, *target;
  /* Roles that are read as text and made numbers by us, in rows that pass; their numbers [room].
   * So a bad number stops nothing in a row that --where drops. */
  bool as_text[N_ROLES];
  struct table_column parsed[N_ROLES];
  int no_source, no_target, no_ends, self_loop, zero;
};

/* ---- choosing columns ---- */

static struct status open_edges(const struct convert_options *o, struct table **table,
                                struct column_choices *choices) {
  const bool numbers = !strcmp(o->ids, "numbers");
  const struct column_default column[N_ROLES] = {
      {"pre", "body_pre|bodyId_pre|pre|pre_root_id|pre_pt_root_id", "1", numbers},
      {"post", "body_post|bodyId_post|post|post_root_id|post_pt_root_id", "2", numbers},
      {"weight", "weight|syn_count", "3", true},
      {"delay", NULL, NULL, true},
      {"kind", NULL, NULL, false}};
  const struct table_input input = {.path = o->edges,
                                    .format = {.delimiter = o->delimiter, .header = o->header},
                                    .option = "columns",
                                    .columns = o->columns,
                                    .column = column,
                                    .n_columns = N_ROLES};
  return table_open_input(&input, table, choices);
}

static struct status guess_ids(const struct convert_options *o, struct table **table,
                               struct column_choices *choices, bool *names) {
  TRY(open_edges(o, table, choices));
  *names = false;
  for (int i = PRE; i <= POST; i++) {
    int column;
    TRY(choice_find(&choices->item[i], *table, choices->option, true, &column));
    if (!table_looks_numeric(*table, column)) *names = true;
  }
  return fine();
}

struct status edges_ids_are_names(const struct convert_options *o, bool *names) {
  *names = !strcmp(o->ids, "names");
  if (strcmp(o->ids, "auto")) return fine();
  struct table *table = NULL;
  struct column_choices choices = {0};
  const struct status s = guess_ids(o, &table, &choices, names);
  choices_free(&choices);
  table_close(table);
  return s;
}

static struct status parse_filters(struct reading *r) {
  for (int i = 0; i < r->o->where.n; i++) {
    const char *text = r->o->where.item[i], *equals = strchr(text, '=');
    if (!equals) return failure(EXIT_USAGE, "--where %s: it must read COLUMN=VALUE", text);
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    struct filter *f = &r->filter[r->n_filters];
    f->column = table_find(r->table, name);
    if (f->column == COLUMN_REPEATED || f->column == COLUMN_UNCLEAR)
      return failure(EXIT_INPUT, "%s: column '%s' %s; choose by position, from 1: --where '#1=%s'",
                     table_path(r->table), name,
                     f->column == COLUMN_REPEATED
                         ? "occurs more than once"
                         : "is the name of one column and the position of another",
                     equals + 1);
    if (f->column < 0) {
      char wanted[300];
      snprintf(wanted, sizeof wanted, "'%s' (--where)", name);
      return table_no_column(r->table, wanted, "");
    }
    f->value = mem_string(equals + 1);
    f->reason = account_reason(r->account, "%s is not as --where asks",
                               table_column_name(r->table, f->column));
    r->n_filters++;
  }
  return fine();
}

static bool filtered_by(const struct reading *r, int column) {
  for (int i = 0; i < r->n_filters; i++)
    if (r->filter[i].column == column) return true;
  return false;
}

/* A column "type" or "kind" that nobody mentioned separates synapses of different kinds as a rule;
 * rows must not be added over it unasked. */
static void find_kind(const struct reading *r, int *column) {
  for (int i = 0; i < table_n_columns(r->table) && *column < 0; i++) {
    const char *name = table_column_name(r->table, i);
    bool free = !strcasecmp(name, "type") || !strcasecmp(name, "kind");
    for (int role = 0; role < KIND; role++)
      if (r->choices.item[role].name && table_find(r->table, r->choices.item[role].name) == i)
        free = false;
    if (free) *column = i;
  }
}

static void want_column(struct reading *r, struct table_want *wants, int *n, int role, int column,
                        enum table_kind kind) {
  r->want[role] = -1;
  r->as_text[role] = false;
  if (column < 0) return;
  r->as_text[role] = kind != TABLE_TEXT && (r->n_filters || (role == WEIGHT && r->edges->places));
  r->want[role] = *n;
  wants[(*n)++] = (struct table_want){column, r->as_text[role] ? TABLE_TEXT : kind};
  json_object_set_new(r->account->columns, r->choices.item[role].key,
                      json_string(table_column_name(r->table, column)));
}

/* The column of a role, or -1. Rows of a table of just two columns count 1 each. */
static struct status find_role(struct reading *r, int role, int *column) {
  const struct column_choice *choice = &r->choices.item[role];
  const bool pairs = table_n_columns(r->table) == 2;
  if (role == WEIGHT && r->o->weight && choice->chosen)
    return failure(EXIT_USAGE, "--weight: the weights come from the column '%s'; give one of both",
                   choice->name);
  if (role == DELAY && r->o->delay && choice->chosen)
    return failure(EXIT_USAGE, "--delay: the delays come from the column '%s'; give one of both",
                   choice->name);
  *column = -1;
  if (role != WEIGHT || !r->o->weight)
    TRY(choice_find(choice, r->table, "columns", role < WEIGHT || (role == WEIGHT && !pairs),
                    column));
  if (role == KIND && *column < 0) find_kind(r, column);
  return fine();
}

static struct status choose_columns(struct reading *r) {
  struct table_want wants[N_ROLES + MAX_WHERE];
  const enum table_kind id = r->nodes->ids.names ? TABLE_TEXT : TABLE_ID;
  const enum table_kind kinds[N_ROLES] = {id, id, TABLE_COUNT, TABLE_COUNT, TABLE_TEXT};
  int n = 0;
  TRY(parse_filters(r));
  for (int role = 0; role < N_ROLES; role++) {
    int column;
    TRY(find_role(r, role, &column));
    want_column(r, wants, &n, role, column, kinds[role]);
    if (role == KIND)
      r->kinds_matter = column >= 0 && !filtered_by(r, column) && !r->o->merge_kinds;
  }
  for (int i = 0; i < r->n_filters; i++) {
    r->filter[i].want = n;
    wants[n++] = (struct table_want){r->filter[i].column, TABLE_TEXT};
  }
  if (r->want[WEIGHT] < 0) r->edges->row_weight = r->o->weight ? r->o->weight : 1;
  edges_reserve(r->edges, 1, r->want[DELAY] >= 0);
  return table_select(r->table, wants, n);
}

/* ---- rows ---- */

static bool row_passes(struct reading *r, const struct table_batch *b, int64_t i) {
  for (int f = 0; f < r->n_filters; f++) {
    bool passes = false;
    for (int g = 0; g < r->n_filters; g++) {
      if (r->filter[g].column != r->filter[f].column) continue;
      const struct span s = span_trim(table_text(&b->column[r->filter[g].want], i));
      passes |= (size_t)s.n == strlen(r->filter[g].value) &&
                !memcmp(s.at, r->filter[g].value, (size_t)s.n);
    }
    if (!passes) return r->account->reason[r->filter[f].reason].rows++, false;
  }
  return true;
}

static struct status check_kind(struct reading *r, const struct table_batch *b, int64_t i) {
  const struct span s = table_text(&b->column[r->want[KIND]], i);
  ids_name(&r->kinds, s.at, s.n, true);
  if (r->kinds.n <= 1) return fine();
  char *first = ids_text(&r->kinds, 0), *second = ids_text(&r->kinds, 1);
  const char *column = json_string_value(json_object_get(r->account->columns, "kind"));
  const struct status failed = failure(EXIT_INPUT,
                                       "%s: row %lld: column '%s' holds edges of several kinds "
                                       "('%s', '%s' ..): take one with --where "
                                       "'%s=%s', or add them together with --merge-kinds",
                                       table_path(r->table), (long long)(b->first_row + i), column,
                                       first, second, column, first);
  mem_free(first), mem_free(second);
  return failed;
}

static struct status check_names(const struct reading *r, const struct table_batch *b, int64_t i) {
  for (int role = PRE; role <= POST; role++)
    if (!span_trim(table_text(&b->column[r->want[role]], i)).n)
      return failure(
          EXIT_INPUT, "%s: row %lld: the name in column '%s' is empty", table_path(r->table),
          (long long)(b->first_row + i),
          json_string_value(json_object_get(r->account->columns, r->choices.item[role].key)));
  return fine();
}

static struct status screen(struct reading *r, const struct table_batch *b) {
  for (int64_t i = 0; i < b->n; i++) {
    r->use[i] = !r->n_filters || row_passes(r, b, i);
    if (r->use[i] && r->kinds_matter) TRY(check_kind(r, b, i));
    if (r->use[i] && r->nodes->ids.names) TRY(check_names(r, b, i));
  }
  return fine();
}

void edges_reserve(struct edges *e, int64_t n, bool delay) {
  if (n <= e->capacity) return;
  e->capacity = n;
  e->source = mem_grow(e->source, n, sizeof *e->source);
  e->target = mem_grow(e->target, n, sizeof *e->target);
  e->weight = mem_grow(e->weight, n, sizeof *e->weight);
  if (delay) e->delay = mem_grow(e->delay, n, sizeof *e->delay);
}

static void make_room(struct reading *r, int64_t n) {
  struct edges *e = r->edges;
  if (n > r->room) {
    mem_free(r->use), mem_free(r->source), mem_free(r->target);
    r->use = NEW(bool, n), r->source = NEW(uint32_t, n), r->target = NEW(uint32_t, n);
    for (int role = 0; role < N_ROLES; role++) {
      struct table_column *c = &r->parsed[role];
      if (r->as_text[role] && role <= POST) c->id = mem_grow(c->id, n, sizeof *c->id);
      if (r->as_text[role] && role > POST) c->count = mem_grow(c->count, n, sizeof *c->count);
    }
    r->room = n;
  }
  if (e->n + n > e->capacity) edges_reserve(e, e->n + n + e->n / 2, r->want[DELAY] >= 0);
}

static const struct table_column *column_of(const struct reading *r, const struct table_batch *b,
                                            int role) {
  return r->as_text[role] ? &r->parsed[role] : &b->column[r->want[role]];
}

/* The number of a role in row i, which was read as text. */
static struct status parse_number(struct reading *r, const struct table_batch *b, int64_t i,
                                  int role) {
  const struct span s = table_text(&b->column[r->want[role]], i);
  struct table_column *to = &r->parsed[role];
  const int places = role == WEIGHT ? r->edges->places : 0;
  const char *wrong = role <= POST ? span_id(s, &to->id[i])
                      : places     ? span_decimal(s, places, &to->count[i])
                                   : span_count(s, &to->count[i]);
  if (!wrong) return fine();
  const char *key = r->choices.item[role].key;
  return failure(EXIT_INPUT, "%s: row %lld: column '%s' is %s: %s", table_path(r->table),
                 (long long)(b->first_row + i),
                 json_string_value(json_object_get(r->account->columns, key)), span_shown(s),
                 wrong);
}

static struct status parse_numbers(struct reading *r, const struct table_batch *b,
                                   const bool *use) {
  for (int64_t i = 0; i < b->n; i++)
    for (int role = 0; role < N_ROLES; role++)
      if (r->as_text[role] && (!use || use[i])) TRY(parse_number(r, b, i, role));
  return fine();
}

static int64_t weight_of(const struct reading *r, const struct table_batch *b, int64_t i) {
  if (r->want[WEIGHT] < 0) return r->edges->row_weight;
  return column_of(r, b, WEIGHT)->count[i];
}

static bool known(const struct reading *r, uint32_t index) {
  return r->add || (index != NO_INDEX && r->nodes->is_node[index]);
}

/* The reason to drop a row, or -1. */
static int reason_of(const struct reading *r, uint32_t source, uint32_t target, int64_t weight) {
  const bool has_source = known(r, source), has_target = known(r, target);
  if (!has_source || !has_target)
    return has_source ? r->no_target : has_target ? r->no_source : r->no_ends;
  if (r->self_loop >= 0 && source == target) return r->self_loop;
  return r->zero >= 0 && weight == 0 ? r->zero : -1;
}

/* Row i into the edges or among the dropped ones; false when a number cannot be an edge's. */
static bool take_row(struct reading *r, const struct table_batch *b, int64_t i) {
  struct edges *e = r->edges;
  const uint32_t source = r->source[i], target = r->target[i];
  const int64_t weight = weight_of(r, b, i);
  const int64_t delay = e->delay ? column_of(r, b, DELAY)->count[i] : 1;
  if (weight < -INT32_MAX || weight > INT32_MAX) return false;
  const int reason = reason_of(r, source, target, weight);
  if (reason >= 0) return r->account->reason[reason].rows++, true;
  if (delay < 1 || delay > UINT16_MAX) return false;
  e->source[e->n] = source, e->target[e->n] = target, e->weight[e->n] = (int32_t)weight;
  if (e->delay) e->delay[e->n] = (uint16_t)delay;
  e->n++;
  return true;
}

static struct status bad_row(const struct reading *r, const struct table_batch *b, int64_t i) {
  const int64_t weight = weight_of(r, b, i);
  const bool heavy = weight < -INT32_MAX || weight > INT32_MAX;
  const int role = heavy ? WEIGHT : DELAY, places = heavy ? r->edges->places : 0;
  char value[32], must[120] = "a delay must lie in 1..65535 steps";
  weight_text(heavy ? weight : column_of(r, b, DELAY)->count[i], places, value);
  if (heavy)
    snprintf(must, sizeof must,
             places ? "a weight must lie below %lld in a table with fractions, at this --scale"
                    : "a weight must fit a signed 32-bit number",
             (long long)(INT32_MAX / scale_unit(places)));
  return failure(EXIT_INPUT, "%s: row %lld: column '%s' is %s: %s", table_path(r->table),
                 (long long)(b->first_row + i),
                 json_string_value(json_object_get(r->account->columns, r->choices.item[role].key)),
                 value, must);
}

static struct status take_batch(struct reading *r, const struct table_batch *b) {
  make_room(r, b->n);
  const bool all = !r->n_filters && !r->kinds_matter && !r->nodes->ids.names;
  if (!all) TRY(screen(r, b));
  const bool *use = all ? NULL : r->use;
  if (r->as_text[PRE] || r->as_text[WEIGHT]) TRY(parse_numbers(r, b, use));
  const struct ids_column end[] = {{column_of(r, b, PRE), r->source},
                                   {column_of(r, b, POST), r->target}};
  ids_map(&r->nodes->ids, end, 2, b->n, use, r->add);
  for (int64_t i = 0; i < b->n; i++)
    if ((!use || use[i]) && !take_row(r, b, i)) return bad_row(r, b, i);
  return fine();
}

static void name_reasons(struct reading *r) {
  struct input_account *a = r->account;
  r->no_source = account_reason(a, "the source is not a node");
  r->no_target = account_reason(a, "the target is not a node");
  r->no_ends = account_reason(a, "neither source nor target is a node");
  r->self_loop = strcmp(r->o->self_loops, "drop") ? -1 : account_reason(a, "self-loop");
  r->zero = strcmp(r->o->zero_weights, "drop") ? -1 : account_reason(a, "weight 0");
}

static struct status read_rows(struct reading *r, int share, int n_shares) {
  TRY(open_edges(r->o, &r->table, &r->choices));
  table_share(r->table, share, n_shares);
  TRY(choose_columns(r));
  name_reasons(r);
  struct progress progress =
      progress_start("edges", "bytes", 0, table_facts(r->table)->bytes / n_shares);
  struct table_batch b = {.n = 1};
  while (b.n) {
    TRY(next_batch(r->table, &b, &progress));
    TRY(take_batch(r, &b));
  }
  progress_end(&progress, table_done(r->table) / n_shares);
  account_table(r->account, r->table);
  r->account->kept = r->edges->n;
  return fine();
}

/* One share into `to`, whose edges are replaced; `places`: as in struct edges. Local. */
static struct status read_share(const struct convert_options *o, int share, int n_shares,
                                int places, struct convert_share *to) {
  struct reading r = {.o = o,
                      .nodes = to->nodes,
                      .edges = to->edges,
                      .account = to->account,
                      .add = !strcmp(o->node_rule, "endpoints")};
  ids_init(&r.kinds, true);
  edges_free(to->edges);
  to->edges->places = places;
  for (int i = 0; i < to->account->n_reasons; i++) to->account->reason[i].rows = 0;
  struct status s = read_rows(&r, share, n_shares);
  /* The facts of a shared table lack its SHA-256; the last rank has no
   * share to receive, and time. */
  if (!s.code && n_shares > 1 && share == n_shares - 1) {
    int64_t bytes;
    s = sha256_file(o->edges, to->account->facts.sha256, &bytes);
  }
  to->kind = r.kinds.n ? r.kinds.id[0] : 0;
  for (int i = 0; i < r.n_filters; i++) mem_free(r.filter[i].value);
  for (int role = 0; role < N_ROLES; role++)
    mem_free(r.parsed[role].id), mem_free(r.parsed[role].count);
  mem_free(r.use), mem_free(r.source), mem_free(r.target);
  ids_free(&r.kinds);
  choices_free(&r.choices);
  table_close(r.table);
  return s;
}

/* The whole table: in whole numbers, and where that fails and the scale leaves room for fractions,
 * once more with these. Local. */
static struct status read_alone(const struct convert_options *o, struct convert_share *to) {
  struct scale scale;
  TRY(scale_parse(o->scale, &scale));
  const int places = o->scale ? scale_places(scale) : 0;
  struct status s = read_share(o, 0, 1, 0, to);
  if (blames_input(&s) && places) s = read_share(o, 0, 1, places, to);
  return s;
}

static const char *first_reason(const struct input_account *a) {
  for (int i = 0; i < a->n_reasons; i++)
    if (a->reason[i].rows) return a->reason[i].text;
  return "none";
}

/* Not a single edge: as a rule the tables do not belong together, or the filters are misspelt. */
static struct status check_any(const struct convert_options *o, const struct edges *edges,
                               struct input_account *a) {
  const int64_t rows = a->facts.rows;
  if (edges->n || !rows) return fine();
  struct reading r = {.o = o, .account = a};
  name_reasons(&r);
  const int64_t strange =
      a->reason[r.no_source].rows + a->reason[r.no_target].rows + a->reason[r.no_ends].rows;
  if (!strange)
    return failure(EXIT_INPUT, "%s: all %lld rows were dropped; first reason: %s", o->edges,
                   (long long)rows, first_reason(a));
  return failure(
      EXIT_INPUT,
      "%s: all %lld rows were dropped, %lld of them because an end is not a node; do the ids of "
      "both tables belong together?",
      o->edges, (long long)rows, (long long)strange);
}

/* The shares of all ranks, read, become one on rank 0; `s` is how the reading
 * of ours ended. Agreed. */
static struct status join_shares(const struct comm *comm, const struct convert_options *o,
                                 struct convert_share *share, struct status s) {
  comm_wait_for_all(comm); /* shares may take unequal times */
  switch (convert_compare(comm, share, &s)) {
  case SHARES_FIT: convert_join(comm, share); return fine();
  case SHARES_STOP: return agree(comm, blames_input(&s) ? fine() : s);
  case SHARES_CLASH: break;
  }
  if (comm->rank > 0) edges_free(share->edges);
  s = comm->rank == 0 ? read_alone(o, share) : fine();
  comm_wait_for_all(comm);
  return agree(comm, s);
}

/* As many rows as columns of numbers, of which nobody chose three: a matrix whose cells would pass
 * for ids.
 */
static struct status check_matrix(const struct convert_options *o, int64_t rows) {
  enum { EDGE_COLUMNS = 3 };
  struct table *table = NULL;
  struct column_choices choices = {0};
  struct status s = o->columns ? fine() : open_edges(o, &table, &choices);
  if (!s.code && table && !table_has_header(table) && table_n_columns(table) > EDGE_COLUMNS &&
      table_n_columns(table) == rows)
    s = failure(
        EXIT_INPUT,
        "%s: %lld rows of %lld numbers look like a dense matrix, not like edges; `fascicle convert "
        "--help` turns one into an edge list, --columns pre=1,post=2,weight=3 reads these columns",
        o->edges, (long long)rows, (long long)rows);
  choices_free(&choices);
  table_close(table);
  return s;
}

struct status edges_read(const struct comm *comm, const struct convert_options *o,
                         struct nodes *nodes, struct edges *edges, struct account *account) {
  struct convert_share share = {.nodes = nodes,
                                .known = nodes->ids.n,
                                .edges = edges,
                                .account = account_input(account, "edges")};
  struct status s =
      comm->size > 1 ? read_share(o, comm->rank, comm->size, 0, &share) : read_alone(o, &share);
  if (comm->size > 1) s = join_shares(comm, o, &share, s);
  if (comm->rank == 0 && !s.code) s = check_matrix(o, share.account->facts.rows);
  if (comm->rank == 0 && !s.code) s = check_any(o, edges, share.account);
  if (comm->rank == 0) nodes_fill(nodes);
  return agree(comm, s);
}

void edges_free(struct edges *e) {
  mem_free(e->source), mem_free(e->target), mem_free(e->weight), mem_free(e->delay);
  *e = (struct edges){0};
}
