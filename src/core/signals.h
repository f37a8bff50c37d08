/* Requests from outside. One thread takes the signals of the whole process; all others have them
 * blocked, also those of libraries. SIGTERM, SIGINT, SIGUSR1, SIGHUP (a closed terminal; not under
 * nohup): stop; SIGUSR2: checkpoint and go on. SIGXFSZ is ignored: a write beyond `ulimit -f` then
 * fails with EFBIG, and is handled like any other.
 *
 * A verb that can go on later calls signals_install: signals are then requests, which ride in
 * an exchange that happens anyway, so that all ranks act at the same step. All others end at
 * once: unfinished files are removed, one line says why, the exit code is EXIT_RUNTIME;
 * SIGUSR2 does nothing there. */
#ifndef FASCICLE_SIGNALS_H
#define FASCICLE_SIGNALS_H

#ifdef __cplusplus
extern "C" {
#endif

enum request { REQUEST_NONE = 0, REQUEST_SAVE = 1, REQUEST_STOP = 2 };

/* Take the signals from here on. Before any other thread is there, so before MPI starts. */
void signals_start(void);

/* From here on signals are requests. */
void signals_install(void);

/* The strongest request seen so far on this rank. */
enum request signals_pending(void);

/* Forget a REQUEST_SAVE once it has been served; a REQUEST_STOP stays. */
void signals_saved(void);

#ifdef __cplusplus
}
#endif
#endif
