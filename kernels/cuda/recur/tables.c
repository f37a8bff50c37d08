/* The tables of the recurrence that never change: edges by target and by source, on the device. */
#include "tables.h"
#include "core/mem.h"
#include "plan.h"

/* ---- edges by source, on the host ---- */

static void count(const struct csr *rows, eidx *ptr) {
  for (eidx e = 0; e < rows->n_edges; e++) ptr[rows->col[e] + 1]++;
}

static void place(const struct csr *rows, eidx offset, eidx *next, struct recur_by_source *s) {
  for (lidx i = 0; i < rows->n_rows; i++)
    for (eidx e = rows->row_ptr[i]; e < rows->row_ptr[i + 1]; e++) {
      const eidx at = next[rows->col[e]]++;
      s->target[at] = i, s->edge[at] = (uint32_t)(offset + e);
    }
}

struct recur_by_source recur_by_source(const struct graph *g) {
  const eidx n = g->near.n_edges + g->far.n_edges;
  const lidx rows = g->n_own + g->n_halo;
  struct recur_by_source s = {NEW_ZERO(eidx, (int64_t)rows + 1), NEW(lidx, n), NEW(uint32_t, n)};
  count(&g->near, s.ptr), count(&g->far, s.ptr);
  for (lidx j = 0; j < rows; j++) s.ptr[j + 1] += s.ptr[j];
  eidx *next = NEW(eidx, rows);
  for (lidx j = 0; j < rows; j++) next[j] = s.ptr[j];
  place(&g->near, 0, next, &s), place(&g->far, g->near.n_edges, next, &s);
  mem_free(next);
  return s;
}

void recur_by_source_free(struct recur_by_source *s) {
  mem_free(s->ptr), mem_free(s->target), mem_free(s->edge);
}

/* ---- padded rows ---- */

/* Where row i of rows [0, n) stands when each takes a multiple of RECUR_PAD places; *at goes on. */
static uint32_t *pad_rows(const eidx *ptr, lidx n, uint32_t *at) {
  uint32_t *padded = NEW(uint32_t, n);
  for (lidx i = 0; i < n; i++) {
    padded[i] = *at;
    *at += (uint32_t)((ptr[i + 1] - ptr[i] + RECUR_PAD - 1) / RECUR_PAD * RECUR_PAD);
  }
  return padded;
}

static void fill_columns(const eidx *ptr, lidx n, const uint32_t *padded, const lidx *col,
                         lidx *to) {
  for (lidx i = 0; i < n; i++)
    for (eidx e = ptr[i]; e < ptr[i + 1]; e++) to[padded[i] + (e - ptr[i])] = col[e];
}

/* ---- to the device ---- */

static void *indices_to_device(const lidx *col, int64_t n, bool narrow) {
  if (!narrow) return GPU_COPY_OF(int32_t, col, n);
  uint16_t *half = NEW(uint16_t, n);
  for (int64_t e = 0; e < n; e++) half[e] = (uint16_t)col[e];
  void *there = GPU_COPY_OF(uint16_t, half, n);
  mem_free(half);
  return there;
}

static struct recur_rows rows_to_device(const struct csr *rows, eidx offset,
                                        const uint32_t *padded) {
  uint32_t *ptr = NEW(uint32_t, (int64_t)rows->n_rows + 1);
  for (lidx i = 0; i <= rows->n_rows; i++) ptr[i] = (uint32_t)(offset + rows->row_ptr[i]);
  const struct recur_rows there = {GPU_COPY_OF(uint32_t, ptr, (int64_t)rows->n_rows + 1),
                                   GPU_COPY_OF(uint32_t, padded, rows->n_rows)};
  mem_free(ptr);
  return there;
}

static const int32_t *slots_to_device(lidx n_own, lidx n, const lidx *row) {
  int32_t *slot = NEW(int32_t, n_own);
  for (lidx i = 0; i < n_own; i++) slot[i] = -1;
  for (lidx i = 0; i < n; i++) slot[row[i]] = i;
  const int32_t *there = GPU_COPY_OF(int32_t, slot, n_own);
  mem_free(slot);
  return there;
}

/* Which slots each own row has. */
static uint16_t *slots_of_rows(const struct recur_net *net) {
  uint16_t *has = NEW_ZERO(uint16_t, net->graph->n_own);
  for (lidx i = 0; i < net->n_in; i++) has[net->in[i]] |= RECUR_HAS_IN;
  for (lidx i = 0; i < net->n_out; i++) has[net->out[i]] |= RECUR_HAS_OUT;
  return has;
}

static void mark_slots(struct recur_item *item, int64_t n, const struct recur_net *net) {
  uint16_t *has = slots_of_rows(net);
  for (int64_t i = 0; i < n; i++)
    if (item[i].row >= 0 && item[i].row < net->graph->n_own) item[i].slots = has[item[i].row];
  mem_free(has);
}

static struct recur_walk walk_to_device(const struct recur_net *net, const eidx *ptr,
                                        const uint32_t *padded, lidx first, lidx n_rows,
                                        const void *col, bool narrow,
                                        struct recur_shape_on_device shape, int chunk) {
  struct recur_walk w = {.col = col, .narrow = narrow};
  struct recur_item *item = recur_plan(ptr, padded, first, n_rows, shape, chunk, &w.n_blocks);
  const int64_t n = (int64_t)w.n_blocks * (RECUR_THREADS / shape.lanes);
  mark_slots(item, n, net);
  w.item = GPU_COPY_OF(struct recur_item, item, n);
  mem_free(item);
  return w;
}

static void walk_free(struct recur_walk *w) {
  gpu_free((void *)w->item);
}

static bool is_narrow(const struct graph *g) {
  return (int64_t)g->n_own + g->n_halo <= RECUR_NARROW;
}

/* In-edges by target: near rows, then far ones, in one array of columns. */
static void in_to_device(struct recur_device *d, const struct recur_net *net,
                         struct recur_shape_on_device shape) {
  const struct graph *g = net->graph;
  const int chunk = recur_chunk(d->n_near + d->n_far, gpu_processors(), shape, RECUR_FORWARD);
  const bool split = g->n_halo > 0, narrow = is_narrow(g);
  uint32_t n = 0, *near = pad_rows(g->near.row_ptr, g->n_own, &n),
           *far = split ? pad_rows(g->far.row_ptr, g->n_own, &n) : NULL;
  lidx *col = NEW_ZERO(lidx, n);
  fill_columns(g->near.row_ptr, g->n_own, near, g->near.col, col);
  if (split) fill_columns(g->far.row_ptr, g->n_own, far, g->far.col, col);
  const void *there = indices_to_device(col, n, narrow);
  d->n_in_edges = n;
  d->near_in = walk_to_device(net, g->near.row_ptr, near, 0, g->n_own, there, narrow, shape, chunk);
  d->near_rows = rows_to_device(&g->near, 0, near);
  if (split) {
    d->far_in = walk_to_device(net, g->far.row_ptr, far, 0, g->n_own, there, narrow, shape, chunk);
    d->far_rows = rows_to_device(&g->far, d->n_near, far);
  }
  mem_free(near), mem_free(far), mem_free(col);
}

/* Out-edges by source: own sources, then the halo. */
static void out_to_device(struct recur_device *d, const struct recur_net *net,
                          struct recur_shape_on_device shape) {
  const struct graph *g = net->graph;
  const int chunk = recur_chunk(d->n_near + d->n_far, gpu_processors(), shape, RECUR_BACKWARD);
  const bool narrow = is_narrow(g);
  struct recur_by_source s = recur_by_source(g);
  uint32_t n = 0, *padded = pad_rows(s.ptr, g->n_own + g->n_halo, &n), *edge = NEW(uint32_t, n);
  uint32_t *place = NEW(uint32_t, d->n_near + d->n_far);
  lidx *col = NEW_ZERO(lidx, n);
  for (uint32_t e = 0; e < n; e++) edge[e] = RECUR_NO_EDGE;
  fill_columns(s.ptr, g->n_own + g->n_halo, padded, s.target, col);
  for (lidx j = 0; j < g->n_own + g->n_halo; j++)
    for (eidx e = s.ptr[j]; e < s.ptr[j + 1]; e++) {
      const uint32_t at = padded[j] + (uint32_t)(e - s.ptr[j]);
      edge[at] = s.edge[e], place[s.edge[e]] = at;
    }
  const void *there = indices_to_device(col, n, narrow);
  d->n_out_edges = n;
  d->near_out = walk_to_device(net, s.ptr, padded, 0, g->n_own, there, narrow, shape, chunk);
  d->far_out = walk_to_device(net, s.ptr, padded, g->n_own, g->n_halo, there, narrow, shape, chunk);
  d->out_edge = GPU_COPY_OF(uint32_t, edge, n);
  d->out_place = GPU_COPY_OF(uint32_t, place, d->n_near + d->n_far);
  mem_free(padded), mem_free(edge), mem_free(place), mem_free(col);
  recur_by_source_free(&s);
}

static bool is_small(const struct graph *g) {
  return is_narrow(g) && g->near.n_edges + g->far.n_edges <= RECUR_SMALL;
}

struct recur_shape_on_device recur_tables_shape(const struct recur_net *net) {
  return recur_device_shape(net->shape.batch, net->mixed, is_small(net->graph),
                            is_narrow(net->graph));
}

void recur_tables_make(struct recur_device *d, const struct recur_net *net) {
  const struct graph *g = net->graph;
  const struct recur_shape_on_device shape = recur_tables_shape(net);
  d->small = is_small(g), d->lines = shape.lines;
  d->in_slot = slots_to_device(g->n_own, net->n_in, net->in);
  d->out_slot = slots_to_device(g->n_own, net->n_out, net->out);
  in_to_device(d, net, shape);
  if (!net->want_gradient) return;
  out_to_device(d, net, shape);
}

void recur_tables_free(struct recur_device *d) {
  gpu_free((void *)d->near_in.col), gpu_free((void *)d->near_out.col);
  walk_free(&d->near_in), walk_free(&d->far_in), walk_free(&d->near_out), walk_free(&d->far_out);
  gpu_free((void *)d->near_rows.ptr), gpu_free((void *)d->near_rows.padded);
  gpu_free((void *)d->far_rows.ptr), gpu_free((void *)d->far_rows.padded);
  gpu_free((void *)d->in_slot), gpu_free((void *)d->out_slot), gpu_free((void *)d->out_edge);
  gpu_free((void *)d->out_place);
}

/* ---- a window in one go ---- */

/* g starts at 0 behind the last microstep */
void recur_queue_start(const struct recur_device *d) {
  const size_t size = ((size_t)d->n_own + (size_t)d->n_halo) * (size_t)d->batch * sizeof(float);
  if (size > 0) CHECK_CUDA(cudaMemsetAsync(d->d_state, 0, size, gpu_stream()));
  recur_device_take(d);
}

/* What a forward pass reads in the kernels' own form. */
void recur_queue_values(const struct recur_device *d) {
  recur_device_take_values(d);
  recur_device_round(d, 0, 0, d->n_own);
}

void recur_queue_forward(const struct recur_device *d) {
  recur_queue_values(d);
  for (int k = 0; k < d->steps * d->microsteps; k++) recur_device_forward(d, k, RECUR_ALL_EDGES);
}

void recur_queue_backward(const struct recur_device *d) {
  const int last = d->steps * d->microsteps - 1;
  recur_queue_start(d);
  recur_device_elementwise(d, last);
  for (int k = last; k >= 0; k--) recur_device_transposed(d, k, k > 0);
  recur_device_give(d);
}
