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
  pulse(place);
  atomic_fetch_add(&pauses, 1);
}

void watchdog_resume(void) {
  atomic_fetch_add(&beats, 1);
  atomic_fetch_sub(&pauses, 1);
}

const char *watchdog_place(void) {
  return atomic_load(&last_place);
}

/* How long quiet is borne: longer within a pause, but not for ever, since a stalled rank would otherwise hold
 * the others in a collective write. */
static double patience(void) {
  /* When all are quiet one line is enough: the launcher ends the others before their turn. */
  const int rank = fail_rank();
  const double turn = rank < 8 ? rank : 8;
  return (atomic_load(&pauses) > 0 ? WATCHDOG_PATIENCE * limit_seconds : limit_seconds) + turn;
}

/* One rank of a host speaks; the others leave it time to end them all. */
static void give_up(double quiet) {
  char host[256] = "?", suspect[128];
  const struct timespec rest = {3, 0};
  gethostname(host, sizeof host - 1);
  witness_leave();
  witness_suspect(suspect, sizeof suspect);
  if (!witness_speaks()) nanosleep(&rest, NULL), _exit(EXIT_WATCHDOG);
  fprintf(stderr,
          "fascicle: rank %d on %s: no progress for %.0f s, last seen in '%s'%s; ended by the watchdog "
          "(--watchdog SECONDS changes the limit)\n",
          fail_rank(), host, quiet, atomic_load(&last_place), suspect);
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
    const double limit = patience(); /* before the beats: a pause that ends meanwhile has given one */
    const unsigned long now = atomic_load(&beats);
    quiet = now != seen ? 0 : quiet + nap;
    seen = now;
    if (quiet >= limit) give_up(quiet);
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
