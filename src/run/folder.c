/* Makes, takes over, describes and removes the folder of a run. */
#include "folder.h"
#include "core/log.h"
#include "core/mem.h"
#include "lock.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void rundir_file(const struct rundir *dir, const char *name, char path[FILE_PATH]) {
  if (snprintf(path, FILE_PATH, "%s/%s", dir->path, name) >= FILE_PATH)
    DIE(EXIT_OUTPUT, "%s/%s: the path is longer than %d characters", dir->path, name,
        FILE_PATH - 1);
}

static struct status set_path(struct rundir *dir, const char *path) {
  if (snprintf(dir->path, sizeof dir->path, "%s", path) < (int)sizeof dir->path) return fine();
  return failure(EXIT_OUTPUT, "%.200s...: the path is too long", path);
}

/* ---- what a run leaves behind, for --force ---- */

static const char *const run_files[] = {"config.json", "metrics.jsonl", "again",
                                        "log.txt",     "spikes.h5",     "neurons.h5",
                                        "rates.csv",   "type_rates.csv"};
static const char MARK[] = ".fascicle-run";
static const char *const run_folders[] = {"checkpoints", "trace", "reports"};
enum { N_RUN_FILES = sizeof run_files / sizeof *run_files };
enum { N_RUN_FOLDERS = sizeof run_folders / sizeof *run_folders };

static bool holds_run(const struct rundir *dir) {
  char path[FILE_PATH];
  rundir_file(dir, "config.json", path);
  if (file_exists(path)) return true;
  rundir_file(dir, "metrics.jsonl", path);
  return file_exists(path);
}

/* The sign that this program made the folder: without it --force removes nothing. */
static bool is_ours(const struct rundir *dir) {
  char path[FILE_PATH];
  rundir_file(dir, MARK, path);
  return file_exists(path);
}

bool rundir_is(const char *folder) {
  char path[FILE_PATH];
  return (snprintf(path, sizeof path, "%s/metrics.jsonl", folder) < FILE_PATH &&
          file_exists(path)) ||
         (snprintf(path, sizeof path, "%s/%s", folder, MARK) < FILE_PATH && file_exists(path));
}

static struct status mark_as_ours(const struct rundir *dir) {
  char path[FILE_PATH];
  rundir_file(dir, MARK, path);
  FILE *file = fopen(path, "ae");
  if (!file) return failure(EXIT_OUTPUT, "%s: cannot write: %s", path, strerror(errno));
  fclose(file);
  return fine();
}

static struct status remove_trials(const struct rundir *dir) {
  DIR *folder = opendir(dir->path);
  struct status s = fine();
  for (struct dirent *entry; folder && !s.code && (entry = readdir(folder));) {
    if (strncmp(entry->d_name, "trial_", 6)) continue;
    char path[FILE_PATH];
    rundir_file(dir, entry->d_name, path);
    s = folder_remove(path);
  }
  if (folder) closedir(folder);
  return s;
}

static struct status remove_run(const struct rundir *dir) {
  char path[FILE_PATH];
  for (int i = 0; i < N_RUN_FOLDERS; i++) {
    rundir_file(dir, run_folders[i], path);
    TRY(folder_remove(path));
  }
  TRY(remove_trials(dir));
  for (int i = 0; i < N_RUN_FILES; i++) {
    rundir_file(dir, run_files[i], path);
    TRY(file_remove(path));
  }
  return fine();
}

/* ---- open and close ---- */

static bool resumes_from_file(const struct job *job) {
  return strcmp(job->resume, "none") && strcmp(job->resume, "auto");
}

/* What --force removes must not be read from. */
static struct status not_an_input(const struct rundir *dir, const char *path) {
  if (!path || !file_lies_in(path, dir->path)) return fine();
  return failure(EXIT_USAGE,
                 "--force would remove the run in %s, but %s, which is read, lies there: copy it "
                 "elsewhere first, or give another --output",
                 dir->path, path);
}

static struct status replace_run(const struct job *job, const struct rundir *dir) {
  TRY(not_an_input(dir, job->config));
  for (int i = 0; i < job->n_reads; i++) TRY(not_an_input(dir, job->reads[i]));
  return remove_run(dir);
}

static struct status take_folder(const struct job *job, struct rundir *dir) {
  char path[FILE_PATH];
  if (resumes_from_file(job) && !file_exists(job->resume)) /* before anything is made */
    return failure(EXIT_INPUT, "--resume %s: there is no such file", job->resume);
  TRY(folder_make(dir->path));
  TRY(runlock_take(dir->path, &dir->lock));
  dir->owns_lock = true;
  const bool resume = strcmp(job->resume, "none") != 0, old = holds_run(dir);
  if (old && !resume && !job->force)
    return failure(
        EXIT_OUTPUT,
        "%s: holds a run already; --resume auto goes on with it, --force removes it and starts "
        "anew, another --output keeps it",
        dir->path);
  if (old && job->force && !is_ours(dir))
    return failure(
        EXIT_OUTPUT,
        "%s: holds files that this program did not make; --force removes only its own runs, choose "
        "another --output",
        dir->path);
  if (old && job->force) TRY(replace_run(job, dir));
  TRY(mark_as_ours(dir));
  rundir_file(dir, "checkpoints", path);
  TRY(folder_make(path));
  TRY(folder_sweep(path));
  rundir_file(dir, "again", path);
  TRY(file_remove(path));
  rundir_file(dir, "log.txt", path);
  if (!log_to_file(path))
    return failure(EXIT_OUTPUT, "%s: cannot write: %s", path, strerror(errno));
  return fine();
}

struct status rundir_open(const struct comm *comm, const struct job *job, struct rundir *dir) {
  *dir = (struct rundir){.leader = comm->rank == 0, .keep = job->keep, .lock = -1};
  if (!job->output) return failure(EXIT_USAGE, "--output DIR is missing: where the results go");
  if (job->force && strcmp(job->resume, "none"))
    return failure(EXIT_USAGE,
                   "--force removes what --resume %s would go on from; give one of them",
                   job->resume);
  TRY(set_path(dir, job->output));
  const struct status s = agree(comm, dir->leader ? take_folder(job, dir) : fine());
  dir->resumed = strcmp(job->resume, "none") != 0;
  if (s.code) rundir_close(dir);
  return s;
}

struct status rundir_below(const struct comm *comm, const struct rundir *above, const char *name,
                           struct rundir *dir) {
  *dir = (struct rundir){.leader = comm->rank == 0,
                         .keep = above->keep,
                         .lock = above->lock,
                         .resumed = above->resumed};
  char path[FILE_PATH];
  rundir_file(above, name, path);
  TRY(set_path(dir, path));
  rundir_file(dir, "checkpoints", path);
  struct status s = dir->leader ? folder_make(path) : fine();
  if (dir->leader && !s.code) s = folder_sweep(path);
  return agree(comm, s);
}

void rundir_close(struct rundir *dir) {
  if (dir->metrics) fclose(dir->metrics);
  dir->metrics = NULL;
  if (dir->owns_lock) runlock_drop(dir->path, dir->lock);
  dir->owns_lock = false, dir->lock = -1;
}

struct status rundir_config(const struct comm *comm, const struct rundir *dir,
                            const json_t *config) {
  struct status s = fine();
  if (dir->leader) {
    char path[FILE_PATH], *text = json_pretty(config);
    rundir_file(dir, "config.json", path);
    s = file_write_whole(path, text, strlen(text));
    free(text);
  }
  return agree(comm, s);
}

struct status rundir_again(const struct comm *comm, const struct rundir *dir, int64_t step) {
  struct status s = fine();
  if (comm->rank == 0) {
    char path[FILE_PATH], text[64];
    rundir_file(dir, "again", path);
    s = file_write_whole(path, text,
                         (size_t)snprintf(text, sizeof text, "step %lld\n", (long long)step));
  }
  return agree(comm, s);
}

/* ---- metrics ---- */

/* Is this line of a step after `step`, or broken off by a kill? */
static bool line_is_later(const char *line, int64_t step) {
  json_error_t error;
  json_t *record = json_loads(line, 0, &error);
  const json_t *at = json_object_get(record, "step");
  const bool later = !record || (json_is_integer(at) && json_integer_value(at) > step);
  json_decref(record);
  return later;
}

static struct status drop_later_lines(const char *path, int64_t step) {
  FILE *old = fopen(path, "re");
  if (!old) return fine();
  char *line = NULL;
  size_t room = 0;
  struct file_text kept;
  file_text_begin(&kept);
  while (getline(&line, &room, old) > 0)
    if (!line_is_later(line, step)) fputs(line, kept.out);
  fclose(old), free(line);
  return file_text_end(&kept, path);
}

static struct status open_metrics(struct rundir *dir, int64_t step) {
  char path[FILE_PATH];
  rundir_file(dir, "metrics.jsonl", path);
  TRY(drop_later_lines(path, step));
  dir->metrics = fopen(path, "ae");
  return dir->metrics ? fine()
                      : failure(EXIT_OUTPUT, "%s: cannot write: %s", path, strerror(errno));
}

struct status rundir_metrics(const struct comm *comm, struct rundir *dir, int64_t step,
                             const json_t *facts) {
  TRY(agree(comm, dir->leader ? open_metrics(dir, step) : fine()));
  json_t *line = json_pack("{s:s, s:i, s:I}", "record", "run", "schema", METRICS_SCHEMA, "step",
                           (json_int_t)step);
  json_object_update_missing(line, (json_t *)facts);
  rundir_record(dir, line);
  return fine();
}

/* Once in a while: on a network file system each touch is a message. */
static void show_life(struct rundir *dir) {
  const double pause = LOCK_QUIET / 20.0, now = seconds_now();
  if (now - dir->touched < pause) return;
  runlock_touch(dir->lock);
  dir->touched = now;
}

void rundir_record(struct rundir *dir, json_t *record) {
  ASSERT(json_object_get(record, "record") && json_object_get(record, "step"));
  if (dir->leader) {
    char *line = json_line(record);
    if (fprintf(dir->metrics, "%s\n", line) < 0 || fflush(dir->metrics))
      DIE(EXIT_OUTPUT, "%s/metrics.jsonl: cannot write: %s", dir->path, strerror(errno));
    free(line);
    show_life(dir);
  }
  json_decref(record);
}
