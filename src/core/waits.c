/* How long the threads of a process spin for each other. */
#include "waits.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char SPINS[] = "1000"; /* pauses of 15 to 40 ns */

static bool one_thread(void) {
  const char *asked = getenv("OMP_NUM_THREADS");
  if (asked && !strcmp(asked, "1")) return true;
  cpu_set_t cores;
  return !sched_getaffinity(0, sizeof cores, &cores) && CPU_COUNT(&cores) == 1;
}

void waits_settle(char **argv) {
  if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") || one_thread()) return;
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0 || setenv("GOMP_SPINCOUNT", SPINS, 1)) return;
  self[n] = 0;
  execv(self, argv); /* returns where that cannot be: then threads spin longer */
}
