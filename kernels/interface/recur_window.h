/* The recurrence of contract/recurrence.h on the CPU, on plain pointers: whoever holds the arrays
 * calls this. It takes no memory, knows no ranks and depends on nothing but OpenMP; the cpu backend
 * and the public library stand on it.
 *
 * Arrays of states are [rows][B], rows = n_own + n_halo, B contiguous. One thread owns each row,
 * sums run in the order of the edges, so the bits do not depend on the number of threads. The
 * instruction sets differ from each other in the last digits; FASCICLE_SIMD=plain|avx2|avx512 in
 * the environment chooses one. */
#ifndef FASCICLE_RECUR_WINDOW_H
#define FASCICLE_RECUR_WINDOW_H

#include "contract/recurrence.h"
#include "core/arrays.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Edges by row: row i's are ptr[i] .. ptr[i + 1]. */
struct recur_edges {
  const eidx *ptr;
  const lidx *col;    /* the other end */
  const float *value; /* by position */
};

struct recur_window {
  int batch, steps, microsteps; /* B, T, M */
  lidx n_own, n_halo, n_in, n_out;
  const lidx *in_slot, *out_slot; /* [n_own] row of drive or output, -1 for none */

  struct recur_edges near, far; /* by own target; sources are own rows / halo rows */
  struct recur_edges
      out; /* by source, own rows then halo rows; targets ascending; own copy of the values */
  const eidx *out_edge; /* position of each edge of `out` in value (near, then far) */
  float *out_value;     /* where out.value points: refreshed by backward_begin */
  float *out_gradient;  /* dL/dvalue in the order of `out` */

  const float *value, *leak, *bias; /* near then far; [n_own] in (0, 1); [n_own] */
  const float *drive;               /* [T][n_in][B] */
  float *output;                    /* [T][n_out][B] */
  const float *d_output;            /* [T][n_out][B] */
  float *d_value, *d_leak, *d_bias; /* like value, leak, bias */
  float *d_drive;                   /* [T][n_in][B] */

  float *state;                /* [K + 1 or 2][rows][B] */
  bool all_states;             /* K + 1 of them, else two, alternating */
  bool mixed;                  /* contract/recurrence.h; only recur_plain does it */
  float *near_sum;             /* [n_own][B], only where a graph is split: the near part of V s */
  float *d_state;              /* [rows][B] */
  float *q;                    /* [2][n_own][B] alternating */
  double *sum_leak, *sum_bias; /* [n_own] gradients so far */

  int n_threads;
  const lidx *target_cut, *source_cut,
      *halo_cut; /* [n_threads + 1] rows of each thread; see recur_cut */
  const struct recur_isa *isa;
};

/* One way to compute rows [first, last) of microstep k. `plain` is the specification. */
struct recur_isa {
  const char *name;
  bool (*usable)(void);
  /* s_{k+1} of own rows; near edges leave their sums in near_sum, far ones complete them. */
  void (*forward)(const struct recur_window *w, int k, enum recur_edge_set edges, lidx first,
                  lidx last);
  /* q_k of own rows and what stays local: g (1 - a); bias, leak and drive gradients. */
  void (*elementwise)(const struct recur_window *w, int k, lidx first, lidx last);
  /* V^T q_k for source rows (own: added to g; halo: set) and the gradients of
   * their edges, in one walk. */
  void (*transposed)(const struct recur_window *w, int k, lidx first, lidx last);
  /* Micro-benchmarks of the machine, for floors: RECUR_FLOPS_PER_ROUND floating-point operations in
   * registers a round; the sum of n rows (rounded down to a multiple of 8) of `width` floats, at
   * most RECUR_GATHERED_FLOATS, row[i] counted in rows. Both return what they computed, so that
   * nothing is optimised away. */
  float (*bench_flops)(int64_t rounds);
  float (*bench_gather)(const float *rows, int width, const lidx *row, int64_t n);
};
enum {
  RECUR_FLOPS_PER_ROUND = 320,
  RECUR_GATHERED_FLOATS = 32 /* the longest row: 128 bytes, two cache lines of most CPUs */
};

extern const struct recur_isa recur_plain;

/* NULL-terminated, fastest first, `plain` last. */
extern const struct recur_isa *const recur_isas[];

/* The named one, or for NULL the one FASCICLE_SIMD names, else the fastest that this machine can
 * run. NULL when the name is unknown or cannot run here. */
const struct recur_isa *recur_isa_find(const char *name);

static inline float *recur_state(const struct recur_window *w, int k) {
  const int64_t slot = w->all_states ? k : k & 1;
  return w->state + slot * ((int64_t)w->n_own + w->n_halo) * w->batch;
}

static inline float *recur_q(const struct recur_window *w, int k) {
  return w->q + (int64_t)(k & 1) * w->n_own * w->batch;
}

/* Lists the internal arrays: state, near_sum (if split), and for all_states what the backward pass
 * needs: d_state, q, sums, the copies by source. From the sizes in w. They stand at multiples of
 * RECUR_ALIGN bytes; afterwards out.value is to be out_value. */
enum { RECUR_ALIGN = 64 };
void recur_window_list(struct arrays *list, struct recur_window *w, eidx n_edges, bool split);

/* The edges of near and far (values unused) by source: ptr [rows + 1], col and edge [n_edges]. */
void recur_transpose(lidx n_own, lidx n_halo, const struct recur_edges *near,
                     const struct recur_edges *far, eidx *ptr, lidx *col, eidx *edge);

/* Rows [first, last) cut into n_threads shares of about equal work; ptr2 may be NULL, else its
 * edges count too. cut [n_threads + 1]. */
void recur_cut(lidx first, lidx last, const eidx *ptr, const eidx *ptr2, int n_threads, lidx *cut);

/* The whole window; only where n_halo = 0. */
void recur_window_forward(const struct recur_window *w);
void recur_window_backward(const struct recur_window *w);

/* One microstep of a split graph; see contract/recurrence.h. */
void recur_forward_near(const struct recur_window *w, int k);
void recur_forward_far(const struct recur_window *w, int k);
void recur_backward_begin(const struct recur_window *w);
void recur_backward_far(const struct recur_window *w, int k);
void recur_backward_near(const struct recur_window *w, int k);
void recur_backward_end(const struct recur_window *w);

#ifdef __cplusplus
}
#endif
#endif
