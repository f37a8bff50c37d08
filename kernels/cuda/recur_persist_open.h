/* Who may use the persistent window of recur_persist.h: host code. From 400,000 edges on it is taken wherever
 * it fits; FASCICLE_WINDOW=persistent in the environment takes it for fewer too, FASCICLE_WINDOW=microsteps
 * never. */
#ifndef FASCICLE_RECUR_PERSIST_OPEN_H
#define FASCICLE_RECUR_PERSIST_OPEN_H

#include "fail.h"
#include "recur_backend.h"
#include "recur_persist.h"

/* EXIT_USAGE when FASCICLE_WINDOW holds another word. */
struct status persist_check_way(void);

/* Plans and arrays on the device. False where the network, the batch or the GPU is not one for it: nothing is
 * held then. */
bool persist_open(const struct recur_net *net, struct persist_device *p);
void persist_close(struct persist_device *p); /* accepts a zeroed one */

/* What persist_open will hold, from the counts of the net alone; 0 where it will say no. A graph whose rows
 * are very unequal may still be refused. */
int64_t persist_bytes(const struct recur_net *net);

#endif
