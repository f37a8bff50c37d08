/* Edges laid out for the persistent window kernels of kernels/cuda/recur/persist.cu. Host code, no
 * CUDA.
 *
 * A group of `blocks` multiprocessors works on one slice of 8 samples. Every block holds the
 * slice's whole state in shared memory and owns `rows` places: the rows that it walks. A lane keeps
 * the weights and sources of its edges in registers, two edges a turn. Lane l of a warp takes only
 * edges whose other end has a place = l modulo 8, so that eight lanes that read 16 bytes each never
 * have a bank conflict.
 *
 * The edges of one row and class (place modulo 8) are a run, cut into segments. Segments of like
 * length stand in the 32 lanes of a stretch; a warp walks its stretches one after another, and at
 * the end of each every lane stores the sum of its segment. Whoever finishes a row adds the sums of
 * its segments in the order given here. */
#ifndef FASCICLE_LAYOUT_PERSIST_PLAN_H
#define FASCICLE_LAYOUT_PERSIST_PLAN_H

#include "core/arrays.h"
#include "core/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PERSIST_WALKERS = 7,                     /* warps of a block that walk edges */
  PERSIST_CLASSES = 8,                     /* places modulo this; 16-byte words of all banks */
  PERSIST_SLOTS = 80,                      /* edges that a lane can hold */
  PERSIST_WORDS = (PERSIST_SLOTS + 2) / 3, /* that hold their places */
  PERSIST_BITS = 10,                       /* of a place / classes */
  PERSIST_LANES = 32,
  PERSIST_ROUND = 8,                                  /* sums that are read at a time */
  PERSIST_MOST_ROWS = PERSIST_WALKERS * PERSIST_LANES /* one thread finishes a row; below 256 */
};
#define PERSIST_NO_EDGE UINT32_MAX

struct uint4; /* CUDA's: four uint32_t, aligned to 16 bytes */

/* On the host as persist_plan makes them, then the same on the device. */
struct persist_tables {
  int blocks, rows; /* places are block * rows + 0 .. rows - 1 */
  int stretches;    /* of the block that has most */
  int rounds;       /* of the block that has most: a row's sums are read eight at a time */
  int32_t *row_at;  /* [blocks][rows] the row at a place, -1 for none */
  int32_t *place;   /* [n] of a row */
  uint32_t
      *packed;    /* [blocks][walkers][words][lanes] place / classes of three edges, 10 bits each */
  uint32_t *edge; /* [blocks][walkers][slots][lanes] position of an edge, or PERSIST_NO_EDGE */
  struct uint4 *ends; /* [blocks][walkers] turns that end a stretch, two words of bits; first
                         stretch; turns */
  uint8_t *lane_row; /* [blocks][stretches][lanes] row, counted in its block, of a lane's segment */
  uint16_t *first;   /* [blocks][rows + 1] rounds of each row */
  uint16_t *sum_at;  /* [blocks][rounds][8] where a row's sums lie: stretch * lanes + lane, or
                        stretches * lanes, a zero */
};

/* All arrays, for n rows, by the counts that stand there. */
void persist_list_tables(struct arrays *list, struct persist_tables *t, lidx n);

/* Rows of edges: those of row i are ptr[i] .. ptr[i + 1] - 1. edge: their positions, NULL for as
 * they come.
 */
struct persist_edges {
  const eidx *ptr;
  const lidx *col; /* the other end */
  const uint32_t *edge;
};

/* Places of a block where n rows are shared by `blocks`; 0 where they are too many. */
int persist_rows(lidx n, int blocks);

/* Rows 0 .. n - 1 for `blocks` multiprocessors: `walk` has the edges of each row, `readers` the
 * same edges by their other end. False, and nothing is held, where they do not fit; else the host
 * arrays are released by arrays_close(persist_list_tables). Running out of memory is fatal. */
bool persist_plan(lidx n, const struct persist_edges *walk, const struct persist_edges *readers,
                  int blocks, struct persist_tables *t);

#ifdef __cplusplus
}
#endif
#endif
