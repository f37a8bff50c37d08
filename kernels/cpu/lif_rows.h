/* Rows of streamed edges (lif_backend.h: struct lif_stream) that are in memory: a ring of edges, filled as
 * sources spike and overwritten in the same order, so that the process holds no more of the file than it was
 * given. What it read before and lost may still be in the system's page cache, which costs a system call to
 * copy from and nobody's budget.
 *
 * Tried against this: mapping the file. Entering it is quicker (a step with 1 % of the neurons takes 2.3
 * times a resident one, against 3 to 4 times with copies), but Linux maps whole large folios where one row is
 * looked at, and what is mapped of the file soon is all of it, which counts as the process' own.
 *
 * What a damaged or changed file says must not reach memory that is not ours: rows are checked as they come.
 */
#ifndef FASCICLE_LIF_ROWS_H
#define FASCICLE_LIF_ROWS_H

#include "lif_backend.h"

/* Our edges of one source, as a resident net has them: own targets, ascending. */
struct lif_row {
  const struct lif_edge *at;
  eidx n;
};

/* The first of n edges whose target is not below `row`. */
static inline eidx lif_first_from(const struct lif_edge *edge, eidx n, gidx row) {
  eidx from = 0;
  while (from < n) {
    const eidx middle = from + (n - from) / 2;
    if (edge[middle].target < row)
      from = middle + 1;
    else
      n = middle;
  }
  return from;
}

struct lif_rows;

/* Memory: the bytes that the net's stream may hold (at least its longest row), 16 a node of the whole graph.
 */
struct lif_rows *lif_rows_open(const struct lif_net *net);
void lif_rows_close(struct lif_rows *rows); /* accepts NULL */

/* Bring the edges of spikes [from, returned) of `all` into memory, by all threads: as many as fit, at least
 * one. row [returned - from] is valid until the next call. A file that cannot be read is fatal. */
int64_t lif_rows_hold(struct lif_rows *rows, const struct lif_spikes *all, int64_t from, int n_threads,
                      const struct lif_row **row);

#endif
