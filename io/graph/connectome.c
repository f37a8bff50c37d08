/* Frees a graph in memory; names its datasets, and digests its edges. */
#include "inside.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>

void node_column_free(struct node_column *column) {
  for (int i = 0; i < column->n_labels; i++) mem_free(column->label[i]);
  mem_free(column->label), mem_free(column->code), mem_free(column->i64), mem_free(column->f64);
  mem_free(column->name);
  *column = (struct node_column){0};
}

static void scx_extras_free(struct scx_extras *scx) {
  if (!scx) return;
  mem_free(scx->manifest), mem_free(scx->external_id), mem_free(scx->type_code);
  mem_free(scx->transmitter_code), mem_free(scx->side_code), mem_free(scx->place);
  mem_free(scx);
}

void connectome_free(struct connectome *graph) {
  for (int i = 0; i < graph->n_columns; i++) node_column_free(&graph->column[i]);
  for (int64_t i = 0; graph->name && i < graph->n_nodes; i++) mem_free(graph->name[i]);
  mem_free(graph->population), mem_free(graph->body_id), mem_free(graph->name),
      mem_free(graph->column);
  mem_free(graph->source), mem_free(graph->target), mem_free(graph->count);
  mem_free(graph->impulse), mem_free(graph->delay);
  mem_free(graph->row_of_node), mem_free(graph->node_of_row), mem_free(graph->block);
  mem_free(graph->provenance);
  scx_extras_free(graph->scx);
  *graph = (struct connectome){0};
}

char *node_path(const char *population, const char *name, char to[CONNECTOME_NAME]) {
  snprintf(to, CONNECTOME_NAME, "/nodes/%s/%s", population, name);
  return to;
}

char *edge_path(const char *population, const char *name, char to[CONNECTOME_NAME]) {
  snprintf(to, CONNECTOME_NAME, "/edges/%s__%s__chemical/%s", population, population, name);
  return to;
}

bool is_reserved_column(const char *name) {
  static const char *const reserved[] = {"body_id", "name", "model_type", "@library",
                                         "dynamics_params"};
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (!strcmp(name, reserved[i])) return true;
  return false;
}

struct sum128 edges_sum(eidx n, const uint32_t *source, const uint32_t *target,
                        const int16_t *impulse, const uint16_t *delay, uint16_t constant_delay) {
  enum { PIECE = 1 << 16 };
  struct sum128 sum = {0};
#pragma omp parallel
  {
    struct sum128 mine = {0};
#pragma omp for schedule(dynamic, 1)
    for (eidx at = 0; at < n; at += PIECE)
      sum128_add(&mine, edge_hash_sum(n - at < PIECE ? n - at : PIECE, source + at, target + at,
                                      impulse + at, delay ? delay + at : NULL, constant_delay));
#pragma omp critical
    sum128_add(&sum, mine);
  }
  return sum;
}

void graph_digest(int64_t n_nodes, const uint64_t *body_id, char *const *name, struct sum128 edges,
                  char text[DIGEST_TEXT]) {
  struct sha256 s;
  sha256_init(&s);
  sha256_add(&s, &n_nodes, sizeof n_nodes);
  for (int64_t i = 0; name && i < n_nodes; i++) sha256_add(&s, name[i], strlen(name[i]) + 1);
  if (!name && n_nodes) sha256_add(&s, body_id, (size_t)n_nodes * sizeof *body_id);
  sha256_add(&s, &edges.low, sizeof edges.low);
  sha256_add(&s, &edges.high, sizeof edges.high);
  sha256_end(&s, text);
}

void order_digest(int64_t n_nodes, const uint32_t *node_of_row, int n_blocks, const int64_t *block,
                  char text[DIGEST_TEXT]) {
  struct sha256 s;
  const int64_t blocks = n_blocks;
  sha256_init(&s);
  sha256_add(&s, &n_nodes, sizeof n_nodes);
  sha256_add(&s, &blocks, sizeof blocks);
  if (node_of_row) sha256_add(&s, node_of_row, (size_t)n_nodes * sizeof *node_of_row);
  for (uint32_t i = 0; !node_of_row && i < n_nodes; i++) sha256_add(&s, &i, sizeof i);
  if (n_blocks) sha256_add(&s, block, ((size_t)n_blocks + 1) * sizeof *block);
  sha256_end(&s, text);
}
