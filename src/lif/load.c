/* Loads a share of a graph from a connectome file, or opens it for streaming. */
#include "net_build.h"
#include "core/mem.h"

enum { SLICE = 1 << 20 }; /* edges read at a time */

struct edge_reader {
  struct connectome_file *file;
  eidx first_edge, n_edges; /* this rank's run in the file */
  uint32_t *row_of_node, *source;
  int16_t *impulse;
  uint16_t *delay;
};

static void read_sources(const struct edge_reader *r, eidx at, eidx n) {
  connectome_sources(r->file, r->first_edge + at, n, r->source);
  for (eidx e = 0; e < n; e++) r->source[e] = r->row_of_node[r->source[e]];
}

static void count_pass(const struct edge_reader *r, struct lif_building *b) {
  for (eidx at = 0; at < r->n_edges; at += SLICE) {
    const eidx n = r->n_edges - at < SLICE ? r->n_edges - at : SLICE;
    read_sources(r, at, n);
    for (eidx e = 0; e < n; e++) lif_building_count(b, r->source[e]);
  }
}

/* row_ptr [n_own + 1]: the run is sorted by target row, so each source's edges come out so too. */
static void scatter_pass(const struct edge_reader *r, const eidx *row_ptr, struct lif_building *b) {
  lidx target = 0;
  for (eidx at = 0; at < r->n_edges; at += SLICE) {
    const eidx n = r->n_edges - at < SLICE ? r->n_edges - at : SLICE;
    read_sources(r, at, n);
    connectome_impulses(r->file, r->first_edge + at, n, r->impulse);
    connectome_delays(r->file, r->first_edge + at, n, r->delay);
    for (eidx e = 0; e < n; e++) {
      while (row_ptr[target + 1] - row_ptr[0] <= at + e) target++;
      lif_building_put(b, r->source[e],
                       (struct lif_edge){(uint32_t)target, r->impulse[e], r->delay[e]});
    }
  }
}

static nodeid *own_ids(struct connectome_file *file, gidx n_nodes, gidx first, lidx n_own) {
  uint32_t *node_of_row = NEW(uint32_t, n_nodes);
  nodeid *id = NEW(nodeid, n_own);
  connectome_node_of_row(file, node_of_row);
  for (lidx i = 0; i < n_own; i++) id[i] = node_of_row[first + i];
  mem_free(node_of_row);
  return id;
}

static void add_facts(const struct connectome_facts *facts, struct lif_net *net) {
  net->min_delay = facts->n_edges ? facts->min_delay : 1;
  net->max_delay = facts->n_edges ? facts->max_delay : 1;
  net->wide = facts->max_in_impulse > INT32_MAX;
}

void lif_net_load(struct connectome_file *file, gidx first, gidx last, struct lif_net *net) {
  const struct connectome_facts *facts = connectome_facts(file);
  const lidx n_own = (lidx)(last - first);
  struct lif_building b = {.ptr = NEW_ZERO(eidx, facts->n_nodes + 2)};
  eidx *row_ptr = NEW_ZERO(eidx, n_own + 1);
  if (n_own) connectome_row_ptr(file, first, n_own + 1, row_ptr);
  struct edge_reader r = {.file = file,
                          .first_edge = row_ptr[0],
                          .n_edges = row_ptr[n_own] - row_ptr[0],
                          .row_of_node = NEW(uint32_t, facts->n_nodes),
                          .source = NEW(uint32_t, SLICE),
                          .impulse = NEW(int16_t, SLICE),
                          .delay = NEW(uint16_t, SLICE)};
  connectome_row_of_node(file, r.row_of_node);
  count_pass(&r, &b);
  lif_building_scatter(&b, facts->n_nodes, r.n_edges);
  scatter_pass(&r, row_ptr, &b);
  mem_free(r.row_of_node), mem_free(r.source), mem_free(r.impulse), mem_free(r.delay),
      mem_free(row_ptr);
  *net = lif_building_end(&b, facts->n_nodes, first, n_own, r.n_edges,
                          own_ids(file, facts->n_nodes, first, n_own));
  add_facts(facts, net);
}

/* ---- streamed ---- */

static eidx *in_offsets(struct connectome_file *file, gidx first, lidx n_own) {
  eidx *ptr = NEW_ZERO(eidx, n_own + 1);
  if (!n_own) return ptr;
  connectome_row_ptr(file, first, n_own + 1, ptr);
  const eidx before = ptr[0];
  for (lidx i = 0; i <= n_own; i++) ptr[i] -= before;
  return ptr;
}

void lif_net_stream(struct connectome_file *file, gidx first, gidx last, int64_t held_bytes,
                    int n_readers, struct lif_net *net) {
  const struct connectome_facts *facts = connectome_facts(file);
  const lidx n_own = (lidx)(last - first);
  struct lif_stream *stream = NEW_ZERO(struct lif_stream, 1);
  eidx *out_ptr = NEW(eidx, facts->n_nodes + 1), *in_ptr = in_offsets(file, first, n_own);
  connectome_out_ptr(file, 0, facts->n_nodes + 1, out_ptr);
  stream->offset = connectome_out_place(file, &stream->file);
  stream->held_bytes = held_bytes, stream->n_readers = n_readers;
  stream->in_ptr = in_ptr, stream->path = mem_string(connectome_path(file));
  *net = (struct lif_net){.n_global = facts->n_nodes,
                          .first = first,
                          .n_own = n_own,
                          .n_edges = in_ptr[n_own],
                          .out_ptr = out_ptr,
                          .stream = stream,
                          .id = own_ids(file, facts->n_nodes, first, n_own)};
  add_facts(facts, net);
}
