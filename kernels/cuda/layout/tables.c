/* Edges by target and by source, in padded rows, with the work of each group of lanes. */
#include "tables.h"

#include <string.h>

/* ---- edges by source ---- */

void recur_list_by_source(struct arrays *list, struct recur_by_source *s, int64_t rows,
                          eidx n_edges) {
  ARRAY_ZERO(list, s->ptr, rows + 1);
  ARRAY(list, s->target, n_edges), ARRAY(list, s->edge, n_edges);
}

static void count_edges(const struct csr *rows, eidx *ptr) {
  for (eidx e = 0; e < rows->n_edges; e++) ptr[rows->col[e] + 1]++;
}

/* next[j] is where source j's next edge goes. */
static void place_edges(const struct csr *rows, eidx offset, eidx *next,
                        struct recur_by_source *s) {
  for (lidx i = 0; i < rows->n_rows; i++)
    for (eidx e = rows->row_ptr[i]; e < rows->row_ptr[i + 1]; e++) {
      const eidx at = next[rows->col[e]]++;
      s->target[at] = i, s->edge[at] = (uint32_t)(offset + e);
    }
}

/* A counting sort. After placing, ptr[j] is the end of row j, which is where row j + 1 begins. */
bool recur_by_source(const struct graph *g, struct recur_by_source *s) {
  const lidx rows = g->n_own + g->n_halo;
  struct arrays list = {0};
  recur_list_by_source(&list, s, rows, g->near.n_edges + g->far.n_edges);
  if (!arrays_try_open(&list)) return false;
  count_edges(&g->near, s->ptr), count_edges(&g->far, s->ptr);
  for (lidx j = 0; j < rows; j++) s->ptr[j + 1] += s->ptr[j];
  place_edges(&g->near, 0, s->ptr, s), place_edges(&g->far, g->near.n_edges, s->ptr, s);
  memmove(s->ptr + 1, s->ptr, (size_t)rows * sizeof *s->ptr);
  s->ptr[0] = 0;
  return true;
}

void recur_by_source_free(struct recur_by_source *s) {
  struct arrays list = {0};
  recur_list_by_source(&list, s, 0, 0);
  arrays_close(&list);
}

/* ---- padded rows ---- */

/* Places of rows [0, n) when each takes a multiple of RECUR_PAD. */
static int64_t places_of(const eidx *ptr, lidx n) {
  int64_t places = 0;
  for (lidx i = 0; i < n; i++)
    places += (ptr[i + 1] - ptr[i] + RECUR_PAD - 1) / RECUR_PAD * RECUR_PAD;
  return places;
}

/* Where each of them stands, the first at `at`. */
static void fill_padded(const eidx *ptr, lidx n, uint32_t at, uint32_t *padded) {
  for (lidx i = 0; i < n; i++) {
    padded[i] = at;
    at += (uint32_t)((ptr[i + 1] - ptr[i] + RECUR_PAD - 1) / RECUR_PAD * RECUR_PAD);
  }
}

/* Tables are read-only for kernels; here they are made. */
#define MAKE(type, table) ((type *)(uintptr_t)(table))

static void fill_columns(const eidx *ptr, lidx n, const uint32_t *padded, const lidx *col,
                         const struct recur_walk *walk) {
  for (lidx i = 0; i < n; i++)
    for (eidx e = ptr[i]; e < ptr[i + 1]; e++) {
      const int64_t at = padded[i] + (e - ptr[i]);
      if (walk->narrow)
        MAKE(uint16_t, walk->col)[at] = (uint16_t)col[e];
      else
        MAKE(int32_t, walk->col)[at] = col[e];
    }
}

/* ---- which rows are inputs and outputs ---- */

static void fill_slots(lidx n_own, lidx n, const lidx *row, int32_t *slot) {
  for (lidx i = 0; i < n_own; i++) slot[i] = -1;
  for (lidx i = 0; i < n; i++) slot[row[i]] = i;
}

/* Which slots each own row has, noted in its items. has: scratch [n_own]. */
static void mark_slots(struct recur_item *item, int64_t n, const struct recur_net *net,
                       uint16_t *has) {
  memset(has, 0, (size_t)net->graph->n_own * sizeof *has);
  for (lidx i = 0; i < net->n_in; i++) has[net->in[i]] |= RECUR_HAS_IN;
  for (lidx i = 0; i < net->n_out; i++) has[net->out[i]] |= RECUR_HAS_OUT;
  for (int64_t i = 0; i < n; i++)
    if (item[i].row >= 0 && item[i].row < net->graph->n_own) item[i].slots = has[item[i].row];
}

/* ---- tables ---- */

/* Temporary arrays of the making of one direction. */
struct scratch {
  uint16_t *has;    /* [n_own] slots of each row */
  uint32_t *padded; /* [n_own + n_halo] by source: where each row stands */
};

static void list_scratch(struct arrays *list, struct scratch *s, const struct graph *g) {
  ARRAY(list, s->has, g->n_own + 1), ARRAY(list, s->padded, (int64_t)g->n_own + g->n_halo);
}

struct making {
  const struct recur_net *net;
  struct recur_shape_on_device shape;
  int chunk; /* edges of a group */
  struct scratch scratch;
};

static bool fill_items(const struct making *m, const eidx *ptr, const uint32_t *padded, lidx first,
                       lidx n_rows, struct recur_walk *walk) {
  struct recur_item *item = MAKE(struct recur_item, walk->item);
  if (!recur_items_fill(ptr, padded, first, n_rows, m->shape, m->chunk, walk->n_blocks, item))
    return false;
  mark_slots(item, (int64_t)walk->n_blocks * (RECUR_THREADS / m->shape.lanes), m->net,
             m->scratch.has);
  return true;
}

static void fill_ptr(const struct csr *rows, eidx offset, uint32_t *ptr) {
  for (lidx i = 0; i <= rows->n_rows; i++) ptr[i] = (uint32_t)(offset + rows->row_ptr[i]);
}

/* The near part, or the far part, of the edges by target, from place `at` on. */
static bool fill_by_target(const struct making *m, const struct csr *rows, eidx offset, int64_t at,
                           struct recur_rows *table, struct recur_walk *walk) {
  uint32_t *padded = MAKE(uint32_t, table->padded);
  fill_padded(rows->row_ptr, rows->n_rows, (uint32_t)at, padded);
  fill_ptr(rows, offset, MAKE(uint32_t, table->ptr));
  fill_columns(rows->row_ptr, rows->n_rows, padded, rows->col, walk);
  return fill_items(m, rows->row_ptr, padded, 0, rows->n_rows, walk);
}

/* In-edges by target: near rows, then far ones, in one array of columns. */
static bool make_by_target(struct recur_device *d, struct recur_sizes *s, const struct making *m) {
  const struct graph *g = m->net->graph;
  const int64_t near = places_of(g->near.row_ptr, g->n_own);
  const bool split = g->n_halo > 0;
  struct arrays list = {0};
  d->n_in_edges = near + (split ? places_of(g->far.row_ptr, g->n_own) : 0);
  d->near_in.n_blocks = recur_items_blocks(g->near.row_ptr, 0, g->n_own, m->shape, m->chunk);
  d->far_in.n_blocks =
      split ? recur_items_blocks(g->far.row_ptr, 0, g->n_own, m->shape, m->chunk) : 0;
  recur_list_tables(&list, d, s, RECUR_FORWARD);
  if (!arrays_try_open(&list)) return false;
  recur_share_columns(d);
  fill_slots(g->n_own, m->net->n_in, m->net->in, MAKE(int32_t, d->in_slot));
  fill_slots(g->n_own, m->net->n_out, m->net->out, MAKE(int32_t, d->out_slot));
  const bool made =
      fill_by_target(m, &g->near, 0, 0, &d->near_rows, &d->near_in) &&
      (!split || fill_by_target(m, &g->far, d->n_near, near, &d->far_rows, &d->far_in));
  if (!made) arrays_close(&list);
  return made;
}

/* Where each edge by source stands in `value`, and the inverse. */
static void fill_places(const struct recur_by_source *s, lidx rows, const uint32_t *padded,
                        struct recur_device *d) {
  uint32_t *edge = MAKE(uint32_t, d->out_edge), *out_place = MAKE(uint32_t, d->out_place);
  for (int64_t at = 0; at < d->n_out_edges; at++) edge[at] = RECUR_NO_EDGE;
  for (lidx j = 0; j < rows; j++)
    for (eidx e = s->ptr[j]; e < s->ptr[j + 1]; e++) {
      const uint32_t at = padded[j] + (uint32_t)(e - s->ptr[j]);
      edge[at] = s->edge[e], out_place[s->edge[e]] = at;
    }
}

static bool fill_by_source(const struct making *m, const struct recur_by_source *s,
                           struct recur_device *d) {
  const struct graph *g = m->net->graph;
  const lidx rows = g->n_own + g->n_halo;
  uint32_t *padded = m->scratch.padded;
  fill_padded(s->ptr, rows, 0, padded);
  fill_columns(s->ptr, rows, padded, s->target, &d->near_out);
  fill_places(s, rows, padded, d);
  return fill_items(m, s->ptr, padded, 0, g->n_own, &d->near_out) &&
         fill_items(m, s->ptr, padded, g->n_own, g->n_halo, &d->far_out);
}

/* Out-edges by source: own sources, then the halo. */
static bool make_by_source(struct recur_device *d, struct recur_sizes *s, const struct making *m) {
  const struct graph *g = m->net->graph;
  struct recur_by_source by_source;
  struct arrays list = {0};
  if (!recur_by_source(g, &by_source)) return false;
  const eidx *ptr = by_source.ptr;
  d->n_out_edges = places_of(ptr, g->n_own + g->n_halo);
  d->near_out.n_blocks = recur_items_blocks(ptr, 0, g->n_own, m->shape, m->chunk);
  d->far_out.n_blocks = recur_items_blocks(ptr, g->n_own, g->n_halo, m->shape, m->chunk);
  recur_list_tables(&list, d, s, RECUR_BACKWARD);
  bool made = arrays_try_open(&list);
  if (made) {
    recur_share_columns(d);
    made = fill_by_source(m, &by_source, d);
    if (!made) arrays_close(&list);
  }
  recur_by_source_free(&by_source);
  return made;
}

bool recur_make_tables(struct recur_device *d, struct recur_sizes *s, const struct recur_net *net,
                       enum recur_direction direction, struct recur_shape_on_device shape,
                       int processors) {
  struct making m = {.net = net,
                     .shape = shape,
                     .chunk = recur_chunk(d->n_near + d->n_far, processors, shape, direction)};
  struct arrays list = {0};
  s->groups = RECUR_THREADS / shape.lanes;
  list_scratch(&list, &m.scratch, net->graph);
  if (!arrays_try_open(&list)) return false;
  const bool made =
      direction == RECUR_FORWARD ? make_by_target(d, s, &m) : make_by_source(d, s, &m);
  arrays_close(&list);
  return made;
}
