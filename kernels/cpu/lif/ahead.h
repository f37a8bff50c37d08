/* Tasks whose results are needed in order and that are done ahead of time: by helper threads, and
 * by threads that need a result and would otherwise wait. Helpers sleep while there is nothing to
 * do, and block all signals. */
#ifndef FASCICLE_AHEAD_H
#define FASCICLE_AHEAD_H

#include "core/types.h"

struct ahead;

/* work(of, task) does a task; different tasks at the same time. Without helpers the
 * thread that needs a task does it. */
struct ahead *ahead_open(int n_helpers, void (*work)(void *of, int64_t task), void *of);
void ahead_close(struct ahead *a); /* accepts NULL */

/* A new round, of tasks 0 .. n - 1. All tasks of the round before must have been reached, by one
 * thread at least, and by every thread that takes part. */
void ahead_begin(struct ahead *a, int64_t n);

/* Returns when the task is done; what it wrote may then be read. Any thread,
 * for all tasks in order. */
void ahead_reach(struct ahead *a, int64_t task);

/* The task is done already: reaching it costs nothing. */
bool ahead_is_done(const struct ahead *a, int64_t task);

#endif
