/* A thread that ends silent stalls. The program gives a pulse wherever it makes progress; if none comes for
 * the set time, one line names the last place and the process leaves with EXIT_WATCHDOG, which ends the job.
 */
#ifndef FASCICLE_WATCHDOG_H
#define FASCICLE_WATCHDOG_H

/* Start watching; `seconds` <= 0 means never. May be called once. */
void watchdog_start(double seconds);

/* Progress was made; `place` is a string literal that names where. Cheap: two relaxed stores. */
void pulse(const char *place);

/* The place of the last pulse or pause: the phase that error lines name. */
const char *watchdog_place(void);

/* Around calls that may rightly take long (METIS, HDF5): the limit is WATCHDOG_PATIENCE times as long until
 * the matching resume. Nests. */
enum { WATCHDOG_PATIENCE = 10 };
void watchdog_pause(const char *place);
void watchdog_resume(void);

#endif
