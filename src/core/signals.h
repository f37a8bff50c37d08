/* Requests from outside. A handler only sets a flag; the flag rides in an exchange that happens anyway, so
 * that all ranks act at the same step. SIGTERM, SIGUSR1, SIGINT: stop with a checkpoint. SIGUSR2: checkpoint
 * and go on. */
#ifndef FASCICLE_SIGNALS_H
#define FASCICLE_SIGNALS_H

enum request { REQUEST_NONE = 0, REQUEST_SAVE = 1, REQUEST_STOP = 2 };

/* Install the handlers; after MPI_Init. For verbs that look at the requests: others end at once, as programs
 * do. */
void signals_install(void);

/* The strongest request seen so far on this rank. */
enum request signals_pending(void);

/* Forget a REQUEST_SAVE once it has been served; a REQUEST_STOP stays. */
void signals_saved(void);

#endif
