#include "watchdog.h"
#include "fail.h"
#include "witness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static atomic_ulong beats;
static _Atomic(const char *) last_place = "start";
static atomic_int pauses;
static double limit_seconds;

void pulse(const char *place) {
  atomic_store_explicit(&last_place, place, memory_order_relaxed);
  atomic_fetch_add_explicit(&beats, 1, memory_order_relaxed);
}

void watchdog_pause(const char *place) {
  atomic_store_explicit(&last_place, place, memory_order_relaxed);
  atomic_fetch_add(&pauses, 1);
}

void watchdog_resume(void) {
  atomic_fetch_add(&beats, 1);
  atomic_fetch_sub(&pauses, 1);
}

const char *watchdog_place(void) {
  return atomic_load(&last_place);
}

static void give_up(void) {
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  witness_leave();
  fprintf(stderr,
          "fascicle: rank %d on %s: no progress for %.0f s, last seen in '%s'; ended by the watchdog "
          "(--watchdog SECONDS changes the limit)\n",
          fail_rank(), host, limit_seconds, atomic_load(&last_place));
  fflush(stderr);
  _exit(EXIT_WATCHDOG);
}

/* Counts quiet time in short naps of the monotonic clock, so that a jump of the wall clock cannot fire it. */
static void *watch(void *unused) {
  (void)unused;
  unsigned long seen = atomic_load(&beats);
  double quiet = 0;
  const double nap = limit_seconds < 10 ? limit_seconds / 10 : 1;
  const struct timespec pause = {(time_t)nap, (long)((nap - (double)(time_t)nap) * 1e9)};
  for (;;) {
    nanosleep(&pause, NULL);
    unsigned long now = atomic_load(&beats);
    quiet = now != seen || atomic_load(&pauses) > 0 ? 0 : quiet + nap;
    seen = now;
    if (quiet >= limit_seconds) give_up();
  }
  return NULL;
}

void watchdog_start(double seconds) {
  if (seconds <= 0) return;
  limit_seconds = seconds;
  pthread_t thread;
  if (pthread_create(&thread, NULL, watch, NULL)) DIE(EXIT_RUNTIME, "cannot start the watchdog thread");
  pthread_detach(thread);
}
