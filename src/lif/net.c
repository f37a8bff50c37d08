/* Builds the share of a network that a rank simulates from arrays of edges, and frees it. */
#include "net_build.h"
#include "core/mem.h"

#include <stdlib.h>
#include <unistd.h>

/* Counts become offsets: ptr[j + 1] = where row j begins. */
void lif_building_scatter(struct lif_building *b, gidx n_nodes, eidx n_edges) {
  for (gidx j = 1; j <= n_nodes; j++) b->ptr[j + 1] += b->ptr[j];
  b->edge = NEW(struct lif_edge, n_edges);
}

struct lif_net lif_building_end(const struct lif_building *b, gidx n_nodes, gidx first, lidx n_own,
                                eidx n_edges, const nodeid *id) {
  return (struct lif_net){.n_global = n_nodes,
                          .first = first,
                          .n_own = n_own,
                          .n_edges = n_edges,
                          .out_ptr = b->ptr,
                          .out = b->edge,
                          .id = id};
}

static void stream_free(const struct lif_stream *net_stream) {
  struct lif_stream *stream = (struct lif_stream *)net_stream;
  if (!stream) return;
  close(stream->file);
  mem_free((void *)stream->in_ptr), mem_free((void *)stream->path);
  mem_free(stream);
}

void lif_net_free(struct lif_net *net) {
  stream_free(net->stream);
  mem_free((void *)net->out_ptr), mem_free((void *)net->out), mem_free((void *)net->id),
      mem_free((void *)net->mute);
  *net = (struct lif_net){0};
}

void lif_net_silence(struct lif_net *net, lidx n, const lidx *row, int bits) {
  uint8_t *mute = net->mute ? (uint8_t *)net->mute : NEW_ZERO(uint8_t, net->n_own);
  for (lidx i = 0; i < n; i++) mute[row[i]] |= (uint8_t)bits;
  net->mute = mute;
}

void lif_net_delay(struct lif_net *net, int delay) {
  struct lif_edge *edge = (struct lif_edge *)net->out;
  ASSERT(delay >= 1 && delay <= UINT16_MAX);
  for (eidx e = 0; e < net->n_edges && edge; e++) edge[e].delay = (uint16_t)delay;
  net->min_delay = net->max_delay = delay;
  net->fixed_delay = delay;
}

/* ---- from arrays ---- */

static gidx row_of(const struct lif_edges *g, uint32_t node) {
  return g->row_of_node ? g->row_of_node[node] : node;
}

/* The edges into rows [first, last), by ascending target row: order [returned n]. */
static eidx *edges_by_target(const struct lif_edges *g, gidx first, gidx last, eidx *n) {
  eidx *ptr = NEW_ZERO(eidx, last - first + 2);
  for (eidx e = 0; e < g->n_edges; e++) {
    const gidx row = row_of(g, g->target[e]);
    if (row >= first && row < last) ptr[row - first + 2]++;
  }
  for (gidx i = 1; i <= last - first; i++) ptr[i + 1] += ptr[i];
  *n = ptr[last - first + 1];
  eidx *order = NEW(eidx, *n);
  for (eidx e = 0; e < g->n_edges; e++) {
    const gidx row = row_of(g, g->target[e]);
    if (row >= first && row < last) order[ptr[row - first + 1]++] = e;
  }
  mem_free(ptr);
  return order;
}

/* Facts of the whole graph: delays, and the proof that sums of arrivals fit int32. */
static void add_facts(const struct lif_edges *g, struct lif_net *net) {
  int64_t *sum = NEW_ZERO(int64_t, g->n_nodes), largest = 0;
  net->min_delay = net->max_delay = g->n_edges && g->delay ? g->delay[0] : 1;
  for (eidx e = 0; e < g->n_edges; e++) {
    const int delay = g->delay ? g->delay[e] : 1;
    if (delay < net->min_delay) net->min_delay = delay;
    if (delay > net->max_delay) net->max_delay = delay;
    sum[g->target[e]] += abs(g->weight[e]);
    if (sum[g->target[e]] > largest) largest = sum[g->target[e]];
  }
  net->wide = largest > INT32_MAX;
  mem_free(sum);
}

static nodeid *ids_from_order(const struct lif_edges *g, gidx first, gidx last) {
  nodeid *id = NEW(nodeid, last - first);
  for (gidx node = 0; node < g->n_nodes; node++) {
    const gidx row = row_of(g, (uint32_t)node);
    if (row >= first && row < last) id[row - first] = node;
  }
  return id;
}

void lif_net_build(const struct lif_edges *g, gidx first, gidx last, struct lif_net *net) {
  eidx n;
  eidx *order = edges_by_target(g, first, last, &n);
  struct lif_building b = {.ptr = NEW_ZERO(eidx, g->n_nodes + 2)};
  for (eidx i = 0; i < n; i++) lif_building_count(&b, row_of(g, g->source[order[i]]));
  lif_building_scatter(&b, g->n_nodes, n);
  for (eidx i = 0; i < n; i++) {
    const eidx e = order[i];
    const struct lif_edge edge = {(uint32_t)(row_of(g, g->target[e]) - first), g->weight[e],
                                  g->delay ? g->delay[e] : 1};
    lif_building_put(&b, row_of(g, g->source[e]), edge);
  }
  mem_free(order);
  *net = lif_building_end(&b, g->n_nodes, first, (lidx)(last - first), n,
                          ids_from_order(g, first, last));
  add_facts(g, net);
}
