/* The share of a graph that one rank owns, and what it needs from others. */
#ifndef FASCICLE_GRAPH_H
#define FASCICLE_GRAPH_H

#include "core/types.h"

/* Rows of edges: row i's edges are row_ptr[i] .. row_ptr[i + 1]. */
struct csr {
  lidx n_rows;
  eidx n_edges;
  eidx *row_ptr; /* [n_rows + 1], row_ptr[0] = 0 */
  lidx *col;     /* [n_edges] local index of the other end */
};

/* Who sends what to whom, once per exchange. Rows are rows of a local state array: own rows 0 ..
 * n_own - 1, then halo rows n_own .. n_own + n_halo - 1 in ascending global order, so a peer's halo
 * rows are one run and are received in place. */
struct halo {
  int64_t id; /* its own in this process: what was made for one halo is never taken for another's */
  lidx needed; /* halo rows that edges of this rank use: n_halo, or fewer in an all-gather */
  bool all;    /* an all-gather: every own row goes to every peer, so rows are sent as they stand */
  int n_peers; /* ranks that we send to or receive from */
  int *peer;   /* [n_peers] ascending */
  eidx *send_ptr; /* [n_peers + 1] into send_row */
  lidx *send_row; /* own rows to send to each peer, ascending */
  eidx *recv_ptr; /* [n_peers + 1] halo slots (0 = first halo row) that arrive from each peer */
};

/* Where the rows for peer p start: among the own rows themselves, or among
 * those packed by send_row. */
static inline const void *halo_rows_for(const struct halo *halo, int p, const void *rows,
                                        const void *packed, size_t row_bytes) {
  return halo->all ? rows : (const char *)packed + (size_t)halo->send_ptr[p] * row_bytes;
}

/* Which rows of other ranks a rank holds: those that its edges need, or all (the baseline
 * that a halo must beat). */
enum halo_kind {
  HALO_AUTO, /* all where that costs no more: halo_takes_all of partition/halo.h */
  HALO_NEEDED,
  HALO_ALL
};

/* near: edges whose source is owned here (col < n_own). far: edges whose source is in the halo
 * (col = n_own + slot). Rows of both are the owned targets. Edges keep file order within a row:
 * sorted by source node id. */
struct graph {
  gidx n_global, first;      /* rows [first, first + n_own) are ours */
  const gidx *first_of_rank; /* [size + 1] */
  lidx n_own, n_halo;
  struct csr near, far;
  eidx *near_edge, *far_edge; /* position of each edge in this rank's slice of the file,
                                 [near.n_edges], [far.n_edges] */
  gidx *halo_gid;             /* [n_halo] ascending */
  struct halo halo;
};

#endif
