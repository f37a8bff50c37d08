/* NCCL takes the name of a file: it gets that of a pipe, which a thread reads line by line. Opening stderr
 * itself by name would cut off a log file that it leads to. */
#include "nccl_messages.h"
#include "fail.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static int reading = -1; /* our end of the pipe */

static void *tell(void *unused) {
  (void)unused;
  char host[256] = "?", line[4096];
  gethostname(host, sizeof host - 1);
  FILE *messages = fdopen(reading, "r");
  while (messages && fgets(line, sizeof line, messages)) {
    line[strcspn(line, "\n")] = 0;
    if (line[0]) fprintf(stderr, "fascicle: rank %d on %s: NCCL says: %s\n", fail_rank(), host, line);
  }
  return NULL;
}

void nccl_messages_start(void) {
  int end[2];
  char name[64];
  pthread_t thread;
  setenv("NCCL_DEBUG", "WARN", 0);
  if (reading >= 0 || getenv("NCCL_DEBUG_FILE") || pipe(end)) return;
  reading = end[0]; /* the other end stays open, so that the pipe is there when NCCL opens it by name */
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
