/* The row kernels of the recurrence for any vector width: included once by each instruction set's
 * file, which first says what a `vec` of LANES floats is and what can be done with it. A row's
 * columns are worked off in tiles of up to TILE_VECS vectors whose sums stay in registers for all
 * edges of the row; the last vector of the last tile may be partly used (`mask`). */
#include "contract/recurrence.h"
#include "kernels/interface/recur_window.h"

#define INLINE static inline __attribute__((always_inline))

enum { TILE = 32, TILE_VECS = TILE / LANES, GROUP = 8 };

/* ---- tanh ---- */

/* e^y - 1 for y >= 0: y = n ln 2 + r, e^y - 1 = (2^n - 1) + 2^n (e^r - 1), with e^r - 1 = r + r^2
 * P(r). P is the least largest relative error fit on |r| <= ln 2 / 2 (1.4e-8). */
INLINE vec expm1_positive(vec y) {
  const vec n = vec_round(vec_mul(y, vec_set(1.44269504f)));
  /* ln 2 in two parts: n times the first is exact */
  const vec r = vec_fma(n, vec_set(-1.42860677e-6f), vec_fma(n, vec_set(-0.693145752f), y));
  vec p = vec_set(0x1.6beb2ap-10f);
  p = vec_fma(p, r, vec_set(0x1.122d00p-7f));
  p = vec_fma(p, r, vec_set(0x1.555680p-5f));
  p = vec_fma(p, r, vec_set(0x1.5554aap-3f));
  p = vec_fma(p, r, vec_set(0x1.fffffep-2f));
  p = vec_fma(vec_mul(r, r), p, r);
  const vec scale = vec_pow2(n);
  return vec_fma(scale, p, vec_sub(scale, vec_set(1)));
}

/* tanh |x| = m / (m + 2), m = e^{2|x|} - 1; from |x| = 9.1 on it rounds to 1. A NaN stays one: min
 * returns its second operand. */
INLINE vec vec_tanh(vec x) {
  const vec size = vec_min(vec_set(9.5f), vec_abs(x));
  const vec m = expm1_positive(vec_add(size, size));
  return vec_take_sign(vec_div(m, vec_add(m, vec_set(2))), x);
}

/* ---- tiles ---- */

/* Columns [column, column + n) of a row. */
struct tile {
  int64_t column;
  bool full; /* every vector is used whole, without a mask */
  vmask mask;
};

INLINE vec tile_load(const float *row, struct tile t, int v, int n_vec) {
  const float *at = row + t.column + v * LANES;
  return t.full || v + 1 < n_vec ? vec_load(at) : vec_load_part(at, t.mask);
}

INLINE void tile_store(float *row, struct tile t, int v, int n_vec, vec x) {
  float *at = row + t.column + v * LANES;
  if (t.full || v + 1 < n_vec)
    vec_store(at, x);
  else
    vec_store_part(at, t.mask, x);
}

/* Calls `kernel` with a number of vectors that the compiler knows, 1 .. TILE_VECS. */
#define WITH_VECS(n_vec, kernel, ...)                                                              \
  do {                                                                                             \
    if ((n_vec) == 1) kernel(__VA_ARGS__, 1);                                                      \
    if (TILE_VECS >= 2 && (n_vec) == 2) kernel(__VA_ARGS__, 2);                                    \
    if (TILE_VECS >= 3 && (n_vec) == 3) kernel(__VA_ARGS__, 3);                                    \
    if (TILE_VECS >= 4 && (n_vec) == 4) kernel(__VA_ARGS__, 4);                                    \
  } while (0)

/* All columns, tile by tile. Vectors that are used whole go without a mask: a masked store takes
 * AMD's processors tens of cycles. */
#define FOR_EACH_TILE(batch, kernel, ...)                                                          \
  do {                                                                                             \
    struct tile tile_ = {.full = true};                                                            \
    for (; tile_.column + TILE <= (batch); tile_.column += TILE)                                   \
      kernel(__VA_ARGS__, tile_, TILE_VECS);                                                       \
    const int rest_ = (int)((batch)-tile_.column), vecs_ = (rest_ + LANES - 1) / LANES;            \
    if (rest_ % LANES == 0) {                                                                      \
      WITH_VECS(vecs_, kernel, __VA_ARGS__, tile_);                                                \
      break;                                                                                       \
    }                                                                                              \
    tile_.full = false, tile_.mask = vec_mask(rest_ - (vecs_ - 1) * LANES);                        \
    WITH_VECS(vecs_, kernel, __VA_ARGS__, tile_);                                                  \
  } while (0)

/* ---- forward ---- */

/* Arrays per edge are read once a microstep, in order, and fetched ahead of use by about the time
 * that the third cache takes to answer. Into every cache: where the third one keeps only what falls
 * out of the second, as on Intel's servers, a fetch past the second would make the next microstep
 * read memory. Beyond the end a fetch does nothing. */
INLINE void expect(const void *edges, eidx e) {
  enum { AHEAD = 128, BYTES = 4 }; /* edges; bytes of an edge in any of these arrays */
  __builtin_prefetch((const char *)edges + (e + AHEAD) * BYTES, 0, 3);
}

/* sum[] += sum_e v_e s[col_e]; even and odd edges apart, so that two chains of
 * additions run side by side. */
INLINE void add_product(const struct recur_edges *edges, lidx row, const float *state,
                        int64_t batch, vec *sum, struct tile t, int n_vec) {
  const eidx last = edges->ptr[row + 1];
  eidx e = edges->ptr[row];
  vec odd[TILE_VECS];
  for (int v = 0; v < n_vec; v++) odd[v] = vec_set(0);
  for (; e + GROUP <= last; e += GROUP) {
    expect(edges->col, e), expect(edges->value, e);
#pragma GCC unroll 8
    for (int i = 0; i < GROUP; i++) {
      const float *from = state + edges->col[e + i] * batch;
      const vec value = vec_set(edges->value[e + i]);
      vec *to = i % 2 ? odd : sum;
      for (int v = 0; v < n_vec; v++) to[v] = vec_fma(value, tile_load(from, t, v, n_vec), to[v]);
    }
  }
  for (; e < last; e++) {
    const float *from = state + edges->col[e] * batch;
    const vec value = vec_set(edges->value[e]);
    for (int v = 0; v < n_vec; v++) sum[v] = vec_fma(value, tile_load(from, t, v, n_vec), sum[v]);
  }
  for (int v = 0; v < n_vec; v++) sum[v] = vec_add(sum[v], odd[v]);
}

/* p = tanh(z + d_t + b) */
INLINE void make_proposals(const struct recur_window *w, int k, lidx row, vec *z, struct tile t,
                           int n_vec) {
  const lidx slot = w->in_slot[row];
  const float *drive =
      slot < 0 ? NULL : w->drive + ((int64_t)(k / w->microsteps) * w->n_in + slot) * w->batch;
  for (int v = 0; v < n_vec; v++) {
    vec input = vec_set(w->bias[row]);
    if (drive) input = vec_add(tile_load(drive, t, v, n_vec), input);
    z[v] = vec_tanh(vec_add(z[v], input));
  }
}

/* s_{k+1} = (1 - a) s_k + a p */
INLINE void finish_tile(const struct recur_window *w, int k, lidx row, vec *z, struct tile t,
                        int n_vec) {
  const int64_t B = w->batch, at = row * B;
  const vec a = vec_set(w->leak[row]), keep = vec_set(1 - w->leak[row]);
  const float *s = recur_state(w, k) + at;
  float *next = recur_state(w, k + 1) + at;
  const lidx slot = (k + 1) % w->microsteps == 0 ? w->out_slot[row] : -1;
  float *output =
      slot < 0 ? NULL : w->output + ((int64_t)(k / w->microsteps) * w->n_out + slot) * B;
  make_proposals(w, k, row, z, t, n_vec);
  for (int v = 0; v < n_vec; v++) {
    const vec after = vec_fma(a, z[v], vec_mul(keep, tile_load(s, t, v, n_vec)));
    tile_store(next, t, v, n_vec, after);
    if (output) tile_store(output, t, v, n_vec, after);
  }
}

INLINE void forward_tile(const struct recur_window *w, int k, enum recur_edge_set edges, lidx row,
                         struct tile t, int n_vec) {
  const float *s = recur_state(w, k);
  float *near_sum = edges == RECUR_ALL_EDGES ? NULL : w->near_sum + (int64_t)row * w->batch;
  vec z[TILE_VECS];
  for (int v = 0; v < n_vec; v++)
    z[v] = edges == RECUR_FAR_EDGES ? tile_load(near_sum, t, v, n_vec) : vec_set(0);
  add_product(edges == RECUR_FAR_EDGES ? &w->far : &w->near, row, s, w->batch, z, t, n_vec);
  if (edges != RECUR_NEAR_EDGES)
    finish_tile(w, k, row, z, t, n_vec);
  else
    for (int v = 0; v < n_vec; v++) tile_store(near_sum, t, v, n_vec, z[v]);
}

static void forward_rows(const struct recur_window *w, int k, enum recur_edge_set edges, lidx first,
                         lidx last) {
  for (lidx i = first; i < last; i++) FOR_EACH_TILE(w->batch, forward_tile, w, k, edges, i);
}

/* ---- backward: what happens within a row ---- */

/* p_k of a row with a small leak, as in the forward pass */
INLINE void proposals_again(const struct recur_window *w, int k, lidx row, vec *p, struct tile t,
                            int n_vec) {
  const float *s = recur_state(w, k);
  for (int v = 0; v < n_vec; v++) p[v] = vec_set(0);
  add_product(&w->near, row, s, w->batch, p, t, n_vec);
  if (w->n_halo > 0) add_product(&w->far, row, s, w->batch, p, t, n_vec);
  make_proposals(w, k, row, p, t, n_vec);
}

/* p_k = (s_{k+1} - (1 - a) s_k) / a */
INLINE void proposals_recovered(const struct recur_window *w, int k, lidx row, vec *p,
                                struct tile t, int n_vec) {
  const int64_t at = (int64_t)row * w->batch;
  const float *s = recur_state(w, k) + at, *next = recur_state(w, k + 1) + at, a = w->leak[row];
  const vec keep = vec_set(1 - a), inverse = vec_set(1 / a);
  for (int v = 0; v < n_vec; v++) {
    const vec change =
        vec_sub(tile_load(next, t, v, n_vec), vec_mul(keep, tile_load(s, t, v, n_vec)));
    p[v] = vec_mul(change, inverse);
  }
}

struct row_gradients {
  const float *d_output; /* or NULL */
  float *d_drive;        /* or NULL */
  bool first_visit;      /* of this character: d_drive is set, not added to */
};

INLINE void elementwise_tile(const struct recur_window *w, int k, lidx row,
                             struct row_gradients with, struct tile t, int n_vec) {
  const int64_t at = (int64_t)row * w->batch;
  const float *s = recur_state(w, k) + at;
  float *g_row = w->d_state + at, *q_row = recur_q(w, k) + at;
  const vec a = vec_set(w->leak[row]), keep = vec_set(1 - w->leak[row]), one = vec_set(1);
  vec p[TILE_VECS], sum_bias = vec_set(0), sum_leak = vec_set(0);
  if (w->leak[row] < RECUR_SMALL_LEAK)
    proposals_again(w, k, row, p, t, n_vec);
  else
    proposals_recovered(w, k, row, p, t, n_vec);
  for (int v = 0; v < n_vec; v++) {
    vec g = tile_load(g_row, t, v, n_vec);
    if (with.d_output) g = vec_add(g, tile_load(with.d_output, t, v, n_vec));
    /* rounding may lift |p| above 1; the slope is never negative */
    const vec slope = vec_max(vec_fma(vec_sub(vec_set(0), p[v]), p[v], one), vec_set(0));
    const vec q = vec_mul(vec_mul(g, a), slope);
    tile_store(q_row, t, v, n_vec, q);
    tile_store(g_row, t, v, n_vec, vec_mul(g, keep));
    sum_bias = vec_add(sum_bias, q);
    sum_leak = vec_fma(g, vec_sub(p[v], tile_load(s, t, v, n_vec)), sum_leak);
    if (with.d_drive)
      tile_store(with.d_drive, t, v, n_vec,
                 with.first_visit ? q : vec_add(tile_load(with.d_drive, t, v, n_vec), q));
  }
  w->sum_bias[row] += vec_sum(sum_bias);
  w->sum_leak[row] += vec_sum(sum_leak);
}

static void elementwise_rows(const struct recur_window *w, int k, lidx first, lidx last) {
  const int64_t t = k / w->microsteps, B = w->batch;
  const bool read_out = (k + 1) % w->microsteps == 0;
  for (lidx i = first; i < last; i++) {
    const lidx in = w->in_slot[i], out = w->out_slot[i];
    const struct row_gradients with = {
        .d_output = read_out && out >= 0 ? w->d_output + (t * w->n_out + out) * B : NULL,
        .d_drive = in >= 0 ? w->d_drive + (t * w->n_in + in) * B : NULL,
        .first_visit = read_out};
    FOR_EACH_TILE(B, elementwise_tile, w, k, i, with);
  }
}

/* ---- backward: over edges ---- */

/* One edge: g += v q[dst]; returns the lanes of q[dst] . s */
INLINE vec visit_edge(const struct recur_window *w, eidx e, const float *q, const vec *s, vec *g,
                      struct tile t, int n_vec) {
  const float *row = q + w->out.col[e] * (int64_t)w->batch;
  const vec value = vec_set(w->out.value[e]);
  vec dot = vec_set(0);
  for (int v = 0; v < n_vec; v++) {
    const vec x = tile_load(row, t, v, n_vec);
    g[v] = vec_fma(value, x, g[v]);
    dot = v == 0 ? vec_mul(x, s[v]) : vec_fma(x, s[v], dot);
  }
  return dot;
}

/* g_j += sum_e v_e q[dst_e]  and  dv_e += q[dst_e] . s_j, eight edges at a time: their eight dot
 * products are folded together. */
INLINE void transposed_tile(const struct recur_window *w, int k, lidx row, struct tile t,
                            int n_vec) {
  const int64_t at = (int64_t)row * w->batch;
  const float *q = recur_q(w, k), *s_row = recur_state(w, k) + at;
  float *g_row = w->d_state + at;
  const eidx last = w->out.ptr[row + 1];
  vec s[TILE_VECS], even[TILE_VECS], odd[TILE_VECS];
  for (int v = 0; v < n_vec; v++) {
    s[v] = tile_load(s_row, t, v, n_vec);
    even[v] = row < w->n_own ? tile_load(g_row, t, v, n_vec) : vec_set(0);
    odd[v] = vec_set(0);
  }
  eidx e = w->out.ptr[row];
  for (; e + GROUP <= last; e += GROUP) {
    vec dot[GROUP];
    expect(w->out.col, e), expect(w->out.value, e), expect(w->out_gradient, e);
#pragma GCC unroll 8
    for (int i = 0; i < GROUP; i++)
      dot[i] = visit_edge(w, e + i, q, s, i % 2 ? odd : even, t, n_vec);
    vec_add_sums8(w->out_gradient + e, dot);
  }
  for (; e < last; e++) w->out_gradient[e] += vec_sum(visit_edge(w, e, q, s, even, t, n_vec));
  for (int v = 0; v < n_vec; v++) tile_store(g_row, t, v, n_vec, vec_add(even[v], odd[v]));
}

static void transposed_rows(const struct recur_window *w, int k, lidx first, lidx last) {
  for (lidx j = first; j < last; j++) FOR_EACH_TILE(w->batch, transposed_tile, w, k, j);
}

/* ---- micro-benchmarks of the machine ---- */

/* x <- 0.999 x + 0.001 in ten chains, enough to hide the latency of one */
static float bench_flops(int64_t rounds) {
  enum { CHAINS = 10 };
  vec x[CHAINS], sum = vec_set(0);
  for (int i = 0; i < CHAINS; i++) x[i] = vec_set((float)i);
  for (int64_t r = 0; r < rounds * RECUR_FLOPS_PER_ROUND / (2 * LANES * CHAINS); r++)
#pragma GCC unroll 10
    for (int i = 0; i < CHAINS; i++) x[i] = vec_fma(x[i], vec_set(0.999f), vec_set(0.001f));
  for (int i = 0; i < CHAINS; i++) sum = vec_add(sum, x[i]);
  return vec_sum(sum);
}

/* A row is added to one of so many sums in turn, so that additions do not wait for each other. */
INLINE void gather_tile(const float *rows, int width, const lidx *row, int64_t n, float *total,
                        struct tile t, int n_vec) {
  vec x[GROUP][TILE_VECS], sum = vec_set(0);
  const int chains = GROUP / n_vec;
  for (int c = 0; c < chains; c++)
    for (int v = 0; v < n_vec; v++) x[c][v] = vec_set(0);
  for (int64_t i = 0; i + GROUP <= n; i += GROUP)
#pragma GCC unroll 8
    for (int k = 0; k < GROUP; k++)
      for (int v = 0; v < n_vec; v++)
        x[k % chains][v] =
            vec_add(x[k % chains][v], tile_load(rows + (int64_t)row[i + k] * width, t, v, n_vec));
  for (int c = 0; c < chains; c++)
    for (int v = 0; v < n_vec; v++) sum = vec_add(sum, x[c][v]);
  *total += vec_sum(sum);
}

static float bench_gather(const float *rows, int width, const lidx *row, int64_t n) {
  float total = 0;
  FOR_EACH_TILE(width, gather_tile, rows, width, row, n, &total);
  return total;
}
