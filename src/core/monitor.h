/* The ranks of one host monitor each other's processes: when one is gone without having said
 * why (killed by hand, by the kernel for want of memory, by a crash), one line names it and the
 * phase, and the job ends. A launcher would end it too, but may be silent. */
#ifndef FASCICLE_MONITOR_H
#define FASCICLE_MONITOR_H

#include "comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over the ranks of a host; once. `n_ranks`: of the whole job. Does nothing where the
 * system offers no way to watch. */
void monitor_start(const struct comm *host, int n_ranks);

/* By the watchdog's thread, for the others to see: for how long this rank has stood still in units
 * of what is tolerated (see watchdog.h), and where. */
void monitor_report(double still, const char *place);

/* Whether every rank of the job is seen from here: all are on this host. */
bool monitor_sees_all(void);

/* Whether all others of the host have said that they stand still for 1 or longer. */
bool monitor_all_still(void);

/* Whether some other rank of this host is stopped, though not by a debugger. */
bool monitor_stopped(void);

/* "; rank R (process P) on this host is stopped" for the first that is, also by a debugger;
 * otherwise the same for one that "was last seen in" another place than we are; otherwise an empty
 * text. */
void monitor_suspect(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
