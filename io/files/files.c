/* Writes files so that they appear whole or not at all. */
#include "files.h"
#include "core/comm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The folder part of a path: "." without a slash. */
static void folder_of(const char *path, char folder[FILE_PATH]) {
  snprintf(folder, FILE_PATH, "%s", path);
  char *slash = strrchr(folder, '/');
  if (!slash)
    snprintf(folder, FILE_PATH, ".");
  else
    slash[slash == folder] = 0;
}

bool file_exists(const char *path) {
  struct stat info;
  return !stat(path, &info);
}

static struct status check_folder(const char *path, const char *folder) {
  struct stat info;
  if (stat(folder, &info))
    return failure(EXIT_OUTPUT, "%s: cannot write: folder %s: %s; make it first", path, folder,
                   strerror(errno));
  if (!S_ISDIR(info.st_mode))
    return failure(EXIT_OUTPUT, "%s: cannot write: %s is not a folder", path, folder);
  if (access(folder, W_OK | X_OK))
    return failure(EXIT_OUTPUT, "%s: cannot write into folder %s: %s", path, folder,
                   strerror(errno));
  return fine();
}

static struct status check_space(const char *path, const char *folder, int64_t bytes) {
  struct statvfs disk;
  if (statvfs(folder, &disk)) return fine(); /* unknown: the write itself will tell */
  const double room = (double)disk.f_bavail * (double)disk.f_frsize;
  if (room >= (double)bytes) return fine();
  return failure(
      EXIT_OUTPUT,
      "%s: needs about %.1f MB but only %.1f MB are free in %s; free some or write elsewhere", path,
      (double)bytes / 1e6, room / 1e6, folder);
}

/* Whether a path leads to the file `output`, or to a folder that holds it, at most `depth` down:
 * links may go round. */
static bool holds(const char *path, const struct stat *output, int depth) {
  struct stat here;
  if (stat(path, &here)) return false;
  if (here.st_dev == output->st_dev && here.st_ino == output->st_ino) return true;
  DIR *folder = S_ISDIR(here.st_mode) && depth > 0 ? opendir(path) : NULL;
  bool found = false;
  for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
    char below[FILE_PATH];
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < FILE_PATH)
      found = holds(below, output, depth - 1);
  }
  if (folder) closedir(folder);
  return found;
}

bool file_lies_in(const char *path, const char *folder) {
  enum { DEEPEST = 4 };
  struct stat there;
  return !stat(path, &there) && holds(folder, &there, DEEPEST);
}

struct status file_not_input(const char *output, const char *input) {
  if (!input || !file_lies_in(output, input)) return fine();
  return failure(EXIT_USAGE, "--output %s: this is an input (%s); give another name", output,
                 input);
}

struct status file_may_write(const char *path, int64_t bytes, bool force) {
  char folder[FILE_PATH];
  if (!*path) return failure(EXIT_OUTPUT, "cannot write: the name of the output file is empty");
  if (path[strlen(path) - 1] == '/')
    return failure(EXIT_OUTPUT, "%s: cannot write: this names a folder; add a file name", path);
  folder_of(path, folder);
  TRY(check_folder(path, folder));
  struct stat info;
  if (!stat(path, &info)) {
    if (S_ISDIR(info.st_mode))
      return failure(EXIT_OUTPUT, "%s: cannot write: it is a folder", path);
    if (!S_ISREG(info.st_mode)) /* the rename would put a file in place of a device or pipe */
      return failure(EXIT_OUTPUT, "%s: cannot write: it is not an ordinary file; give another name",
                     path);
    if (!force)
      return failure(EXIT_OUTPUT, "%s: exists; give --force to replace it, or another name", path);
  }
  return check_space(path, folder, bytes);
}

/* The process that made ENTRY, a temporary file of this host's for NAME; 0 for other files. */
static pid_t owner_of(const char *entry, const char *name, const char *host) {
  int pid = 0, end = 0;
  const size_t n = strlen(name), h = strlen(host);
  if (strncmp(entry, name, n) || entry[n] != '.' || strncmp(entry + n + 1, host, h)) return 0;
  const char *rest = entry + n + 1 + h;
  return sscanf(rest, "-%d.tmp%n", &pid, &end) == 1 && end > 0 && !rest[end] && pid > 0 ? pid : 0;
}

static void remove_left(const char *path, const char *host) {
  char folder[FILE_PATH], left[2 * FILE_PATH];
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  folder_of(path, folder);
  DIR *open = opendir(folder);
  for (struct dirent *entry; open && (entry = readdir(open));) {
    const pid_t pid = owner_of(entry->d_name, name, host);
    if (!pid || !kill(pid, 0) || errno != ESRCH) continue;
    snprintf(left, sizeof left, "%s/%s", folder, entry->d_name);
    unlink(left);
  }
  if (open) closedir(open);
}

/* Empty names are free. When all are taken, the oldest is given up. */
enum { MOST_UNFINISHED = 16 };
static char unfinished[MOST_UNFINISHED][FILE_PATH];
static int n_given_up;
static pthread_mutex_t unfinished_lock = PTHREAD_MUTEX_INITIALIZER;

/* The place of a name; MOST_UNFINISHED when it is not there. */
static int find_unfinished(const char *path) {
  int i = 0;
  while (i < MOST_UNFINISHED && strcmp(unfinished[i], path)) i++;
  return i;
}

void file_unfinished(const char *path) {
  pthread_mutex_lock(&unfinished_lock);
  int i = find_unfinished(path);
  if (i == MOST_UNFINISHED) i = find_unfinished("");
  if (i == MOST_UNFINISHED) i = n_given_up++ % MOST_UNFINISHED;
  snprintf(unfinished[i], FILE_PATH, "%s", path);
  pthread_mutex_unlock(&unfinished_lock);
}

void file_finished(const char *path) {
  pthread_mutex_lock(&unfinished_lock);
  const int i = find_unfinished(path);
  if (i < MOST_UNFINISHED) unfinished[i][0] = 0;
  pthread_mutex_unlock(&unfinished_lock);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info, (void)kind, (void)walk;
  return remove(path);
}

enum { AT_ONCE = 16 }; /* open folders */

struct status folder_remove(const char *path) {
  if (!file_exists(path) || nftw(path, remove_one, AT_ONCE, FTW_DEPTH | FTW_PHYS) == 0)
    return fine();
  return failure(EXIT_OUTPUT, "%s: cannot remove: %s", path, strerror(errno));
}

/* A folder is renamed first, so that nothing more comes into it. */
static void abandon(const char *path) {
  char gone[FILE_PATH + 8];
  struct stat info;
  if (lstat(path, &info)) return;
  if (!S_ISDIR(info.st_mode)) {
    unlink(path);
    return;
  }
  snprintf(gone, sizeof gone, "%s.gone", path);
  if (!rename(path, gone)) nftw(gone, remove_one, AT_ONCE, FTW_DEPTH | FTW_PHYS);
}

void files_abandon(void) {
  pthread_mutex_lock(&unfinished_lock); /* for good: no further names */
  for (int i = 0; i < MOST_UNFINISHED; i++)
    if (unfinished[i][0]) abandon(unfinished[i]);
}

struct status file_tmp_name(const char *path, char tmp[FILE_PATH]) {
  if (snprintf(tmp, FILE_PATH, "%s.tmp", path) >= FILE_PATH)
    return failure(EXIT_OUTPUT, "cannot write: the path is longer than %d characters: %.80s...",
                   FILE_PATH - 5, path);
  file_unfinished(tmp);
  return fine();
}

struct status file_tmp_own(const char *path, char tmp[FILE_PATH]) {
  const struct host host = host_here();
  char own[FILE_PATH];
  remove_left(path, host.name);
  if (snprintf(own, sizeof own, "%s.%s-%d", path, host.name, (int)getpid()) < FILE_PATH)
    return file_tmp_name(own, tmp);
  return failure(EXIT_OUTPUT, "cannot write: the path is too long: %.80s...", path);
}

static struct status sync_path(const char *path, int flags) {
  const int file = open(path, flags | O_CLOEXEC);
  if (file < 0) return failure(EXIT_OUTPUT, "%s: cannot sync: %s", path, strerror(errno));
  /* Some file systems refuse to sync a folder; the rename is then as safe as they make it. */
  const int bad = fsync(file) && errno != EINVAL && errno != EROFS;
  const int why = errno;
  close(file);
  return bad ? failure(EXIT_OUTPUT, "%s: cannot sync: %s", path, strerror(why)) : fine();
}

struct status file_sync(const char *path) {
  return sync_path(path, O_RDONLY);
}

struct status file_publish(const char *tmp, const char *path) {
  ASSERT(strcmp(tmp, path));
  char folder[FILE_PATH];
  folder_of(path, folder);
  struct status s = file_sync(tmp);
  if (!s.code && rename(tmp, path))
    s = failure(EXIT_OUTPUT, "%s: cannot rename %s to it: %s", path, tmp, strerror(errno));
  if (s.code) unlink(tmp);
  file_finished(tmp);
  TRY(s);
  return sync_path(folder, O_RDONLY | O_DIRECTORY);
}

struct status file_write_whole(const char *path, const void *data, size_t bytes) {
  char tmp[FILE_PATH];
  TRY(file_tmp_name(path, tmp));
  FILE *file = fopen(tmp, "wbe");
  if (!file) return failure(EXIT_OUTPUT, "%s: cannot write: %s", tmp, strerror(errno));
  const bool whole = fwrite(data, 1, bytes, file) == bytes;
  if (fclose(file) || !whole) {
    const int why = errno;
    unlink(tmp);
    return failure(EXIT_OUTPUT, "%s: cannot write: %s", tmp, strerror(why));
  }
  return file_publish(tmp, path);
}

void file_text_begin(struct file_text *text) {
  text->text = NULL, text->size = 0;
  text->out = open_memstream(&text->text, &text->size);
  if (!text->out) DIE(EXIT_RUNTIME, "out of memory");
}

struct status file_text_end(struct file_text *text, const char *path) {
  const bool lacks = ferror(text->out) != 0;
  const struct status s = fclose(text->out) || lacks
                              ? failure(EXIT_RUNTIME, "%s: out of memory for its text", path)
                              : file_write_whole(path, text->text, text->size);
  free(text->text);
  return s;
}

struct status file_remove(const char *path) {
  if (!unlink(path) || errno == ENOENT) return fine();
  return failure(EXIT_OUTPUT, "%s: cannot remove: %s", path, strerror(errno));
}

struct status folder_make(const char *path) {
  char part[FILE_PATH];
  if (snprintf(part, sizeof part, "%s", path) >= FILE_PATH)
    return failure(EXIT_OUTPUT, "%.80s...: the path is too long", path);
  for (char *at = part + 1;; at++) {
    if (*at && *at != '/') continue;
    const char kept = *at;
    *at = 0;
    struct stat info;
    if (mkdir(part, 0777) && (errno != EEXIST || stat(part, &info) || !S_ISDIR(info.st_mode)))
      return failure(EXIT_OUTPUT, "%s: cannot make this folder: %s", part, strerror(errno));
    *at = kept;
    if (!kept) return fine();
  }
}

struct status folder_sweep(const char *folder) {
  struct status s = fine();
  DIR *open = opendir(folder);
  for (struct dirent *entry; open && !s.code && (entry = readdir(open));) {
    char path[FILE_PATH];
    const char *dot = strrchr(entry->d_name, '.');
    if (!dot || strcmp(dot, ".tmp") ||
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= FILE_PATH)
      continue;
    s = file_remove(path);
  }
  if (open) closedir(open);
  return s;
}
