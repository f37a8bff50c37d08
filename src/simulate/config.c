#include "config.h"
#include "lif/net.h"
#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

/* What the reading functions pass around. */
struct reader {
  const char *source;
  const struct neurons *neurons;
  struct unknown unknown;
  struct lif_config *config;
};

enum { WHERE = 320 };

/* ---- keys ---- */

static void set_default(json_t *object, const char *key, json_t *value) {
  if (json_object_get(object, key))
    json_decref(value);
  else
    json_object_set_new(object, key, value);
}

static struct status need(const json_t *object, const char *where, const char *key) {
  if (json_object_get(object, key)) return fine();
  return failure(EXIT_USAGE, "%s: \"%s\" is missing", where, key);
}

static struct status take_neurons(struct reader *r, const json_t *entry, const char *where,
                                  struct selection *selection) {
  TRY(need(entry, where, "neurons"));
  return select_neurons(r->neurons, json_object_get(entry, "neurons"), where, &r->unknown,
                        selection);
}

/* The list under `key`, its length in *n; NULL without one. */
static struct status take_list(const struct reader *r, const json_t *json, const char *key,
                               json_t **list, int *n) {
  *list = json_object_get(json, key);
  *n = (int)json_array_size(*list);
  if (*list && !json_is_array(*list))
    return failure(EXIT_USAGE, "%s: \"%s\" must be a list [ ]", r->source, key);
  return fine();
}

/* ---- parameters ---- */

static struct status read_params(struct reader *r, const json_t *json) {
  TRY(need(json, r->source, "threshold"));
  TRY(need(json, r->source, "decay_shifts"));
  const json_t *list = json_object_get(json, "decay_shifts");
  struct lif_numbers numbers = {.n_shifts = (int64_t)json_array_size(list)};
  TRY(json_take_int(json, r->source, "threshold", INT64_MIN, INT64_MAX, &numbers.threshold));
  TRY(json_take_int(json, r->source, "reset", INT64_MIN, INT64_MAX, &numbers.reset));
  TRY(json_take_int(json, r->source, "refractory_steps", INT64_MIN, INT64_MAX,
                    &numbers.refractory_steps));
  if (!json_is_array(list))
    return failure(EXIT_USAGE, "%s: \"decay_shifts\" must be a list of integers, such as [4]",
                   r->source);
  int64_t *shift = NEW(int64_t, numbers.n_shifts);
  struct status s = fine();
  for (int64_t i = 0; i < numbers.n_shifts; i++) {
    const json_t *value = json_array_get(list, (size_t)i);
    shift[i] = json_integer_value(value);
    if (!json_is_integer(value))
      s = failure(EXIT_USAGE, "%s: \"decay_shifts\" must hold integers", r->source);
  }
  numbers.decay_shifts = shift;
  if (!s.code) s = lif_params_from(r->source, &numbers, &r->config->params);
  mem_free(shift);
  return s;
}

static struct status read_time(struct reader *r, const json_t *json) {
  int64_t seed = 0;
  r->config->dt_ms = 0;
  TRY(json_take_real(json, r->source, "dt_ms", 1e-6, 1e9, &r->config->dt_ms));
  TRY(json_take_int(json, r->source, "seed", 0, INT64_MAX, &seed));
  r->config->seed = (uint64_t)seed;
  return fine();
}

/* ---- initial state ---- */

static struct status read_initial_entry(struct reader *r, const json_t *entry, const char *where,
                                        struct lif_initial *initial) {
  static const char *const known[] = {"neurons", "potential", "refractory"};
  int64_t potential = 0, refractory = 0;
  TRY(json_only_keys(entry, where, known, 3));
  TRY(take_neurons(r, entry, where, &initial->neurons));
  TRY(json_take_int(entry, where, "potential", INT64_MIN, INT64_MAX, &potential));
  TRY(json_take_int(entry, where, "refractory", INT64_MIN, INT64_MAX, &refractory));
  TRY(lif_initial_check(where, potential, refractory));
  initial->potential = (int32_t)potential, initial->refractory = (uint16_t)refractory;
  return fine();
}

static struct status read_initial(struct reader *r, const json_t *json) {
  json_t *list;
  int n;
  char where[WHERE];
  TRY(take_list(r, json, "initial", &list, &n));
  r->config->initial = NEW_ZERO(struct lif_initial, n);
  for (int i = 0; i < n; i++) {
    snprintf(where, sizeof where, "%s: initial[%d]", r->source, i);
    r->config->n_initial = i + 1;
    TRY(read_initial_entry(r, json_array_get(list, (size_t)i), where, &r->config->initial[i]));
  }
  return fine();
}

/* ---- stimuli ---- */

static struct status read_interval(const json_t *entry, const char *where,
                                   struct lif_input *input) {
  input->last_step = INT64_MAX;
  TRY(json_take_int(entry, where, "first_step", 0, INT64_MAX, &input->first_step));
  TRY(json_take_int(entry, where, "last_step", 0, INT64_MAX, &input->last_step));
  if (input->last_step < input->first_step)
    return failure(EXIT_USAGE, "%s: \"last_step\" is %lld, before \"first_step\" %lld", where,
                   (long long)input->last_step, (long long)input->first_step);
  return fine();
}

static struct status read_current(struct reader *r, const json_t *entry, const char *where,
                                  struct lif_input *input) {
  static const char *const known[] = {"neurons", "kind", "first_step", "last_step", "value"};
  (void)r;
  int64_t value = 0;
  TRY(json_only_keys(entry, where, known, 5));
  TRY(need(entry, where, "value"));
  TRY(json_take_int(entry, where, "value", INT32_MIN, INT32_MAX, &value));
  input->kind = LIF_CURRENT, input->value = (int32_t)value;
  return read_interval(entry, where, input);
}

/* probability of an event in a step = rate x dt */
static struct status read_poisson(struct reader *r, const json_t *entry, const char *where,
                                  struct lif_input *input) {
  static const char *const known[] = {"neurons",   "kind",    "first_step",
                                      "last_step", "rate_hz", "weight"};
  int64_t weight = 0;
  double rate = 0;
  TRY(json_only_keys(entry, where, known, 6));
  TRY(need(entry, where, "rate_hz"));
  TRY(need(entry, where, "weight"));
  TRY(json_take_int(entry, where, "weight", INT32_MIN, INT32_MAX, &weight));
  TRY(json_take_real(entry, where, "rate_hz", 0, 1e300, &rate));
  input->kind = LIF_POISSON, input->value = (int32_t)weight;
  input->probability = rate * r->config->dt_ms / 1000;
  if (input->probability > 1)
    return failure(
        EXIT_USAGE,
        "%s: \"rate_hz\" %g is %g events in a step of %g ms; at most one is possible: lower the "
        "rate or dt_ms",
        where, rate, input->probability, r->config->dt_ms);
  return read_interval(entry, where, input);
}

static struct status read_spikes(struct reader *r, const json_t *entry, const char *where,
                                 struct lif_input *input) {
  static const char *const known[] = {"neurons", "kind", "steps"};
  (void)r;
  TRY(json_only_keys(entry, where, known, 3));
  const json_t *steps = json_object_get(entry, "steps");
  if (!json_is_array(steps))
    return failure(EXIT_USAGE, "%s: \"steps\" must be a list of steps", where);
  input->kind = LIF_SPIKES, input->n_steps = (int64_t)json_array_size(steps);
  input->step = NEW(int64_t, input->n_steps);
  for (int64_t i = 0; i < input->n_steps; i++) {
    const json_t *step = json_array_get(steps, (size_t)i);
    input->step[i] = json_integer_value(step);
    if (!json_is_integer(step) || input->step[i] < 0)
      return failure(EXIT_USAGE, "%s: \"steps\"[%lld] must be an integer, 0 or more", where,
                     (long long)i);
  }
  return fine();
}

static struct status read_input(struct reader *r, const json_t *entry, const char *where,
                                struct lif_input *input) {
  static const struct {
    const char *word;
    struct status (*read)(struct reader *, const json_t *, const char *, struct lif_input *);
  } kinds[] = {{"current", read_current}, {"poisson", read_poisson}, {"spikes", read_spikes}};
  if (!json_is_object(entry)) return failure(EXIT_USAGE, "%s: an object { } is wanted", where);
  const char *kind = json_string_value(json_object_get(entry, "kind"));
  for (int i = 0; i < 3; i++) {
    if (!kind || strcmp(kind, kinds[i].word)) continue;
    TRY(kinds[i].read(r, entry, where, input));
    return take_neurons(r, entry, where, &input->neurons);
  }
  return failure(EXIT_USAGE, "%s: \"kind\" must be \"current\", \"poisson\" or \"spikes\"%s%s",
                 where, kind ? ", not " : "", kind ? kind : "");
}

static struct status read_inputs(struct reader *r, const json_t *json) {
  json_t *list;
  int n;
  char where[WHERE];
  TRY(take_list(r, json, "stimulus", &list, &n));
  r->config->input = NEW_ZERO(struct lif_input, n);
  for (int i = 0; i < n; i++) {
    snprintf(where, sizeof where, "%s: stimulus[%d]", r->source, i);
    r->config->n_inputs = i + 1;
    TRY(read_input(r, json_array_get(list, (size_t)i), where, &r->config->input[i]));
  }
  return fine();
}

/* ---- silence and recording ---- */

static struct status read_silence(struct reader *r, const json_t *json) {
  static const char *const known[] = {"neurons", "mode"};
  json_t *list;
  int n;
  char where[WHERE];
  TRY(take_list(r, json, "silence", &list, &n));
  r->config->silence = NEW_ZERO(struct lif_silence, n);
  for (int i = 0; i < n; i++) {
    const json_t *entry = json_array_get(list, (size_t)i);
    snprintf(where, sizeof where, "%s: silence[%d]", r->source, i);
    TRY(json_only_keys(entry, where, known, 2));
    const char *mode = json_string_value(json_object_get(entry, "mode"));
    if (!mode || (strcmp(mode, "output") && strcmp(mode, "remove")))
      return failure(
          EXIT_USAGE,
          "%s: \"mode\" must be \"output\" (it receives and fires, its spikes go nowhere) or "
          "\"remove\" (it neither receives nor fires)",
          where);
    r->config->silence[i].remove = !strcmp(mode, "remove");
    r->config->n_silences = i + 1;
    TRY(take_neurons(r, entry, where, &r->config->silence[i].neurons));
  }
  return fine();
}

static struct status read_potential(struct reader *r, const json_t *entry) {
  static const char *const known[] = {"neurons", "every"};
  char where[WHERE];
  snprintf(where, sizeof where, "%s: record.potential", r->source);
  TRY(json_only_keys(entry, where, known, 2));
  r->config->potential_every = 1;
  TRY(json_take_int(entry, where, "every", 1, INT64_MAX, &r->config->potential_every));
  return take_neurons(r, entry, where, &r->config->potential);
}

static struct status read_record(struct reader *r, json_t *json) {
  static const char *const known[] = {"spikes", "potential"};
  char where[WHERE];
  json_t *record = json_object_get(json, "record");
  snprintf(where, sizeof where, "%s: record", r->source);
  TRY(json_only_keys(record, where, known, 2));
  set_default(record, "spikes", json_string("all"));
  const json_t *spikes = json_object_get(record, "spikes"),
               *potential = json_object_get(record, "potential");
  snprintf(where, sizeof where, "%s: record.spikes", r->source);
  r->config->record_all = json_is_string(spikes) && !strcmp(json_string_value(spikes), "all");
  if (!r->config->record_all)
    TRY(select_neurons(r->neurons, spikes, where, &r->unknown, &r->config->spikes));
  return potential ? read_potential(r, potential) : fine();
}

/* ---- the whole ---- */

static void fill_defaults(json_t *json) {
  set_default(json, "reset", json_integer(0));
  set_default(json, "refractory_steps", json_integer(0));
  set_default(json, "dt_ms", json_real(1.0));
  set_default(json, "seed", json_integer(1));
  set_default(json, "initial", json_array());
  set_default(json, "stimulus", json_array());
  set_default(json, "silence", json_array());
  set_default(json, "record", json_object());
}

struct status lif_config_read(json_t *json, const char *source, const struct neurons *neurons,
                              struct lif_config *config) {
  static const char *const known[] = {"threshold", "reset",  "decay_shifts", "refractory_steps",
                                      "dt_ms",     "seed",   "initial",      "stimulus",
                                      "silence",   "record", "about"};
  *config = (struct lif_config){0};
  struct reader r = {.source = source, .neurons = neurons, .config = config};
  TRY(json_only_keys(json, source, known, sizeof known / sizeof *known));
  fill_defaults(json);
  TRY(read_params(&r, json));
  TRY(read_time(&r, json));
  TRY(read_initial(&r, json));
  TRY(read_inputs(&r, json));
  TRY(read_silence(&r, json));
  TRY(read_record(&r, json));
  return unknown_status(&r.unknown, source);
}

void lif_config_free(struct lif_config *config) {
  for (int i = 0; i < config->n_initial; i++) selection_free(&config->initial[i].neurons);
  for (int i = 0; i < config->n_inputs; i++)
    selection_free(&config->input[i].neurons), mem_free(config->input[i].step);
  for (int i = 0; i < config->n_silences; i++) selection_free(&config->silence[i].neurons);
  selection_free(&config->spikes), selection_free(&config->potential);
  mem_free(config->initial), mem_free(config->input), mem_free(config->silence);
  *config = (struct lif_config){0};
}
