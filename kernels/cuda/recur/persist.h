/* The window of a small graph in one launch each way: every multiprocessor keeps a slice of 8
 * samples of the whole state in shared memory and its share of the edges in registers
 * (kernels/cuda/recur/persist_plan.h), and the multiprocessors of a slice meet once a microstep.
 * Needs sm_90, B a multiple of 8 and at most 32, and a graph that fits; who uses it asks
 * persist_open. No atomics on floats and fixed orders: the bits repeat. */
#ifndef FASCICLE_RECUR_PERSIST_H
#define FASCICLE_RECUR_PERSIST_H

#include "device.h"
#include "persist_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PERSIST_COLUMNS = 8,
  PERSIST_HALVES = 2,
  PERSIST_ARRIVAL_BYTES = 128,
  /* Blocks that fetch states together: each line leaves the L2 cache once for all of them. */
  PERSIST_CLUSTER = 2
};

/* A plan on the device; the arrays are those of struct persist_plan. */
struct persist_tables {
  int blocks, rows, stretches, rounds;
  const int32_t *row_at, *place;
  const uint32_t *three, *edge;
  const uint4 *ends;
  const uint8_t *lane_row;
  const uint16_t *first, *piece;
};

/* Device pointers. Rows of 4 floats, one *half* of a slice, stand by place: [B / 4][places][4]. */
struct persist_device {
  struct persist_tables there, back; /* forward: own rows are targets; backward: sources */
  int slices;
  float *window;      /* [K - 1, or 2][B / 4][places of there][4]: states 1 .. K - 1, or by turns */
  float *q;           /* [2][B / 4][places of back][4], by turns */
  float *gradient;    /* [slices][blocks][walkers][slots][lanes] of edges, one sum a slice */
  float *row_sums;    /* [slices][places of back][2] gradients of bias and leak */
  uint32_t *arrivals; /* [slices][halves] of 128 bytes: blocks that have come to the meeting,
                         counted up */
  float *last;        /* [n_own][B] the state after the window, in the caller's order */
};

/* Whether the device can hold all blocks of each kernel at a time. */
bool persist_resident(const struct persist_device *p);

/* The whole window, queued. */
void persist_forward(const struct recur_device *d, const struct persist_device *p);
void persist_backward(const struct recur_device *d, const struct persist_device *p);

#ifdef __cplusplus
}
#endif
#endif
