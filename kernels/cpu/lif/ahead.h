/* Pieces of work that are needed in order, done ahead of that: by helper threads, and by
 * those who need them instead of waiting. Helpers sleep while there is nothing to do;
 * signals are not for them. */
#ifndef FASCICLE_AHEAD_H
#define FASCICLE_AHEAD_H

#include "core/types.h"

struct ahead;

/* work(of, piece) does a piece; different pieces at the same time. Without helpers it is
 * done by whoever needs it. */
struct ahead *ahead_open(int n_helpers, void (*work)(void *of, int64_t piece), void *of);
void ahead_close(struct ahead *a); /* accepts NULL */

/* A new round, of pieces 0 .. n - 1. All pieces of the round before must have been reached, by one
 * thread at least, and by every thread that takes part. */
void ahead_begin(struct ahead *a, int64_t n);

/* Returns when the piece is done; what it wrote may then be read. Any thread,
 * for all pieces in order. */
void ahead_reach(struct ahead *a, int64_t piece);

/* The piece is done already: reaching it costs nothing. */
bool ahead_is_done(const struct ahead *a, int64_t piece);

#endif
