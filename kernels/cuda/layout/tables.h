/* The tables of the recurrence that never change: edges by target and by source, made on the host
 * in the form that the kernels read. Who holds the device copies them there, array by array. */
#ifndef FASCICLE_LAYOUT_TABLES_H
#define FASCICLE_LAYOUT_TABLES_H

#include "contract/recurrence.h"
#include "core/arrays.h"
#include "items.h"
#include "recur.h"

/* Makes the tables that recur_list_tables lists for one direction, in host memory that
 * arrays_close(that list) releases. d and s: from recur_set_counts; the numbers of places and of
 * blocks are filled in. False: there is no memory, and nothing is held. */
bool recur_make_tables(struct recur_device *d, struct recur_sizes *s, const struct recur_net *net,
                       enum recur_direction direction, struct recur_shape_on_device shape,
                       int processors);

/* Both walks of a direction read the same columns: once `near` has them, so does `far`. */
static inline void recur_share_columns(struct recur_device *d) {
  d->far_in.col = d->near_in.col, d->far_out.col = d->near_out.col;
}

/* Edges of near and far by source: own sources, then the halo; within a source by ascending
 * target. */
struct recur_by_source {
  eidx *ptr; /* [n_own + n_halo + 1] */
  lidx *target;
  uint32_t *edge; /* position in near-then-far order */
};
void recur_list_by_source(struct arrays *list, struct recur_by_source *s, int64_t rows,
                          eidx n_edges);

/* False: there is no memory, and nothing is held. recur_by_source_free releases it. */
bool recur_by_source(const struct graph *g, struct recur_by_source *s);
void recur_by_source_free(struct recur_by_source *s);

#endif
