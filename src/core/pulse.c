/* Notes where the program is and that it moves, for the watchdog to look at. */
#include "pulse.h"
#include "clock.h"
#include "fail.h"

#include <stdatomic.h>

enum { FIRST_WINDOWS = 3 }; /* these set things up: their time says nothing */

static atomic_ulong beats;
static _Atomic(const char *) last_place = "start";
static atomic_int pauses, waits, windows;
static double window_began;
static atomic_int n_windows;
static _Atomic double longest_window; /* seconds */

void pulse(const char *place) {
  atomic_store_explicit(&last_place, place, memory_order_relaxed);
  atomic_fetch_add_explicit(&beats, 1, memory_order_relaxed);
}

void watchdog_pause(const char *place) {
  pulse(place);
  atomic_fetch_add(&pauses, 1);
}

void watchdog_resume(void) {
  atomic_fetch_add(&beats, 1);
  const int before = atomic_fetch_sub(&pauses, 1);
  ASSERT(before > 0);
  (void)before;
}

void watchdog_wait(void) {
  atomic_fetch_add(&waits, 1);
}

void watchdog_wait_over(void) {
  atomic_fetch_add(&beats, 1);
  const int before = atomic_fetch_sub(&waits, 1);
  ASSERT(before > 0);
  (void)before;
}

void watchdog_window(const char *place) {
  pulse(place);
  window_began = seconds_now();
  atomic_store(&windows, 1);
}

void watchdog_window_over(const char *place) {
  const double took = seconds_now() - window_began;
  if (took > atomic_load(&longest_window)) atomic_store(&longest_window, took);
  if (n_windows < FIRST_WINDOWS) n_windows++;
  pulse(place);
  atomic_store(&windows, 0);
}

const char *watchdog_place(void) {
  return atomic_load(&last_place);
}

unsigned long pulse_beats(void) {
  return atomic_load(&beats);
}

struct pulse_state pulse_state(void) {
  return (struct pulse_state){.paused = atomic_load(&pauses) > 0,
                              .waits = atomic_load(&waits) > 0,
                              .in_window = atomic_load(&windows) > 0 && n_windows >= FIRST_WINDOWS,
                              .longest_window = atomic_load(&longest_window)};
}
