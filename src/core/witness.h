/* The ranks of one host keep an eye on each other's processes: when one is gone without having said why
 * (killed by hand, by the kernel for want of memory, by a crash), one line names it and the phase, and the
 * job ends. A launcher would end it too, but may be silent. */
#ifndef FASCICLE_WITNESS_H
#define FASCICLE_WITNESS_H

#include "comm.h"

/* Collective over the ranks of a host; once. Does nothing where the system offers no way to watch. */
void witness_start(const struct comm *host);

/* From here on nobody wonders at our end: called before an orderly one, and by whoever tells the reason of
 * another. Any thread; harmless without witness_start. */
void witness_leave(void);

/* Whether this rank is the first of its host to say that nothing moves. */
bool witness_speaks(void);

/* "; rank R (process P) on this host is stopped" for the first that is, else an empty text. */
void witness_suspect(char *text, size_t size);

#endif
