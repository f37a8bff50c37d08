/* Ends the process when nothing has moved for too long. */
#include "watchdog.h"
#include "clock.h"
#include "fail.h"
#include "host.h"
#include "monitor.h"
#include "peers.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static struct watchdog_rule rule;

/* ---- the rule ---- */

/* What is tolerated now. Taken before the beats are looked at: whatever ends meanwhile has given
 * one. */
struct tolerance {
  double limit;        /* seconds; 0: none */
  bool window;         /* only as long as a window may take */
  double window_limit; /* seconds */
};

/* Counted by the watching thread. */
struct stillness {
  unsigned long seen;    /* beats */
  double quiet, stopped; /* seconds without a beat, and with a stopped rank on this host */
};

/* How long nothing may move: longer within a pause, but not for ever, since a stalled rank would
 * otherwise hold the others in a collective write. */
static struct tolerance tolerance_now(void) {
  /* Over several hosts one line is enough: the launcher ends the others before their turn. */
  const int rank = fail_rank();
  const double turn = monitor_sees_all() ? 0 : rank < 8 ? rank : 8;
  const struct pulse_state now = pulse_state();
  const double usual = WATCHDOG_WINDOWS * now.longest_window;
  return (struct tolerance){
      .limit = now.waits ? 0 : (now.paused ? WATCHDOG_PATIENCE : 1) * rule.limit + turn,
      .window = !now.waits && !now.paused && rule.window > 0 && now.in_window,
      .window_limit = usual > rule.window ? usual : rule.window};
}

/* What the other ranks of the host learn: for how long this one has stood still in a window, in
 * units of what a window may take. */
static double stood_still(const struct tolerance *t, const struct stillness *s) {
  return t->window ? s->quiet / t->window_limit : 0;
}

static bool is_over(const struct tolerance *t, const struct stillness *s) {
  const double still = stood_still(t, s);
  monitor_report(still, watchdog_place());
  if (t->limit > 0 && s->quiet >= t->limit) return true;
  if (s->quiet >= rule.stopped && s->stopped >= rule.stopped) return true;
  return still >= 1 && monitor_sees_all() && monitor_all_still();
}

/* One rank of a host speaks, if nobody has yet; the others leave it time to end them all. */
static void give_up(double quiet) {
  char suspect[192];
  const struct timespec rest = {3, 0};
  peers_leave();
  monitor_suspect(suspect, sizeof suspect);
  if (!fail_speaks() || !peers_speak()) nanosleep(&rest, NULL), _exit(EXIT_WATCHDOG);
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
  struct stillness s = {.seen = pulse_beats()};
  const double nap = nap_for(&rule);
  const struct timespec pause = {(time_t)nap, (long)((nap - (double)(time_t)nap) * 1e9)};
  for (double before = seconds_now();;) {
    nanosleep(&pause, NULL);
    const double now = seconds_now();
    const bool slept_on = now - before > 2 * nap + 1;
    before = now;
    const struct tolerance now_tolerated = tolerance_now();
    const unsigned long given = pulse_beats();
    s.quiet = given != s.seen || slept_on ? 0 : s.quiet + nap;
    s.stopped = s.quiet == 0 || !monitor_stopped() ? 0 : s.stopped + nap;
    s.seen = given;
    if (is_over(&now_tolerated, &s)) give_up(s.quiet);
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
