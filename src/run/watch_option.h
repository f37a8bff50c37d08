/* --watchdog: the option, and what it starts (watchdog.h has the rules). */
#ifndef FASCICLE_WATCH_H
#define FASCICLE_WATCH_H

#include "core/fail.h"
#include "options.h"
#include "core/watchdog.h"

/* The row of the option; *seconds begins as WATCHDOG_CHOSEN. */
struct option watch_option(double *seconds);

/* EXIT_USAGE when it is negative. The same on every rank, as below. */
struct status watch_check(double seconds);

/* Check it and begin. */
struct status watch_start(double seconds);

#endif
