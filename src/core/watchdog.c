#include "watchdog.h"
#include "comm.h"
#include "fail.h"
#include "log.h"
#include "witness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_WINDOWS = 3 }; /* these set things up: nothing is told from their time */

static atomic_ulong beats;
static _Atomic(const char *) last_place = "start";
static atomic_int pauses, waits, windows;
static double window_began;
static atomic_int n_windows;
static _Atomic double longest_window; /* seconds */
static struct watchdog_rule rule;

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

void watchdog_wait(void) {
  atomic_fetch_add(&waits, 1);
}

void watchdog_wait_over(void) {
  atomic_fetch_add(&beats, 1);
  atomic_fetch_sub(&waits, 1);
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

/* ---- the rule ---- */

/* What is borne now. Taken before the beats are looked at: whatever ends
 * meanwhile has given one. */
struct bearing {
  double limit; /* seconds; 0: none */
  bool window;  /* only as long as a window may take */
};

/* Counted by the watching thread. */
struct stillness {
  unsigned long seen;    /* beats */
  double quiet, stopped; /* seconds without a beat, and with a stopped rank on this host */
};

/* How long quiet is borne: longer within a pause, but not for ever, since a stalled rank would
 * otherwise hold the others in a collective write. */
static struct bearing bearing_now(void) {
  /* Over several hosts one line is enough: the launcher ends the others before their turn. */
  const int rank = fail_rank();
  const double turn = witness_sees_all() ? 0 : rank < 8 ? rank : 8;
  const bool pause = atomic_load(&pauses) > 0, wait = atomic_load(&waits) > 0;
  return (struct bearing){.limit = wait ? 0 : (pause ? WATCHDOG_PATIENCE : 1) * rule.limit + turn,
                          .window = !wait && !pause && rule.window > 0 &&
                                    atomic_load(&windows) > 0 && n_windows >= FIRST_WINDOWS};
}

/* What the other ranks of the host are told: for how long this one has stood still in a window, in
 * units of what a window may take. */
static double standing(const struct bearing *b, const struct stillness *s) {
  const double usual = WATCHDOG_WINDOWS * atomic_load(&longest_window);
  return b->window ? s->quiet / (usual > rule.window ? usual : rule.window) : 0;
}

static bool is_over(const struct bearing *b, const struct stillness *s) {
  const double still = standing(b, s);
  witness_tell(still, watchdog_place());
  if (b->limit > 0 && s->quiet >= b->limit) return true;
  if (s->quiet >= rule.stopped && s->stopped >= rule.stopped) return true;
  return still >= 1 && witness_sees_all() && witness_all_stand();
}

/* One rank of a host speaks, if nobody has yet; the others leave it time to end them all. */
static void give_up(double quiet) {
  char suspect[192];
  const struct timespec rest = {3, 0};
  witness_leave();
  witness_suspect(suspect, sizeof suspect);
  if (!fail_speaks() || !witness_speaks()) nanosleep(&rest, NULL), _exit(EXIT_WATCHDOG);
  fprintf(stderr,
          "%sfascicle: rank %d on %s: no progress for %.0f s, last seen in '%s'%s; ended by the "
          "watchdog "
          "(--watchdog SECONDS changes the limit)\n",
          fail_fresh_line(), fail_rank(), host_here().name, quiet, watchdog_place(), suspect);
  fflush(stderr);
  _exit(EXIT_WATCHDOG);
}

static double nap_for(const struct watchdog_rule *r) {
  const double least = r->window > 0 && r->window < r->stopped ? r->window : r->stopped;
  return least < 10 ? least / 10 : 1;
}

/* Counts quiet time in short naps of the monotonic clock, so that a jump of the wall clock cannot
 * fire it. A nap that lasted much longer means that this process itself was stopped, or starved:
 * the count begins anew, as do those of the others, who need a moment to get going again. */
static void *watch(void *unused) {
  (void)unused;
  struct stillness s = {.seen = atomic_load(&beats)};
  const double nap = nap_for(&rule);
  const struct timespec pause = {(time_t)nap, (long)((nap - (double)(time_t)nap) * 1e9)};
  for (double before = seconds_now();;) {
    nanosleep(&pause, NULL);
    const double now = seconds_now();
    const bool slept_on = now - before > 2 * nap + 1;
    before = now;
    const struct bearing b = bearing_now();
    const unsigned long given = atomic_load(&beats);
    s.quiet = given != s.seen || slept_on ? 0 : s.quiet + nap;
    s.stopped = s.quiet == 0 || !witness_stopped() ? 0 : s.stopped + nap;
    s.seen = given;
    if (is_over(&b, &s)) give_up(s.quiet);
  }
  return NULL;
}

struct watchdog_rule watchdog_rule(double seconds) {
  return seconds < 0 ? (struct watchdog_rule){.limit = 300, .stopped = 15, .window = 20}
                     : (struct watchdog_rule){.limit = seconds, .stopped = seconds};
}

void watchdog_start(struct watchdog_rule chosen) {
  if (chosen.limit == 0) return;
  rule = chosen;
  pthread_t thread;
  if (pthread_create(&thread, NULL, watch, NULL))
    DIE(EXIT_RUNTIME, "cannot start the watchdog thread");
  pthread_detach(thread);
}
