/* NCCL takes the name of a file: it gets that of a pipe, which a thread reads line by line. Opening
 * stderr itself by name would cut off a log file that it leads to. */
#include "nccl_messages.h"
#include "core/comm.h"
#include "core/fail.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static int reading = -1; /* our end of the pipe */
static bool asked;       /* by the user, for more than warnings */

/* Its version is no news, unless somebody has asked NCCL to talk. */
static void say(const char *host, char *line) {
  if (line[0] && (asked || !strstr(line, "NCCL version")))
    fprintf(stderr, "fascicle: rank %d on %s: NCCL says: %s\n", fail_rank(), host, line);
}

/* Without stdio: a stream that waits for input would hold up exit(). */
static void *tell(void *unused) {
  (void)unused;
  enum { ROOM = 4096 };
  const struct host host = host_here();
  char text[ROOM];
  size_t held = 0;
  ssize_t n;
  while ((n = read(reading, text + held, ROOM - 1 - held)) > 0) {
    text[held += (size_t)n] = 0;
    char *line = text, *end;
    for (; (end = strchr(line, '\n')); line = end + 1) *end = 0, say(host.name, line);
    held = strlen(line);
    if (held == ROOM - 1) say(host.name, line), held = 0;
    memmove(text, line, held);
  }
  return NULL;
}

void nccl_messages_start(void) {
  int end[2];
  char name[64];
  pthread_t thread;
  asked |= getenv("NCCL_DEBUG") != NULL && reading < 0;
  setenv("NCCL_DEBUG", "WARN", 0);
  if (reading >= 0 || getenv("NCCL_DEBUG_FILE") || pipe(end)) return;
  reading =
      end[0]; /* the other end stays open, so that the pipe is there when NCCL opens it by name */
  snprintf(name, sizeof name, "/proc/self/fd/%d", end[1]);
  setenv("NCCL_DEBUG_FILE", name, 1);
  if (pthread_create(&thread, NULL, tell, NULL))
    DIE(EXIT_RUNTIME, "cannot start the thread of NCCL's messages");
  pthread_detach(thread);
}

void nccl_messages_flush(void) {
  const struct timespec pause = {0, 20000000};
  int waiting = 1;
  for (int i = 0; i < 20 && reading >= 0 && waiting > 0; i++) {
    nanosleep(&pause, NULL); /* also for the line that has been read and not yet printed */
    if (ioctl(reading, FIONREAD, &waiting)) waiting = 0;
  }
}
