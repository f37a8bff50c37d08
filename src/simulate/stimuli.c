/* The stimuli of a configuration. */
#include "config_inside.h"
#include "core/mem.h"
#include "core/numbers.h"
#include "io/spikes/spikes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

#define AT(member) .offset = offsetof(struct lif_input, member)

#define KEYS_OF_ALL                                                                                \
  {"kind", CONFIG_OTHER, .help = "as this table is headed"}, {                                     \
    "neurons", CONFIG_OTHER, .help = "who (NEURONS)"                                               \
  }
#define KEYS_OF_TIME                                                                               \
  {"first_step",                                                                                   \
   CONFIG_INT,                                                                                     \
   AT(first_step),                                                                                 \
   0,                                                                                              \
   INT64_MAX,                                                                                      \
   .unit = "steps",                                                                                \
   .range = "0 or more",                                                                           \
   .initially = "0",                                                                               \
   .help = "from this step on"},                                                                   \
  {                                                                                                \
    "last_step", CONFIG_INT, AT(last_step), 0, INT64_MAX,                                          \
        .unit = "steps", .range = "not before `first_step`", .initially = "",                      \
        .help = "until this step, inclusive"                                                       \
  }
#define KEY_RATE                                                                                   \
  {                                                                                                \
    "rate_hz", CONFIG_REAL, AT(rate_hz), .high = 1e300, .unit = "Hz", .range = "0 or more",        \
                                         .help = "events a second, to each neuron its own"         \
  }

static const struct config_key current_rows[] = {
    KEYS_OF_ALL,
    {"value", CONFIG_INT, AT(value), INT32_MIN, INT32_MAX, .help = "added to the input of a step"},
    KEYS_OF_TIME};
static const struct config_key poisson_rows[] = {
    KEYS_OF_ALL,
    KEY_RATE,
    {"weight", CONFIG_INT, AT(value), INT32_MIN, INT32_MAX, .help = "one event"},
    KEYS_OF_TIME};
static const struct config_key spikes_rows[] = {
    KEYS_OF_ALL,
    {"steps", CONFIG_OTHER, .unit = "steps", .help = "when the neurons fire, whatever else"}};
static const struct config_key model_current_rows[] = {
    KEYS_OF_ALL,
    {"value_pa", CONFIG_REAL, AT(value_pa), .low = -1e9, .high = 1e9, .unit = "pA", .range = "any",
     .help = "acts in these very steps, as `i_e_pa` does; wants `c_m_pf`"},
    KEYS_OF_TIME};
static const struct config_key model_poisson_rows[] = {
    KEYS_OF_ALL,
    KEY_RATE,
    {"weight", CONFIG_REAL, AT(weight), .low = -1e9, .high = 1e9, .unit = "counts", .range = "any",
     .initially = "", .help = "one event in counts of weight; or one of the next two"},
    {"weight_mv", CONFIG_REAL, AT(weight_mv), .low = -1e9, .high = 1e9, .unit = "mV",
     .range = "any", .initially = "", .help = "one event, onto v or a synapse in mV"},
    {"weight_pa", CONFIG_REAL, AT(weight_pa), .low = -1e9, .high = 1e9, .unit = "pA",
     .range = "any", .initially = "", .help = "one event onto a synapse of `psc_*`"},
    {"into", CONFIG_WORD, AT(into), .words = "synapse|v", .initially = "\"synapse\"",
     .help = "`synapse`: as a spike with no delay; `v`: the potential itself"},
    {"no_refractory", CONFIG_FLAG, AT(no_refractory), .initially = "false",
     .help = "these neurons have no refractory time"},
    KEYS_OF_TIME};
static const struct config_key replay_rows[] = {
    KEYS_OF_ALL,
    {"file", CONFIG_OTHER,
     .help = "a SONATA spikes file, such as spikes.h5 of another run on a graph with these node "
             "ids: these neurons fire as they did there"}};
static const struct config_key noise_rows[] = {
    KEYS_OF_ALL,
    {"sd_pa", CONFIG_REAL, AT(sd_pa), .high = 1e9, .unit = "pA", .range = "0 or more",
     .help = "standard deviation of a normal current of mean 0, drawn anew for each neuron and "
             "step; wants `c_m_pf`"},
    KEYS_OF_TIME};

/* Kinds of lif_shift first, then those of models. */
struct kind {
  const char *word;
  enum lif_kind kind;
  struct config_table keys;
};
enum { SHIFT_KINDS = 3, KINDS = LIF_STIMULUS_TABLES };
static const struct kind kinds[KINDS] = {
    {"current", LIF_CURRENT, CONFIG_TABLE("Stimulus `current` of lif_shift", current_rows)},
    {"poisson", LIF_POISSON, CONFIG_TABLE("Stimulus `poisson` of lif_shift", poisson_rows)},
    {"spikes", LIF_SPIKES, CONFIG_TABLE("Stimulus `spikes`", spikes_rows)},
    {"current", LIF_CURRENT, CONFIG_TABLE("Stimulus `current` of a model", model_current_rows)},
    {"poisson", LIF_POISSON, CONFIG_TABLE("Stimulus `poisson` of a model", model_poisson_rows)},
    {"noise", LIF_NOISE, CONFIG_TABLE("Stimulus `noise` of a model", noise_rows)},
    {"replay", LIF_REPLAY, CONFIG_TABLE("Stimulus `replay`", replay_rows)},
    {"spikes", LIF_SPIKES, CONFIG_TABLE("Stimulus `spikes` of a model", spikes_rows)}};

const struct config_table *const lif_stimulus_tables[LIF_STIMULUS_TABLES] = {
    &kinds[0].keys, &kinds[1].keys, &kinds[3].keys, &kinds[4].keys,
    &kinds[5].keys, &kinds[2].keys, &kinds[6].keys, NULL};

/* The kinds that a run knows: [*n] from the returned one on. */
static const struct kind *kinds_of(const struct lif_reader *r, int *n) {
  const bool model = r->config->linear.kind != NULL;
  *n = model ? KINDS - SHIFT_KINDS : SHIFT_KINDS;
  return model ? kinds + SHIFT_KINDS : kinds;
}

/* ---- one entry ---- */

static struct status read_steps(const json_t *entry, const char *where, struct lif_input *input) {
  const json_t *steps = json_object_get(entry, "steps");
  if (!json_is_array(steps))
    return failure(EXIT_USAGE, "%s: \"steps\" must be a list of steps", where);
  input->n_steps = (int64_t)json_array_size(steps);
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

static struct status check_interval(const char *where, const struct lif_input *input) {
  if (input->last_step >= input->first_step) return fine();
  return failure(EXIT_USAGE, "%s: \"last_step\" is %lld, before \"first_step\" %lld", where,
                 (long long)input->last_step, (long long)input->first_step);
}

/* lif_shift: the probability of an event in a step = rate x dt. */
static struct status check_probability(const struct lif_reader *r, const char *where,
                                       struct lif_input *input) {
  input->probability = input->rate_hz * r->config->dt_ms / 1000;
  if (input->probability <= 1) return fine();
  return failure(
      EXIT_USAGE,
      "%s: \"rate_hz\" %g is %g events in a step of %g ms; at most one is possible: lower the "
      "rate or dt_ms",
      where, input->rate_hz, input->probability, r->config->dt_ms);
}

/* Is this neuron of the set? */
static bool is_of(const struct selection *set, nodeid node) {
  const int64_t at = find_i64(set->node, set->n, node);
  return at < set->n && set->node[at] == node;
}

/* The spikes of the file that are of these neurons. */
static struct status take_replayed(struct spikes_file *file, const char *where,
                                   const struct lif_reader *r, struct lif_input *input) {
  const struct spikes_facts *facts = spikes_facts(file);
  const int64_t n = spikes_number(file);
  if (facts->n_nodes > r->neurons->n)
    return failure(EXIT_USAGE, "%s: %s is of %lld neurons; this graph has %lld", where, input->file,
                   (long long)facts->n_nodes, (long long)r->neurons->n);
  if (fabs(facts->dt_ms - r->config->dt_ms) > 1e-9)
    return failure(EXIT_USAGE, "%s: %s has dt_ms %g; this run has %g", where, input->file,
                   facts->dt_ms, r->config->dt_ms);
  memcpy(input->digest, facts->spikes_digest, sizeof input->digest);
  input->step = NEW(int64_t, n), input->node = NEW(int64_t, n);
  spikes_read(file, 0, n, input->step, input->node);
  for (int64_t i = 0; i < n; i++) {
    if (!is_of(&input->neurons, input->node[i])) continue;
    input->step[input->n_steps] = input->step[i];
    input->node[input->n_steps++] = input->node[i];
  }
  return fine();
}

static struct status read_replay(struct lif_reader *r, const json_t *entry, const char *where,
                                 struct lif_input *input) {
  struct spikes_file *file;
  input->file = json_string_value(json_object_get(entry, "file"));
  if (!input->file) return failure(EXIT_USAGE, "%s: \"file\" must be a file's name", where);
  TRY(spikes_open(input->file, &file));
  struct status s = spikes_verify(file);
  if (!s.code) s = take_replayed(file, where, r, input);
  spikes_close(file);
  return s;
}

static struct status read_keys(struct lif_reader *r, const struct kind *kind, const json_t *entry,
                               const char *where, struct lif_input *input) {
  *input = (struct lif_input){.kind = kind->kind,
                              .last_step = INT64_MAX,
                              .weight = NAN,
                              .weight_mv = NAN,
                              .weight_pa = NAN};
  TRY(config_read(&kind->keys, entry, where, input));
  TRY(lif_take_neurons(r, entry, where, &input->neurons));
  TRY(check_interval(where, input));
  if (kind->kind == LIF_SPIKES) return read_steps(entry, where, input);
  if (kind->kind == LIF_REPLAY) return read_replay(r, entry, where, input);
  if (kind->kind == LIF_POISSON && !r->config->linear.kind)
    return check_probability(r, where, input);
  return fine();
}

static struct status unknown_kind(const struct kind *known, int n, const char *where,
                                  const char *kind) {
  char words[160] = "";
  size_t at = 0;
  for (int i = 0; i < n; i++)
    at += (size_t)snprintf(words + at, sizeof words - at, "%s\"%s\"",
                           !i          ? ""
                           : i + 1 < n ? ", "
                                       : " or ",
                           known[i].word);
  return failure(EXIT_USAGE, "%s: \"kind\" must be %s%s%s", where, words, kind ? ", not " : "",
                 kind ? kind : "");
}

static struct status read_input(struct lif_reader *r, const json_t *entry, const char *where,
                                struct lif_input *input) {
  int n;
  const struct kind *known = kinds_of(r, &n);
  if (!json_is_object(entry)) return failure(EXIT_USAGE, "%s: an object { } is wanted", where);
  const char *kind = json_string_value(json_object_get(entry, "kind"));
  for (int i = 0; i < n; i++)
    if (kind && !strcmp(kind, known[i].word)) return read_keys(r, &known[i], entry, where, input);
  return unknown_kind(known, n, where, kind);
}

struct status lif_read_inputs(struct lif_reader *r, const json_t *json) {
  json_t *list;
  int n;
  char where[LIF_WHERE];
  TRY(lif_take_list(r, json, "stimulus", &list, &n));
  r->config->input = NEW_ZERO(struct lif_input, n);
  for (int i = 0; i < n; i++) {
    snprintf(where, sizeof where, "%s: stimulus[%d]", r->source, i);
    r->config->n_inputs = i + 1;
    TRY(read_input(r, json_array_get(list, (size_t)i), where, &r->config->input[i]));
  }
  return fine();
}

/* ---- a model's inputs in integers ---- */

static const double MOST_EVENTS = 20; /* a step, in the mean */

static struct status set_tails(const struct lif_reader *r, const char *where,
                               struct lif_input *input) {
  const double mean = input->rate_hz * r->config->dt_ms / 1000;
  if (mean > MOST_EVENTS)
    return failure(EXIT_USAGE,
                   "%s: \"rate_hz\" %g is %g events in a step of %g ms; at most %g are possible: "
                   "lower the rate, or give events of a larger weight",
                   where, input->rate_hz, mean, r->config->dt_ms, MOST_EVENTS);
  input->tail = NEW(uint64_t, LIF_MOST_EVENTS);
  input->n_tails = lif_poisson_tails(mean, input->tail);
  return fine();
}

/* What one event is worth in units of its component. */
static struct status event_units(const struct lif_reader *r, const char *where,
                                 const struct lif_input *in, double *units) {
  const struct lif_model_config *m = &r->config->linear;
  const bool currents = !strcmp(m->kind->weight_key, "weight_pa"), into_v = in->into == LIF_INTO_V;
  const int given = !isnan(in->weight) + !isnan(in->weight_mv) + !isnan(in->weight_pa);
  if (given != 1)
    return failure(EXIT_USAGE, "%s: give one of \"weight\", \"weight_mv\" and \"weight_pa\"",
                   where);
  if (into_v && currents && isnan(in->weight_mv))
    return failure(EXIT_USAGE, "%s: an event into v of model %s wants \"weight_mv\"", where,
                   m->kind->name);
  if (!isnan(in->weight_pa) && !currents)
    return failure(EXIT_USAGE, "%s: synapses of model %s are in mV: give \"weight_mv\"", where,
                   m->kind->name);
  if (!isnan(in->weight_mv) && currents && !into_v)
    return failure(EXIT_USAGE, "%s: synapses of model %s are in pA: give \"weight_pa\"", where,
                   m->kind->name);
  *units = !isnan(in->weight)      ? in->weight
           : !isnan(in->weight_pa) ? in->weight_pa / m->weight
                                   : in->weight_mv / (into_v ? m->units.v_mv : m->weight);
  return fine();
}

/* So that all stimuli of a neuron together stay within what a component may hold. */
static const double MOST_AMOUNT = 0x1p58;

static struct status set_amount(struct lif_reader *r, const char *where, struct lif_input *input,
                                double *total) {
  double units = 0;
  TRY(event_units(r, where, input, &units));
  TRY(set_tails(r, where, input));
  *total += fabs(units) * 0x1p32 * input->n_tails;
  if (*total >= MOST_AMOUNT)
    return failure(EXIT_USAGE, "%s: events of this size and number can leave what is computed with",
                   where);
  input->amount = llround(units * 0x1p32);
  return fine();
}

static struct status set_drives(struct lif_reader *r, const char *where, double pa,
                                struct lif_input *input, double *total) {
  struct lif_model_config *m = &r->config->linear;
  double largest = 0;
  input->amount_of = NEW_ZERO(int64_t, m->n_classes);
  for (int k = 0; k < m->n_classes; k++) {
    TRY(lif_current_drive(m->kind, &m->neuron[k], &m->units, pa, where, &input->amount_of[k]));
    largest = fmax(largest, fabs((double)input->amount_of[k]));
  }
  *total += largest * (input->kind == LIF_NOISE ? 8 : 1);
  if (*total < MOST_AMOUNT) return fine();
  return failure(EXIT_USAGE, "%s: currents of this size can leave what is computed with", where);
}

/* Middle values of LIF_QUANTILES equal shares of the standard normal, by bisection of erf, scaled
 * so that their variance is 1; antisymmetric. */
static int64_t *normal_quantiles(void) {
  int64_t *quantile = NEW(int64_t, LIF_QUANTILES);
  double value[LIF_QUANTILES / 2], squares = 0;
  for (int k = 0; k < LIF_QUANTILES / 2; k++) {
    const double p = (k + 0.5) / (LIF_QUANTILES / 2); /* of |x| */
    double low = 0, high = 8;
    for (int i = 0; i < 100; i++) {
      const double middle = (low + high) / 2;
      *(erf(middle * M_SQRT1_2) < p ? &low : &high) = middle;
    }
    value[k] = low, squares += low * low;
  }
  const double scale = 1 / sqrt(squares / (LIF_QUANTILES / 2));
  for (int k = 0; k < LIF_QUANTILES / 2; k++) {
    quantile[LIF_QUANTILES / 2 + k] = llround(value[k] * scale * 0x1p32);
    quantile[LIF_QUANTILES / 2 - 1 - k] = -quantile[LIF_QUANTILES / 2 + k];
  }
  return quantile;
}

void lif_need_quantiles(struct lif_model_config *linear) {
  if (!linear->quantile) linear->quantile = normal_quantiles();
}

struct status lif_finish_inputs(struct lif_reader *r) {
  struct lif_model_config *m = &r->config->linear;
  char where[LIF_WHERE];
  double total = 0;
  for (int k = 0; k < r->config->n_inputs; k++) {
    struct lif_input *input = &r->config->input[k];
    snprintf(where, sizeof where, "%s: stimulus[%d]", r->source, k);
    if (input->kind == LIF_POISSON) TRY(set_amount(r, where, input, &total));
    if (input->kind == LIF_CURRENT) TRY(set_drives(r, where, input->value_pa, input, &total));
    if (input->kind == LIF_NOISE) TRY(set_drives(r, where, input->sd_pa, input, &total));
    if (input->kind == LIF_NOISE) lif_need_quantiles(m);
  }
  return fine();
}

void lif_input_free(struct lif_input *input) {
  selection_free(&input->neurons);
  mem_free(input->step), mem_free(input->tail), mem_free(input->amount_of), mem_free(input->node);
}
