/* Who may use the persistent window of kernels/cuda/recur/persist.h: host code. From 400,000 edges
 * on it is taken wherever it fits; FASCICLE_WINDOW=persistent in the environment takes it for fewer
 * too, FASCICLE_WINDOW=microsteps never. */
#ifndef FASCICLE_RECUR_PERSIST_OPEN_H
#define FASCICLE_RECUR_PERSIST_OPEN_H

#include "contract/recurrence.h"
#include "persist.h"

/* The variable of the environment that asks for windows in one launch or by microsteps, and
 * whether it may hold this word. libfascicle holds this file, but not the errors of the program:
 * no struct status here. */
#define PERSIST_MODE "FASCICLE_WINDOW"
bool persist_knows_mode(const char *mode);

/* Plans and arrays on the device. False where the network, the batch or the GPU is not one for
 * it: nothing is held then. */
bool persist_open(const struct recur_net *net, struct persist_device *p);
void persist_close(struct persist_device *p); /* accepts a zeroed one */

/* What persist_open will hold, from the counts of the net alone; 0 where it will say no. A graph
 * whose rows are very unequal may still be refused. */
int64_t persist_bytes(const struct recur_net *net);

#endif
