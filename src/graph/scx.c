/* The portable .scx folder as a graph in memory, and back. */
#include "scx.h"
#include "core/json.h"
#include "core/mem.h"
#include "io/scx/scx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool scx_is(const char *path) {
  struct stat info;
  char manifest[4200];
  if (stat(path, &info) || !S_ISDIR(info.st_mode)) return false;
  return snprintf(manifest, sizeof manifest, "%s/manifest.json", path) < (int)sizeof manifest &&
         stat(manifest, &info) == 0;
}

/* ---- import ---- */

static bool ascends(int64_t n, const uint64_t *id) {
  for (int64_t i = 1; i < n; i++)
    if (id[i - 1] >= id[i]) return false;
  return true;
}

static struct node_column numbers(const char *name, int64_t n) {
  return (struct node_column){.name = mem_string(name), .i64 = NEW(int64_t, n)};
}

static void take_nodes(const struct scx *scx, struct connectome *g) {
  const int64_t n = g->n_nodes = scx->n_neurons;
  const bool ids = ascends(n, scx->external_id);
  g->body_id = NEW(uint64_t, n);
  static const char *const name[] = {"type_code", "sign", "side_code"};
  g->n_columns = sizeof name / sizeof *name;
  g->column = NEW_ZERO(struct node_column, g->n_columns);
  for (int k = 0; k < g->n_columns; k++) g->column[k] = numbers(name[k], n);
  for (int64_t i = 0; i < n; i++) {
    g->body_id[i] = ids ? scx->external_id[i] : (uint64_t)i;
    g->column[0].i64[i] = scx->type_code[i];
    g->column[1].i64[i] = scx->transmitter_code[i];
    g->column[2].i64[i] = scx->side_code[i];
  }
}

/* The arrays move from the folder's struct into the graph. */
static struct status take_edges(struct scx *scx, struct connectome *g) {
  if (scx->n_edges > UINT32_MAX)
    return failure(EXIT_INPUT, "%lld edges: an .scx import takes at most %u",
                   (long long)scx->n_edges, UINT32_MAX);
  g->n_edges = scx->n_edges;
  g->source = scx->source, g->target = scx->target, g->impulse = scx->weight, g->delay = scx->delay;
  scx->source = scx->target = NULL, scx->weight = NULL, scx->delay = NULL;
  struct scx_extras *x = g->scx = NEW_ZERO(struct scx_extras, 1);
  x->manifest = scx->manifest, x->external_id = scx->external_id, x->type_code = scx->type_code;
  x->transmitter_code = scx->transmitter_code, x->side_code = scx->side_code;
  scx->manifest = NULL, scx->external_id = NULL, scx->type_code = NULL;
  scx->transmitter_code = scx->side_code = NULL;
  x->place = NEW(uint32_t, g->n_edges);
  for (int64_t i = 0; i < g->n_edges; i++) x->place[i] = (uint32_t)i;
  return fine();
}

struct status scx_import(const char *path, struct connectome *g) {
  struct scx scx;
  *g = (struct connectome){0};
  TRY(scx_read(path, &scx));
  take_nodes(&scx, g);
  struct status s = take_edges(&scx, g);
  scx_free(&scx);
  if (s.code) connectome_free(g);
  return s;
}

/* ---- export ---- */

static void put_edge(struct scx *to, int64_t at, const struct connectome *g, eidx e) {
  to->source[at] = g->source[e], to->target[at] = g->target[e];
  to->weight[at] = g->impulse[e], to->delay[at] = g->delay ? g->delay[e] : g->constant_delay;
}

/* Every edge back to its place. */
static void put_back(const struct connectome *g, struct scx *to) {
  for (eidx e = 0; e < g->n_edges; e++) put_edge(to, g->scx->place[e], g, e);
}

/* By (pre, post): two stable counting sorts of the file order, in which edges of one pair already
 * stand by (delay, weight). */
static void put_sorted(const struct connectome *g, struct scx *to) {
  const int64_t n = g->n_nodes;
  eidx *by_target = NEW(eidx, g->n_edges), *at = NEW_ZERO(eidx, n + 1);
  for (eidx e = 0; e < g->n_edges; e++) at[g->target[e] + 1]++;
  for (int64_t i = 0; i < n; i++) at[i + 1] += at[i];
  for (eidx e = 0; e < g->n_edges; e++) by_target[at[g->target[e]]++] = e;
  memset(at, 0, (size_t)(n + 1) * sizeof *at);
  for (eidx e = 0; e < g->n_edges; e++) at[g->source[e] + 1]++;
  for (int64_t i = 0; i < n; i++) at[i + 1] += at[i];
  for (eidx k = 0; k < g->n_edges; k++)
    put_edge(to, at[g->source[by_target[k]]]++, g, by_target[k]);
  mem_free(by_target), mem_free(at);
}

/* A column's numbers, or the codes of its labels; 0 where there is none, or
 * it is outside the range. */
static int64_t column_value(const struct connectome *g, const char *name, int64_t i, int64_t low,
                            int64_t high) {
  for (int k = 0; k < g->n_columns; k++) {
    const struct node_column *c = &g->column[k];
    if (strcmp(c->name, name) || c->f64) continue;
    const int64_t x = c->i64 ? c->i64[i] : (int64_t)c->code[i];
    return x < low || x > high ? 0 : x;
  }
  return 0;
}

static void put_nodes(const struct connectome *g, struct scx *to) {
  for (int64_t i = 0; i < g->n_nodes; i++) {
    to->external_id[i] = g->scx ? g->scx->external_id[i] : g->body_id[i];
    to->type_code[i] =
        g->scx ? g->scx->type_code[i] : (uint16_t)column_value(g, "type", i, 0, UINT16_MAX);
    to->transmitter_code[i] =
        g->scx ? g->scx->transmitter_code[i] : (int8_t)column_value(g, "sign", i, -1, 1);
    to->side_code[i] =
        g->scx ? g->scx->side_code[i] : (int8_t)column_value(g, "side", i, 0, INT8_MAX);
  }
}

/* What a file says of itself is not to be trusted: names stay inside, counts make up the graph. */
static struct status block_fits(const struct scx *to, const struct scx_block *b, int64_t source,
                                int64_t edge) {
  const char *name = b->filename;
  if (strstr(name, "..") || strncmp(name, "blocks/", 7) || strlen(name) > 200)
    return failure(EXIT_INPUT,
                   "the .scx manifest kept in the graph names a block that is not in blocks/");
  if (b->source_start == source && b->source_count >= 0 &&
      b->source_count <= to->n_neurons - source && b->edge_count >= 0 &&
      b->edge_count <= to->n_edges - edge)
    return fine();
  return failure(EXIT_INPUT, "the .scx manifest kept in the graph has blocks that do not fit it");
}

static struct status take_blocks(const json_t *list, struct scx *to) {
  int64_t source = 0, edge = 0;
  to->n_blocks = (int)json_array_size(list);
  to->block = NEW_ZERO(struct scx_block, to->n_blocks);
  for (int i = 0; i < to->n_blocks; i++) {
    const json_t *b = json_array_get(list, (size_t)i);
    const char *name = json_string_value(json_object_get(b, "filename"));
    to->block[i] =
        (struct scx_block){.filename = mem_string(name ? name : ""),
                           .source_start = json_integer_value(json_object_get(b, "source_start")),
                           .source_count = json_integer_value(json_object_get(b, "source_count")),
                           .edge_count = json_integer_value(json_object_get(b, "edge_count"))};
    TRY(block_fits(to, &to->block[i], source, edge));
    source += to->block[i].source_count, edge += to->block[i].edge_count;
  }
  if (source == to->n_neurons && edge == to->n_edges) return fine();
  return failure(EXIT_INPUT,
                 "the .scx manifest kept in the graph has blocks for %lld neurons and %lld edges",
                 (long long)source, (long long)edge);
}

/* The blocks that the kept manifest lists. */
static struct status blocks_of(const char *manifest, struct scx *to) {
  json_t *json;
  TRY(json_from_text(manifest, "the .scx manifest kept in the graph", &json));
  const struct status s = take_blocks(json_object_get(json, "blocks"), to);
  json_decref(json);
  if (!s.code) to->manifest = mem_string(manifest);
  return s;
}

struct status scx_export(const struct connectome *g, int64_t block_size, const char *path) {
  const int64_t n = g->n_nodes;
  struct scx to = {.n_neurons = n, .n_edges = g->n_edges};
  if (g->scx) {
    struct status s = blocks_of(g->scx->manifest, &to);
    if (s.code) {
      scx_free(&to);
      return s;
    }
  }
  to.dataset_id = mem_string(g->population ? g->population : "neurons");
  to.external_id = NEW(uint64_t, n), to.type_code = NEW(uint16_t, n);
  to.transmitter_code = NEW(int8_t, n), to.side_code = NEW(int8_t, n);
  to.source = NEW(uint32_t, g->n_edges), to.target = NEW(uint32_t, g->n_edges);
  to.weight = NEW(int16_t, g->n_edges), to.delay = NEW(uint16_t, g->n_edges);
  put_nodes(g, &to);
  if (g->scx)
    put_back(g, &to);
  else
    put_sorted(g, &to);
  struct status s = scx_write(&to, block_size, path);
  scx_free(&to);
  return s;
}
