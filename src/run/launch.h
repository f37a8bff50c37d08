/* Were all ranks started alike? Else the first collective that they do not share would hang. */
#ifndef FASCICLE_LAUNCH_H
#define FASCICLE_LAUNCH_H

#include "core/comm.h"

/* EXIT_USAGE when the ranks run different builds of the program or different command lines.
 * Agreed. What else may differ does no harm: threads, as each rank has its own; files, as
 * what is read is compared. */
struct status launch_check(const struct comm *world, int argc, char **argv);

/* Take the signals: unless a verb treats them as requests, they end the job and remove unfinished
 * files. Before MPI starts. */
void launch_signals(void);

#endif
