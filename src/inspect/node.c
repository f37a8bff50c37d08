/* One neuron with its partners. */
#include "inspect.h"
#include "io/hdf5/h5.h"
#include "core/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 16 * H5_CHUNK };

struct partner {
  uint32_t node;
  int16_t impulse;
  uint16_t delay;
  uint32_t count;
};

struct partners {
  int64_t n, room;
  struct partner *item;
};

/* What is read once to name neurons. */
struct names {
  int64_t n;
  uint64_t *body_id;
  char **name; /* or NULL */
  struct node_column type;
};

static struct names names_read(struct connectome_file *file) {
  struct names names = {.n = connectome_facts(file)->n_nodes};
  names.body_id = NEW(uint64_t, names.n);
  connectome_body_ids(file, 0, names.n, names.body_id);
  if (connectome_facts(file)->has_names) names.name = connectome_names(file);
  connectome_column(file, "type", &names.type);
  return names;
}

static void names_free(struct names *names) {
  texts_free(names->name);
  mem_free(names->body_id);
  node_column_free(&names->type);
}

/* Ids above 2^53 would not survive a JSON reader that uses doubles. */
static json_t *id_json(const struct names *names, uint32_t node) {
  char digits[32];
  if (names->name) return json_string(names->name[node]);
  if (names->body_id[node] <= 1ull << 53) return json_integer((json_int_t)names->body_id[node]);
  snprintf(digits, sizeof digits, "%llu", (unsigned long long)names->body_id[node]);
  return json_string(digits);
}

static int64_t find_number(const struct names *names, const char *text) {
  char *end;
  errno = 0;
  const uint64_t id = strtoull(text, &end, 10);
  if (!*text || *end || errno || *text == '-') return -1;
  int64_t low = 0, high = names->n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (names->body_id[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < names->n && names->body_id[low] == id ? low : -1;
}

static int64_t find_name(const struct names *names, const char *text) {
  for (int64_t i = 0; i < names->n; i++)
    if (!strcmp(names->name[i], text)) return i;
  return -1;
}

static void partners_add(struct partners *p, struct partner item) {
  if (p->n == p->room) p->item = mem_grow(p->item, p->room = 2 * p->room + 64, sizeof *p->item);
  p->item[p->n++] = item;
}

/* ---- reading ---- */

struct piece {
  uint32_t *source, *count;
  int16_t *impulse;
  uint16_t *delay;
};

static struct piece piece_new(eidx n) {
  return (struct piece){NEW(uint32_t, n), NEW_ZERO(uint32_t, n), NEW(int16_t, n), NEW(uint16_t, n)};
}

static void piece_free(struct piece *p) {
  mem_free(p->source), mem_free(p->count), mem_free(p->impulse), mem_free(p->delay);
}

static void read_values(struct connectome_file *file, eidx first, eidx n, struct piece *p) {
  connectome_impulses(file, first, n, p->impulse);
  connectome_delays(file, first, n, p->delay);
  if (connectome_facts(file)->has_counts) connectome_counts(file, first, n, p->count);
}

static struct partners read_inputs(struct connectome_file *file, int64_t row, const eidx *row_ptr) {
  const eidx first = row_ptr[row], n = row_ptr[row + 1] - first;
  struct piece p = piece_new(n);
  struct partners in = {0};
  connectome_sources(file, first, n, p.source);
  read_values(file, first, n, &p);
  for (eidx e = 0; e < n; e++)
    partners_add(&in, (struct partner){p.source[e], p.impulse[e], p.delay[e], p.count[e]});
  piece_free(&p);
  return in;
}

/* The row whose edges hold edge e: the last that begins at or before it and is not empty. */
static int64_t row_of_edge(const eidx *row_ptr, int64_t n_rows, eidx e) {
  int64_t low = 0, high = n_rows;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (row_ptr[middle] <= e)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* The file is sorted by target, so outputs are found by looking at every source. */
static struct partners read_outputs(struct connectome_file *file, uint32_t node,
                                    const eidx *row_ptr, const uint32_t *node_of_row) {
  const struct connectome_facts *f = connectome_facts(file);
  struct piece p = piece_new(f->n_edges < PIECE ? f->n_edges : PIECE);
  struct partners out = {0};
  for (eidx first = 0; first < f->n_edges; first += PIECE) {
    const eidx n = f->n_edges - first < PIECE ? f->n_edges - first : PIECE;
    bool read = false;
    connectome_sources(file, first, n, p.source);
    for (eidx e = 0; e < n; e++) {
      if (p.source[e] != node) continue;
      if (!read) read_values(file, first, n, &p);
      read = true;
      const uint32_t target = node_of_row[row_of_edge(row_ptr, f->n_nodes, first + e)];
      partners_add(&out, (struct partner){target, p.impulse[e], p.delay[e], p.count[e]});
    }
  }
  piece_free(&p);
  return out;
}

/* ---- reporting ---- */

static int strongest_first(const void *left, const void *right) {
  const struct partner *a = left, *b = right;
  if (abs(a->impulse) != abs(b->impulse)) return abs(a->impulse) > abs(b->impulse) ? -1 : 1;
  if (a->node != b->node) return a->node < b->node ? -1 : 1;
  return (int)a->delay - (int)b->delay;
}

static json_t *partner_json(const struct names *names, const struct partner *p, bool counts) {
  json_t *item = json_object();
  json_object_set_new(item, "id", id_json(names, p->node));
  if (names->type.code)
    json_object_set_new(item, "type", json_string(names->type.label[names->type.code[p->node]]));
  json_object_set_new(item, "impulse", json_integer(p->impulse));
  if (counts) json_object_set_new(item, "synapses", json_integer(p->count));
  json_object_set_new(item, "delay_steps", json_integer(p->delay));
  return item;
}

static json_t *partners_json(const struct names *names, struct partners *p, int64_t limit,
                             bool counts) {
  json_t *list = json_array();
  int64_t sum = 0;
  for (int64_t i = 0; i < p->n; i++) sum += p->item[i].impulse;
  if (p->n) qsort(p->item, (size_t)p->n, sizeof *p->item, strongest_first);
  for (int64_t i = 0; i < p->n && (!limit || i < limit); i++)
    json_array_append_new(list, partner_json(names, &p->item[i], counts));
  json_t *all = json_pack("{s:I, s:I}", "edges", (json_int_t)p->n, "impulse_sum", (json_int_t)sum);
  json_object_set_new(all, limit && p->n > limit ? "strongest" : "partners", list);
  return all;
}

static void add_columns(struct connectome_file *file, int64_t node, json_t *facts) {
  char **names = connectome_column_names(file);
  for (int i = 0; names[i]; i++) {
    struct node_column c;
    connectome_column(file, names[i], &c);
    json_object_set_new(facts, names[i],
                        c.code  ? json_string(c.label[c.code[node]])
                        : c.i64 ? json_integer(c.i64[node])
                                : json_real(c.f64[node]));
    node_column_free(&c);
  }
  texts_free(names);
}

static void add_partners(struct connectome_file *file, const struct names *names, uint32_t node,
                         int64_t limit, json_t *facts) {
  const struct connectome_facts *f = connectome_facts(file);
  eidx *row_ptr = NEW(eidx, f->n_nodes + 1);
  uint32_t *row_of_node = NEW(uint32_t, f->n_nodes), *node_of_row = NEW(uint32_t, f->n_nodes);
  connectome_row_ptr(file, 0, f->n_nodes + 1, row_ptr);
  connectome_row_of_node(file, row_of_node);
  connectome_node_of_row(file, node_of_row);
  struct partners in = read_inputs(file, row_of_node[node], row_ptr);
  struct partners out = read_outputs(file, node, row_ptr, node_of_row);
  json_object_set_new(facts, "row", json_integer(row_of_node[node]));
  json_object_set_new(facts, "inputs", partners_json(names, &in, limit, f->has_counts));
  json_object_set_new(facts, "outputs", partners_json(names, &out, limit, f->has_counts));
  mem_free(in.item), mem_free(out.item);
  mem_free(row_ptr), mem_free(row_of_node), mem_free(node_of_row);
}

struct status inspect_node(struct connectome_file *file, const struct inspect_request *request,
                           json_t *facts) {
  struct names names = names_read(file);
  const int64_t node =
      names.name ? find_name(&names, request->node) : find_number(&names, request->node);
  struct status s = fine();
  if (node < 0)
    s = failure(EXIT_USAGE, "--node %.200s: no neuron of this %s in %s", request->node,
                names.name ? "name" : "body id", request->path);
  else {
    json_object_set_new(facts, "id", id_json(&names, (uint32_t)node));
    json_object_set_new(facts, "node", json_integer(node));
    add_columns(file, node, facts);
    add_partners(file, &names, (uint32_t)node, request->partners, facts);
  }
  names_free(&names);
  return s;
}
