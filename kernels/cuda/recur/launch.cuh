/* Host side of the kernels: which layout a batch gets, and how a microstep is queued. */
#ifndef FASCICLE_RECUR_LAUNCH_CUH
#define FASCICLE_RECUR_LAUNCH_CUH

#include "walk.cuh"

#include <type_traits>

namespace recur_kernels {

template <class... P>
void launch(gpu_queue *queue, void (*kernel)(P...), int64_t blocks, P... args) {
  if (blocks == 0) return;
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)blocks), config.blockDim = dim3(RECUR_THREADS);
  config.stream = queue->stream;
  config.attrs = &early, config.numAttrs = 1;
  gpu_queue_note(queue, cudaLaunchKernelEx(&config, kernel, args...));
}

/* What decides about a layout. */
struct choice {
  int batch;
  bool narrow, mixed, small, backward;
};

template <class L, bool MIXED, class F> void with_index(choice c, const F &f) {
  if (c.narrow)
    f.template run<L, uint16_t, MIXED>();
  else
    f.template run<L, int32_t, MIXED>();
}

/* Small graphs do better with short rounds, which share the work more evenly, and backward with
 * three blocks a multiprocessor; large ones with long rounds (TRIED.md). */
template <class F> void with_small_layout(choice c, const F &f) {
  if (c.batch == 16) return f.template run<layout<4, 1, 4, 8, 2, 4>, uint16_t, false>();
  if (c.backward) return f.template run<layout<8, 1, 4, 8, 1, 3>, uint16_t, false>();
  f.template run<layout<8, 1, 4, 8, 1, 4>, uint16_t, false>();
}

template <class F> void with_float_layout(choice c, const F &f) {
  if (c.small && (c.batch == 16 || c.batch == 32)) return with_small_layout(c, f);
  switch (c.batch) {
  case 1: return with_index<layout<1, 1, 1, 4, 4, 4>, false>(c, f);
  case 4: return with_index<layout<1, 1, 4, 4, 4, 4>, false>(c, f);
  case 8: return with_index<layout<2, 1, 4, 8, 4, 4>, false>(c, f);
  case 16: return with_index<layout<4, 1, 4, 8, 4, 4>, false>(c, f);
  case 32: return with_index<layout<8, 1, 4, 8, 2, 5>, false>(c, f);
  case 64: return with_index<layout<8, 2, 4, 4, 1, 2>, false>(c, f);
  case 128: return with_index<layout<8, 4, 4, 2, 1, 2>, false>(c, f);
  }
  if (c.batch % 4 == 0 && c.batch < 32)
    return with_index<layout<8, 1, 4, 8, 1, 4, true>, false>(c, f);
  if (c.batch % 4 == 0 && c.batch < 64)
    return with_index<layout<8, 2, 4, 4, 1, 3, true>, false>(c, f);
  if (c.batch % 4 == 0) return with_index<layout<8, 4, 4, 2, 1, 2, true>, false>(c, f);
  if (c.batch < 8) return with_index<layout<8, 1, 1, 8, 4, 4, true>, false>(c, f);
  with_index<layout<8, 4, 1, 8, 1, 4, true>, false>(c, f);
}

/* Lanes hold eight columns each, 16 bytes of a gathered row. */
template <class F> void with_mixed_layout(choice c, const F &f) {
  switch (c.batch) {
  case 8: return with_index<layout<1, 1, 8, 4, 4, 4>, true>(c, f);
  case 16: return with_index<layout<2, 1, 8, 8, 4, 3>, true>(c, f);
  case 32: return with_index<layout<4, 1, 8, 8, 4, 4>, true>(c, f);
  case 64: return with_index<layout<8, 1, 8, 8, 2, 3>, true>(c, f);
  }
  if (c.batch % 8 == 0) return with_index<layout<8, 2, 8, 4, 1, 2, true>, true>(c, f);
  if (c.batch < 8) return with_index<layout<8, 1, 1, 8, 4, 4, true>, true>(c, f);
  with_index<layout<8, 4, 1, 8, 1, 4, true>, true>(c, f);
}

/* Calls f.run<layout, index, mixed>. */
template <class F> void with_layout(choice c, const F &f) {
  if (c.mixed)
    with_mixed_layout(c, f);
  else
    with_float_layout(c, f);
}

/* Launches `once` for each tile of columns. */
template <class L, class F> void for_tiles(int batch, const F &once) {
  const int tile = L::G * L::N;
  for (int first = 0; first < batch; first += tile) once(columns{batch, first});
}

inline int64_t state_floats(const recur_device *d) {
  return ((int64_t)d->n_own + d->n_halo) * d->batch;
}

inline float *state_at(const recur_device *d, int k) {
  return d->states + (d->all_states ? k : k % 2) * state_floats(d);
}

/* The rounded copy of s_k, or NULL without mixed precision. */
inline __half *rounded_at(const recur_device *d, int k) {
  return d->rounded ? (__half *)d->rounded + (k % 2) * state_floats(d) : NULL;
}

inline bool ends_character(const recur_device *d, int k) {
  return (k + 1) % d->microsteps == 0;
}

/* One thread a row. */
inline unsigned row_blocks(const recur_device *d) {
  return (unsigned)((d->n_own + RECUR_THREADS - 1) / RECUR_THREADS);
}

/* Where kernels find columns and values of edges: of lines both are in `value`. */
inline const void *columns_of(const recur_device *d, const recur_walk *walk, const float *value) {
  return d->lines ? (const void *)value : walk->col;
}

inline const float *values_of(const recur_device *d, const float *value) {
  return d->lines ? value + RECUR_PAD : value;
}

/* Edge e to its place in `to`: its value, in lines its column too. */
template <bool LINES>
__device__ __forceinline__ void put_edge(float *to, uint32_t e, int32_t col, float value) {
  float *at = to + edge_place<LINES>(e);
  if (LINES) at[0] = __int_as_float(col);
  at[LINES ? RECUR_PAD : 0] = value;
}

inline choice choice_of(const recur_device *d, const recur_walk *walk) {
  return choice{d->batch, walk->narrow, d->rounded != NULL, d->small, false};
}

} // namespace recur_kernels
#endif
