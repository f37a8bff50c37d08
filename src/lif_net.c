#include "lif_net.h"
#include "mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SLICE = 1 << 20 }; /* edges read at a time */

/* Large pages for the edge array: rows are entered at random, and each entry would cost a walk of the page
 * tables. */
static void ask_large_pages(void *p, int64_t bytes) {
  enum { PAGE = 4096 };
  const uintptr_t from = ((uintptr_t)p + PAGE - 1) / PAGE * PAGE,
                  to = ((uintptr_t)p + (uintptr_t)bytes) / PAGE * PAGE;
  if (to > from) madvise((void *)from, to - from, MADV_HUGEPAGE);
}

/* The net under construction: its arrays, still writable. While edges are scattered, ptr[j + 1] is where row
 * j's next edge goes, so that in the end ptr is the offset table again. */
struct building {
  eidx *ptr;
  struct lif_edge *edge;
};

static void count_source(struct building *b, gidx row) {
  b->ptr[row + 2]++;
}

/* Counts become offsets: ptr[j + 1] = where row j begins. */
static void begin_scatter(struct building *b, gidx n_nodes, eidx n_edges) {
  for (gidx j = 1; j <= n_nodes; j++) b->ptr[j + 1] += b->ptr[j];
  b->edge = NEW(struct lif_edge, n_edges);
  ask_large_pages(b->edge, n_edges * (int64_t)sizeof *b->edge);
}

static void put(struct building *b, gidx row, struct lif_edge edge) {
  b->edge[b->ptr[row + 1]++] = edge;
}

static struct lif_net finish(const struct building *b, gidx n_nodes, gidx first, lidx n_own, eidx n_edges,
                             const nodeid *id) {
  return (struct lif_net){.n_global = n_nodes,
                          .first = first,
                          .n_own = n_own,
                          .n_edges = n_edges,
                          .out_ptr = b->ptr,
                          .out = b->edge,
                          .id = id};
}

void lif_net_free(struct lif_net *net) {
  mem_free((void *)net->out_ptr), mem_free((void *)net->out), mem_free((void *)net->id),
      mem_free((void *)net->mute);
  *net = (struct lif_net){0};
}

int64_t lif_net_bytes(const struct lif_net *net) {
  return net->n_edges * (int64_t)sizeof *net->out + (net->n_global + 2) * (int64_t)sizeof *net->out_ptr +
         net->n_own * (int64_t)sizeof *net->id + (net->mute ? net->n_own : 0);
}

void lif_net_silence(struct lif_net *net, lidx n, const lidx *row, int bits) {
  uint8_t *mute = net->mute ? (uint8_t *)net->mute : NEW_ZERO(uint8_t, net->n_own);
  for (lidx i = 0; i < n; i++) mute[row[i]] |= (uint8_t)bits;
  net->mute = mute;
}

/* ---- from the artifact ---- */

struct reader {
  struct connectome_file *file;
  eidx first_edge, n_edges; /* this rank's run in the file */
  uint32_t *row_of_node, *source;
  int16_t *impulse;
  uint16_t *delay;
};

static void read_sources(const struct reader *r, eidx at, eidx n) {
  connectome_sources(r->file, r->first_edge + at, n, r->source);
  for (eidx e = 0; e < n; e++) r->source[e] = r->row_of_node[r->source[e]];
}

static void count_pass(const struct reader *r, struct building *b) {
  for (eidx at = 0; at < r->n_edges; at += SLICE) {
    const eidx n = r->n_edges - at < SLICE ? r->n_edges - at : SLICE;
    read_sources(r, at, n);
    for (eidx e = 0; e < n; e++) count_source(b, r->source[e]);
  }
}

/* row_ptr [n_own + 1]: the run is sorted by target row, so every source's edges come out ascending by target.
 */
static void scatter_pass(const struct reader *r, const eidx *row_ptr, struct building *b) {
  lidx target = 0;
  for (eidx at = 0; at < r->n_edges; at += SLICE) {
    const eidx n = r->n_edges - at < SLICE ? r->n_edges - at : SLICE;
    read_sources(r, at, n);
    connectome_impulses(r->file, r->first_edge + at, n, r->impulse);
    connectome_delays(r->file, r->first_edge + at, n, r->delay);
    for (eidx e = 0; e < n; e++) {
      while (row_ptr[target + 1] - row_ptr[0] <= at + e) target++;
      put(b, r->source[e], (struct lif_edge){(uint32_t)target, r->impulse[e], r->delay[e]});
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

void lif_net_load(struct connectome_file *file, gidx first, gidx last, struct lif_net *net) {
  const struct connectome_facts *facts = connectome_facts(file);
  const lidx n_own = (lidx)(last - first);
  struct building b = {.ptr = NEW_ZERO(eidx, facts->n_nodes + 2)};
  eidx *row_ptr = NEW_ZERO(eidx, n_own + 1);
  if (n_own) connectome_row_ptr(file, first, n_own, row_ptr);
  struct reader r = {.file = file,
                     .first_edge = row_ptr[0],
                     .n_edges = row_ptr[n_own] - row_ptr[0],
                     .row_of_node = NEW(uint32_t, facts->n_nodes),
                     .source = NEW(uint32_t, SLICE),
                     .impulse = NEW(int16_t, SLICE),
                     .delay = NEW(uint16_t, SLICE)};
  connectome_row_of_node(file, r.row_of_node);
  count_pass(&r, &b);
  begin_scatter(&b, facts->n_nodes, r.n_edges);
  scatter_pass(&r, row_ptr, &b);
  mem_free(r.row_of_node), mem_free(r.source), mem_free(r.impulse), mem_free(r.delay), mem_free(row_ptr);
  *net = finish(&b, facts->n_nodes, first, n_own, r.n_edges, own_ids(file, facts->n_nodes, first, n_own));
  net->min_delay = facts->n_edges ? facts->min_delay : 1;
  net->max_delay = facts->n_edges ? facts->max_delay : 1;
  net->wide = facts->max_in_impulse > INT32_MAX;
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
  struct building b = {.ptr = NEW_ZERO(eidx, g->n_nodes + 2)};
  for (eidx i = 0; i < n; i++) count_source(&b, row_of(g, g->source[order[i]]));
  begin_scatter(&b, g->n_nodes, n);
  for (eidx i = 0; i < n; i++) {
    const eidx e = order[i];
    const struct lif_edge edge = {(uint32_t)(row_of(g, g->target[e]) - first), g->weight[e],
                                  g->delay ? g->delay[e] : 1};
    put(&b, row_of(g, g->source[e]), edge);
  }
  mem_free(order);
  *net = finish(&b, g->n_nodes, first, (lidx)(last - first), n, ids_from_order(g, first, last));
  add_facts(g, net);
}
