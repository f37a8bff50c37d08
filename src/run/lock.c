/* Takes, touches and drops the lock of a run's folder. */
#include "lock.h"
#include "core/comm.h"
#include "io/files/files.h"
#include "core/json.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* When a process started, in clock ticks since boot; 0 when there is none, or only its entry is
 * left (a zombie). Tells a process from a later one with the same number. */
static json_int_t process_start(pid_t pid) {
  enum {
    STATE = 3,
    START = 22
  }; /* fields of /proc/PID/stat; field 2 is a name that may hold blanks */
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  const size_t n = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[n] = 0;
  char *at = strrchr(text, ')');
  for (int field = STATE - 1; at && field < START; field++) {
    at = strchr(at + 1, ' ');
    if (at && field == STATE - 1 && (at[1] == 'Z' || at[1] == 'X')) return 0;
  }
  return at ? atoll(at) : 0;
}

static const char *or_empty(const char *text) {
  return text ? text : "";
}

static json_t *describe_us(void) {
  const struct host host = host_here();
  char now[32];
  time_utc(now);
  return json_pack("{s:s, s:i, s:I, s:s, s:s, s:s}", "host", host.name, "pid", (int)getpid(),
                   "process_start", process_start(getpid()), "slurm_job",
                   or_empty(getenv("SLURM_JOB_ID")), "slurm_restarts",
                   or_empty(getenv("SLURM_RESTART_COUNT")), "started_utc", now);
}

static const char *word(const json_t *lock, const char *key) {
  return or_empty(json_string_value(json_object_get(lock, key)));
}

static bool same(const json_t *a, const json_t *b, const char *key) {
  return !strcmp(word(a, key), word(b, key));
}

/* Does the owner of a lock that the system does not hold for anyone still run? */
static bool owner_lives(const json_t *owner, const json_t *us, int fd) {
  if (same(owner, us, "host")) {
    const pid_t pid = (pid_t)json_integer_value(json_object_get(owner, "pid"));
    const json_int_t start = json_integer_value(json_object_get(owner, "process_start"));
    return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM) && process_start(pid) == start;
  }
  if (*word(us, "slurm_job") && same(owner, us, "slurm_job") && !same(owner, us, "slurm_restarts"))
    return false;
  struct stat info;
  return fstat(fd, &info) == 0 && time(NULL) - info.st_mtime < LOCK_QUIET;
}

static struct status refuse(const char *path, const json_t *owner) {
  const char *job = word(owner, "slurm_job");
  return failure(
      EXIT_OUTPUT,
      "%s: another run works in this folder: host %s, process %lld%s%s, since %s; wait for it, or "
      "choose another --output (if that run is dead, remove the file)",
      path, word(owner, "host"), (long long)json_integer_value(json_object_get(owner, "pid")),
      *job ? ", Slurm job " : "", job, word(owner, "started_utc"));
}

static json_t *read_owner(int fd) {
  char text[2048];
  const ssize_t n = pread(fd, text, sizeof text - 1, 0);
  json_error_t error;
  return n > 0 ? json_loadb(text, (size_t)n, 0, &error) : NULL;
}

/* True when the open file is still the one that PATH names: its owner may
 * have removed it meanwhile. */
static bool still_there(const char *path, int fd) {
  struct stat named, opened;
  return stat(path, &named) == 0 && fstat(fd, &opened) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

static struct status write_owner(const char *path, int fd, const json_t *us) {
  char *text = json_pretty(us);
  const size_t n = strlen(text);
  const bool good = ftruncate(fd, 0) == 0 && pwrite(fd, text, n, 0) == (ssize_t)n && fsync(fd) == 0;
  free(text);
  return good ? fine() : failure(EXIT_OUTPUT, "%s: cannot write: %s", path, strerror(errno));
}

static struct status claim(const char *path, int fd) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  /* File systems without locks answer something else than EAGAIN: then the
   * words in the file decide. */
  const bool held = fcntl(fd, F_OFD_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES);
  json_t *owner = read_owner(fd), *us = describe_us();
  struct status s;
  if (held || (owner && owner_lives(owner, us, fd))) {
    s = refuse(path, owner);
  } else {
    if (owner)
      log_warning("%s: left behind by a run that is gone (host %s, process %lld); taken over", path,
                  word(owner, "host"),
                  (long long)json_integer_value(json_object_get(owner, "pid")));
    s = write_owner(path, fd, us);
  }
  json_decref(owner), json_decref(us);
  return s;
}

/* One attempt; fine and *fd -1 when the file vanished meanwhile. */
static struct status try_take(const char *path, int *fd) {
  *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (*fd < 0) return failure(EXIT_OUTPUT, "%s: cannot open: %s", path, strerror(errno));
  const struct status s = claim(path, *fd);
  if (!s.code && still_there(path, *fd)) {
    file_unfinished(path);
    return s;
  }
  close(*fd);
  *fd = -1;
  return s;
}

/* A run that was just killed may need a moment to be gone: refused only after
 * LOCK_PATIENCE attempts. */
struct status runlock_take(const char *folder, int *fd) {
  enum { LOCK_PATIENCE = 20 };
  const struct timespec pause = {0, 100000000};
  char path[FILE_PATH];
  struct status s = fine();
  *fd = -1;
  snprintf(path, sizeof path, "%s/lock", folder);
  for (int i = 0; i < LOCK_PATIENCE && *fd < 0; i++) {
    if (i) nanosleep(&pause, NULL);
    s = try_take(path, fd);
  }
  if (!s.code && *fd < 0) return failure(EXIT_OUTPUT, "%s: it comes and goes; try again", path);
  return s;
}

bool runlock_live(const char *folder) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  char path[FILE_PATH];
  snprintf(path, sizeof path, "%s/lock", folder);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  json_t *owner = read_owner(fd), *us = describe_us();
  const bool held = !fcntl(fd, F_OFD_GETLK, &whole) && whole.l_type != F_UNLCK;
  const bool live = held || (owner && owner_lives(owner, us, fd));
  json_decref(owner), json_decref(us);
  close(fd);
  return live;
}

void runlock_touch(int fd) {
  if (fd >= 0) futimens(fd, NULL);
}

void runlock_drop(const char *folder, int fd) {
  if (fd < 0) return;
  char path[FILE_PATH];
  snprintf(path, sizeof path, "%s/lock", folder);
  if (still_there(path, fd)) unlink(path);
  file_finished(path);
  close(fd);
}
