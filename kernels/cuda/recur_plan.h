/* Who walks which row: rows binned by degree, long ones split. Host code, no CUDA. */
#ifndef FASCICLE_RECUR_PLAN_H
#define FASCICLE_RECUR_PLAN_H

#include "recur_device.h"
#include "types.h"

/* Work items for rows first .. first + n_rows - 1, of ptr[row + 1] - ptr[row] edges that stand from
 * padded[row] on. A row is split until a group has at most `chunk` edges or a block is full; rows of one
 * split and like length stand together, the longest first, in their own order otherwise. `slots` is
 * left 0. The caller frees it; n_blocks blocks. */
struct recur_item *recur_plan(const eidx *ptr, const uint32_t *padded, lidx first, lidx n_rows,
                              struct recur_shape_on_device shape, int chunk, int *n_blocks);

/* Edges per group: `least` where the graph is small, so that all multiprocessors are busy; more where it is
 * large. One or two lanes take less than `least`; where edges stand in lines twice as many did best. */
enum {
  RECUR_IN_CHUNK = 48,
  RECUR_OUT_CHUNK = 64
}; /* least, forward and backward; measured, see VERSIONS.md */
int recur_chunk(eidx n_edges, int processors, struct recur_shape_on_device shape, int least);

#endif
