/* From tables to the artifact: the steps of a conversion in order. */
#include "conversion.h"
#include "core/log.h"
#include "core/mem.h"
#include "graph/reorder.h"
#include "core/watchdog.h"

#include <stdio.h>
#include <string.h>

/* ---- signs ---- */

/* A text that grows by items until it is full; then " ..." ends it. */
struct list {
  size_t at;
  char text[400];
};

static void list_add(struct list *list, const char *format, const char *item) {
  enum { MARK = 8 };
  const size_t room = sizeof list->text - list->at;
  const int n = snprintf(list->text + list->at, room, format, item);
  if (n > 0 && (size_t)n + MARK < room)
    list->at += (size_t)n;
  else if (room > MARK)
    snprintf(list->text + list->at, room, " ..."), list->at = sizeof list->text;
}

static const char *label_shown(const char *label) {
  return *label ? label : "missing";
}

/* Has a node no label? */
static bool some_unlabelled(const struct conversion *w, const struct node_labels *c) {
  for (int64_t i = 0; i < c->n; i++)
    if (c->code[i] == 0 && w->nodes.is_node[i]) return true;
  return false;
}

/* Every label that occurs must have an entry, used or not, so that a new one is never overlooked.
 * All that have none are named at once; "missing" among them where it is likely to be needed too.
 */
static struct status check_labels(struct conversion *w) {
  const struct node_labels *c = nodes_column(&w->nodes, "transmitter");
  struct list names = {0}, entries = {0};
  int64_t n = 0;
  for (int64_t l = 1; l <= c->labels.n; l++) {
    const bool last = l == c->labels.n;
    if (last && (!n || !some_unlabelled(w, c))) break;
    char *label = last ? mem_string("") : ids_text(&c->labels, (uint32_t)l);
    if (signs_of(&w->signs, label) == SIGN_UNKNOWN) {
      list_add(&names, n ? ", '%s'" : "'%s'", label_shown(label));
      list_add(&entries, n ? ", \"%s\": .." : "\"%s\": ..", label_shown(label));
      n++;
    }
    mem_free(label);
  }
  if (!n) return fine();
  return failure(EXIT_INPUT,
                 "%s: no entry for the transmitter%s %s; add %s with 1, -1 or \"exclude\" for each",
                 w->signs.path, n == 1 ? "" : "s", names.text, entries.text);
}

static struct status read_labels(struct conversion *w) {
  if (w->o->transmitters) TRY(transmitters_read(w->o, &w->nodes, &w->account));
  if (!nodes_column(&w->nodes, "transmitter")) {
    if (!w->o->signs) return fine();
    return failure(EXIT_USAGE, "--signs: it needs labels: --transmitters FILE, or --node-columns "
                               "transmitter=COLUMN");
  }
  TRY(signs_read(w->o->signs ? w->o->signs : "shiu", &w->signs));
  w->has_signs = true;
  return check_labels(w);
}

/* Signs of all ids, and the edges of excluded sources out. */
static struct status apply_signs(struct conversion *w) {
  if (!w->has_signs) return fine();
  const struct node_labels *c = nodes_column(&w->nodes, "transmitter");
  int8_t *of_label = NEW(int8_t, c->labels.n);
  for (int64_t l = 0; l < c->labels.n; l++) {
    char *label = ids_text(&c->labels, (uint32_t)l);
    of_label[l] = (int8_t)signs_of(&w->signs, label);
    mem_free(label);
  }
  w->sign = NEW(int8_t, w->nodes.ids.n);
  for (int64_t i = 0; i < w->nodes.ids.n; i++) w->sign[i] = of_label[c->code[i]];
  mem_free(of_label);
  for (int64_t i = 0; i < w->edges.n; i++) {
    if (w->sign[w->edges.source[i]] != SIGN_UNKNOWN) continue;
    char *id = ids_text(&w->nodes.ids, w->edges.source[i]);
    const struct status s =
        failure(EXIT_INPUT,
                "%s: no entry for the transmitter 'missing' (no label for id %.60s, which has "
                "out-edges); add \"missing\": 1, -1 or \"exclude\"",
                w->signs.path, id);
    mem_free(id);
    return s;
  }
  const int64_t before = w->edges.n;
  edges_drop_excluded(&w->edges, &w->nodes, w->sign, &w->account);
  if (before && !w->edges.n)
    return failure(EXIT_INPUT,
                   "%s: the sign table excludes the source of every edge that was left (%lld)",
                   w->signs.path, (long long)before);
  return fine();
}

/* ---- canonical nodes ---- */

static void number_nodes(struct conversion *w) {
  struct progress progress = progress_start("sorting", "edges", 0, SORT_PASSES * w->edges.n);
  w->index_of_node = ids_sorted(&w->nodes.ids, w->nodes.is_node, &w->n_nodes);
  uint32_t *node_of = NEW(uint32_t, w->nodes.ids.n);
  for (int64_t v = 0; v < w->n_nodes; v++) node_of[w->index_of_node[v]] = (uint32_t)v;
  edges_canonical(&w->edges, node_of, w->n_nodes, &progress);
  progress_wipe();
  mem_free(node_of);
}

/* Nodes with touched[v] only, in the same order: their edges stay sorted. */
static void keep_nodes(struct conversion *w, const bool *touched) {
  uint32_t *node_of = NEW(uint32_t, w->n_nodes);
  int64_t n = 0;
  for (int64_t v = 0; v < w->n_nodes; v++) {
    if (!touched[v]) continue;
    node_of[v] = (uint32_t)n;
    w->index_of_node[n++] = w->index_of_node[v];
  }
  for (int64_t i = 0; i < w->edges.n; i++) {
    w->edges.source[i] = node_of[w->edges.source[i]];
    w->edges.target[i] = node_of[w->edges.target[i]];
  }
  w->n_nodes = n;
  mem_free(node_of);
}

/* Counted when it is known which edges the graph has. */
static void count_isolated(struct conversion *w) {
  bool *touched = NEW_ZERO(bool, w->n_nodes);
  for (int64_t i = 0; i < w->edges.n; i++)
    touched[w->edges.source[i]] = touched[w->edges.target[i]] = true;
  for (int64_t v = 0; v < w->n_nodes; v++) w->account.isolated += !touched[v];
  if (!strcmp(w->o->isolated, "drop")) keep_nodes(w, touched);
  mem_free(touched);
}

static void count_by_transmitter(struct conversion *w) {
  const struct node_labels *c = nodes_column(&w->nodes, "transmitter");
  if (!c) return;
  int64_t *nodes = NEW_ZERO(int64_t, c->labels.n), *edges = NEW_ZERO(int64_t, c->labels.n);
  for (int64_t v = 0; v < w->n_nodes; v++) nodes[c->code[w->index_of_node[v]]]++;
  for (int64_t i = 0; i < w->edges.n; i++) edges[c->code[w->index_of_node[w->edges.source[i]]]]++;
  w->account.nodes_by_transmitter = json_object();
  w->account.edges_by_transmitter = json_object();
  int64_t n;
  uint32_t *order = ids_sorted(&c->labels, NULL, &n);
  for (int64_t i = 0; i < n; i++) {
    char *label = ids_text(&c->labels, order[i]);
    const char *shown = *label ? label : "missing";
    json_object_set_new(w->account.nodes_by_transmitter, shown, json_integer(nodes[order[i]]));
    json_object_set_new(w->account.edges_by_transmitter, shown, json_integer(edges[order[i]]));
    mem_free(label);
  }
  mem_free(order), mem_free(nodes), mem_free(edges);
}

/* ---- the artifact's arrays ---- */

/* Labels in byte order with "" first; codes follow. */
static void add_label_column(struct conversion *w, const struct node_labels *from,
                             struct node_column *to) {
  int64_t n;
  uint32_t *order = ids_sorted(&from->labels, NULL, &n), *rank = NEW(uint32_t, n);
  bool *used = NEW_ZERO(bool, n);
  for (int64_t v = 0; v < w->n_nodes; v++) used[from->code[w->index_of_node[v]]] = true;
  *to = (struct node_column){
      .name = mem_string(from->name), .label = NEW(char *, n), .code = NEW(uint32_t, w->n_nodes)};
  for (int64_t i = 0; i < n; i++) {
    if (i && !used[order[i]]) continue;
    rank[order[i]] = (uint32_t)to->n_labels;
    to->label[to->n_labels++] = ids_text(&from->labels, order[i]);
  }
  for (int64_t v = 0; v < w->n_nodes; v++) to->code[v] = rank[from->code[w->index_of_node[v]]];
  mem_free(order), mem_free(rank), mem_free(used);
}

static void add_number_column(struct conversion *w, const struct node_labels *from,
                              struct node_column *to) {
  *to = (struct node_column){.name = mem_string(from->name), .f64 = NEW(double, w->n_nodes)};
  for (int64_t v = 0; v < w->n_nodes; v++) to->f64[v] = from->number[w->index_of_node[v]];
}

static void add_columns(struct conversion *w) {
  struct connectome *g = &w->graph;
  g->column = NEW_ZERO(struct node_column, w->nodes.n_columns + 1);
  for (int i = 0; i < w->nodes.n_columns; i++)
    (w->nodes.column[i].number ? add_number_column : add_label_column)(w, &w->nodes.column[i],
                                                                       &g->column[g->n_columns++]);
  if (!w->sign) return;
  struct node_column *c = &g->column[g->n_columns++];
  *c = (struct node_column){.name = mem_string("sign"), .i64 = NEW(int64_t, w->n_nodes)};
  for (int64_t v = 0; v < w->n_nodes; v++)
    c->i64[v] = w->sign[w->index_of_node[v]] == SIGN_UNKNOWN ? 0 : w->sign[w->index_of_node[v]];
}

static void add_ids(struct conversion *w) {
  struct connectome *g = &w->graph;
  g->n_nodes = w->n_nodes;
  g->body_id = NEW(uint64_t, w->n_nodes);
  if (w->nodes.ids.names) g->name = NEW(char *, w->n_nodes);
  for (int64_t v = 0; v < w->n_nodes; v++) {
    g->body_id[v] = w->nodes.ids.names ? (uint64_t)v : w->nodes.ids.id[w->index_of_node[v]];
    if (g->name) g->name[v] = ids_text(&w->nodes.ids, w->index_of_node[v]);
  }
}

static struct status bad_impulse(const struct conversion *w, int64_t i, int64_t impulse) {
  char *pre = ids_text(&w->nodes.ids, w->index_of_node[w->edges.source[i]]);
  char *post = ids_text(&w->nodes.ids, w->index_of_node[w->edges.target[i]]);
  char weight[32];
  weight_text(w->edges.weight[i], w->edges.places, weight);
  const struct status s = failure(
      EXIT_INPUT, "%s: edge %s -> %s: weight %s scaled by %lld/%lld is %lld, which %s", w->o->edges,
      pre, post, weight, (long long)w->scale.num, (long long)w->scale.den, (long long)impulse,
      impulse ? "does not fit 16 bits; choose a smaller --scale, or --overflow saturate"
              : "loses the edge; choose a larger --scale, or --underflow keep");
  mem_free(pre), mem_free(post);
  return s;
}

/* impulse = weight x sign x num / den, half to even */
static struct status add_impulses(struct conversion *w) {
  const bool saturate = !strcmp(w->o->overflow, "saturate"),
             lose = !strcmp(w->o->underflow, "keep");
  const struct scale scale = {w->scale.num, w->scale.den * scale_unit(w->edges.places)};
  struct account *a = &w->account;
  w->graph.impulse = NEW(int16_t, w->edges.n);
  for (int64_t i = 0; i < w->edges.n; i++) {
    const int sign = w->sign ? w->sign[w->index_of_node[w->edges.source[i]]] : 1;
    int64_t x = scale_apply(scale, w->edges.weight[i]) * sign;
    if (x == 0 && w->edges.weight[i]) {
      if (!lose) return bad_impulse(w, i, x);
      a->scaled_to_zero++;
    }
    if (x < INT16_MIN || x > INT16_MAX) {
      if (!saturate) return bad_impulse(w, i, x);
      a->saturated++;
      x = x < 0 ? INT16_MIN : INT16_MAX;
    }
    w->graph.impulse[i] = (int16_t)x;
    a->above_0 += x > 0, a->below_0 += x < 0, a->at_0 += x == 0;
  }
  return fine();
}

/* Synapse counts are |weight|; weights with fractions count nothing. */
static void add_counts(struct conversion *w) {
  struct connectome *g = &w->graph;
  uint32_t *count = (uint32_t *)w->edges.weight; /* same width; becomes |weight| in place */
  for (int64_t i = 0; i < g->n_edges; i++) {
    const int64_t x = w->edges.weight[i]; /* -INT32_MAX .. INT32_MAX */
    count[i] = (uint32_t)(x < 0 ? -x : x);
    w->account.negative += x < 0;
    w->account.weight_sum += count[i];
  }
  if (w->edges.places) mem_free(count), count = NULL;
  g->count = count;
}

static struct status add_edges(struct conversion *w) {
  struct connectome *g = &w->graph;
  g->n_edges = w->edges.n;
  TRY(add_impulses(w));
  add_counts(w);
  g->source = w->edges.source, g->target = w->edges.target, g->delay = w->edges.delay;
  g->constant_delay = (uint16_t)(w->o->delay ? w->o->delay : 1);
  for (int64_t i = 0; i < g->n_edges; i++) w->account.self_loops += g->source[i] == g->target[i];
  w->edges = (struct edges){.places = w->edges.places, .row_weight = w->edges.row_weight};
  return fine();
}

static struct status add_order(struct conversion *w) {
  struct connectome *g = &w->graph;
  if (w->o->no_order || !g->n_nodes) return fine();
  const double start = seconds_now();
  TRY(reorder_graph(g, (int)w->o->parts, REORDER_SEED));
  log_line("order: %s, %d parts, %lld of %lld edges cut, %.3g s", g->order_method, g->n_blocks,
           (long long)g->order_cut, (long long)g->n_edges, seconds_now() - start);
  return fine();
}

/* ---- the steps ---- */

/* Steps without a count of their own that take a minute when the graph is large. */
static void say_phase(const struct conversion *w, const char *what) {
  enum { LARGE = 10000000 };
  const int64_t n = w->edges.n + w->graph.n_edges;
  if (n >= LARGE) log_line("%s %lld edges", what, (long long)n);
}

/* What all ranks do: the nodes on each, the edges from all. Agreed. */
static struct status read_tables(const struct comm *comm, struct conversion *w) {
  bool names;
  TRY(scale_parse(w->o->scale, &w->scale));
  TRY(agree(comm, edges_ids_are_names(w->o, &names)));
  ids_init(&w->nodes.ids, names);
  if (w->o->nodes) TRY(agree(comm, nodes_read(w->o, &w->nodes, &w->account)));
  /* Labels come first where the nodes are known, so that a label without a
   * sign is found in seconds. */
  const bool nodes_known = strcmp(w->o->node_rule, "endpoints") != 0;
  if (nodes_known) TRY(agree(comm, comm->rank == 0 ? read_labels(w) : fine()));
  TRY(edges_read(comm, w->o, &w->nodes, &w->edges, &w->account));
  return nodes_known || comm->rank > 0 ? fine() : read_labels(w);
}

/* Rank 0: from rows to the file. */
static struct status make_graph(struct conversion *w) {
  ids_seal(&w->nodes.ids);
  TRY(apply_signs(w));
  account_check(&w->account);
  say_phase(w, "sorting");
  number_nodes(w);
  TRY(edges_merge(w->o, &w->edges, &w->account, w->index_of_node, &w->nodes.ids));
  if (w->o->min_weight) edges_drop_weak(&w->edges, w->o->min_weight, &w->account);
  if (w->o->min_weight && w->account.weak && !w->edges.n)
    return failure(EXIT_INPUT, "%s: all %lld edges lie below --min-weight %lld", w->o->edges,
                   (long long)w->account.weak, (long long)w->o->min_weight);
  count_isolated(w);
  count_by_transmitter(w);
  w->graph.population = mem_string(w->o->population);
  add_ids(w);
  add_columns(w);
  TRY(add_edges(w));
  TRY(add_order(w));
  json_t *facts = conversion_facts(w);
  w->graph.provenance = json_line_kept(facts);
  w->graph.packed = w->o->packed;
  say_phase(w, "writing");
  struct status s = connectome_write(&w->graph, w->o->output, w->o->streamable, w->o->force);
  if (!s.code) conversion_report(w, facts);
  json_decref(facts);
  return s;
}

struct status convert_tables(const struct comm *comm, const struct convert_options *o) {
  struct conversion w = {.o = o};
  struct status s = read_tables(comm, &w);
  watchdog_pause("making the graph");
  if (comm->rank == 0 && !s.code) s = make_graph(&w);
  nodes_free(&w.nodes), edges_free(&w.edges), account_free(&w.account);
  if (w.has_signs) signs_free(&w.signs);
  mem_free(w.sign), mem_free(w.index_of_node);
  connectome_free(&w.graph);
  comm_wait_for_all(comm);
  watchdog_resume();
  return agree(comm, s);
}
