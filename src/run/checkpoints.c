/* Checkpoint files of a run folder: names, pointers, rotation. */
#include "core/log.h"
#include "core/mem.h"
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char name_form[] = "step_%08lld.h5";

void rundir_checkpoint_path(const struct rundir *dir, int64_t step, char path[FILE_PATH]) {
  char name[64], below[96];
  snprintf(name, sizeof name, name_form, (long long)step);
  snprintf(below, sizeof below, "checkpoints/%s", name);
  rundir_file(dir, below, path);
}

/* The step that a file name stands for, or -1 when it is no checkpoint's. */
static int64_t step_of_name(const char *name) {
  char *end;
  if (strncmp(name, "step_", 5) || name[5] < '0' || name[5] > '9') return -1;
  errno = 0;
  const long long step = strtoll(name + 5, &end, 10);
  return strcmp(end, ".h5") || errno ? -1 : step;
}

static int descending(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x < y) - (x > y);
}

/* The steps of all checkpoints in a folder, newest first; mem_free it. */
static int64_t *list_steps(const char *folder, int64_t *n) {
  int64_t *step = NULL;
  *n = 0;
  DIR *open = opendir(folder);
  for (struct dirent *entry; open && (entry = readdir(open));) {
    const int64_t found = step_of_name(entry->d_name);
    if (found < 0) continue;
    step = mem_grow(step, *n + 1, sizeof *step);
    step[(*n)++] = found;
  }
  if (open) closedir(open);
  if (*n) qsort(step, (size_t)*n, sizeof *step, descending);
  return step;
}

/* ---- pointers: small files that hold a checkpoint's name ---- */

static void pointer_path(const struct rundir *dir, const char *pointer, char path[FILE_PATH]) {
  char below[96];
  snprintf(below, sizeof below, "checkpoints/%s", pointer);
  rundir_file(dir, below, path);
}

static struct status set_pointer(const struct rundir *dir, const char *pointer, int64_t step) {
  char path[FILE_PATH], text[64];
  pointer_path(dir, pointer, path);
  size_t n = (size_t)snprintf(text, sizeof text - 1, name_form, (long long)step);
  text[n++] = '\n';
  return file_write_whole(path, text, n);
}

/* The step a pointer names, or -1. */
static int64_t get_pointer(const struct rundir *dir, const char *pointer) {
  char path[FILE_PATH], text[64] = "";
  pointer_path(dir, pointer, path);
  FILE *file = fopen(path, "re");
  if (!file) return -1;
  if (!fgets(text, sizeof text, file)) text[0] = 0;
  fclose(file);
  text[strcspn(text, "\n")] = 0;
  return step_of_name(text);
}

/* The run in a folder, for looking at it only; false when the path is too long. */
static bool look_at(const char *folder, struct rundir *dir) {
  *dir = (struct rundir){.lock = -1};
  return snprintf(dir->path, sizeof dir->path, "%s", folder) < (int)sizeof dir->path;
}

int64_t rundir_latest(const char *folder) {
  struct rundir dir;
  return look_at(folder, &dir) ? get_pointer(&dir, "latest") : -1;
}

struct rundir_saved rundir_saved(const char *folder) {
  struct rundir dir;
  struct rundir_saved saved = {.latest = -1, .best = -1};
  if (!look_at(folder, &dir)) return saved;
  char path[FILE_PATH];
  rundir_file(&dir, "checkpoints", path);
  mem_free(list_steps(path, &saved.n));
  saved.latest = get_pointer(&dir, "latest"), saved.best = get_pointer(&dir, "best");
  return saved;
}

/* ---- rotation ---- */

static struct status remove_old(const struct rundir *dir) {
  char folder[FILE_PATH], path[FILE_PATH];
  rundir_file(dir, "checkpoints", folder);
  int64_t n;
  int64_t *step = list_steps(folder, &n);
  const int64_t best = get_pointer(dir, "best");
  struct status s = fine();
  for (int64_t i = dir->keep; i < n && !s.code; i++) {
    if (step[i] == best) continue;
    rundir_checkpoint_path(dir, step[i], path);
    s = file_remove(path);
  }
  mem_free(step);
  return s;
}

static struct status note_written(const struct rundir *dir, int64_t step) {
  TRY(set_pointer(dir, "latest", step));
  return remove_old(dir);
}

struct status rundir_checkpoint_written(const struct comm *comm, struct rundir *dir, int64_t step) {
  return agree(comm, dir->leader ? note_written(dir, step) : fine());
}

struct status rundir_best(const struct comm *comm, struct rundir *dir, int64_t step) {
  return agree(comm, dir->leader ? set_pointer(dir, "best", step) : fine());
}

/* ---- going on ---- */

static struct status find(const struct rundir *dir, const char *resume, char path[FILE_PATH]) {
  path[0] = 0;
  if (!strcmp(resume, "none")) return fine();
  if (strcmp(resume, "auto")) {
    if (!file_exists(resume))
      return failure(EXIT_INPUT, "--resume %s: there is no such file", resume);
    snprintf(path, FILE_PATH, "%s", resume);
    return fine();
  }
  char folder[FILE_PATH];
  rundir_file(dir, "checkpoints", folder);
  int64_t n, *steps = list_steps(folder, &n), step = get_pointer(dir, "latest");
  if (step < 0 && n > 0) step = steps[0];
  mem_free(steps);
  if (step < 0) return fine();
  rundir_checkpoint_path(dir, step, path);
  if (file_exists(path)) return fine();
  return failure(EXIT_INPUT,
                 "%s: %s/latest names it, but it is gone; --resume FILE goes on from another one",
                 path, folder);
}

struct status rundir_find_checkpoint(const struct comm *comm, const struct rundir *dir,
                                     const char *resume, char path[FILE_PATH]) {
  memset(path, 0, FILE_PATH);
  TRY(agree(comm, dir->leader ? find(dir, resume, path) : fine()));
  comm_share(comm, path, FILE_PATH, 0);
  return fine();
}

void rundir_checkpoint_before(const char *path, char before[FILE_PATH]) {
  char folder[FILE_PATH];
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
  int64_t n, *step = list_steps(folder, &n), found = -1;
  for (int64_t i = 0; i < n && found < 0; i++)
    if (step[i] < step_of_name(name)) found = step[i];
  mem_free(step);
  char text[64];
  snprintf(text, sizeof text, name_form, (long long)found);
  before[0] = 0;
  if (found >= 0 && snprintf(before, FILE_PATH, "%s/%s", folder, text) >= FILE_PATH) before[0] = 0;
}

static struct status set_aside(const struct rundir *dir, int64_t step) {
  char folder[FILE_PATH], path[FILE_PATH], aside[FILE_PATH + 8];
  rundir_file(dir, "checkpoints", folder);
  int64_t n, *steps = list_steps(folder, &n);
  struct status s = fine();
  for (int64_t i = 0; i < n && steps[i] > step && !s.code; i++) {
    rundir_checkpoint_path(dir, steps[i], path);
    snprintf(aside, sizeof aside, "%s.aside", path);
    log_warning("going back to step %lld: %s is set aside as %s", (long long)step, path, aside);
    if (rename(path, aside))
      s = failure(EXIT_OUTPUT, "%s: cannot rename: %s", path, strerror(errno));
  }
  mem_free(steps);
  return s;
}

/* `best` must not name what is set aside. */
static struct status go_back(const struct rundir *dir, int64_t step, int64_t best) {
  char kept[FILE_PATH], pointer[FILE_PATH];
  if (get_pointer(dir, "best") > step) {
    rundir_checkpoint_path(dir, best, kept);
    pointer_path(dir, "best", pointer);
    TRY(file_exists(kept) ? set_pointer(dir, "best", best) : file_remove(pointer));
  }
  return set_aside(dir, step);
}

struct status rundir_rewind(const struct comm *comm, struct rundir *dir, int64_t step,
                            int64_t best) {
  return agree(comm, dir->leader ? go_back(dir, step, best) : fine());
}
