#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct train_config train_config_defaults(void) {
  return (struct train_config){
      .batch = 32,
      .steps_per_window = 64,
      .microsteps = 2,
      .embedding = 32,
      .n_input = 256,
      .n_output = 512,
      .init_scale = 1.0,
      .leak_init = 0.5,
      .normalize = true,
      .optimizer = {.lr_edges = 3e-4,
                    .lr_adapters = 1e-3,
                    .weight_decay = 0.01,
                    .beta1 = 0.9,
                    .beta2 = 0.999,
                    .eps = 1e-8,
                    .clip = 1.0},
      .train_steps = 20000,
      .eval_every = 250,
      .eval_windows = 640,
      .checkpoint_every = 1000,
      .log_every = 10,
      .seed = 1,
      .validation_fraction = 0.1,
  };
}

/* ---- the tables that reading and writing share ---- */

enum kind { WHOLE, REAL, FLAG };
struct key {
  const char *name;
  enum kind kind;
  void *to;
  double low, high;
};

static const double BIG = 1e15;
enum { N_KEYS = 21, N_OPTIM_KEYS = 8 };

static void keys_of(struct train_config *c, struct key keys[N_KEYS]) {
  const struct key all[N_KEYS] = {
      {"batch", WHOLE, &c->batch, 1, 1 << 20},
      {"steps_per_window", WHOLE, &c->steps_per_window, 1, 1 << 20},
      {"microsteps", WHOLE, &c->microsteps, 1, 1024},
      {"embedding", WHOLE, &c->embedding, 1, 1 << 16},
      {"n_input", WHOLE, &c->n_input, 1, BIG},
      {"n_output", WHOLE, &c->n_output, 1, BIG},
      {"init_scale", REAL, &c->init_scale, 0, 1e6},
      {"normalize", FLAG, &c->normalize, 0, 0},
      {"leak_init", REAL, &c->leak_init, 1e-6, 1 - 1e-6},
      {"train_steps", WHOLE, &c->train_steps, 1, BIG},
      {"eval_every", WHOLE, &c->eval_every, 0, BIG},
      {"eval_windows", WHOLE, &c->eval_windows, 1, BIG},
      {"checkpoint_every", WHOLE, &c->checkpoint_every, 0, BIG},
      {"log_every", WHOLE, &c->log_every, 1, BIG},
      {"seed", WHOLE, &c->seed, 0, BIG},
      {"frozen_edges", FLAG, &c->frozen_edges, 0, 0},
      {"carry_state", FLAG, &c->carry_state, 0, 0},
      {"validation_fraction", REAL, &c->validation_fraction, 0, 0.9},
      {"text_characters", WHOLE, &c->text_characters, 0, BIG},
      {"precision", FLAG, NULL, 0, 0}, /* a word, read apart */
      {"optimizer", FLAG, NULL, 0, 0}, /* an object, read apart */
  };
  memcpy(keys, all, sizeof all);
}

static void optim_keys_of(struct optim_config *o, struct key keys[N_OPTIM_KEYS]) {
  const struct key all[N_OPTIM_KEYS] = {
      {"lr_edges", REAL, &o->lr_edges, 0, 1e38},
      {"lr_adapters", REAL, &o->lr_adapters, 0, 1e38},
      {"weight_decay", REAL, &o->weight_decay, 0, 100},
      {"beta1", REAL, &o->beta1, 0, 1 - 1e-9},
      {"beta2", REAL, &o->beta2, 0, 1 - 1e-9},
      {"eps", REAL, &o->eps, 1e-30, 1},
      {"clip", REAL, &o->clip, 0, 1e30},
      {"warmup", WHOLE, &o->warmup, 0, BIG},
  };
  memcpy(keys, all, sizeof all);
}

static struct status read_keys(const json_t *json, const char *where, const struct key *keys,
                               int n) {
  for (int i = 0; i < n; i++) {
    const struct key *k = &keys[i];
    if (!k->to) continue;
    switch (k->kind) {
    case WHOLE:
      TRY(json_take_int(json, where, k->name, (int64_t)k->low, (int64_t)k->high, k->to));
      break;
    case REAL: TRY(json_take_real(json, where, k->name, k->low, k->high, k->to)); break;
    case FLAG: TRY(json_take_flag(json, where, k->name, k->to)); break;
    }
  }
  return fine();
}

static void write_keys(json_t *json, const struct key *keys, int n) {
  for (int i = 0; i < n; i++) {
    const struct key *k = &keys[i];
    if (!k->to) continue;
    json_t *value = k->kind == WHOLE  ? json_integer(*(int64_t *)k->to)
                    : k->kind == REAL ? json_real(*(double *)k->to)
                                      : json_boolean(*(bool *)k->to);
    json_object_set_new(json, k->name, value);
  }
}

/* ---- reading ---- */

static const char *const schedule_names[] = {"constant", "cosine"}, *const precision_names[] = {
                                                                        "fp32", "mixed"};

/* One of two words; *chosen keeps its value where the key is absent. */
static struct status take_word(const json_t *json, const char *where, const char *key,
                               const char *const names[2], int *chosen) {
  const char *word = names[*chosen];
  TRY(json_take_text(json, where, key, &word));
  for (int i = 0; i < 2; i++)
    if (!strcmp(word, names[i])) {
      *chosen = i;
      return fine();
    }
  return failure(EXIT_USAGE, "%s: \"%s\" is \"%s\"; it must be %s or %s", where, key, word,
                 names[0], names[1]);
}

static struct status read_optimizer(const json_t *json, const char *above, struct optim_config *o) {
  char where[512];
  snprintf(where, sizeof where, "%s: optimizer", above);
  struct key keys[N_OPTIM_KEYS];
  optim_keys_of(o, keys);
  const char *known[N_OPTIM_KEYS + 1] = {"schedule"};
  int schedule = o->schedule;
  for (int i = 0; i < N_OPTIM_KEYS; i++) known[i + 1] = keys[i].name;
  TRY(json_only_keys(json, where, known, N_OPTIM_KEYS + 1));
  TRY(read_keys(json, where, keys, N_OPTIM_KEYS));
  TRY(take_word(json, where, "schedule", schedule_names, &schedule));
  o->schedule = (enum schedule)schedule;
  return fine();
}

struct status train_config_read(const json_t *json, const char *where,
                                struct train_config *config) {
  *config = train_config_defaults();
  struct key keys[N_KEYS];
  keys_of(config, keys);
  const char *known[N_KEYS];
  for (int i = 0; i < N_KEYS; i++) known[i] = keys[i].name;
  TRY(json_only_keys(json, where, known, N_KEYS));
  TRY(read_keys(json, where, keys, N_KEYS));
  int precision = config->precision;
  TRY(take_word(json, where, "precision", precision_names, &precision));
  config->precision = (enum precision)precision;
  const json_t *optimizer = json_object_get(json, "optimizer");
  return optimizer ? read_optimizer(optimizer, where, &config->optimizer) : fine();
}

json_t *train_config_json(const struct train_config *config) {
  struct train_config copy = *config;
  struct key keys[N_KEYS], optim_keys[N_OPTIM_KEYS];
  keys_of(&copy, keys), optim_keys_of(&copy.optimizer, optim_keys);
  json_t *json = json_object(), *optimizer = json_object();
  write_keys(json, keys, N_KEYS);
  write_keys(optimizer, optim_keys, N_OPTIM_KEYS);
  json_object_set_new(optimizer, "schedule",
                      json_string(schedule_names[config->optimizer.schedule]));
  json_object_set_new(json, "precision", json_string(precision_names[config->precision]));
  json_object_set_new(json, "optimizer", optimizer);
  return json;
}

/* ---- resuming ---- */

static bool among(const char *key, const char *const *keys, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(key, keys[i])) return true;
  return false;
}

/* With carried states a sample's place in the text follows from batch, window
 * and the training part. */
static bool must_stay(const char *key, bool carries) {
  static const char *const always[] = {"embedding", "n_input",      "n_output",
                                       "normalize", "frozen_edges", "text_characters",
                                       "seed",      "carry_state"};
  static const char *const carried[] = {"batch", "steps_per_window", "validation_fraction"};
  return among(key, always, sizeof always / sizeof *always) ||
         (carries && among(key, carried, sizeof carried / sizeof *carried));
}

static struct status compare_value(const char *key, const json_t *before, const json_t *now,
                                   bool fixed, void (*say)(const char *change)) {
  if (json_equal(before, now)) return fine();
  char *from = before ? json_line(before) : strdup("absent"), *to = json_line(now), line[512];
  snprintf(line, sizeof line, "%s: %s -> %s", key, from, to);
  free(from), free(to);
  if (fixed)
    return failure(EXIT_USAGE,
                   "\"%s\": a resumed run cannot change it; start a new run with another --output",
                   line);
  say(line);
  return fine();
}

struct status train_config_compare(const json_t *before, const json_t *now,
                                   void (*say)(const char *change)) {
  const bool carries = json_is_true(json_object_get(now, "carry_state"));
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)now, key, value) {
    if (json_is_object(value)) continue;
    TRY(compare_value(key, json_object_get(before, key), value, must_stay(key, carries), say));
  }
  const json_t *optimizer = json_object_get(before, "optimizer");
  json_object_foreach(json_object_get(now, "optimizer"), key, value) {
    char name[64];
    snprintf(name, sizeof name, "optimizer.%s", key);
    TRY(compare_value(name, json_object_get(optimizer, key), value, false, say));
  }
  return fine();
}
