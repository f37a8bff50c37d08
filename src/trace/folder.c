/* Keeps the spike segments of a run: their names, which remain on resuming, merging. */
#include "folder.h"
#include "core/log.h"
#include "run/folder.h"
#include "core/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct status make_path(char path[FILE_PATH], const char *dir, const char *name) {
  if (snprintf(path, FILE_PATH, "%s/%s", dir, name) < FILE_PATH) return fine();
  return failure(EXIT_OUTPUT, "%.200s...: the path is too long", dir);
}

void trace_segment_path(const char *dir, int64_t rank, int64_t number, char path[FILE_PATH]) {
  if (snprintf(path, FILE_PATH, "%s/trace/spikes.r%04lld.s%06lld.h5", dir, (long long)rank,
               (long long)number) >= FILE_PATH)
    DIE(EXIT_OUTPUT, "%.200s...: the path is too long", dir);
}

/* The number in a segment's name, or -1. */
static int64_t segment_number(const char *name) {
  long long rank, number;
  int end = 0;
  const bool right = sscanf(name, "spikes.r%lld.s%lld.h5%n", &rank, &number, &end) == 2 && end > 0;
  return right && name[end] == 0 ? number : -1;
}

static bool is_unfinished(const char *name) {
  const char *dot = strrchr(name, '.');
  return !strncmp(name, "spikes.r", 8) && dot && !strcmp(dot, ".tmp");
}

/* Remove segments numbered `first` and above, and unfinished files. */
static struct status drop(const char *dir, int64_t first) {
  char folder[FILE_PATH], path[FILE_PATH];
  TRY(make_path(folder, dir, "trace"));
  DIR *open = opendir(folder);
  struct status s = fine();
  for (struct dirent *entry; open && !s.code && (entry = readdir(open));) {
    if (segment_number(entry->d_name) < first && !is_unfinished(entry->d_name)) continue;
    s = make_path(path, folder, entry->d_name);
    if (!s.code) s = file_remove(path);
  }
  if (open) closedir(open);
  return s;
}

/* Segments numbered below `end`; none is fine. */
static struct status open_below(const char *dir, int64_t end, struct spikes_file ***segment,
                                int *n) {
  char folder[FILE_PATH], path[FILE_PATH];
  *segment = NULL, *n = 0;
  TRY(make_path(folder, dir, "trace"));
  DIR *open = opendir(folder);
  if (!open)
    return failure(EXIT_INPUT, "%s: no such folder; `fascicle simulate --output %s` makes it",
                   folder, dir);
  struct status s = fine();
  for (struct dirent *entry; !s.code && (entry = readdir(open));) {
    const int64_t number = segment_number(entry->d_name);
    if (number < 0 || number >= end) continue;
    *segment = mem_grow(*segment, *n + 1, sizeof **segment);
    s = make_path(path, folder, entry->d_name);
    if (!s.code) s = spikes_open(path, &(*segment)[*n]);
    if (!s.code) ++*n;
  }
  closedir(open);
  if (!s.code) spikes_sort(*segment, *n);
  if (s.code) trace_close(*segment, *n), *segment = NULL, *n = 0;
  return s;
}

struct status trace_open(const char *dir, struct spikes_file ***segment, int *n) {
  TRY(open_below(dir, INT64_MAX, segment, n));
  return *n ? fine() : failure(EXIT_INPUT, "%s/trace: holds no spike segments", dir);
}

void trace_close(struct spikes_file **segment, int n) {
  for (int i = 0; i < n; i++) spikes_close(segment[i]);
  mem_free(segment);
}

/* Do the segments before the checkpoint end where it goes on? */
static struct status check_end(const char *dir, int64_t first, int64_t step) {
  struct spikes_file **segment;
  int n;
  int64_t last = step - 1;
  TRY(open_below(dir, first, &segment, &n));
  const struct status s = n ? spikes_complete(segment, n, &last) : fine();
  trace_close(segment, n);
  if (s.code || last == step - 1) return s;
  return failure(EXIT_USAGE,
                 "%s/trace: holds the steps up to %lld, but the checkpoint goes on from step %lld: "
                 "it is another "
                 "run's; give another --output",
                 dir, (long long)last, (long long)step);
}

struct status trace_go_on(const char *dir, int64_t first, int64_t step) {
  TRY(check_end(dir, first, step));
  return drop(dir, first);
}

struct status trace_complete(const char *dir, struct spikes_file *const *segment, int n,
                             int64_t *last) {
  TRY(spikes_complete(segment, n, last));
  const int64_t saved = rundir_latest(dir);
  if (*last >= saved - 1) return fine();
  return failure(EXIT_INPUT,
                 "%s/trace: the segments of some rank end at step %lld, but the newest checkpoint "
                 "is of step %lld: "
                 "segments are missing",
                 dir, (long long)*last, (long long)saved);
}

/* Leave out what only some ranks have written. */
static void cut_ragged(struct spikes_file **segment, int *n, int64_t last) {
  int kept = 0;
  bool ragged = false;
  for (int i = 0; i < *n; i++) {
    ragged |= spikes_facts(segment[i])->last_step > last;
    if (spikes_facts(segment[i])->first_step > last + 1) {
      spikes_close(segment[i]);
      continue;
    }
    spikes_cut(segment[i], last);
    segment[kept++] = segment[i];
  }
  *n = kept;
  if (ragged)
    log_warning("only steps up to %lld are there from all ranks; later ones are left out",
                (long long)last);
}

static struct status read_names(const char *dir, struct spikes_names *names, bool *found) {
  static const char *const where[] = {"neurons.h5", "../neurons.h5"};
  char path[FILE_PATH];
  *found = false;
  for (int i = 0; i < 2; i++) {
    TRY(make_path(path, dir, where[i]));
    if (!file_exists(path)) continue;
    *found = true;
    return spikes_names_read(path, names);
  }
  return fine();
}

/* DIR/reports: one file for each variable that was recorded. */
static struct status merge_reports(struct spikes_file **segment, int n, const char *dir,
                                   const char *provenance) {
  struct spikes_reported r;
  char path[FILE_PATH], names[400] = "";
  size_t at = 0;
  TRY(make_path(path, dir, "reports"));
  TRY(spikes_reports(segment, n, provenance, path, &r));
  for (int v = 0; v < r.n && at < sizeof names; v++)
    at += (size_t)snprintf(names + at, sizeof names - at, "%s%s.h5 (%s)", v ? ", " : "",
                           r.variable[v].name, r.variable[v].unit);
  if (r.n)
    log_line("%s: %s of %lld neurons, %lld records each", path, names, (long long)r.n_recorded,
             (long long)r.n_records);
  return fine();
}

static struct status merge_open(struct spikes_file **segment, int *n, const char *dir,
                                const char *provenance, bool packed, struct trace_merged *merged) {
  char path[FILE_PATH];
  struct spikes_names names = {0};
  struct spikes_file *file;
  bool found;
  int64_t last;
  TRY(trace_complete(dir, segment, *n, &last));
  cut_ragged(segment, n, last);
  TRY(merge_reports(segment, *n, dir, provenance));
  TRY(make_path(path, dir, "spikes.h5"));
  TRY(read_names(dir, &names, &found));
  struct spikes_totals totals = {0};
  struct status s =
      spikes_merge(segment, *n, found ? &names : NULL, provenance, packed, path, &totals);
  spikes_names_free(&names);
  if (!s.code) s = spikes_open(path, &file);
  if (s.code) return s;
  merged->n_spikes = totals.recorded, merged->n_fired = totals.all;
  merged->first_step = spikes_facts(file)->first_step,
  merged->last_step = spikes_facts(file)->last_step;
  memcpy(merged->spikes_digest, spikes_facts(file)->spikes_digest, sizeof merged->spikes_digest);
  spikes_close(file);
  return s;
}

struct status trace_merge(const char *dir, const char *provenance, bool packed,
                          struct trace_merged *merged) {
  struct spikes_file **segment;
  int n;
  *merged = (struct trace_merged){0};
  TRY(trace_open(dir, &segment, &n));
  const struct status s = merge_open(segment, &n, dir, provenance, packed, merged);
  trace_close(segment, n);
  return s;
}
