#include "pages.h"
#include "fail.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- a page that cannot be read ---- */

static char bus_line[600]; /* ready before it is needed: a signal handler may do little */

static void on_bus(int signal_number) {
  (void)signal_number;
  const ssize_t written = write(STDERR_FILENO, bus_line, strlen(bus_line));
  (void)written;
  _exit(EXIT_INPUT);
}

static void watch_bus(const char *path) {
  struct sigaction action = {.sa_handler = on_bus};
  snprintf(
      bus_line, sizeof bus_line,
      "fascicle: %.400s: a part of the file cannot be read any more: it was cut short or its disk failed\n",
      path);
  if (sigaction(SIGBUS, &action, NULL))
    DIE(EXIT_RUNTIME, "cannot watch for a file that goes away: %s", strerror(errno));
}

/* ---- map ---- */

void pages_open(const char *path, int descriptor, int64_t offset, int64_t bytes, struct pages *p) {
  *p = (struct pages){.bytes = bytes};
  if (bytes == 0) return;
  watch_bus(path);
  const int64_t shift = offset % sysconf(_SC_PAGESIZE);
  p->mapped_bytes = shift + bytes;
  p->base = mmap(NULL, (size_t)p->mapped_bytes, PROT_READ, MAP_SHARED, descriptor, offset - shift);
  if (p->base == MAP_FAILED)
    DIE(EXIT_INPUT, "%s: cannot map %lld bytes: %s", path, (long long)bytes, strerror(errno));
  /* No reading around: what is next to a row need not ever be wanted. */
  madvise(p->base, (size_t)p->mapped_bytes, MADV_RANDOM);
  p->at = p->base + shift;
}

void pages_close(struct pages *p) {
  if (p->base) munmap(p->base, (size_t)p->mapped_bytes);
  *p = (struct pages){0};
}

void pages_fetch(const struct pages *p, int64_t from, int64_t n) {
  if (n <= 0) return;
  const int64_t page = sysconf(_SC_PAGESIZE), start = p->at - p->base + from, shift = start % page;
  madvise(p->base + start - shift, (size_t)(shift + n), MADV_WILLNEED);
}

int64_t pages_waits(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return use.ru_majflt;
}
