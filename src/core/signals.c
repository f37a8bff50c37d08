#include "signals.h"
#include "fail.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static atomic_bool stop_seen, save_seen, are_requests;
static void (*clean_up)(void);

static sigset_t those(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM), sigaddset(&set, SIGINT), sigaddset(&set, SIGUSR1),
      sigaddset(&set, SIGUSR2);
  return set;
}

/* By who started us, such as a shell for jobs in its background. */
static bool is_ignored(int number) {
  struct sigaction now;
  return !sigaction(number, NULL, &now) && now.sa_handler == SIG_IGN;
}

static const char *name_of(int number) {
  return number == SIGTERM ? "SIGTERM" : number == SIGINT ? "SIGINT" : "SIGUSR1";
}

static void *take(void *unused) {
  (void)unused;
  const sigset_t set = those();
  for (int number;;) {
    if (sigwait(&set, &number)) continue;
    if (number == SIGUSR2)
      atomic_store(&save_seen, true);
    else if (atomic_load(&are_requests))
      atomic_store(&stop_seen, true);
    else if (!is_ignored(number))
      fail_stopped(name_of(number), clean_up);
  }
  return NULL;
}

void signals_start(void (*clean)(void)) {
  const sigset_t set = those();
  pthread_t thread;
  clean_up = clean;
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
