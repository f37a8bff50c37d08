#include "recur_tables.h"
#include "mem.h"
#include "recur_plan.h"

/* ---- edges by source, on the host ---- */

/* Edges of near and far, by source: own sources, then the halo; within a source by ascending target. */
struct by_source {
  eidx *ptr; /* [n_own + n_halo + 1] */
  lidx *target;
  uint32_t *edge; /* position in near-then-far order */
};

static void count(const struct csr *rows, eidx *ptr) {
  for (eidx e = 0; e < rows->n_edges; e++) ptr[rows->col[e] + 1]++;
}

static void place(const struct csr *rows, eidx offset, eidx *next, struct by_source *s) {
  for (lidx i = 0; i < rows->n_rows; i++)
    for (eidx e = rows->row_ptr[i]; e < rows->row_ptr[i + 1]; e++) {
      const eidx at = next[rows->col[e]]++;
      s->target[at] = i, s->edge[at] = (uint32_t)(offset + e);
    }
}

static struct by_source transpose(const struct graph *g) {
  const eidx n = g->near.n_edges + g->far.n_edges;
  const lidx rows = g->n_own + g->n_halo;
  struct by_source s = {NEW_ZERO(eidx, (int64_t)rows + 1), NEW(lidx, n), NEW(uint32_t, n)};
  count(&g->near, s.ptr), count(&g->far, s.ptr);
  for (lidx j = 0; j < rows; j++) s.ptr[j + 1] += s.ptr[j];
  eidx *next = NEW(eidx, rows);
  for (lidx j = 0; j < rows; j++) next[j] = s.ptr[j];
  place(&g->near, 0, next, &s), place(&g->far, g->near.n_edges, next, &s);
  mem_free(next);
  return s;
}

static void by_source_free(struct by_source *s) {
  mem_free(s->ptr), mem_free(s->target), mem_free(s->edge);
}

/* ---- to the device ---- */

static void *indices_to_device(const lidx *col, eidx n, bool narrow) {
  if (!narrow) return GPU_COPY_OF(int32_t, col, n);
  uint16_t *half = NEW(uint16_t, n);
  for (eidx e = 0; e < n; e++) half[e] = (uint16_t)col[e];
  void *there = GPU_COPY_OF(uint16_t, half, n);
  mem_free(half);
  return there;
}

static const uint32_t *pointers_to_device(const struct csr *rows) {
  uint32_t *ptr = NEW(uint32_t, (int64_t)rows->n_rows + 1);
  for (lidx i = 0; i <= rows->n_rows; i++) ptr[i] = (uint32_t)rows->row_ptr[i];
  const uint32_t *there = GPU_COPY_OF(uint32_t, ptr, (int64_t)rows->n_rows + 1);
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

static struct recur_walk walk_to_device(const eidx *ptr, lidx first, lidx n_rows, const void *col,
                                        bool narrow, struct recur_shape_on_device shape, int chunk) {
  struct recur_walk w = {.col = col, .narrow = narrow};
  struct recur_item *item = recur_plan(ptr, first, n_rows, shape, chunk, &w.n_blocks);
  w.item = GPU_COPY_OF(struct recur_item, item, (int64_t)w.n_blocks * (RECUR_THREADS / shape.lanes));
  mem_free(item);
  return w;
}

static void walk_free(struct recur_walk *w) {
  gpu_free((void *)w->item);
}

static void edges_to_device(struct recur_device *d, const struct graph *g, bool want_gradient) {
  const bool narrow = (int64_t)g->n_own + g->n_halo <= RECUR_NARROW;
  const struct recur_shape_on_device shape = recur_device_shape(d->batch);
  const eidx edges = d->n_near + d->n_far;
  const int in_chunk = recur_chunk(edges, gpu_processors(), shape, RECUR_IN_CHUNK),
            out_chunk = recur_chunk(edges, gpu_processors(), shape, RECUR_OUT_CHUNK);
  d->near_in = walk_to_device(g->near.row_ptr, 0, g->n_own, indices_to_device(g->near.col, d->n_near, narrow),
                              narrow, shape, in_chunk);
  if (g->n_halo > 0)
    d->far_in = walk_to_device(g->far.row_ptr, 0, g->n_own, indices_to_device(g->far.col, d->n_far, narrow),
                               narrow, shape, in_chunk);
  if (!want_gradient) return;
  struct by_source s = transpose(g);
  const void *target = indices_to_device(s.target, d->n_near + d->n_far, narrow);
  d->near_out = walk_to_device(s.ptr, 0, g->n_own, target, narrow, shape, out_chunk);
  d->far_out = walk_to_device(s.ptr, g->n_own, g->n_halo, target, narrow, shape, out_chunk);
  d->out_edge = GPU_COPY_OF(uint32_t, s.edge, d->n_near + d->n_far);
  by_source_free(&s);
  d->near_ptr = pointers_to_device(&g->near);
  if (g->n_halo > 0) d->far_ptr = pointers_to_device(&g->far);
}

void recur_tables_make(struct recur_device *d, const struct recur_net *net) {
  const struct graph *g = net->graph;
  d->in_slot = slots_to_device(g->n_own, net->n_in, net->in);
  d->out_slot = slots_to_device(g->n_own, net->n_out, net->out);
  edges_to_device(d, g, net->want_gradient);
}

void recur_tables_free(struct recur_device *d) {
  gpu_free((void *)d->near_in.col), gpu_free((void *)d->far_in.col), gpu_free((void *)d->near_out.col);
  walk_free(&d->near_in), walk_free(&d->far_in), walk_free(&d->near_out), walk_free(&d->far_out);
  gpu_free((void *)d->near_ptr), gpu_free((void *)d->far_ptr), gpu_free((void *)d->out_edge);
  gpu_free((void *)d->in_slot), gpu_free((void *)d->out_slot);
}

/* ---- a window in one go ---- */

/* g starts at 0 behind the last microstep */
void recur_queue_start(const struct recur_device *d) {
  const size_t size = ((size_t)d->n_own + (size_t)d->n_halo) * (size_t)d->batch * sizeof(float);
  if (size > 0) CHECK_CUDA(cudaMemsetAsync(d->d_state, 0, size, gpu_stream()));
  recur_device_take(d);
}

void recur_queue_forward(const struct recur_device *d) {
  for (int k = 0; k < d->steps * d->microsteps; k++) recur_device_forward(d, k, RECUR_ALL);
}

void recur_queue_backward(const struct recur_device *d) {
  const int last = d->steps * d->microsteps - 1;
  recur_queue_start(d);
  recur_device_elementwise(d, last);
  for (int k = last; k >= 0; k--) recur_device_transposed(d, k, k > 0);
  recur_device_give(d);
}
