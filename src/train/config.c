/* The keys of a training run, and what a resumed run may change. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the keys ---- */

#define AT(member) .offset = offsetof(struct train_config, member)
#define OF(member) .offset = offsetof(struct optim_config, member)

static const struct config_key optimizer_keys[] = {
    {"lr_edges", CONFIG_REAL, OF(lr_edges), .high = 1e38, .range = "0 or more", .initially = "3e-4",
     .help = "learning rate of edges, leaks and biases"},
    {"lr_adapters", CONFIG_REAL, OF(lr_adapters), .high = 1e38, .range = "0 or more",
     .initially = "1e-3", .help = "learning rate of embedding, projection and readout"},
    {"weight_decay", CONFIG_REAL, OF(weight_decay), .high = 100, .initially = "0.01",
     .help = "AdamW's decoupled decay"},
    {"beta1", CONFIG_REAL, OF(beta1), .high = 1 - 1e-9, .range = "0 to below 1", .initially = "0.9",
     .help = "of the mean gradient"},
    {"beta2", CONFIG_REAL, OF(beta2), .high = 1 - 1e-9, .range = "0 to below 1",
     .initially = "0.999", .help = "of the mean squared gradient"},
    {"eps", CONFIG_REAL, OF(eps), .low = 1e-30, .high = 1, .initially = "1e-8",
     .help = "keeps the division from zero"},
    {"clip", CONFIG_REAL, OF(clip), .high = 1e30, .range = "0 or more", .initially = "1.0",
     .help = "largest norm of the whole gradient; 0: no clip"},
    {"warmup", CONFIG_INT, OF(warmup), 0, CONFIG_MOST, .unit = "steps", .initially = "0",
     .help = "linear rise of the learning rates at the start"},
    {"schedule", CONFIG_WORD, OF(schedule), .words = "constant|cosine", .initially = "\"constant\"",
     .help = "`cosine`: learning rates fall to 0 at `train_steps`"},
};
static const struct config_table optimizer_table = CONFIG_TABLE("Optimizer", optimizer_keys);

static const struct config_key train_keys[] = {
    {"batch", CONFIG_INT, AT(batch), 1, 1 << 20, .unit = "windows", .initially = "32",
     .help = "windows of one step, over all replicas; each replica takes a contiguous share"},
    {"steps_per_window", CONFIG_INT, AT(steps_per_window), 1, 1 << 20, .unit = "characters",
     .initially = "64", .help = "T, length of a window"},
    {"microsteps", CONFIG_INT, AT(microsteps), 1, 1024, .initially = "2",
     .help = "M, updates of the network for each character"},
    {"embedding", CONFIG_INT, AT(embedding), 1, 1 << 16, .initially = "32",
     .help = "dimension of the vector that represents a character"},
    {"n_input", CONFIG_INT, AT(n_input), 1, CONFIG_MOST, .unit = "neurons", .initially = "256",
     .help = "neurons that are driven: those of highest out-degree"},
    {"n_output", CONFIG_INT, AT(n_output), 1, CONFIG_MOST, .unit = "neurons", .initially = "512",
     .help = "neurons that are read: those of highest in-degree"},
    {"init_scale", CONFIG_REAL, AT(init_scale), .high = 1e6, .range = "0 or more",
     .initially = "1.0",
     .help = "standard deviation of the edges' start values; the log gives the spectral radius, "
             "which should be near 1"},
    {"normalize", CONFIG_FLAG, AT(normalize), .initially = "true",
     .help = "multiply each edge by in-degree(target)^(-1/2)"},
    {"leak_init", CONFIG_REAL, AT(leak_init), .low = 1e-6, .high = 1 - 1e-6,
     .range = "between 0 and 1", .initially = "0.5",
     .help = "start value of every leak; leaks are trained"},
    {"train_steps", CONFIG_INT, AT(train_steps), 1, CONFIG_MOST, .unit = "steps",
     .initially = "20000", .help = "steps of the whole training"},
    {"eval_every", CONFIG_INT, AT(eval_every), 0, CONFIG_MOST, .unit = "steps", .initially = "250",
     .help = "between evaluations on the validation part; 0: never"},
    {"eval_windows", CONFIG_INT, AT(eval_windows), 1, CONFIG_MOST, .unit = "windows",
     .initially = "640", .help = "windows of an evaluation, the same each time"},
    {"checkpoint_every", CONFIG_INT, AT(checkpoint_every), 0, CONFIG_MOST, .unit = "steps",
     .initially = "1000",
     .help = "between checkpoints; 0: at the end, at a better evaluation and on request"},
    {"log_every", CONFIG_INT, AT(log_every), 1, CONFIG_MOST, .unit = "steps", .initially = "10",
     .help = "between lines of `metrics.jsonl`"},
    {"seed", CONFIG_INT, AT(seed), 0, CONFIG_MOST, .initially = "1",
     .help = "of start values and windows"},
    {"frozen_edges", CONFIG_FLAG, AT(frozen_edges), .initially = "false",
     .help = "control: random signs scaled to spectral radius 0.95; edges, leaks and biases are "
             "not trained"},
    {"carry_state", CONFIG_FLAG, AT(carry_state), .initially = "false",
     .help = "each sample reads on in the text from where it stopped and keeps its state; "
             "`false`: random windows from the zero state"},
    {"validation_fraction", CONFIG_REAL, AT(validation_fraction), .high = 0.9, .initially = "0.1",
     .help = "share of the text, at its end, that is not trained on"},
    {"text_characters", CONFIG_INT, AT(text_characters), 0, CONFIG_MOST, .unit = "characters",
     .initially = "0", .help = "length of the text's beginning that is used; 0: all of it"},
    {"precision", CONFIG_WORD, AT(precision), .words = "fp32|mixed", .initially = "\"fp32\"",
     .help = "`mixed`: values read along edges are rounded to 16 bits, see below; `--precision` "
             "overrides it"},
    {"optimizer", CONFIG_OBJECT, AT(optimizer), .inner = &optimizer_table, .help = "AdamW"},
};
const struct config_table train_config_keys = CONFIG_TABLE("Keys of a training", train_keys);

struct train_config train_config_defaults(void) {
  struct train_config config = {0};
  config_defaults(&train_config_keys, &config);
  return config;
}

struct status train_config_read(const json_t *json, const char *where,
                                struct train_config *config) {
  *config = train_config_defaults();
  return config_read(&train_config_keys, json, where, config);
}

json_t *train_config_json(const struct train_config *config) {
  return config_json(&train_config_keys, config);
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
