/* What the ranks of a host tell each other at a job's end, in memory that they share: which of them
 * says why, and whose end needs no explanation. monitor.h sets it up; until then, and for a rank
 * alone on its host, each rank speaks for itself. Any thread. */
#ifndef FASCICLE_PEERS_H
#define FASCICLE_PEERS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From here on `leaves` is this rank's flag, and `spoken` the host's: both in shared memory, 0, and
 * read by others with __atomic_load_n. NULL: there is nobody to share with. */
void peers_share(int *leaves, int *spoken);

/* Whether peers_share has been called. */
bool peers_met(void);

/* From here on nobody wonders at our end: called before an orderly one, and by the rank that tells
 * the reason of another. */
void peers_leave(void);

/* Whether this rank is the first of its host to say why the job ends. */
bool peers_speak(void);

/* Whether some rank of the host has said so. */
bool peers_told(void);

#ifdef __cplusplus
}
#endif
#endif
