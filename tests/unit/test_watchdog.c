/* ranks: 1 */
/* What the watchdog ends and what it leaves alone, at a fraction of the usual times: each case
 * is a process of its own. */
#include "check.h"
#include "core/watchdog.h"
#include "core/monitor.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct watchdog_rule quick = {.limit = 8, .stopped = 1, .window = 1};

static void rest(double seconds) {
  struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&t, &t)) continue;
}

static void make_windows(int n, double seconds) {
  for (int i = 0; i < n; i++) {
    watchdog_window("a window");
    rest(seconds);
    watchdog_window_over("a window");
  }
}

/* ---- cases: what the process does ---- */

static void hangs_in_a_window(void) {
  make_windows(5, 0.01);
  watchdog_window("a window");
  rest(100);
}

static void hangs_in_the_first_window(void) {
  watchdog_window("a window");
  rest(3);
}

static void has_long_windows(void) {
  make_windows(3, 0.4); /* 20 times as long may pass */
  watchdog_window("a window");
  rest(3);
}

static void is_between_windows(void) {
  make_windows(5, 0.01);
  rest(3);
}

static void reads_a_file_in_a_window(void) {
  make_windows(5, 0.01);
  watchdog_window("a window");
  watchdog_pause("a file");
  rest(5);
  watchdog_resume();
}

static void hangs(void) {
  pulse("something");
  rest(100);
}

static void waits_for_another(void) {
  watchdog_wait();
  rest(12);
  watchdog_wait_over();
}

/* As long as it may be quiet, and stopped for longer in the middle of it. */
static void is_suspended(void) {
  pulse("something");
  rest(2);
}

static const struct {
  const char *name;
  void (*does)(void);
  bool ends;      /* by the watchdog */
  double suspend; /* seconds from its second 1 on */
} cases[] = {{"hangs in a window", hangs_in_a_window, true, 0},
             {"hangs in the first window", hangs_in_the_first_window, false, 0},
             {"has long windows", has_long_windows, false, 0},
             {"is between windows", is_between_windows, false, 0},
             {"reads a file in a window", reads_a_file_in_a_window, false, 0},
             {"hangs", hangs, true, 0},
             {"waits for another", waits_for_another, false, 0},
             {"is suspended", is_suspended, false, 10}};
enum { N_CASES = sizeof cases / sizeof *cases };

static pid_t begin(int i) {
  const pid_t process = fork();
  if (process) return process;
  const struct comm alone = {.size = 1};
  monitor_start(&alone, 1);
  if (!cases[i].ends && !freopen("/dev/null", "w", stderr)) _exit(1);
  watchdog_start(quick);
  cases[i].does();
  _exit(0);
}

int main(int argc, char **argv) {
  pid_t process[N_CASES];
  for (int i = 0; i < N_CASES; i++) process[i] = begin(i); /* before MPI has threads */
  test_start(&argc, &argv);
  rest(1);
  for (int i = 0; i < N_CASES; i++)
    if (cases[i].suspend > 0)
      kill(process[i], SIGSTOP), rest(cases[i].suspend), kill(process[i], SIGCONT);
  for (int i = 0; i < N_CASES; i++) {
    int status;
    CHECK(waitpid(process[i], &status, 0) == process[i]);
    const int wanted = cases[i].ends ? EXIT_WATCHDOG : EXIT_FINE;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted)
      printf("a process that %s: %x\n", cases[i].name, status);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == wanted);
  }
  return test_end();
}
