/* fascicle trace: what became of the spikes. */
#include "core/log.h"
#include "run/options.h"
#include "folder.h"
#include "rates.h"
#include "run/verbs.h"
#include "run/watchdog_option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct usage usage = {
    .verb = "trace",
    .operands = "merge|rates|check DIR",
    .fewest = 2,
    .most = 2,
    .about = "The spikes of a run folder, also while the run goes on or after it died.\n\n"
             "merge: segments in DIR/trace -> DIR/spikes.h5, one SONATA file by step and node.\n"
             "rates: DIR/spikes.h5 -> rates.csv and type_rates.csv.\n"
             "check: are the segments complete, in order and undamaged, and is the merged file "
             "made of them?\n\n"
             "A run with --trials has one such folder for each trial; the verb then works on all "
             "of them.",
    .example = "  fascicle trace merge run\n  fascicle trace rates run\n  fascicle trace check run "
               "--json"};

/* ---- actions: each works on one folder and gives facts for the log and for --json ---- */

static bool packed; /* --packed */

static struct status merge(const char *dir, json_t *facts) {
  struct trace_merged m;
  TRY(trace_merge(dir, NULL, packed, &m));
  json_object_update_new(facts,
                         json_pack("{s:I, s:I, s:I, s:s}", "spikes", (json_int_t)m.n_spikes,
                                   "first_step", (json_int_t)m.first_step, "last_step",
                                   (json_int_t)m.last_step, "spikes_digest", m.spikes_digest));
  return fine();
}

static struct status rates(const char *dir, json_t *facts) {
  struct trace_rates r;
  TRY(trace_rates(dir, &r));
  json_object_update_new(
      facts, json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:s}", "spikes", (json_int_t)r.n_spikes,
                       "neurons", (json_int_t)r.n_neurons, "recorded", (json_int_t)r.n_recorded,
                       "active", (json_int_t)r.n_active, "seconds", r.seconds, "mean_hz", r.mean_hz,
                       "highest_hz", r.highest_hz, "table", "rates.csv, type_rates.csv"));
  return fine();
}

/* Every segment in itself, then all of them as one whole. Spikes up to the last
 * step that all ranks hold. */
static struct status check_segments(const char *dir, struct spikes_file **segment, int n,
                                    int64_t *last, int64_t *spikes) {
  TRY(trace_complete(dir, segment, n, last));
  *spikes = 0;
  for (int i = 0; i < n; i++) {
    TRY(spikes_verify(segment[i]));
    if (spikes_facts(segment[i])->first_step > *last + 1) continue;
    spikes_cut(segment[i], *last);
    *spikes += spikes_number(segment[i]);
  }
  return fine();
}

static struct status check_merged(const char *dir, int64_t last, int64_t spikes, json_t *facts) {
  char path[FILE_PATH];
  struct spikes_file *file;
  snprintf(path, sizeof path, "%s/spikes.h5", dir);
  json_object_set_new(facts, "merged", json_boolean(file_exists(path)));
  if (!file_exists(path)) return fine();
  TRY(spikes_open(path, &file));
  struct status s = spikes_verify(file);
  const struct spikes_facts *f = spikes_facts(file);
  if (!s.code && (spikes_number(file) != spikes || f->last_step != last))
    s = failure(EXIT_INPUT,
                "%s: holds %lld spikes up to step %lld, its segments %lld up to %lld; `fascicle "
                "trace merge` makes "
                "it anew",
                path, (long long)spikes_number(file), (long long)f->last_step, (long long)spikes,
                (long long)last);
  if (!s.code) json_object_set_new(facts, "spikes_digest", json_string(f->spikes_digest));
  spikes_close(file);
  return s;
}

static struct status check(const char *dir, json_t *facts) {
  struct spikes_file **segment;
  int n;
  int64_t spikes, last;
  TRY(trace_open(dir, &segment, &n));
  const struct status s = check_segments(dir, segment, n, &last, &spikes);
  trace_close(segment, n);
  TRY(s);
  json_object_update_new(facts, json_pack("{s:i, s:I, s:I}", "segments", n, "spikes",
                                          (json_int_t)spikes, "last_step", (json_int_t)last));
  return check_merged(dir, last, spikes, facts);
}

static const struct {
  const char *word;
  struct status (*act)(const char *dir, json_t *facts);
} actions[] = {{"merge", merge}, {"rates", rates}, {"check", check}};

/* ---- one folder, or that of each trial ---- */

static void say(const char *dir, const json_t *facts, bool as_json) {
  if (as_json) {
    json_print(facts);
    return;
  }
  const char *key;
  json_t *value;
  printf("%s:", dir);
  json_object_foreach((json_t *)facts, key, value) {
    char real[32], *text;
    snprintf(real, sizeof real, "%.6g", json_real_value(value));
    text = json_is_string(value) ? strdup(json_string_value(value))
           : json_is_real(value) ? strdup(real)
                                 : json_line(value);
    if (strcmp(key, "folder")) printf("  %s %s", key, text);
    free(text);
  }
  printf("\n");
}

static struct status act_on(int action, const char *dir, bool as_json) {
  json_t *facts = json_pack("{s:s}", "folder", dir);
  const struct status s = actions[action].act(dir, facts);
  if (!s.code) say(dir, facts, as_json);
  json_decref(facts);
  return s;
}

static struct status act_on_all(int action, const char *dir, bool as_json) {
  char path[FILE_PATH];
  for (long long k = 0;; k++) {
    if (snprintf(path, sizeof path, "%s/trial_%lld", dir, k) >= FILE_PATH)
      return failure(EXIT_INPUT, "%.200s...: the path is too long", dir);
    if (!file_exists(path)) return k ? fine() : act_on(action, dir, as_json);
    TRY(act_on(action, path, as_json));
  }
}

static struct status run(struct comm *world, int argc, char **argv) {
  bool as_json = false;
  double watchdog = WATCHDOG_CHOSEN;
  const char *operand[2];
  const struct option options[] = {
      {"packed", OPTION_FLAG, NULL,
       "merge: deflate ids and times as well; small, but libsonata cannot read it", &packed, 0, 0},
      watchdog_option(&watchdog),
      {"json", OPTION_FLAG, NULL, "one JSON object a folder on stdout", &as_json, 0, 0}};
  TRY(options_parse(&usage, options, sizeof options / sizeof *options, argc, argv, operand));
  int action = 0;
  while (action < 3 && strcmp(operand[0], actions[action].word)) action++;
  if (action == 3)
    return failure(EXIT_USAGE, "trace %s: it must be merge, rates or check", operand[0]);
  TRY(watchdog_begin(watchdog));
  watchdog_pause("trace");
  const struct status s = world->rank == 0 ? act_on_all(action, operand[1], as_json) : fine();
  comm_wait_for_all(world);
  watchdog_resume();
  return agree(world, s);
}

const struct verb verb_trace = {"trace", "merge, check and count the spikes of a run", run};
