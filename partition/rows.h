/* Ordered rows split over ranks: each rank owns a contiguous range. */
#ifndef FASCICLE_ROWS_H
#define FASCICLE_ROWS_H

#include "core/types.h"

/* first [parts + 1]: rank p owns rows [first[p], first[p + 1]); first[0] = 0, first[parts] = n.
 * Balanced by weight(row) = in-degree + 1, from row_ptr [n + 1]. Where `block` [n_blocks + 1] (row
 * boundaries of a stored nested partition; NULL for none) has n_blocks as a multiple of `parts`,
 * the cuts fall on its boundaries. With more parts than rows the last ranks own nothing. Pure. */
void rows_split(gidx n, const eidx *row_ptr, const gidx *block, int n_blocks, int parts,
                gidx *first);

/* The part that owns a row: binary search. */
int rows_owner(const gidx *first, int parts, gidx row);

#endif
