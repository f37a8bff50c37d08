/* Signs of life, from wherever the program makes progress. watchdog.h says what comes of their
 * want.
 */
#ifndef FASCICLE_PULSE_H
#define FASCICLE_PULSE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Progress was made; `place` is a string literal that names where. Cheap: two relaxed stores. */
void pulse(const char *place);

/* The place of the last pulse or pause: the phase that error lines name. */
const char *watchdog_place(void);

/* Around calls that may rightly take long (METIS, HDF5): the limit is WATCHDOG_PATIENCE times as
 * long until the matching resume. Nests. */
void watchdog_pause(const char *place);
void watchdog_resume(void);

/* Around a wait for what another rank does alone: that one is watched, this one is not
 * until the matching resume. */
void watchdog_wait(void);
void watchdog_wait_over(void);

/* Around one window: a piece of work like those before it, seconds at most. */
void watchdog_window(const char *place);
void watchdog_window_over(const char *place);

/* ---- for the watchdog ---- */

/* How many pulses so far. Whatever ends gives one: read pulse_state before it. */
unsigned long pulse_beats(void);

struct pulse_state {
  bool paused, waits;    /* within a pause, a wait */
  bool in_window;        /* within a window that is not one of the first */
  double longest_window; /* seconds */
};
struct pulse_state pulse_state(void);

#ifdef __cplusplus
}
#endif
#endif
