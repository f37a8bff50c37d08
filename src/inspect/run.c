/* Summarises the folder of a run: what it is, how far it has come, what it holds. */
#include "inspect.h"
#include "io/files/files.h"
#include "run/folder.h"
#include "run/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the lines of a metrics.jsonl come to. */
struct progress_so_far {
  json_t *first, *last; /* "run" lines: of the start, and of the last resume */
  int64_t starts, step, wanted;
  int64_t spikes;
  double rate_steps; /* sum of rate times steps */
  int64_t counted;   /* steps that these are of */
  json_t *loss, *best;
};

static void forget(struct progress_so_far *p) {
  json_decref(p->first), json_decref(p->last), json_decref(p->loss), json_decref(p->best);
}

static void keep(json_t **place, json_t *record) {
  json_decref(*place);
  *place = json_incref(record);
}

static int64_t whole(const json_t *record, const char *key) {
  return json_integer_value(json_object_get(record, key));
}

static void take_run(struct progress_so_far *p, json_t *record) {
  if (!p->first) keep(&p->first, record);
  keep(&p->last, record);
  p->starts++;
  if (whole(record, "steps_wanted")) p->wanted = whole(record, "steps_wanted");
}

static void take_steps(struct progress_so_far *p, const json_t *record) {
  const int64_t steps = whole(record, "steps");
  p->spikes += whole(record, "spikes"), p->counted += steps;
  p->rate_steps += json_number_value(json_object_get(record, "rate_hz")) * (double)steps;
}

static void take_line(struct progress_so_far *p, const char *line) {
  json_t *record = json_loads(line, 0, NULL); /* NULL: being written, or broken off */
  const char *kind = json_string_value(json_object_get(record, "record"));
  if (kind) {
    if (!strcmp(kind, "run")) take_run(p, record);
    if (!strcmp(kind, "steps")) take_steps(p, record);
    if (!strcmp(kind, "step")) keep(&p->loss, record);
    if (!strcmp(kind, "evaluation") && json_is_true(json_object_get(record, "best")))
      keep(&p->best, record);
    if (whole(record, "step") > p->step) p->step = whole(record, "step");
  }
  json_decref(record);
}

static struct progress_so_far read_metrics(const char *folder) {
  struct progress_so_far p = {0};
  char path[FILE_PATH], *line = NULL;
  size_t room = 0;
  if (snprintf(path, sizeof path, "%s/metrics.jsonl", folder) >= FILE_PATH) return p;
  FILE *file = fopen(path, "re");
  while (file && getline(&line, &room, file) > 0) take_line(&p, line);
  if (file) fclose(file);
  free(line);
  return p;
}

static json_t *read_config(const char *folder) {
  char path[FILE_PATH];
  json_t *config = NULL;
  if (snprintf(path, sizeof path, "%s/config.json", folder) >= FILE_PATH ||
      json_from_file(path, &config).code)
    return json_object();
  return config;
}

static bool has_file(const char *folder, const char *name) {
  char path[FILE_PATH];
  return snprintf(path, sizeof path, "%s/%s", folder, name) < FILE_PATH && file_exists(path);
}

/* ---- what is said of it ---- */

static void add_checkpoints(const char *folder, json_t *facts) {
  const struct rundir_saved saved = rundir_saved(folder);
  json_t *about = json_pack("{s:I}", "number", (json_int_t)saved.n);
  if (saved.latest >= 0) json_object_set_new(about, "latest_step", json_integer(saved.latest));
  if (saved.best >= 0) json_object_set_new(about, "best_step", json_integer(saved.best));
  json_object_set_new(facts, "checkpoints", about);
}

/* Spikes of a simulation or of one of its trials. */
static void add_spikes(const char *folder, const struct progress_so_far *p, json_t *facts) {
  json_object_set_new(facts, "spikes", json_integer(p->spikes));
  if (p->counted)
    json_object_set_new(facts, "rate_hz", json_real(p->rate_steps / (double)p->counted));
  json_object_set_new(facts, "spikes_merged", json_boolean(has_file(folder, "spikes.h5")));
}

static void copy(json_t *to, const char *name, const json_t *record, const char *key) {
  json_t *value = json_object_get(record, key);
  if (value) json_object_set(to, name, value);
}

static void add_losses(const struct progress_so_far *p, json_t *facts) {
  copy(facts, "training_loss", p->loss, "loss");
  if (!p->best) return;
  json_t *best = json_object();
  copy(best, "step", p->best, "step"), copy(best, "loss", p->best, "loss");
  copy(best, "bits", p->best, "bits");
  json_object_set_new(facts, "best_validation", best);
}

static void add_origin(const struct progress_so_far *p, json_t *facts) {
  static const char *const keys[] = {"graph", "graph_digest", "text_sha256", "config_digest",
                                     "seed",  "version",      "commit",      "device_text",
                                     "ranks", "parts",        "threads",     "transport"};
  copy(facts, "started_utc", p->first, "started_utc");
  if (p->starts > 1) {
    copy(facts, "resumed_utc", p->last, "started_utc");
    json_object_set_new(facts, "resumed", json_integer(p->starts - 1));
  }
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) copy(facts, keys[i], p->last, keys[i]);
}

static const char *state_of(const char *folder, bool done) {
  if (runlock_live(folder)) return "running";
  if (has_file(folder, "again")) return "stopped on request; --resume auto goes on";
  return done ? "finished" : "ended early; --resume auto goes on from the latest checkpoint";
}

static void add_steps(const struct progress_so_far *p, json_t *facts) {
  json_object_set_new(facts, "step", json_integer(p->step));
  if (p->wanted) json_object_set_new(facts, "steps_wanted", json_integer(p->wanted));
}

static void add_time(const struct progress_so_far *p, const json_t *config, json_t *facts) {
  const json_t *dt = json_object_get(config, "dt_ms");
  if (json_is_number(dt))
    json_object_set_new(facts, "simulated_ms", json_real((double)p->step * json_number_value(dt)));
}

/* ---- trials, each in a folder of its own ---- */

/* The least step of all trials is where the run has come to. Ends when there is no next one. */
static json_t *collect_trials(const char *folder, struct progress_so_far *all) {
  json_t *trials = json_array();
  for (int64_t k = 0;; k++) {
    char path[FILE_PATH];
    if (snprintf(path, sizeof path, "%s/trial_%lld", folder, (long long)k) >= FILE_PATH ||
        !file_exists(path))
      return trials;
    struct progress_so_far p = read_metrics(path);
    json_t *trial = json_pack("{s:I, s:I}", "trial", (json_int_t)k, "step", (json_int_t)p.step);
    add_spikes(path, &p, trial);
    json_array_append_new(trials, trial);
    all->step = k == 0 || p.step < all->step ? p.step : all->step;
    all->wanted = p.wanted, all->spikes += p.spikes;
    if (k == 0) all->first = json_incref(p.first), all->last = json_incref(p.last);
    if (p.starts > all->starts) all->starts = p.starts;
    forget(&p);
  }
}

static void collect(const char *folder, json_t *facts) {
  json_t *config = read_config(folder);
  struct progress_so_far p = read_metrics(folder);
  json_t *trials = collect_trials(folder, &p);
  const bool all_begun = json_array_size(trials) >= (size_t)whole(p.first, "trials") || !p.first;
  const bool trains = json_object_get(config, "batch") != NULL || p.loss || p.best;
  if (trains) p.wanted = whole(config, "train_steps");
  const bool done = p.wanted > 0 && p.step >= p.wanted && (all_begun || !json_array_size(trials));
  json_object_set_new(facts, "job", json_string(trains ? "train" : "simulate"));
  json_object_set_new(facts, "state", json_string(state_of(folder, done)));
  add_steps(&p, facts);
  if (trains) add_losses(&p, facts);
  if (!trains) add_time(&p, config, facts);
  if (!trains && !json_array_size(trials)) add_spikes(folder, &p, facts);
  if (json_array_size(trials))
    json_object_set(facts, "trials", trials);
  else
    add_checkpoints(folder, facts);
  add_origin(&p, facts);
  json_object_set(facts, "config", config);
  json_decref(trials), json_decref(config);
  forget(&p);
}

bool inspect_is_run(const char *path) {
  return rundir_is(path);
}

struct status inspect_run(const struct comm *comm, const struct inspect_request *request,
                          json_t *facts) {
  if (request->verify)
    return failure(EXIT_USAGE,
                   "--verify: %s is the folder of a run; name a file in it: spikes.h5, or one of "
                   "checkpoints/",
                   request->path);
  if (comm->rank == 0) collect(request->path, facts);
  return fine();
}
