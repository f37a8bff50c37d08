/* The artifact, from memory to file. Layout: FORMAT.md. */
#include "inside.h"
#include "io/files/files.h"
#include "core/json.h"
#include "core/log.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FASCICLE_VERSION
#define FASCICLE_VERSION "unknown"
#endif

enum { SONATA_MAGIC = 0x0A7A };

/* ---- checks: nothing is written before the graph has passed ---- */

/* Texts of one dataset are stored with the length of the longest. */
static struct status check_texts(char *const *text, int64_t n) {
  enum { LONGEST = 1000 };
  for (int64_t i = 0; text && i < n; i++)
    if (strlen(text[i]) > LONGEST)
      return failure(EXIT_INPUT, "the name or label '%.60s...' has %zu bytes; at most %d are taken",
                     text[i], strlen(text[i]), LONGEST);
  return fine();
}

static struct status check_columns(const struct connectome *g) {
  for (int i = 0; i < g->n_columns; i++) {
    const char *name = g->column[i].name;
    if (!name || !*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") ||
        strlen(name) > 200)
      return failure(EXIT_USAGE,
                     "node column '%s': this cannot be the name of a dataset; choose another",
                     name ? name : "");
    if (is_reserved_column(name))
      return failure(EXIT_USAGE,
                     "node column '%s': the file format uses this name itself; choose another",
                     name);
    TRY(check_texts(g->column[i].label, g->column[i].n_labels));
    for (int k = 0; k < i; k++)
      if (!strcmp(name, g->column[k].name))
        return failure(EXIT_USAGE, "node column '%s' occurs twice", name);
  }
  return fine();
}

static struct status check_population(const char *name) {
  if (*name && strlen(name) < 128 && !strchr(name, '/') && strcmp(name, ".")) return fine();
  return failure(EXIT_USAGE,
                 "population '%.140s': give a name of 1 to 127 characters without a slash", name);
}

static struct status check_graph(const struct connectome *g) {
  if (g->n_nodes < 0 || g->n_nodes > UINT32_MAX)
    return failure(EXIT_INPUT, "%lld neurons: node ids are 32 bits wide, at most %u fit",
                   (long long)g->n_nodes, UINT32_MAX);
  for (eidx e = 0; e < g->n_edges; e++)
    if (g->source[e] >= g->n_nodes || g->target[e] >= g->n_nodes)
      return failure(EXIT_INPUT, "edge %lld links nodes %u and %u, but there are only %lld",
                     (long long)e, g->source[e], g->target[e], (long long)g->n_nodes);
  for (eidx e = 0; g->delay && e < g->n_edges; e++)
    if (!g->delay[e])
      return failure(EXIT_INPUT, "edge %lld has delay 0; the shortest is 1 step", (long long)e);
  if (!g->delay && g->n_edges && !g->constant_delay)
    return failure(EXIT_INPUT, "the delay of all edges is 0; the shortest is 1 step");
  for (int64_t i = 1; !g->name && i < g->n_nodes; i++)
    if (g->body_id[i - 1] >= g->body_id[i])
      return failure(EXIT_INPUT, "body ids must ascend without repeats: %llu stands before %llu",
                     (unsigned long long)g->body_id[i - 1], (unsigned long long)g->body_id[i]);
  TRY(check_population(g->population ? g->population : "neurons"));
  TRY(check_texts(g->name, g->n_nodes));
  return check_columns(g);
}

/* ---- what readers want to know before they read ---- */

struct summary {
  eidx *row_ptr; /* [n_nodes + 1] */
  int min_delay, max_delay;
  int64_t max_in_impulse;
  bool parallel_edges;
};

static eidx *count_rows(const struct connectome *g) {
  eidx *ptr = NEW_ZERO(eidx, g->n_nodes + 1);
  for (eidx e = 0; e < g->n_edges; e++)
    ptr[(g->row_of_node ? g->row_of_node[g->target[e]] : g->target[e]) + 1]++;
  for (int64_t i = 0; i < g->n_nodes; i++) ptr[i + 1] += ptr[i];
  return ptr;
}

static struct summary summarize(const struct connectome *g) {
  struct summary s = {.row_ptr = count_rows(g)};
  s.min_delay = s.max_delay = g->n_edges ? (g->delay ? g->delay[0] : g->constant_delay) : 0;
  for (eidx e = 0; g->delay && e < g->n_edges; e++) {
    if (g->delay[e] < s.min_delay) s.min_delay = g->delay[e];
    if (g->delay[e] > s.max_delay) s.max_delay = g->delay[e];
  }
  for (int64_t i = 0; i < g->n_nodes; i++) {
    int64_t sum = 0;
    for (eidx e = s.row_ptr[i]; e < s.row_ptr[i + 1]; e++) {
      sum += abs(g->impulse[e]);
      if (e > s.row_ptr[i] && g->source[e] == g->source[e - 1]) s.parallel_edges = true;
    }
    if (sum > s.max_in_impulse) s.max_in_impulse = sum;
  }
  return s;
}

/* ---- root attributes ---- */

/* Who made it: the provenance's "program" where it says so. */
static void put_creator(struct h5_file *h5, const struct connectome *g) {
  json_t *json = NULL;
  const char *program = NULL;
  if (g->provenance && !json_from_text(g->provenance, "provenance", &json).code)
    program = json_string_value(json_object_get(json, "program"));
  h5_put_text(h5, "/", "created_by", program ? program : "fascicle " FASCICLE_VERSION);
  json_decref(json);
  char now[32];
  time_utc(now);
  h5_put_text(h5, "/", "created_utc", now);
  h5_put_text(h5, "/", "source_json", g->provenance ? g->provenance : "{}");
}

static void put_facts(struct h5_file *h5, const struct connectome *g, const struct summary *s) {
  h5_put_text(h5, "/", "population", g->population ? g->population : "neurons");
  h5_put_number(h5, "/", "n_nodes", g->n_nodes);
  h5_put_number(h5, "/", "n_edges", g->n_edges);
  h5_put_number(h5, "/", "min_delay", s->min_delay);
  h5_put_number(h5, "/", "max_delay", s->max_delay);
  h5_put_number(h5, "/", "max_in_impulse", s->max_in_impulse);
  h5_put_number(h5, "/", "parallel_edges", s->parallel_edges);
}

static void put_root(struct h5_file *h5, const struct connectome *g, const struct summary *s) {
  const uint32_t magic = SONATA_MAGIC, version[2] = {0, 1};
  const int32_t format_version = CONNECTOME_VERSION;
  h5_put_values(h5, "/", "magic", F_U32, 1, &magic);
  h5_put_values(h5, "/", "version", F_U32, 2, version);
  h5_put_text(h5, "/", "format", CONNECTOME_FORMAT);
  h5_put_values(h5, "/", "format_version", F_I32, 1, &format_version);
  put_creator(h5, g);
  put_facts(h5, g, s);
  char digest[DIGEST_TEXT];
  graph_digest(g->n_nodes, g->body_id, g->name,
               edges_sum(g->n_edges, g->source, g->target, g->impulse, g->delay, g->constant_delay),
               digest);
  h5_put_text(h5, "/", "graph_digest", digest);
  order_digest(g->n_nodes, g->node_of_row, g->n_blocks, g->block, digest);
  h5_put_text(h5, "/", "order_digest", digest);
}

/* ---- nodes ---- */

/* An enumeration as SONATA readers know it: small codes, and the labels under @library. */
static void put_enumeration(struct h5_file *h5, const char *population, const struct node_column *c,
                            int64_t n) {
  char name[CONNECTOME_NAME - 64], path[CONNECTOME_NAME];
  snprintf(name, sizeof name, "0/%s", c->name);
  node_path(population, name, path);
  if (c->n_labels <= 256) {
    uint8_t *small = NEW(uint8_t, n);
    for (int64_t i = 0; i < n; i++) small[i] = (uint8_t)c->code[i];
    h5_write_checked(h5, path, F_U8, n, 1, small);
    mem_free(small);
  } else
    h5_write_checked(h5, path, F_U32, n, 1, c->code);
  snprintf(name, sizeof name, "0/@library/%s", c->name);
  h5_write_texts(h5, node_path(population, name, path), c->n_labels, c->label);
}

static void put_column(struct h5_file *h5, const char *population, const struct node_column *c,
                       int64_t n) {
  char name[CONNECTOME_NAME - 64], path[CONNECTOME_NAME];
  snprintf(name, sizeof name, "0/%s", c->name);
  node_path(population, name, path);
  if (c->i64)
    h5_write_checked(h5, path, F_I64, n, 1, c->i64);
  else if (c->f64)
    h5_write_checked(h5, path, F_F64, n, 1, c->f64);
  else
    put_enumeration(h5, population, c, n);
}

/* 0, 1, 2 ... n - 1, made piece by piece. */
static void put_counting(struct h5_file *h5, const char *path, int64_t n) {
  enum { PIECE = 16 * H5_CHUNK };
  uint64_t *piece = NEW(uint64_t, n < PIECE ? n : PIECE);
  h5_make_packed(h5, path, F_U64, n, 1);
  for (int64_t first = 0; first < n; first += PIECE) {
    const int64_t here = n - first < PIECE ? n - first : PIECE;
    for (int64_t i = 0; i < here; i++) piece[i] = (uint64_t)(first + i);
    h5_put_packed(h5, path, first, here, piece);
  }
  mem_free(piece);
}

void put_nodes(struct h5_file *h5, const char *population, const struct connectome *g,
               const uint32_t *type) {
  char path[CONNECTOME_NAME], *const model[] = {"point_neuron"};
  const int64_t n = g->n_nodes;
  node_path(population, "node_type_id", path);
  if (type)
    h5_write(h5, path, F_U32, n, 1, type);
  else
    h5_write_constant(h5, path, F_U32, n, 0);
  h5_write_constant(h5, node_path(population, "node_group_id", path), F_U32, n, 0);
  put_counting(h5, node_path(population, "node_id", path), n);
  char second[CONNECTOME_NAME];
  h5_link(h5, path, node_path(population, "node_group_index", second));
  if (!type) {
    h5_write_constant(h5, node_path(population, "0/model_type", path), F_U8, n, 0);
    h5_write_texts(h5, node_path(population, "0/@library/model_type", path), 1, model);
  }
  h5_write_checked(h5, node_path(population, "0/body_id", path), F_U64, n, 1, g->body_id);
  if (g->name) h5_write_texts(h5, node_path(population, "0/name", path), n, g->name);
  for (int i = 0; i < g->n_columns; i++) put_column(h5, population, &g->column[i], n);
}

/* ---- edges ---- */

/* Which edges end at a node: node -> one range of ranges -> [first, end) of edges. Nodes without
 * any have an empty range of ranges. */
void put_index(struct h5_file *h5, const char *population, const struct connectome *g,
               const eidx *row_ptr) {
  char path[CONNECTOME_NAME], second[CONNECTOME_NAME];
  int64_t(*ranges)[2] = mem_alloc(g->n_nodes, sizeof *ranges);
  int64_t(*edges)[2] = mem_alloc(g->n_nodes, sizeof *edges);
  int64_t n = 0;
  for (int64_t node = 0; node < g->n_nodes; node++) {
    const int64_t row = g->row_of_node ? g->row_of_node[node] : node;
    ranges[node][0] = n;
    if (row_ptr[row] < row_ptr[row + 1])
      edges[n][0] = row_ptr[row], edges[n][1] = row_ptr[row + 1], n++;
    ranges[node][1] = n;
  }
  edge_path(population, "indices/target_to_source/node_id_to_ranges", path);
  h5_write_checked(h5, path, F_I64, g->n_nodes, 2, ranges);
  /* One reader looks for the singular and fails without it. */
  h5_link(h5, path, edge_path(population, "indices/target_to_source/node_id_to_range", second));
  h5_write_checked(h5, edge_path(population, "indices/target_to_source/range_to_edge_id", path),
                   F_I64, n, 2, edges);
  mem_free(ranges), mem_free(edges);
}

/* One large array, plain or packed as the graph wishes. */
static void put_array(struct h5_file *h5, const struct connectome *g, const char *path,
                      enum ftype type, const void *data, struct progress *progress) {
  if (g->packed)
    h5_write_packed(h5, path, type, g->n_edges, 1, data);
  else
    h5_write_checked(h5, path, type, g->n_edges, 1, data);
  progress_add(progress, g->n_edges * (int64_t)ftype_bytes(type));
}

void put_ends(struct h5_file *h5, const char *population, const struct connectome *g,
              struct progress *progress) {
  char path[CONNECTOME_NAME];
  edge_path(population, "source_node_id", path);
  put_array(h5, g, path, F_U32, g->source, progress);
  h5_put_text(h5, path, "node_population", population);
  edge_path(population, "target_node_id", path);
  put_array(h5, g, path, F_U32, g->target, progress);
  h5_put_text(h5, path, "node_population", population);
  h5_write_constant(h5, edge_path(population, "edge_type_id", path), F_U32, g->n_edges, 0);
  h5_write_constant(h5, edge_path(population, "edge_group_id", path), F_U32, g->n_edges, 0);
  put_counting(h5, edge_path(population, "edge_group_index", path), g->n_edges);
  progress_add(progress, g->n_edges * (int64_t)sizeof(uint64_t));
}

static void put_edges(struct h5_file *h5, const char *population, const struct connectome *g,
                      const eidx *row_ptr, struct progress *progress) {
  char path[CONNECTOME_NAME];
  put_ends(h5, population, g, progress);
  put_array(h5, g, edge_path(population, "0/impulse", path), F_I16, g->impulse, progress);
  if (g->count) put_array(h5, g, edge_path(population, "0/nsyns", path), F_U32, g->count, progress);
  edge_path(population, "0/delay_steps", path);
  if (g->delay)
    put_array(h5, g, path, F_U16, g->delay, progress);
  else
    h5_write_constant(h5, path, F_U16, g->n_edges, g->constant_delay);
  put_index(h5, population, g, row_ptr);
}

/* ---- order ---- */

static void put_order(struct h5_file *h5, const struct connectome *g, const eidx *row_ptr) {
  h5_write_checked(h5, "/order/row_ptr", F_I64, g->n_nodes + 1, 1, row_ptr);
  h5_put_text(h5, "/order", "method", g->row_of_node ? g->order_method : "none: row = node");
  h5_put_number(h5, "/order", "blocks", g->row_of_node ? g->n_blocks : 0);
  if (!g->row_of_node) return;
  h5_put_number(h5, "/order", "seed", g->order_seed);
  h5_put_number(h5, "/order", "cut", g->order_cut);
  h5_write_checked(h5, "/order/row_of_node", F_U32, g->n_nodes, 1, g->row_of_node);
  h5_write_checked(h5, "/order/node_of_row", F_U32, g->n_nodes, 1, g->node_of_row);
  if (g->n_blocks) h5_write(h5, "/order/block", F_I64, (int64_t)g->n_blocks + 1, 1, g->block);
}

/* ---- the source-major copy ---- */

/* Edge numbers by (row of source, row of target): a stable counting sort of the file order. */
static eidx *by_source(const struct connectome *g, eidx *ptr) {
  memset(ptr, 0, ((size_t)g->n_nodes + 1) * sizeof *ptr);
  eidx *edge = NEW(eidx, g->n_edges), *at = NEW(eidx, g->n_nodes);
  for (eidx e = 0; e < g->n_edges; e++)
    ptr[(g->row_of_node ? g->row_of_node[g->source[e]] : g->source[e]) + 1]++;
  for (int64_t i = 0; i < g->n_nodes; i++) at[i] = ptr[i], ptr[i + 1] += ptr[i];
  for (eidx e = 0; e < g->n_edges; e++)
    edge[at[g->row_of_node ? g->row_of_node[g->source[e]] : g->source[e]]++] = e;
  mem_free(at);
  return edge;
}

static void put_out(struct h5_file *h5, const struct connectome *g) {
  eidx *ptr = NEW(eidx, g->n_nodes + 1), *edge = by_source(g, ptr);
  h5_write_checked(h5, "/out/ptr", F_I64, g->n_nodes + 1, 1, ptr);
  struct lif_edge *out = NEW(struct lif_edge, g->n_edges);
#pragma omp parallel for schedule(static)
  for (eidx i = 0; i < g->n_edges; i++) {
    const eidx e = edge[i];
    out[i] =
        (struct lif_edge){.target = g->row_of_node ? g->row_of_node[g->target[e]] : g->target[e],
                          .weight = g->impulse[e],
                          .delay = g->delay ? g->delay[e] : g->constant_delay};
  }
  h5_write_checked(h5, "/out/edge", F_U32, g->n_edges, CONNECTOME_OUT_WIDTH, out);
  mem_free(out), mem_free(edge), mem_free(ptr);
}

/* ---- all of it ---- */

/* A generous guess, to refuse a full disk before the work. */
static int64_t bytes_expected(const struct connectome *g, bool streamable) {
  const int64_t edge = g->packed ? 5 : 10 + (g->count ? 4 : 0) + (g->delay ? 2 : 0);
  return (1 << 20) + 100 * g->n_nodes + edge * g->n_edges +
         (streamable ? 8 * (g->n_edges + g->n_nodes) : 0);
}

/* Of the arrays that put_edges writes, before packing, and of the room that
 * put_out takes its time for. */
static int64_t edge_bytes(const struct connectome *g, bool streamable) {
  return g->n_edges *
         (4 + 4 + 8 + 2 + (g->count ? 4 : 0) + (g->delay ? 2 : 0) + (streamable ? 8 : 0));
}

struct status connectome_write(struct connectome *g, const char *path, bool streamable,
                               bool force) {
  TRY(file_may_write(path, bytes_expected(g, streamable), force));
  TRY(check_graph(g));
  char tmp[FILE_PATH];
  TRY(file_tmp_own(path, tmp));
  connectome_sort(g);
  struct h5_file h5;
  TRY(h5_create(tmp, &h5));
  struct summary s = summarize(g);
  const char *population = g->population ? g->population : "neurons";
  put_root(&h5, g, &s);
  put_nodes(&h5, population, g, NULL);
  struct progress progress = progress_start("writing", "bytes", 0, edge_bytes(g, streamable));
  put_edges(&h5, population, g, s.row_ptr, &progress);
  put_order(&h5, g, s.row_ptr);
  if (streamable) put_out(&h5, g);
  progress_wipe();
  put_scx(&h5, g);
  mem_free(s.row_ptr);
  h5_close(&h5);
  return file_publish(tmp, path);
}
