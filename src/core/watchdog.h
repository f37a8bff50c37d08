/* A thread that ends silent stalls. The program gives a pulse wherever it makes progress; if none
 * comes for the set time, one line names the last place and the process leaves with EXIT_WATCHDOG,
 * which ends the job. Time counts in naps of this thread: a job that is suspended and continued as
 * a whole does not notice.
 *
 * With no limit set by the user (WATCHDOG_CHOSEN) what is certain ends sooner than after 300
 * seconds:
 *   - a rank of this host is stopped (SIGSTOP) and we have stood still for 15 seconds;
 *   - every rank of the job is on this host, all are within windows (equal pieces of work, in which
 *     no file is touched), and all have stood still for 20 times the longest window so far, at
 *     least 20 seconds.
 *
 * A process under a debugger is not stopped in this sense. */
#ifndef FASCICLE_WATCHDOG_H
#define FASCICLE_WATCHDOG_H

#include "pulse.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WATCHDOG_CHOSEN (-INFINITY)

enum {
  WATCHDOG_PATIENCE = 10, /* times the limit, within a pause */
  WATCHDOG_WINDOWS = 20   /* times the longest window */
};

/* Seconds for which nothing may move. */
struct watchdog_rule {
  double limit;   /* at all; 0: never watch */
  double stopped; /* while a rank of the host is stopped */
  double window;  /* while all are within windows, at least; 0: windows are treated like everything
                     else */
};

/* The rule for --watchdog SECONDS, or for WATCHDOG_CHOSEN. */
struct watchdog_rule watchdog_rule(double seconds);

/* Start watching. May be called once; after monitor_start, by which the ranks of
 * a host see each other. */
void watchdog_start(struct watchdog_rule rule);

#ifdef __cplusplus
}
#endif
#endif
