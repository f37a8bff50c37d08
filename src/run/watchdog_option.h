/* --watchdog: the option, and what it starts (watchdog.h has the rules). */
#ifndef FASCICLE_WATCHDOG_OPTION_H
#define FASCICLE_WATCHDOG_OPTION_H

#include "core/fail.h"
#include "options.h"
#include "core/watchdog.h"

/* The row of the option; *seconds begins as WATCHDOG_CHOSEN. */
struct option watchdog_option(double *seconds);

/* EXIT_USAGE when it is negative. The same on every rank, as below. */
struct status watchdog_check(double seconds);

/* Check it and begin. */
struct status watchdog_begin(double seconds);

#endif
