/* Rows of streamed edges (contract/lif.h: struct lif_stream) that are in memory: a ring of edges,
 * filled as sources spike and overwritten in the same order, so that the process holds no more of
 * the file than it was given. What it read before and lost may still be in the system's page cache,
 * which costs a system call to copy from and nobody's budget.
 *
 * A system call a row, 0.8 us, is what streaming costs; adding its 117 edges takes 0.4. So rows are
 * read in chunks (ahead.h) while others are added: by each thread that would wait, and by the
 * stream's readers.
 *
 * Tried against this: mapping the file. What is mapped is quicker than a call, but Linux maps whole
 * large folios where one row is looked at, and what is mapped of the file soon is all of it, which
 * counts as the process' own; mapped for a moment at a time (33 rows in the order of the file, then
 * given back) it takes 2.2 us a row. Calls for many rows at once gain little: io_uring 5 to 15 % of
 * a read, libaio nothing, as most of it is the system's way to the page, and the copy. The order of
 * the file gains nothing, nor do places on lines of their own.
 *
 * What a damaged file says must not reach memory that is not ours: rows
 * are checked as they come. */
#ifndef FASCICLE_LIF_ROWS_H
#define FASCICLE_LIF_ROWS_H

#include "contract/lif.h"

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

/* Memory: the bytes that the net's stream may hold (at least its longest row), 16 a node of the
 * whole graph, up to 2.5 MB for the spikes at hand. */
struct lif_rows *lif_rows_open(const struct lif_net *net);
void lif_rows_close(struct lif_rows *rows); /* accepts NULL */

/* Bring the edges of spikes [from, returned) of `all` into memory: as many as fit, at least one.
 * Begins it; the stream's readers, and the callers of lif_rows_next, do it. */
int64_t lif_rows_begin(struct lif_rows *rows, const struct lif_spikes *all, int64_t from);

/* Some of these spikes, whose edges are there. */
struct lif_held {
  int64_t chunk;    /* 0 before the first; how far this thread is */
  int64_t from, to; /* of `all` */
  const struct lif_row
      *row; /* [to - from] valid until every thread has had its last, and begins again */
};

/* The next of them, in order, false after the last. For any number of threads, each of which must
 * go through all of them. A file that cannot be read is fatal. */
bool lif_rows_next(struct lif_rows *rows, struct lif_held *held);

#endif
