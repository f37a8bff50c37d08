/* One rank's share of a graph, from the artifact to memory. */
#include "load.h"
#include "partition/halo.h"
#include "core/json.h"
#include "core/mem.h"
#include "partition/rows.h"

#include <string.h>

enum { SLICE = 1 << 20 }; /* edges read at once */

void load_split(const struct comm *comm, struct connectome_file *file, int parts, gidx *first) {
  if (comm->rank == 0) {
    const struct connectome_facts *facts = connectome_facts(file);
    const bool nested = facts->n_blocks >= parts && facts->n_blocks % parts == 0;
    int64_t *block = NULL;
    eidx *row_ptr = NULL;
    if (nested) {
      block = NEW(int64_t, facts->n_blocks + 1);
      connectome_blocks(file, block);
    } else {
      row_ptr = NEW(eidx, facts->n_nodes + 1);
      connectome_row_ptr(file, 0, facts->n_nodes + 1, row_ptr);
    }
    rows_split(facts->n_nodes, row_ptr, block, facts->n_blocks, parts, first);
    mem_free(block), mem_free(row_ptr);
  }
  comm_share(comm, first, (parts + 1) * (int64_t)sizeof *first, 0);
}

bool load_is_unsigned(struct connectome_file *file) {
  char *text = connectome_provenance(file);
  json_t *facts = NULL;
  bool is_unsigned = false;
  if (text && !json_from_text(text, "provenance", &facts).code) {
    const json_t *made = facts; /* a graph made from another holds that one's provenance */
    for (const json_t *inner = made; inner;) {
      made = inner;
      inner = json_object_get(json_array_get(json_object_get(made, "inputs"), 0), "provenance");
    }
    const json_t *from = json_object_get(json_object_get(made, "result"), "signs_from");
    is_unsigned = json_is_string(from) && !strcmp(json_string_value(from), "none");
    json_decref(facts);
  }
  mem_free(text);
  return is_unsigned && connectome_facts(file)->n_edges > 0;
}

void share_load(struct connectome_file *file, gidx first, gidx last, struct share *share) {
  ASSERT(first >= 0 && first <= last && last <= connectome_facts(file)->n_nodes);
  const gidx n = last - first;
  if (n < 0 || n > INT32_MAX)
    DIE(EXIT_RUNTIME, "%lld rows on one rank, more than %d; use more ranks", (long long)n,
        INT32_MAX);
  *share = (struct share){.first = first, .n_own = (lidx)n, .row_ptr = NEW(eidx, n + 1)};
  connectome_row_ptr(file, first, n + 1, share->row_ptr);
  share->first_edge = share->row_ptr[0];
  for (gidx i = 0; i <= n; i++) share->row_ptr[i] -= share->first_edge;
  share->n_edges = share->row_ptr[n];
}

void share_free(struct share *share) {
  mem_free(share->row_ptr);
  *share = (struct share){0};
}

/* Sources ascend strictly within a row: sorted, and no pair twice. */
static void check_canonical(const struct share *share, gidx row, eidx e, uint32_t last,
                            uint32_t source) {
  if (e > share->row_ptr[row] && source <= last)
    DIE(EXIT_INPUT,
        "the edges of row %lld are not sorted or hold a pair twice (source %u after %u); convert "
        "the graph "
        "again",
        (long long)(share->first + row), source, last);
}

/* The row of every source of the share, read in slices. */
static gidx *load_sources(struct connectome_file *file, const struct share *share,
                          const uint32_t *row_of_node) {
  gidx *source_row = NEW(gidx, share->n_edges), row = 0;
  uint32_t *slice = NEW(uint32_t, share->n_edges < SLICE ? share->n_edges : SLICE), last = 0;
  for (eidx at = 0; at < share->n_edges; at += SLICE) {
    const eidx n = share->n_edges - at < SLICE ? share->n_edges - at : SLICE;
    connectome_sources(file, share->first_edge + at, n, slice);
    for (eidx i = 0; i < n; i++) {
      while (at + i >= share->row_ptr[row + 1]) row++;
      check_canonical(share, row, at + i, last, slice[i]);
      last = slice[i];
      source_row[at + i] = row_of_node[slice[i]];
    }
  }
  mem_free(slice);
  return source_row;
}

struct status load_graph(const struct comm *comm, struct connectome_file *file,
                         const gidx *first_of_rank, enum halo_kind kind, struct graph *graph) {
  const struct connectome_facts *facts = connectome_facts(file);
  ASSERT(first_of_rank[0] == 0 && first_of_rank[comm->size] == facts->n_nodes);
  *graph = (struct graph){0};
  if (facts->parallel_edges)
    return failure(EXIT_INPUT,
                   "the graph holds parallel edges, which training cannot use; convert it again "
                   "with --duplicates sum");
  struct share share;
  share_load(file, first_of_rank[comm->rank], first_of_rank[comm->rank + 1], &share);
  uint32_t *row_of_node = NEW(uint32_t, facts->n_nodes);
  connectome_row_of_node(file, row_of_node);
  gidx *source = load_sources(file, &share, row_of_node);
  mem_free(row_of_node);
  graph_build(comm, first_of_rank, share.row_ptr, source, kind, graph);
  mem_free(source);
  share_free(&share);
  return fine();
}
