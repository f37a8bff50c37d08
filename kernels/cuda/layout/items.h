/* Who walks which row: rows binned by degree, long ones split. Host code, no CUDA. */
#ifndef FASCICLE_LAYOUT_ITEMS_H
#define FASCICLE_LAYOUT_ITEMS_H

#include "contract/recurrence.h"
#include "core/types.h"
#include "recur.h"

/* How rows of a batch's columns are laid over lanes. */
struct recur_shape_on_device {
  int lanes;  /* of a group */
  int round;  /* edges that a group takes at a time */
  bool lines; /* of struct recur_device */
};

/* Work items for rows first .. first + n_rows - 1, of ptr[row + 1] - ptr[row] edges that stand from
 * padded[row] on. A row is split until a group has at most `chunk` edges or a block is full; rows
 * of one split and like length stand together, the longest first, in their own order otherwise.
 * `slots` is left 0. `blocks` says how many blocks of RECUR_THREADS / lanes items that gives,
 * `fill` makes them; false: there is no memory for its scratch. */
int recur_items_blocks(const eidx *ptr, lidx first, lidx n_rows, struct recur_shape_on_device shape,
                       int chunk);
bool recur_items_fill(const eidx *ptr, const uint32_t *padded, lidx first, lidx n_rows,
                      struct recur_shape_on_device shape, int chunk, int n_blocks,
                      struct recur_item *item);

/* Edges per group: few where the graph is small, so that all multiprocessors are busy, and fewer
 * with one or two lanes; more where it is large, and then twice or four times as many where a round
 * has 16 edges. Measured, see TRIED.md. */
int recur_chunk(eidx n_edges, int processors, struct recur_shape_on_device shape,
                enum recur_direction direction);

#endif
