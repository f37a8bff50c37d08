/* What both persistent window kernels are made of: where rows stand, shared memory, and how the
 * blocks of a slice exchange their states. */
#ifndef FASCICLE_PERSIST_BLOCK_CUH
#define FASCICLE_PERSIST_BLOCK_CUH

#include "persist.cuh"

#include <math.h>

namespace persist {

constexpr int CHUNKS = 8; /* copies that a half slice is fetched in, beside each other */

struct args {
  recur_device d;
  persist_device p;
};

/* ---- where a block and a row stand ---- */

__device__ __forceinline__ int slice_of_block(const persist_tables &t) {
  return blockIdx.x / t.blocks;
}

__device__ __forceinline__ int block_of_slice(const persist_tables &t) {
  return blockIdx.x % t.blocks;
}

__device__ __forceinline__ int places_of(const persist_tables &t) {
  return t.blocks * t.rows;
}

__device__ __forceinline__ int first_column(const persist_tables &t, int half) {
  return slice_of_block(t) * PERSIST_COLUMNS + half * HALF;
}

/* [slot][B / 4][places] rows of 4 */
__device__ __forceinline__ int64_t row_at(const args &a, const persist_tables &plan, int slice,
                                          int slot, int half, int place) {
  return (((int64_t)slot * (a.d.batch / HALF) + slice * HALVES + half) * places_of(plan) + place) *
         HALF;
}

/* What is known of a row that a block owns; row -1: none. */
struct own_row {
  const float *saved; /* state 1 in the window, half 0 */
  int row, in, out;
  float leak, bias;
};

__device__ __forceinline__ own_row find_row(const args &a, const persist_tables &t, int at) {
  own_row r = {NULL, t.row_at[block_of_slice(t) * t.rows + at], -1, -1, 1, 0};
  if (r.row < 0) return r;
  r.saved = a.p.window + row_at(a, a.p.forward, slice_of_block(t), 0, 0, a.p.forward.place[r.row]);
  r.in = a.d.in_slot[r.row], r.out = a.d.out_slot[r.row];
  r.leak = a.d.leak[r.row], r.bias = a.d.bias[r.row];
  return r;
}

/* ---- shared memory ---- */

/* Of both kernels: two half slices by place, sums of segments with a zero behind
 * them, tables of the block. */
struct room {
  float4 *x, *sums;
  own_row *own; /* [rows] */
  uint16_t *sum_at, *first;
  uint8_t *lane_row;
  float4 *rest;
};

__host__ __device__ int64_t sums_of(const persist_tables &t) {
  return (int64_t)t.stretches * LANES;
}

/* `memory` starts with `rest` rows of four for the kernel's own use. */
__device__ __forceinline__ room rooms(float4 *memory, const persist_tables &t, int rest) {
  room r;
  r.rest = memory, r.x = memory + rest, r.sums = r.x + HALVES * places_of(t);
  r.sum_at = (uint16_t *)(r.sums + sums_of(t) + 1);
  r.own = (own_row *)(r.sum_at + t.rounds * PERSIST_ROUND);
  r.first = (uint16_t *)(r.own + t.rows), r.lane_row = (uint8_t *)(r.first + t.rows + 1);
  return r;
}

int64_t bytes_of_rooms(const persist_tables &t, int64_t rest) {
  const int64_t rows = rest + (int64_t)HALVES * t.blocks * t.rows + sums_of(t) + 1;
  const int64_t words = (int64_t)t.rounds * PERSIST_ROUND + t.rows + 1;
  return rows * (int64_t)sizeof(float4) + t.rows * (int64_t)sizeof(own_row) +
         words * (int64_t)sizeof(uint16_t) + sums_of(t);
}

__device__ __forceinline__ void fill_rooms(const args &a, const persist_tables &t, const room &r) {
  const int64_t block = block_of_slice(t);
  const int sums = (int)sums_of(t), entries = t.rounds * PERSIST_ROUND;
  for (int i = threadIdx.x; i < entries; i += THREADS) r.sum_at[i] = t.sum_at[block * entries + i];
  for (int i = threadIdx.x; i < sums; i += THREADS) r.lane_row[i] = t.lane_row[block * sums + i];
  for (int i = threadIdx.x; i <= t.rows; i += THREADS)
    r.first[i] = t.first[block * (t.rows + 1) + i];
  for (int i = threadIdx.x; i < t.rows; i += THREADS) r.own[i] = find_row(a, t, i);
  if (threadIdx.x == 0) r.sums[sums] = make_float4(0, 0, 0, 0);
}

/* ---- the barrier of a slice ---- */

struct signals {
  uint64_t done[HALVES]; /* this block has written a half of its new rows */
  uint64_t here[HALVES]; /* all rows of a half have come in */
};

__device__ __forceinline__ void signals_init(signals &s) {
  if (threadIdx.x < HALVES) {
    signal_init(&s.done[threadIdx.x], WALKERS);
    signal_init(&s.here[threadIdx.x], 1);
  }
}

/* By all walkers, after their writes. */
__device__ __forceinline__ void written(signals &s, int half) {
  __syncwarp();
  if (threadIdx.x % LANES == 0) signal_arrive(&s.done[half]);
}

/* One thread acts for the block among the blocks of its slice. `n` times for each half in turn: it
 * announces that this block has written its rows of a half and, once all blocks have, fetches them.
 * from(i): where they are the i-th time, half 0; the other half follows. */
template <class FROM>
__device__ __forceinline__ void exchange_halves(const args &a, const persist_tables &t, float4 *x,
                                                signals &s, int n, const FROM &from) {
  uint32_t *const arrivals = a.p.arrivals + slice_of_block(t) * HALVES * ARRIVAL_WORDS;
  const uint32_t bytes = (uint32_t)places_of(t) * (uint32_t)sizeof(float4);
  const uint32_t chunk = (bytes / CHUNKS + 127) / 128 * 128,
                 first = block_of_slice(t) % CLUSTER * chunk;
  for (int announced = 0, fetched = 0; fetched < HALVES * n;) {
    if (announced < HALVES * n &&
        signal_ready(&s.done[announced % HALVES], announced / HALVES & 1)) {
      arrive(arrivals + announced % HALVES * ARRIVAL_WORDS);
      announced++;
    }
    if (fetched == announced) continue;
    const int half = fetched % HALVES, i = fetched / HALVES;
    if (!all_arrived(arrivals + half * ARRIVAL_WORDS, (uint32_t)((i + 1) * t.blocks))) continue;
    engine_sees();
    signal_expect(&s.here[half], bytes);
    const char *source = (const char *)(from(i) + (int64_t)half * places_of(t) * HALF);
    char *to = (char *)(x + half * places_of(t));
    for (uint32_t at = first; at < bytes; at += CLUSTER * chunk)
      copy_in(to + at, source + at, min(chunk, bytes - at), &s.here[half]);
    fetched++;
  }
}

} // namespace persist

#endif
