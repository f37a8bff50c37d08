/* Who walks which row: rows binned by degree, long ones split. Host code, no CUDA. */
#ifndef FASCICLE_RECUR_PLAN_H
#define FASCICLE_RECUR_PLAN_H

#include "device.h"
#include "contract/recurrence.h"
#include "core/types.h"

/* Work items for rows first .. first + n_rows - 1, of ptr[row + 1] - ptr[row] edges that stand from
 * padded[row] on. A row is split until a group has at most `chunk` edges or a block is full; rows
 * of one split and like length stand together, the longest first, in their own order otherwise.
 * `slots` is left 0. The caller frees it; n_blocks blocks. */
struct recur_item *recur_plan(const eidx *ptr, const uint32_t *padded, lidx first, lidx n_rows,
                              struct recur_shape_on_device shape, int chunk, int *n_blocks);

enum { RECUR_SMALL = 2500000 }; /* edges: up to so many leave multiprocessors waiting for work */

/* Edges per group: few where the graph is small, so that all multiprocessors are busy, and fewer
 * with one or two lanes; more where it is large, and then twice or four times as many where a round
 * has 16 edges. Measured, see TRIED.md. */
int recur_chunk(eidx n_edges, int processors, struct recur_shape_on_device shape,
                enum recur_direction direction);

#endif
