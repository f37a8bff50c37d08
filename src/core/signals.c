/* One thread takes the signals of the process: requests to stop or to save, or the end. */
#include "signals.h"
#include "fail.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static atomic_bool stop_seen, save_seen, are_requests;

static const struct {
  int number;
  const char *name;
} taken[] = {{SIGTERM, "SIGTERM"},
             {SIGINT, "SIGINT"},
             {SIGHUP, "SIGHUP"},
             {SIGUSR1, "SIGUSR1"},
             {SIGUSR2, "SIGUSR2"}};
enum { N_TAKEN = sizeof taken / sizeof *taken };

static sigset_t taken_set(void) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < N_TAKEN; i++) sigaddset(&set, taken[i].number);
  return set;
}

/* By who started us, such as a shell for jobs in its background. */
static bool is_ignored(int number) {
  struct sigaction now;
  return !sigaction(number, NULL, &now) && now.sa_handler == SIG_IGN;
}

static const char *name_of(int number) {
  for (int i = 0; i < N_TAKEN; i++)
    if (taken[i].number == number) return taken[i].name;
  return "?";
}

static void *take(void *unused) {
  (void)unused;
  const sigset_t set = taken_set();
  for (int number;;) {
    if (sigwait(&set, &number)) continue;
    if (number == SIGHUP && is_ignored(number)) continue; /* under nohup */
    if (number == SIGTERM) fail_end_if_told();
    if (number == SIGUSR2)
      atomic_store(&save_seen, true);
    else if (atomic_load(&are_requests))
      atomic_store(&stop_seen, true);
    else if (!is_ignored(number))
      fail_stopped(name_of(number));
  }
  return NULL;
}

void signals_start(void) {
  const sigset_t set = taken_set();
  pthread_t thread;
  signal(SIGXFSZ, SIG_IGN);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  if (pthread_create(&thread, NULL, take, NULL))
    DIE(EXIT_RUNTIME, "cannot start the thread of signals");
  pthread_detach(thread);
}

void signals_install(void) {
  atomic_store(&are_requests, true);
}

enum request signals_pending(void) {
  if (atomic_load(&stop_seen)) return REQUEST_STOP;
  return atomic_load(&save_seen) ? REQUEST_SAVE : REQUEST_NONE;
}

void signals_saved(void) {
  atomic_store(&save_seen, false);
}
