/* Inside libfascicle: what api_graph.c and api.c share. This library stands on kernels/recur_window alone: no
 * MPI, no memory counting, no exits. */
#ifndef FASCICLE_API_INTERNAL_H
#define FASCICLE_API_INTERNAL_H

#include "fascicle.h"
#include "types.h"

struct fascicle_graph {
  lidx n_nodes, n_in, n_out;
  eidx n_edges;
  /* By target, sources ascending, parallel edges in the caller's order. */
  eidx *in_ptr;    /* [N + 1] */
  lidx *in_source; /* [E] */
  eidx *caller;    /* [E] the caller's number of each edge */
  /* By source. */
  eidx *out_ptr;            /* [N + 1] */
  lidx *out_target;         /* [E] */
  eidx *out_edge;           /* [E] position by target */
  lidx *in_slot, *out_slot; /* [N] row of the drive, column of the output; -1 */
};

/* Note a failure for fascicle_last_error and return its code. */
int api_failure(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
