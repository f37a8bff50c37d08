/* The text of a training in memory: its training and its validation part, and windows of it. */
#include "corpus.h"
#include "core/mem.h"
#include "purpose.h"

#include <string.h>

static struct status long_enough(const char *path, const char *part, int64_t have, int64_t T) {
  if (have >= text_shortest(T)) return fine();
  return failure(
      EXIT_INPUT,
      "%s: %lld characters for %s, but windows of %lld need at least %lld; use a longer text or "
      "smaller steps_per_window",
      path, (long long)have, part, (long long)T, (long long)text_shortest(T));
}

int64_t corpus_used(const struct train_config *config, int64_t n) {
  return config->text_characters > 0 && config->text_characters < n ? config->text_characters : n;
}

/* Where (1 - f) n is whole, rounding must not cost a character. */
int64_t corpus_trained(const struct train_config *config, int64_t used) {
  return (int64_t)((1 - config->validation_fraction) * (double)used + 1e-6);
}

static struct status cut(const char *path, const struct train_config *config, int64_t n,
                         struct corpus *c) {
  c->n_train = corpus_trained(config, n);
  c->n_validation = n - c->n_train;
  c->validation = c->token + c->n_train;
  TRY(long_enough(path, "training", c->n_train, config->steps_per_window));
  if (c->n_validation == 0 || config->eval_every == 0) return fine();
  return long_enough(path, "validation", c->n_validation, config->steps_per_window);
}

struct status corpus_open(const struct comm *world, const char *path,
                          const struct train_config *config, struct corpus *c) {
  struct text text;
  *c = (struct corpus){0};
  TRY(text_read(world, path, &text));
  memcpy(c->sha256, text.sha256, sizeof c->sha256);
  struct status s = vocabulary_of(path, &text, &c->vocabulary);
  text.n = corpus_used(config, text.n);
  c->token = NEW(int32_t, text.n);
  if (!s.code) s = text_tokens(path, &text, &c->vocabulary, c->token);
  if (!s.code) s = cut(path, config, text.n, c);
  text_free(&text);
  return s;
}

void corpus_free(struct corpus *c) {
  vocabulary_free(&c->vocabulary);
  mem_free(c->token);
  *c = (struct corpus){0};
}

void corpus_window(const int32_t *text, int64_t start, int T, int b, int width, int32_t *token,
                   int32_t *target) {
  for (int64_t t = 0; t < T; t++) {
    token[t * width + b] = text[start + t];
    target[t * width + b] = text[start + t + 1];
  }
}

static int64_t stream_place(const struct corpus *c, const struct train_config *config, int64_t step,
                            int64_t sample) {
  const int64_t T = config->steps_per_window, starts = c->n_train - T - 1;
  return (sample * c->n_train / config->batch + step * T) % starts;
}

void corpus_windows(const struct corpus *c, const struct train_config *config, int64_t step,
                    int64_t first, int n, int32_t *token, int32_t *target) {
  const int64_t T = config->steps_per_window;
  for (int b = 0; b < n; b++) {
    const int64_t start = config->carry_state ? stream_place(c, config, step, first + b)
                                              : text_window((uint64_t)config->seed, PURPOSE_WINDOW,
                                                            step, first + b, c->n_train, T);
    corpus_window(c->token, start, (int)T, b, n, token, target);
  }
}
