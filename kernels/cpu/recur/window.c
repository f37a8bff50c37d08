/* Microsteps over threads. */
#include "barrier.h"
#include "kernels/interface/recur_window.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

const struct recur_isa *recur_isa_find(const char *name) {
  if (!name) name = getenv("FASCICLE_SIMD");
  const bool any = !name || !*name || !strcmp(name, "auto");
  for (const struct recur_isa *const *isa = recur_isas; *isa; isa++)
    if ((any || !strcmp(name, (*isa)->name)) && (*isa)->usable()) return *isa;
  return NULL;
}

void recur_window_list(struct arrays *list, struct recur_window *w, eidx n_edges, bool split) {
  const int64_t own = (int64_t)w->n_own * w->batch,
                all = ((int64_t)w->n_own + w->n_halo) * w->batch;
  const int64_t kept = w->all_states ? (int64_t)w->steps * w->microsteps + 1 : 2;
  ARRAY(list, w->state, kept * all);
  if (split) ARRAY(list, w->near_sum, own);
  if (!w->all_states) return;
  ARRAY(list, w->d_state, all), ARRAY(list, w->q, 2 * own);
  ARRAY(list, w->sum_leak, w->n_own), ARRAY(list, w->sum_bias, w->n_own);
  ARRAY(list, w->out_value, n_edges), ARRAY(list, w->out_gradient, n_edges);
}

/* ---- by source ---- */

static void count_sources(const struct recur_edges *edges, lidx n_own, eidx *count) {
  for (eidx e = 0; e < edges->ptr[n_own]; e++) count[edges->col[e]]++;
}

/* next[j] is where source j's next edge goes */
static void place_sources(const struct recur_edges *edges, lidx n_own, eidx offset, eidx *next,
                          lidx *col, eidx *edge) {
  for (lidx i = 0; i < n_own; i++)
    for (eidx e = edges->ptr[i]; e < edges->ptr[i + 1]; e++) {
      const eidx at = next[edges->col[e]]++;
      col[at] = i, edge[at] = offset + e;
    }
}

/* Counting sort. A source is own or in the halo, never both, so placing near before
 * far keeps targets ascending. After placing, ptr[j] holds the end of row j, which is
 * the start of row j + 1. */
void recur_transpose(lidx n_own, lidx n_halo, const struct recur_edges *near,
                     const struct recur_edges *far, eidx *ptr, lidx *col, eidx *edge) {
  const lidx rows = n_own + n_halo;
  memset(ptr, 0, ((size_t)rows + 1) * sizeof *ptr);
  count_sources(near, n_own, ptr);
  if (n_halo > 0) count_sources(far, n_own, ptr);
  eidx start = 0;
  for (lidx j = 0; j <= rows; j++) {
    const eidx n = ptr[j];
    ptr[j] = start;
    start += n;
  }
  place_sources(near, n_own, 0, ptr, col, edge);
  if (n_halo > 0) place_sources(far, n_own, near->ptr[n_own], ptr, col, edge);
  memmove(ptr + 1, ptr, (size_t)rows * sizeof *ptr);
  ptr[0] = 0;
}

/* ---- who computes what ---- */

enum { ROW_COST = 16 }; /* a row's elementwise work, in edges */

static eidx cost_before(const eidx *ptr, const eidx *ptr2, lidx row) {
  return ptr[row] + (ptr2 ? ptr2[row] : 0) + (eidx)ROW_COST * row;
}

void recur_cut(lidx first, lidx last, const eidx *ptr, const eidx *ptr2, int n_threads, lidx *cut) {
  const eidx base = cost_before(ptr, ptr2, first), total = cost_before(ptr, ptr2, last) - base;
  lidx row = first;
  for (int t = 0; t < n_threads; t++) {
    while (row < last && cost_before(ptr, ptr2, row) - base <
                             total / n_threads * t + total % n_threads * t / n_threads)
      row++;
    cut[t] = row;
  }
  cut[n_threads] = last;
}

/* Values into, and gradients out of, the order by source: [first, last) edges of `out`. */
static void take_values(const struct recur_window *w, eidx first, eidx last) {
  for (eidx e = first; e < last; e++) w->out_value[e] = w->value[w->out_edge[e]];
  if (last > first) memset(w->out_gradient + first, 0, (size_t)(last - first) * sizeof(float));
}

static void give_gradients(const struct recur_window *w, eidx first, eidx last) {
  for (eidx e = first; e < last; e++) w->d_value[w->out_edge[e]] = w->out_gradient[e];
}

static void start_rows(const struct recur_window *w, lidx first, lidx last) {
  if (last > first)
    memset(w->d_state + (int64_t)first * w->batch, 0,
           (size_t)(last - first) * w->batch * sizeof(float));
  for (lidx i = first; i < last && i < w->n_own; i++) w->sum_leak[i] = w->sum_bias[i] = 0;
}

static void end_rows(const struct recur_window *w, lidx first, lidx last) {
  for (lidx i = first; i < last; i++)
    w->d_leak[i] = (float)w->sum_leak[i], w->d_bias[i] = (float)w->sum_bias[i];
}

/* ---- the whole window: one parallel region, one barrier a microstep ---- */

/* OpenMP may give fewer threads than asked for; then a thread takes several shares. */
#define EACH_SHARE(share)                                                                          \
  (int share = omp_get_thread_num(); share < w->n_threads; share += omp_get_num_threads())

void recur_window_forward(const struct recur_window *w) {
  const int K = w->steps * w->microsteps;
  struct recur_barrier barrier = RECUR_BARRIER_INIT;
#pragma omp parallel num_threads(w->n_threads)
  for (int k = 0; k < K; k++) {
    for
      EACH_SHARE(i) w->isa->forward(w, k, RECUR_ALL_EDGES, w->target_cut[i], w->target_cut[i + 1]);
    recur_barrier_wait(&barrier, omp_get_num_threads());
  }
}

static void begin_share(const struct recur_window *w, lidx first, lidx last) {
  take_values(w, w->out.ptr[first], w->out.ptr[last]);
  start_rows(w, first, last);
}

static void end_share(const struct recur_window *w, lidx first, lidx last) {
  give_gradients(w, w->out.ptr[first], w->out.ptr[last]);
  end_rows(w, first, last < w->n_own ? last : w->n_own);
}

/* q of microstep k - 1 needs only g of its own row, so it follows V^T q_k at once; q_k, which
 * others may still be reading, stands in the other half of w->q. */
void recur_window_backward(const struct recur_window *w) {
  const int K = w->steps * w->microsteps;
  const lidx *cut = w->source_cut;
  struct recur_barrier barrier = RECUR_BARRIER_INIT;
#pragma omp parallel num_threads(w->n_threads)
  {
    for
      EACH_SHARE(i) {
        begin_share(w, cut[i], cut[i + 1]);
        w->isa->elementwise(w, K - 1, cut[i], cut[i + 1]);
      }
    for (int k = K - 1; k >= 0; k--) {
      recur_barrier_wait(&barrier, omp_get_num_threads());
      for
        EACH_SHARE(i) {
          w->isa->transposed(w, k, cut[i], cut[i + 1]);
          if (k > 0) w->isa->elementwise(w, k - 1, cut[i], cut[i + 1]);
        }
    }
    for
      EACH_SHARE(i) end_share(w, cut[i], cut[i + 1]);
  }
}

/* ---- microstep by microstep ---- */

static void forward_rows(const struct recur_window *w, int k, enum recur_edge_set edges) {
#pragma omp parallel num_threads(w->n_threads)
  for
    EACH_SHARE(i) w->isa->forward(w, k, edges, w->target_cut[i], w->target_cut[i + 1]);
}

void recur_forward_near(const struct recur_window *w, int k) {
  forward_rows(w, k, RECUR_NEAR_EDGES);
}

void recur_forward_far(const struct recur_window *w, int k) {
  forward_rows(w, k, RECUR_FAR_EDGES);
}

void recur_backward_begin(const struct recur_window *w) {
#pragma omp parallel num_threads(w->n_threads)
  for
    EACH_SHARE(i) {
      begin_share(w, w->source_cut[i], w->source_cut[i + 1]);
      begin_share(w, w->halo_cut[i], w->halo_cut[i + 1]);
    }
}

void recur_backward_far(const struct recur_window *w, int k) {
#pragma omp parallel num_threads(w->n_threads)
  {
    for
      EACH_SHARE(i) w->isa->elementwise(w, k, w->source_cut[i], w->source_cut[i + 1]);
#pragma omp barrier
    for
      EACH_SHARE(i) w->isa->transposed(w, k, w->halo_cut[i], w->halo_cut[i + 1]);
  }
}

void recur_backward_near(const struct recur_window *w, int k) {
#pragma omp parallel num_threads(w->n_threads)
  for
    EACH_SHARE(i) w->isa->transposed(w, k, w->source_cut[i], w->source_cut[i + 1]);
}

void recur_backward_end(const struct recur_window *w) {
#pragma omp parallel num_threads(w->n_threads)
  for
    EACH_SHARE(i) {
      end_share(w, w->source_cut[i], w->source_cut[i + 1]);
      end_share(w, w->halo_cut[i], w->halo_cut[i + 1]);
    }
}
