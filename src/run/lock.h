/* One run at a time in a folder: DIR/lock holds host, process, Slurm job and start of the run that
 * works there. A lock that a dead run left behind is told from a live one:
 *
 *   live   the operating system still holds the lock for its owner; or its process runs on this
 *          host (number and start time agree); or it was taken on another host and touched within
 *          LOCK_QUIET seconds
 *   stale  anything else, and a lock of this very Slurm job from before it was requeued
 *
 * Local: rank 0 does this. */
#ifndef FASCICLE_RUNLOCK_H
#define FASCICLE_RUNLOCK_H

#include "core/fail.h"

enum { LOCK_QUIET = 600 };

/* Take FOLDER/lock; *fd is the lock, for the other two. A live lock of another run is EXIT_OUTPUT
 * and names its host, process and job; a stale one is taken over and a warning says so. */
struct status runlock_take(const char *folder, int *fd);

/* Whether a run works in FOLDER now. */
bool runlock_live(const char *folder);

/* A sign of life; cheap, call it as often as you like. */
void runlock_touch(int fd);

/* Remove the lock. fd -1 is accepted. */
void runlock_drop(const char *folder, int fd);

#endif
