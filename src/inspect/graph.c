/* A graph artifact: counts, degrees, signs, delays, labels, order, digests, provenance. */
#include "inspect.h"
#include "io/hdf5/h5.h"
#include "core/mem.h"
#include "core/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 16 * H5_CHUNK };

/* What one pass over all edges finds. */
struct census {
  int64_t *in, *out; /* [n_nodes] degrees by node */
  eidx self_loops, positive, negative, zero;
  int64_t synapses, least, most, sum_positive, sum_negative;
};

struct room {
  uint32_t *source, *target, *count;
  int16_t *impulse;
};

static void count_piece(struct census *c, const struct room *r, eidx n, bool counts) {
  for (eidx e = 0; e < n; e++) {
    const int w = r->impulse[e];
    c->in[r->target[e]]++, c->out[r->source[e]]++;
    c->self_loops += r->source[e] == r->target[e];
    c->positive += w > 0, c->negative += w < 0, c->zero += w == 0;
    c->least = w < c->least ? w : c->least, c->most = w > c->most ? w : c->most;
    if (w > 0) c->sum_positive += w;
    if (w < 0) c->sum_negative += w;
    if (counts) c->synapses += r->count[e];
  }
}

static struct census take_census(struct connectome_file *file) {
  const struct connectome_facts *f = connectome_facts(file);
  const eidx size = f->n_edges < PIECE ? f->n_edges : PIECE;
  struct census c = {.in = NEW_ZERO(int64_t, f->n_nodes),
                     .out = NEW_ZERO(int64_t, f->n_nodes),
                     .least = f->n_edges ? INT16_MAX : 0,
                     .most = f->n_edges ? INT16_MIN : 0};
  struct room r = {NEW(uint32_t, size), NEW(uint32_t, size), NEW(uint32_t, size),
                   NEW(int16_t, size)};
  for (eidx first = 0; first < f->n_edges; first += PIECE) {
    const eidx n = f->n_edges - first < PIECE ? f->n_edges - first : PIECE;
    connectome_sources(file, first, n, r.source);
    connectome_targets(file, first, n, r.target);
    connectome_impulses(file, first, n, r.impulse);
    if (f->has_counts) connectome_counts(file, first, n, r.count);
    count_piece(&c, &r, n, f->has_counts);
  }
  mem_free(r.source), mem_free(r.target), mem_free(r.count), mem_free(r.impulse);
  return c;
}

/* Sorts the degrees. */
static json_t *degree_facts(int64_t *degree, int64_t n) {
  double sum = 0;
  if (!n) return json_object();
  sort_i64(degree, n);
  for (int64_t i = 0; i < n; i++) sum += (double)degree[i];
  const double median = 0.5 * (double)(degree[(n - 1) / 2] + degree[n / 2]);
  return json_pack("{s:I, s:f, s:f, s:I}", "min", (json_int_t)degree[0], "median", median, "mean",
                   sum / (double)n, "max", (json_int_t)degree[n - 1]);
}

static void add_edges(struct connectome_file *file, json_t *facts) {
  const struct connectome_facts *f = connectome_facts(file);
  struct census c = take_census(file);
  int64_t isolated = 0;
  for (int64_t i = 0; i < f->n_nodes; i++) isolated += !c.in[i] && !c.out[i];
  if (f->has_counts) json_object_set_new(facts, "synapses", json_integer(c.synapses));
  json_object_set_new(facts, "self_loops", json_integer(c.self_loops));
  json_object_set_new(facts, "parallel_edges", json_boolean(f->parallel_edges));
  json_object_set_new(facts, "isolated", json_integer(isolated));
  json_object_set_new(facts, "in_degree", degree_facts(c.in, f->n_nodes));
  json_object_set_new(facts, "out_degree", degree_facts(c.out, f->n_nodes));
  json_object_set_new(facts, "signs",
                      json_pack("{s:I, s:I, s:I}", "positive", (json_int_t)c.positive, "negative",
                                (json_int_t)c.negative, "zero", (json_int_t)c.zero));
  json_object_set_new(facts, "impulse",
                      json_pack("{s:I, s:I, s:I, s:I, s:I}", "min", (json_int_t)c.least, "max",
                                (json_int_t)c.most, "sum_positive", (json_int_t)c.sum_positive,
                                "sum_negative", (json_int_t)c.sum_negative, "most_into_one_neuron",
                                (json_int_t)f->max_in_impulse));
  mem_free(c.in), mem_free(c.out);
}

/* ---- columns ---- */

struct tally {
  int64_t n;
  const char *label;
};

static int most_first(const void *left, const void *right) {
  const struct tally *a = left, *b = right;
  if (a->n != b->n) return a->n > b->n ? -1 : 1;
  return strcmp(a->label, b->label);
}

/* Labels with how many neurons carry each, the most frequent first and `most` of them, or all where
 * it is 0.
 */
static json_t *label_facts(const struct node_column *c, int64_t n_nodes, int64_t most) {
  struct tally *t = NEW_ZERO(struct tally, c->n_labels);
  for (int i = 0; i < c->n_labels; i++) t[i].label = c->label[i];
  for (int64_t i = 0; i < n_nodes; i++) t[c->code[i]].n++;
  qsort(t, (size_t)c->n_labels, sizeof *t, most_first);
  json_t *counts = json_object();
  int64_t shown = 0, used = 0;
  for (int i = 0; i < c->n_labels; i++) {
    used += t[i].n > 0 && *t[i].label;
    if ((most && i >= most) || !t[i].n) continue;
    json_object_set_new(counts, *t[i].label ? t[i].label : "(none)", json_integer(t[i].n));
    shown += t[i].n;
  }
  if (shown < n_nodes) json_object_set_new(counts, "(others)", json_integer(n_nodes - shown));
  mem_free(t);
  return json_pack("{s:I, s:o}", "labels", (json_int_t)used, "neurons", counts);
}

static json_t *number_facts(const struct node_column *c, int64_t n) {
  double low = 0, high = 0;
  int64_t have = 0;
  for (int64_t i = 0; i < n; i++) {
    const double x = c->i64 ? (double)c->i64[i] : c->f64[i];
    if (!isfinite(x)) continue;
    if (have == 0 || x < low) low = x;
    if (have == 0 || x > high) high = x;
    have++;
  }
  json_t *facts =
      json_pack("{s:s, s:f, s:f}", "numbers", c->i64 ? "integer" : "real", "min", low, "max", high);
  if (have < n) json_object_set_new(facts, "missing", json_integer(n - have));
  return facts;
}

static void add_columns(struct connectome_file *file, int64_t labels, json_t *facts) {
  const int64_t n = connectome_facts(file)->n_nodes;
  char **names = connectome_column_names(file);
  json_t *columns = json_object();
  for (int i = 0; names[i]; i++) {
    struct node_column c;
    connectome_column(file, names[i], &c);
    json_object_set_new(columns, names[i],
                        c.code ? label_facts(&c, n, labels) : number_facts(&c, n));
    node_column_free(&c);
  }
  texts_free(names);
  json_object_set_new(facts, "columns", columns);
}

/* ---- all of it ---- */

static void add_size(struct connectome_file *file, json_t *facts) {
  const struct connectome_facts *f = connectome_facts(file);
  uint64_t ends[2] = {0, 0};
  json_object_set_new(facts, "population", json_string(f->population));
  json_object_set_new(facts, "neurons", json_integer(f->n_nodes));
  json_object_set_new(facts, "edges", json_integer(f->n_edges));
  if (f->n_nodes && !f->has_names) {
    connectome_body_ids(file, 0, 1, &ends[0]);
    connectome_body_ids(file, f->n_nodes - 1, 1, &ends[1]);
    json_object_set_new(facts, "first_id", json_integer((json_int_t)ends[0]));
    json_object_set_new(facts, "last_id", json_integer((json_int_t)ends[1]));
  }
  json_object_set_new(facts, "ids_are_names", json_boolean(f->has_names));
  json_object_set_new(facts, "synapse_counts", json_boolean(f->has_counts));
}

static void add_rest(struct connectome_file *file, int64_t labels, json_t *facts) {
  const struct connectome_facts *f = connectome_facts(file);
  json_object_set_new(facts, "delay_steps",
                      json_pack("{s:i, s:i}", "min", f->min_delay, "max", f->max_delay));
  add_columns(file, labels, facts);
  json_object_set_new(facts, "order",
                      json_pack("{s:b, s:i}", "ordered", f->ordered, "blocks", f->n_blocks));
  json_object_set_new(facts, "streamable", json_boolean(f->streamable));
  json_object_set_new(facts, "packed", json_boolean(f->packed));
  json_object_set_new(facts, "graph_digest", json_string(f->graph_digest));
  json_object_set_new(facts, "order_digest", json_string(f->order_digest));
}

/* What the facts of the reader do not hold: the file's own attributes. */
static void add_attributes(const char *path, json_t *facts) {
  static const char *const root[] = {"created_by", "created_utc"};
  struct h5_file h5;
  if (h5_open(path, &h5).code) return; /* it was open a moment ago; these are extras */
  json_t *order = json_object_get(facts, "order");
  char *method = h5_text(&h5, "/order", "method");
  if (method) json_object_set_new(order, "method", json_string(method));
  mem_free(method);
  int64_t value;
  if (h5_number(&h5, "/order", "seed", &value))
    json_object_set_new(order, "seed", json_integer(value));
  if (h5_number(&h5, "/order", "cut", &value))
    json_object_set_new(order, "cut", json_integer(value));
  for (int i = 0; i < 2; i++) {
    char *text = h5_text(&h5, "/", root[i]);
    if (text) json_object_set_new(facts, root[i], json_string(text));
    mem_free(text);
  }
  h5_close(&h5);
}

static struct status collect(struct connectome_file *file, const struct inspect_request *request,
                             json_t *facts) {
  if (request->node) return inspect_node(file, request, facts);
  add_size(file, facts);
  add_edges(file, facts);
  add_rest(file, request->labels, facts);
  add_attributes(request->path, facts);
  char *provenance = connectome_provenance(file);
  json_object_set_new(facts, "provenance", json_or_text(provenance));
  mem_free(provenance);
  return fine();
}

struct status inspect_graph(const struct comm *comm, const struct inspect_request *request,
                            json_t *facts) {
  struct connectome_file *file;
  TRY(connectome_open(comm, request->path, &file));
  struct status s = request->verify ? connectome_verify(comm, file, request->path) : fine();
  if (!s.code) s = agree(comm, comm->rank == 0 ? collect(file, request, facts) : fine());
  if (request->verify) json_object_set_new(facts, "verified", json_true());
  connectome_close(file);
  return s;
}
