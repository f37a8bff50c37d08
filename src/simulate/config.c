/* The keys of a simulation: parameters, initial values, silence and recording. */
#include "config_inside.h"
#include "core/mem.h"
#include "lif/net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the keys ---- */

/* What the tables of the top level fill in. */
struct top {
  int64_t threshold, reset, refractory_steps, seed, delay_steps;
  double dt_ms, weight, delay_ms;
};
#define AT(member) .offset = offsetof(struct top, member)

#define KEY_MODEL                                                                                  \
  {                                                                                                \
    "model", CONFIG_OTHER,                                                                         \
        .initially = "",                                                                           \
        .help = "`lif_shift` (if not given), `lif_delta`, `lif_exp`, `psc_exp`, `psc_alpha`"       \
  }
#define KEY_DT(value)                                                                              \
  {                                                                                                \
    "dt_ms", CONFIG_REAL, AT(dt_ms), .low = 1e-6, .high = 1e9, .unit = "ms", .range = "above 0",   \
                                     .initially = value, .help = "one step"                        \
  }
#define KEYS_OF_ALL                                                                                \
  {"seed",    CONFIG_INT,           AT(seed),         0,                                           \
   INT64_MAX, .range = "0 or more", .initially = "1", .help = "key of the random numbers"},        \
      {"initial", CONFIG_OTHER, .initially = "[]",                                                 \
       .help = "list of initial values; later entries win"},                                       \
      {"stimulus", CONFIG_OTHER, .initially = "[]", .help = "list of inputs, of the kinds below"}, \
      {"silence", CONFIG_OTHER, .initially = "[]", .help = "list of neurons that are cut"},        \
      {"record", CONFIG_OTHER, .initially = "{}", .help = "what is recorded"}, {                   \
    "about", CONFIG_OTHER, .initially = "", .help = "remarks, without effect"                      \
  }

static const struct config_key shift_rows[] = {
    KEY_MODEL,
    {"threshold", CONFIG_INT, AT(threshold), INT32_MIN, INT32_MAX,
     .help = "a neuron fires at V >= threshold"},
    {"decay_shifts", CONFIG_OTHER,
     .help = "list of 0 to 256 shifts k of 0..31: V -= V >> k for each, in order; `[]`: no leak"},
    {"reset", CONFIG_INT, AT(reset), INT32_MIN, INT32_MAX, .initially = "0",
     .help = "V after a spike and while refractory"},
    {"refractory_steps", CONFIG_INT, AT(refractory_steps), 0, UINT16_MAX, .unit = "steps",
     .initially = "0", .help = "after a spike; the input of these steps is lost"},
    KEY_DT("1.0"),
    KEYS_OF_ALL};
static const struct config_table shift_table = CONFIG_TABLE("Keys with lif_shift", shift_rows);

#define ABOUT_NEURON                                                                               \
  "parameters of all neurons, listed below by model: each a number, or `{\"column\": NAME}` for "  \
  "what that column of the graph holds for each neuron"
#define KEYS_OF_MODEL(weight_key, unit_of, text)                                                   \
  KEY_MODEL, KEY_DT("0.1"), {"neuron", CONFIG_OTHER, .help = ABOUT_NEURON},                        \
      {"classes", CONFIG_OTHER, .initially = "[]",                                                 \
       .help = "list of neurons with other parameters; later entries win, key by key"},            \
      {weight_key,  CONFIG_REAL,     AT(weight),         .low = 1e-12,                             \
       .high = 1e9, .unit = unit_of, .range = "above 0", .help = text},                            \
      {"delay_ms",      CONFIG_REAL,                                                               \
       AT(delay_ms),    .high = 1e9,                                                               \
       .unit = "ms",    .range = "above 0",                                                        \
       .initially = "", .help = "of every edge, a multiple of `dt_ms`; else the graph's delays"},  \
      {"delay_steps", CONFIG_INT,      AT(delay_steps), 1,                                         \
       UINT16_MAX,    .unit = "steps", .initially = "", .help = "the same in steps"},              \
      KEYS_OF_ALL

static const struct config_key mv_rows[] = {
    KEYS_OF_MODEL("weight_mv", "mV", "what one count of an edge's weight is worth")};
static const struct config_key pa_rows[] = {
    KEYS_OF_MODEL("weight_pa", "pA", "what one count of an edge's weight is worth")};
static const struct config_table mv_table =
    CONFIG_TABLE("Keys with lif_delta and lif_exp", mv_rows);
static const struct config_table pa_table =
    CONFIG_TABLE("Keys with psc_exp and psc_alpha", pa_rows);

#define OF(member) .offset = offsetof(struct lif_initial, member)
#define KEY_WHO                                                                                    \
  { "neurons", CONFIG_OTHER, .help = "who (NEURONS)" }
#define KEY_COUNTER                                                                                \
  {                                                                                                \
    "refractory", CONFIG_INT, OF(refractory), 0, UINT16_MAX, .unit = "steps", .initially = "0",    \
                                                             .help = "refractory steps left"       \
  }
static const struct config_key shift_initial_rows[] = {
    KEY_WHO,
    {"potential", CONFIG_INT, OF(potential), INT32_MIN, INT32_MAX, .initially = "0", .help = "V"},
    KEY_COUNTER};
static const struct config_key model_initial_rows[] = {
    KEY_WHO,
    {"v_mv", CONFIG_REAL, OF(v_mv), .low = -1e6, .high = 1e6, .unit = "mV", .range = "any",
     .initially = "", .help = "potential; else at rest"},
    {"v_sd_mv", CONFIG_REAL, OF(v_sd_mv), .low = 0, .high = 1e6, .unit = "mV", .range = "0 or more",
     .initially = "0",
     .help = "the potential is drawn for each neuron and trial: normal with this standard "
             "deviation"},
    KEY_COUNTER};
static const struct config_table shift_initial =
    CONFIG_TABLE("Entry of `initial` with lif_shift", shift_initial_rows);
static const struct config_table model_initial =
    CONFIG_TABLE("Entry of `initial` with a model", model_initial_rows);

static const struct config_key silence_rows[] = {
    KEY_WHO,
    {"mode", CONFIG_WORD, .offset = offsetof(struct lif_silence, remove), .words = "output|remove",
     .help = "`output`: it receives and fires, its spikes go nowhere; `remove`: it neither "
             "receives nor fires"}};
static const struct config_table silence_table = CONFIG_TABLE("Entry of `silence`", silence_rows);

/* Between records. */
struct interval {
  int64_t steps;
  double ms;
};
static const struct config_key potential_rows[] = {
    KEY_WHO,
    {"every", CONFIG_INT, .offset = offsetof(struct interval, steps), 1, INT64_MAX / 4,
     .unit = "steps", .range = "1 or more", .initially = "1", .help = "between records"}};
static const struct config_table potential_table =
    CONFIG_TABLE("`record.potential` of lif_shift", potential_rows);
static const struct config_key variables_rows[] = {
    KEY_WHO,
    {"variables", CONFIG_OTHER, .initially = "[\"v\"]",
     .help = "list of components: `v` (all), `g` (lif_exp), `i_ex`, `i_in` (psc_*), `a_ex`, `a_in` "
             "(psc_alpha, what feeds these), `w` (adaptation)"},
    {"every", CONFIG_INT, .offset = offsetof(struct interval, steps), 1, INT64_MAX / 4,
     .unit = "steps", .range = "1 or more", .initially = "", .help = "between records; 1, or ..."},
    {"every_ms", CONFIG_REAL, .offset = offsetof(struct interval, ms), .high = 1e12, .unit = "ms",
     .range = "above 0", .initially = "", .help = "... the same in ms, a multiple of `dt_ms`"}};
static const struct config_table variables_table =
    CONFIG_TABLE("`record.variables` of a model", variables_rows);
static const struct config_key record_rows[] = {
    {"spikes", CONFIG_OTHER, .initially = "\"all\"", .help = "whose spikes (NEURONS)"},
    {"potential", CONFIG_OTHER, .initially = "", .help = "lif_shift: whose V, and how often"},
    {"variables", CONFIG_OTHER, .initially = "",
     .help = "a model: which of its variables, whose, and how often"}};
static const struct config_table record_table = CONFIG_TABLE("`record`", record_rows);

const struct config_table *lif_config_tables(int *n) {
  const struct config_table *const first[] = {
      &shift_table,   &mv_table,      &pa_table,     &lif_classes_table, &shift_initial,
      &model_initial, &silence_table, &record_table, &potential_table,   &variables_table};
  enum { FIRST = sizeof first / sizeof *first };
  static struct config_table all[FIRST + LIF_MODELS + LIF_STIMULUS_TABLES];
  *n = 0;
  for (int i = 0; i < FIRST; i++) all[(*n)++] = *first[i];
  for (int i = 0; i < LIF_MODELS; i++) all[(*n)++] = *lif_models[i]->keys;
  for (int i = 0; lif_stimulus_tables[i]; i++) all[(*n)++] = *lif_stimulus_tables[i];
  return all;
}

/* ---- reading ---- */

struct status lif_take_neurons(struct lif_reader *r, const json_t *entry, const char *where,
                               struct selection *selection) {
  const json_t *neurons = json_object_get(entry, "neurons");
  if (!neurons) return failure(EXIT_USAGE, "%s: \"neurons\" is missing", where);
  return select_neurons(r->neurons, neurons, where, &r->unknown, selection);
}

struct status lif_take_list(const struct lif_reader *r, const json_t *json, const char *key,
                            json_t **list, int *n) {
  *list = json_object_get(json, key);
  *n = (int)json_array_size(*list);
  if (*list && !json_is_array(*list))
    return failure(EXIT_USAGE, "%s: \"%s\" must be a list [ ]", r->source, key);
  return fine();
}

/* The list of integers: *shift [returned n], mem_free it. */
static struct status take_shifts(const json_t *json, const char *source, int64_t **shift,
                                 int64_t *n) {
  const json_t *list = json_object_get(json, "decay_shifts");
  if (!json_is_array(list))
    return failure(EXIT_USAGE, "%s: \"decay_shifts\" must be a list of integers, such as [4]",
                   source);
  *n = (int64_t)json_array_size(list);
  *shift = NEW(int64_t, *n);
  for (int64_t i = 0; i < *n; i++) {
    const json_t *value = json_array_get(list, (size_t)i);
    (*shift)[i] = json_integer_value(value);
    if (!json_is_integer(value))
      return failure(EXIT_USAGE, "%s: \"decay_shifts\" must hold integers", source);
  }
  return fine();
}

static struct status read_shift(struct lif_reader *r, const json_t *json, const struct top *top) {
  int64_t *shift = NULL;
  struct lif_numbers numbers = {
      .threshold = top->threshold, .reset = top->reset, .refractory_steps = top->refractory_steps};
  struct status s = take_shifts(json, r->source, &shift, &numbers.n_shifts);
  numbers.decay_shifts = shift;
  if (!s.code) s = lif_params_from(r->source, &numbers, &r->config->params);
  mem_free(shift);
  return s;
}

static struct status read_delay(struct lif_reader *r, const struct top *top) {
  struct lif_config *c = r->config;
  c->linear.delay = top->delay_steps;
  if (isnan(top->delay_ms)) return fine();
  if (top->delay_steps)
    return failure(EXIT_USAGE, "%s: give \"delay_ms\" or \"delay_steps\", not both", r->source);
  TRY(lif_steps_of(top->delay_ms, c->dt_ms, r->source, "delay_ms", UINT16_MAX, &c->linear.delay));
  if (c->linear.delay >= 1) return fine();
  return failure(EXIT_USAGE, "%s: \"delay_ms\" is %g; it must be one step of %g ms at least",
                 r->source, top->delay_ms, c->dt_ms);
}

/* ---- initial values, silence ---- */

static struct status read_initial(struct lif_reader *r, const json_t *json) {
  json_t *list;
  int n;
  char where[LIF_WHERE];
  const struct config_table *table = r->config->linear.kind ? &model_initial : &shift_initial;
  TRY(lif_take_list(r, json, "initial", &list, &n));
  r->config->initial = NEW_ZERO(struct lif_initial, n);
  for (int i = 0; i < n; i++) {
    const json_t *entry = json_array_get(list, (size_t)i);
    struct lif_initial *initial = &r->config->initial[i];
    snprintf(where, sizeof where, "%s: initial[%d]", r->source, i);
    r->config->n_initial = i + 1, initial->v_mv = NAN;
    TRY(config_read(table, entry, where, initial));
    if (initial->v_sd_mv > 0) lif_need_quantiles(&r->config->linear);
    TRY(lif_take_neurons(r, entry, where, &initial->neurons));
  }
  return fine();
}

static struct status read_silence(struct lif_reader *r, const json_t *json) {
  json_t *list;
  int n;
  char where[LIF_WHERE];
  TRY(lif_take_list(r, json, "silence", &list, &n));
  r->config->silence = NEW_ZERO(struct lif_silence, n);
  for (int i = 0; i < n; i++) {
    const json_t *entry = json_array_get(list, (size_t)i);
    snprintf(where, sizeof where, "%s: silence[%d]", r->source, i);
    r->config->n_silences = i + 1;
    TRY(config_read(&silence_table, entry, where, &r->config->silence[i]));
    TRY(lif_take_neurons(r, entry, where, &r->config->silence[i].neurons));
  }
  return fine();
}

/* ---- recording ---- */

static struct status read_potential(struct lif_reader *r, const json_t *entry) {
  char where[LIF_WHERE];
  struct interval interval = {.steps = 1};
  snprintf(where, sizeof where, "%s: record.potential", r->source);
  if (r->config->linear.kind)
    return failure(EXIT_USAGE,
                   "%s: this is lif_shift's; of model %s record \"variables\": {\"neurons\": .., "
                   "\"variables\": [\"v\"]}",
                   where, r->config->linear.kind->name);
  TRY(config_read(&potential_table, entry, where, &interval));
  r->config->recorded_every = interval.steps;
  return lif_take_neurons(r, entry, where, &r->config->recorded);
}

/* The components of the run, for a message: "v", "g". */
static void component_names(const struct lif_model_config *m, char *text, size_t size) {
  size_t at = 0;
  for (int c = 0; c < m->model.shape.n_components && at < size; c++)
    at += (size_t)snprintf(text + at, size - at, "%s\"%s\"", c ? ", " : "",
                           lif_model_component(m->kind, c).name);
}

static struct status take_variable(struct lif_reader *r, const json_t *value, const char *where) {
  struct lif_config *c = r->config;
  const struct lif_model_config *m = &c->linear;
  const char *name = json_string_value(value);
  char names[160];
  int component = 0;
  while (name && component < m->model.shape.n_components &&
         strcmp(name, lif_model_component(m->kind, component).name))
    component++;
  component_names(m, names, sizeof names);
  if (!name || component == m->model.shape.n_components)
    return failure(EXIT_USAGE, "%s: \"variables\": %s%s%s; model %s as configured has %s", where,
                   name ? "there is no \"" : "names are wanted", name ? name : "", name ? "\"" : "",
                   m->kind->name, names);
  for (int i = 0; i < c->n_variables; i++)
    if (c->variable[i] == component)
      return failure(EXIT_USAGE, "%s: \"variables\" names \"%s\" twice", where, name);
  c->variable[c->n_variables++] = component;
  return fine();
}

static struct status read_interval(struct lif_reader *r, const struct interval *interval,
                                   const char *where) {
  int64_t *every = &r->config->recorded_every;
  *every = interval->steps ? interval->steps : 1;
  if (isnan(interval->ms)) return fine();
  if (interval->steps)
    return failure(EXIT_USAGE, "%s: give \"every\" or \"every_ms\", not both", where);
  TRY(lif_steps_of(interval->ms, r->config->dt_ms, where, "every_ms", INT64_MAX / 4, every));
  if (*every >= 1) return fine();
  return failure(EXIT_USAGE, "%s: \"every_ms\" is %g; it must be one step of %g ms at least", where,
                 interval->ms, r->config->dt_ms);
}

static struct status read_variables(struct lif_reader *r, json_t *entry) {
  char where[LIF_WHERE];
  struct interval interval = {.ms = NAN};
  snprintf(where, sizeof where, "%s: record.variables", r->source);
  if (!r->config->linear.kind)
    return failure(EXIT_USAGE, "%s: lif_shift has one variable: record \"potential\"", where);
  TRY(config_read(&variables_table, entry, where, &interval));
  config_fill(&variables_table, entry);
  TRY(read_interval(r, &interval, where));
  const json_t *list = json_object_get(entry, "variables");
  if (json_array_size(list) == 0)
    return failure(EXIT_USAGE, "%s: \"variables\" must be a list of names, such as [\"v\"]", where);
  for (size_t i = 0; i < json_array_size(list); i++)
    TRY(take_variable(r, json_array_get(list, i), where));
  return lif_take_neurons(r, entry, where, &r->config->recorded);
}

static struct status read_record(struct lif_reader *r, json_t *json) {
  char where[LIF_WHERE];
  json_t *record = json_object_get(json, "record");
  snprintf(where, sizeof where, "%s: record", r->source);
  TRY(config_read(&record_table, record, where, r->config));
  config_fill(&record_table, record);
  const json_t *spikes = json_object_get(record, "spikes"),
               *potential = json_object_get(record, "potential");
  json_t *variables = json_object_get(record, "variables");
  snprintf(where, sizeof where, "%s: record.spikes", r->source);
  r->config->record_all = json_is_string(spikes) && !strcmp(json_string_value(spikes), "all");
  if (!r->config->record_all)
    TRY(select_neurons(r->neurons, spikes, where, &r->unknown, &r->config->spikes));
  if (potential) TRY(read_potential(r, potential));
  return variables ? read_variables(r, variables) : fine();
}

/* ---- the whole ---- */

/* Which model, and with it the table of the top level. */
static struct status choose_model(struct lif_reader *r, const json_t *json,
                                  const struct config_table **table) {
  const char *name = "lif_shift";
  char names[160];
  TRY(json_take_text(json, r->source, "model", &name));
  r->config->linear.kind = lif_model_find(name);
  *table = &shift_table;
  if (r->config->linear.kind)
    *table = strcmp(r->config->linear.kind->weight_key, "weight_mv") ? &pa_table : &mv_table;
  if (r->config->linear.kind || !strcmp(name, "lif_shift")) return fine();
  lif_model_names(names, sizeof names);
  return failure(EXIT_USAGE, "%s: \"model\" is \"%s\"; it must be \"lif_shift\", %s", r->source,
                 name, names);
}

static struct status read_model(struct lif_reader *r, const json_t *json, const struct top *top) {
  r->config->linear.weight = top->weight;
  TRY(read_delay(r, top));
  TRY(lif_read_inputs(r, json));
  TRY(lif_read_classes(r, json));
  r->config->params.model = &r->config->linear.model;
  return lif_finish_inputs(r);
}

struct status lif_config_read(json_t *json, const char *source, const struct neurons *neurons,
                              struct lif_config *config) {
  struct lif_reader r = {.source = source, .neurons = neurons, .config = config};
  struct top top = {.delay_ms = NAN};
  const struct config_table *table;
  *config = (struct lif_config){0};
  if (!json_is_object(json)) return failure(EXIT_USAGE, "%s: an object { } is wanted", source);
  TRY(choose_model(&r, json, &table));
  config_defaults(table, &top);
  TRY(config_read(table, json, source, &top));
  config_fill(table, json);
  config->dt_ms = top.dt_ms, config->seed = (uint64_t)top.seed;
  TRY(config->linear.kind ? read_model(&r, json, &top) : read_shift(&r, json, &top));
  TRY(read_initial(&r, json));
  if (!config->linear.kind) TRY(lif_read_inputs(&r, json));
  TRY(read_silence(&r, json));
  TRY(read_record(&r, json));
  return unknown_status(&r.unknown, source);
}

void lif_config_free(struct lif_config *config) {
  for (int i = 0; i < config->n_initial; i++) selection_free(&config->initial[i].neurons);
  for (int i = 0; i < config->n_inputs; i++) lif_input_free(&config->input[i]);
  for (int i = 0; i < config->n_silences; i++) selection_free(&config->silence[i].neurons);
  selection_free(&config->spikes), selection_free(&config->recorded);
  mem_free(config->initial), mem_free(config->input), mem_free(config->silence);
  lif_model_config_free(&config->linear);
  *config = (struct lif_config){0};
}
