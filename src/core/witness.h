/* The ranks of one host keep an eye on each other's processes: when one is gone without having said
 * why (killed by hand, by the kernel for want of memory, by a crash), one line names it and the
 * phase, and the job ends. A launcher would end it too, but may be silent. */
#ifndef FASCICLE_WITNESS_H
#define FASCICLE_WITNESS_H

#include "comm.h"

/* Collective over the ranks of a host; once. `n_ranks`: of the whole job. Does nothing where the
 * system offers no way to watch. */
void witness_start(const struct comm *host, int n_ranks);

/* Whether that is done. Any thread. */
bool witness_met(void);

/* From here on nobody wonders at our end: called before an orderly one, and by whoever tells the
 * reason of another. Any thread; harmless without witness_start. */
void witness_leave(void);

/* Whether this rank is the first of its host to say why the job ends. */
bool witness_speaks(void);

/* Whether some rank of the host has said so. */
bool witness_told(void);

/* By the watchdog's thread, for the others to see: for how long this rank has stood still in units
 * of what is borne (see watchdog.h), and where. */
void witness_tell(double still, const char *place);

/* Whether every rank of the job is seen from here: all are on this host. */
bool witness_sees_all(void);

/* Whether all others of the host have said that they stand still for 1 or longer. */
bool witness_all_stand(void);

/* Whether some other rank of this host is stopped, though not by a debugger. */
bool witness_stopped(void);

/* "; rank R (process P) on this host is stopped" for the first that is, also by a debugger; else
 * the same for one that "was last seen in" another place than we are; else an empty text. */
void witness_suspect(char *text, size_t size);

#endif
