/* A library for LD_PRELOAD that makes one system call of a program fail, as a bad disk would; for
 * tests.
 *
 *   FAULT_CALL    which: read, write, fsync, rename, open, fflush, flock; "read" and "write" stand
 *                 for pread, preadv ... too, "flock" for locks by fcntl
 *   FAULT_KIND    EIO, ENOSPC, EDQUOT ...: it fails; SHORT: it does half of what it was asked for;
 *                 STALL: the process is stopped
 *   FAULT_NTH     the how manieth of these calls, from 1; 0: none fails, they are only counted
 *   FAULT_STICKY  1: all later ones too
 *   FAULT_PATH    only files whose path holds this text
 *   FAULT_RANK    only on this rank
 *   FAULT_LOG     a file that gets a line when the call fails, and the number of calls at the end
 *   CLOCK_JUMP    seconds by which the wall clock jumps at the CLOCK_NTH-th look at it; the
 *                 monotonic one does not */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls, looks;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long number(const char *name) {
  const char *text = getenv(name);
  return text ? atol(text) : 0;
}

/* Past stdio and past our own hooks. */
static void note(const char *what, long n) {
  const char *path = getenv("FAULT_LOG");
  if (!path) return;
  char line[128];
  const int size = snprintf(line, sizeof line, "%s %ld\n", what, n);
  const int file = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return;
  if (REAL(write)(file, line, (size_t)size) < 0) abort();
  close(file);
}

static bool is_meant(const char *call, const char *path) {
  const char *want = getenv("FAULT_CALL"), *part = getenv("FAULT_PATH"),
             *rank = getenv("FAULT_RANK");
  if (!want || strcmp(want, call)) return false;
  if (part && !strstr(path, part)) return false;
  const char *ours = getenv("OMPI_COMM_WORLD_RANK");
  return !rank || !ours || !strcmp(rank, ours);
}

/* 0: do it; 1: do half of it; -1: errno is set. */
static int verdict(const char *call, const char *path) {
  if (!is_meant(call, path)) return 0;
  static const struct {
    const char *name;
    int number;
  } errors[] = {
      {"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS}, {"ENOLCK", ENOLCK}};
  const long n = atomic_fetch_add(&calls, 1) + 1, nth = number("FAULT_NTH");
  const char *kind = getenv("FAULT_KIND");
  if (!nth || !kind || (number("FAULT_STICKY") ? n < nth : n != nth)) return 0;
  if (n == nth) note(kind, n);
  if (!strcmp(kind, "SHORT")) return 1;
  if (!strcmp(kind, "STALL")) return raise(SIGSTOP);
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (!strcmp(kind, errors[i].name)) errno = errors[i].number;
  return -1;
}

static int verdict_of(const char *call, int file) {
  char link[64], path[4096] = "";
  if (!getenv("FAULT_CALL")) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (readlink(link, path, sizeof path - 1) < 0) path[0] = 0;
  if (path[0] != '/' || !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6)) return 0;
  return verdict(call, path);
}

static size_t part_of(size_t n, int verdict) {
  return verdict ? (n + 1) / 2 : n;
}

__attribute__((destructor)) static void at_end(void) {
  if (getenv("FAULT_CALL")) note("calls", atomic_load(&calls));
}

/* ---- reading and writing ---- */

#define PLAIN(name, call, buffer)                                                                  \
  ssize_t name(int file, buffer data, size_t n) {                                                  \
    const int v = verdict_of(call, file);                                                          \
    return v < 0 ? -1 : REAL(name)(file, data, part_of(n, v));                                     \
  }
PLAIN(read, "read", void *)
PLAIN(write, "write", const void *)

#define PLACED(name, call, buffer, place)                                                          \
  ssize_t name(int file, buffer data, size_t n, place at) {                                        \
    const int v = verdict_of(call, file);                                                          \
    return v < 0 ? -1 : REAL(name)(file, data, part_of(n, v), at);                                 \
  }
PLACED(pread, "read", void *, off_t)
PLACED(pread64, "read", void *, off64_t)
PLACED(pwrite, "write", const void *, off_t)
PLACED(pwrite64, "write", const void *, off64_t)

/* Half of a vector: the first piece, and half of that when it is the only one. */
#define VECTOR(name, call, place)                                                                  \
  ssize_t name(int file, const struct iovec *piece, int n, place at) {                             \
    const int v = verdict_of(call, file);                                                          \
    struct iovec half = *piece;                                                                    \
    if (v > 0 && n == 1) half.iov_len = (half.iov_len + 1) / 2;                                    \
    return v < 0 ? -1 : v ? REAL(name)(file, &half, 1, at) : REAL(name)(file, piece, n, at);       \
  }
VECTOR(preadv, "read", off_t)
VECTOR(preadv64, "read", off64_t)
VECTOR(pwritev, "write", off_t)
VECTOR(pwritev64, "write", off64_t)

/* ---- the rest ---- */

int fsync(int file) {
  return verdict_of("fsync", file) < 0 ? -1 : REAL(fsync)(file);
}

int flock(int file, int what) {
  return verdict_of("flock", file) < 0 ? -1 : REAL(flock)(file, what);
}

#define CONTROL(name)                                                                              \
  int name(int file, int what, ...) {                                                              \
    va_list args;                                                                                  \
    va_start(args, what);                                                                          \
    void *const value = va_arg(args, void *);                                                      \
    va_end(args);                                                                                  \
    const bool locks =                                                                             \
        what == F_SETLK || what == F_SETLKW || what == F_OFD_SETLK || what == F_OFD_SETLKW;        \
    return locks && verdict_of("flock", file) < 0 ? -1 : REAL(name)(file, what, value);            \
  }
CONTROL(fcntl)
CONTROL(fcntl64)

int rename(const char *from, const char *to) {
  return verdict("rename", to) < 0 ? -1 : REAL(rename)(from, to);
}

int fflush(FILE *file) {
  return file && verdict_of("fflush", fileno(file)) < 0 ? EOF : REAL(fflush)(file);
}

#define OPEN(name)                                                                                 \
  int name(const char *path, int flags, ...) {                                                     \
    va_list args;                                                                                  \
    va_start(args, flags);                                                                         \
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;                  \
    va_end(args);                                                                                  \
    return verdict("open", path) < 0 ? -1 : REAL(name)(path, flags, mode);                         \
  }
OPEN(open)
OPEN(open64)

/* ---- the wall clock ---- */

static long jump(void) {
  const long nth = number("CLOCK_NTH");
  return getenv("CLOCK_JUMP") && atomic_fetch_add(&looks, 1) + 1 >= nth ? number("CLOCK_JUMP") : 0;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
  const int result = REAL(clock_gettime)(clock, t);
  if (clock == CLOCK_REALTIME) t->tv_sec += jump();
  return result;
}

time_t time(time_t *to) {
  const time_t now = REAL(time)(NULL) + jump();
  if (to) *to = now;
  return now;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  const int result = REAL(gettimeofday)(t, zone);
  t->tv_sec += jump();
  return result;
}
