#include "signals.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t stop_seen, save_seen;

static void on_stop(int number) {
  (void)number;
  stop_seen = 1;
}

static void on_save(int number) {
  (void)number;
  save_seen = 1;
}

static void install(int number, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, NULL);
}

void signals_install(void) {
  install(SIGTERM, on_stop);
  install(SIGUSR1, on_stop);
  install(SIGINT, on_stop);
  install(SIGUSR2, on_save);
}

enum request signals_pending(void) {
  if (stop_seen) return REQUEST_STOP;
  return save_seen ? REQUEST_SAVE : REQUEST_NONE;
}

void signals_saved(void) {
  save_seen = 0;
}
