/* fascicle sample: text from a trained model. */
#include "core/log.h"
#include "core/mem.h"
#include "purpose.h"
#include "core/rng.h"
#include "text.h"
#include "saved_model.h"
#include "run/verbs.h"
#include "core/watchdog.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct usage usage = {
    .verb = "sample",
    .operands = "DIR_OR_CHECKPOINT",
    .fewest = 1,
    .most = 1,
    .about =
        "Write text: each prompt is read from the zero state, then characters are drawn one by one "
        "from the "
        "model's distribution and fed back. The same seed gives the same text, prompt by prompt.",
    .example = "  fascicle sample run --prompt ROMEO: --length 300\n"
               "  fascicle sample run --prompts prompts.txt --length 200 --temperature 0.7 --top-k "
               "10 --seed 7"};

struct sample_request {
  struct trained_request model;
  struct texts prompt;
  const char *prompts;
  int64_t length, top_k, seed;
  double temperature;
  bool greedy;
};

static struct status parse(int argc, char **argv, struct job *job, struct sample_request *r) {
  struct option options[TRAINED_OPTIONS + 7];
  int n = trained_options(&r->model, job, options);
  const struct option own[] = {
      {"prompt", OPTION_LIST, "TEXT", "the beginning; may be repeated", &r->prompt, 0, 0},
      {"prompts", OPTION_TEXT, "FILE", "one prompt a line", &r->prompts, 0, 0},
      {"length", OPTION_INT, "N", "characters to write (300)", &r->length, 1, 1 << 30},
      {"temperature", OPTION_REAL, "T", "below 1: closer to the likeliest (0.8)", &r->temperature,
       0, 0},
      {"top-k", OPTION_INT, "K", "draw among the K likeliest (0: all)", &r->top_k, 0, 1 << 30},
      {"greedy", OPTION_FLAG, NULL, "always the likeliest", &r->greedy, 0, 0},
      {"seed", OPTION_INT, "S", "of the draws (1)", &r->seed, 0, INT64_MAX},
  };
  n = options_append(options, n, own, sizeof own / sizeof *own);
  TRY(options_parse(&usage, options, n, argc, argv, &r->model.source));
  if (!(r->temperature > 0))
    return failure(EXIT_USAGE, "--temperature %g: it must be above 0; --greedy takes the likeliest",
                   r->temperature);
  if (r->prompt.n == 0 && !r->prompts)
    return failure(EXIT_USAGE, "sample: --prompt TEXT is missing");
  return fine();
}

/* ---- prompts ---- */

struct script {
  int64_t n;      /* tokens known */
  int32_t *token; /* [prompt + length] */
  int64_t n_prompt;
};

struct scripts {
  int64_t n;
  struct script *of;
};

static struct status add_prompt(const struct trained *t, const char *source,
                                const struct text *text, int64_t length, struct scripts *all) {
  if (text->n == 0)
    return failure(EXIT_USAGE, "%s: an empty prompt; give at least one character", source);
  all->of = mem_grow(all->of, all->n + 1, sizeof *all->of);
  struct script *s = &all->of[all->n++];
  *s = (struct script){.n = text->n, .n_prompt = text->n, .token = NEW(int32_t, text->n + length)};
  return text_tokens(source, text, &t->vocabulary, s->token);
}

static struct status add_words(const struct trained *t, const struct sample_request *r,
                               struct scripts *all) {
  for (int i = 0; i < r->prompt.n; i++) {
    struct text text;
    TRY(text_decode("--prompt", r->prompt.item[i], (int64_t)strlen(r->prompt.item[i]), &text));
    const struct status s = add_prompt(t, "--prompt", &text, r->length, all);
    text_free(&text);
    if (s.code) return s;
  }
  return fine();
}

static struct status add_lines(const struct trained *t, const struct sample_request *r,
                               struct scripts *all) {
  struct text file;
  TRY(text_read(t->world, r->prompts, &file));
  struct status s = fine();
  for (int64_t at = 0, end; at < file.n && !s.code; at = end + 1) {
    for (end = at; end < file.n && file.code[end] != '\n'; end++) {
    }
    const struct text line = {.n = end - at, .code = file.code + at};
    if (line.n > 0) s = add_prompt(t, r->prompts, &line, r->length, all);
  }
  text_free(&file);
  return s;
}

static struct status collect(const struct trained *t, const struct sample_request *r,
                             struct scripts *all) {
  TRY(add_words(t, r, all));
  if (r->prompts) TRY(add_lines(t, r, all));
  return all->n > 0 ? fine() : failure(EXIT_USAGE, "%s: no prompt in it", r->prompts);
}

/* ---- drawing ---- */

/* What --top-k leaves: logits above `least`, and the first `ties` that equal it. */
struct cut {
  float least;
  int64_t ties;
};

static bool keeps(struct cut *cut, float x) {
  return x > cut->least || (x == cut->least && cut->ties-- > 0);
}

/* Exactly the k highest; among equals the lower tokens. */
static struct cut cut_at(const float *logit, int V, int64_t stride, int64_t k, float *scratch) {
  if (k <= 0 || k >= V) return (struct cut){-INFINITY, V};
  for (int v = 0; v < V; v++) scratch[v] = logit[v * stride];
  for (int64_t i = 0; i < k; i++) {
    int best = (int)i;
    for (int v = (int)i + 1; v < V; v++)
      if (scratch[v] > scratch[best]) best = v;
    const float x = scratch[i];
    scratch[i] = scratch[best], scratch[best] = x;
  }
  struct cut cut = {scratch[k - 1], k};
  for (int64_t i = 0; i < k; i++) cut.ties -= scratch[i] > cut.least;
  return cut;
}

static int likeliest(const float *logit, int V, int64_t stride) {
  int best = 0;
  for (int v = 1; v < V; v++)
    if (logit[v * stride] > logit[best * stride]) best = v;
  return best;
}

/* Draw from softmax(logit / temperature) over what the cut leaves. */
static int draw(const struct sample_request *r, const float *logit, int V, int64_t stride,
                float *scratch, double u) {
  const int best = likeliest(logit, V, stride);
  if (r->greedy) return best;
  const struct cut cut = cut_at(logit, V, stride, r->top_k, scratch);
  const float highest = logit[best * stride];
  double sum = 0;
  struct cut first = cut, second = cut;
  for (int v = 0; v < V; v++) {
    const float x = logit[v * stride];
    if (keeps(&first, x)) sum += exp((double)(x - highest) / r->temperature);
  }
  double left = u * sum;
  for (int v = 0; v < V; v++) {
    const float x = logit[v * stride];
    if (!keeps(&second, x)) continue;
    left -= exp((double)(x - highest) / r->temperature);
    if (left < 0) return v;
  }
  return best;
}

static double unit(const struct sample_request *r, int64_t prompt, int64_t position) {
  const struct rng_block b =
      rng_draw((uint64_t)r->seed, (uint32_t)position, (uint32_t)((uint64_t)position >> 32),
               (uint32_t)prompt, PURPOSE_SAMPLE);
  return rng_unit(b.v[0], b.v[1]);
}

/* All scripts of this replica side by side, one character at a time. */
static void write_on(struct rnn *rnn, const struct sample_request *r, struct scripts *all,
                     int64_t first) {
  const int V = rnn->shape.vocabulary, B = rnn->shape.batch;
  float *logit = NEW(float, (int64_t)V *B), *scratch = NEW(float, V);
  int32_t *token = NEW_ZERO(int32_t, B);
  int64_t longest = 0;
  for (int b = 0; b < B; b++)
    if (all->of[first + b].n_prompt > longest) longest = all->of[first + b].n_prompt;
  rnn_cold(rnn);
  for (int64_t at = 0; at < longest + r->length - 1; at++) {
    for (int b = 0; b < B; b++) {
      const struct script *s = &all->of[first + b];
      if (at < s->n) token[b] = s->token[at];
    }
    rnn_forward(rnn, token);
    rnn_logits(rnn, logit);
    rnn_carry(rnn);
    pulse("sample");
    for (int b = 0; b < B; b++) {
      struct script *s = &all->of[first + b];
      if (at + 1 < s->n || s->n == s->n_prompt + r->length) continue;
      s->token[s->n++] = draw(r, logit + b, V, B, scratch, unit(r, first + b, at + 1));
    }
  }
  mem_free(logit), mem_free(scratch), mem_free(token);
}

/* ---- printing ---- */

static char *as_text(const struct vocabulary *v, const int32_t *token, int64_t n) {
  char *text = NEW(char, 4 * n + 5);
  int64_t at = 0;
  text[0] = 0;
  for (int64_t i = 0; i < n; i++) at += text_encode(v->code[token[i]], text + at);
  return text;
}

static void print(const struct trained *t, const struct scripts *all, int64_t i) {
  const struct script *s = &all->of[i];
  char *prompt = as_text(&t->vocabulary, s->token, s->n_prompt);
  char *written = as_text(&t->vocabulary, s->token + s->n_prompt, s->n - s->n_prompt);
  if (t->job->json) {
    json_t *line = json_pack("{s:s, s:s}", "prompt", prompt, "text", written);
    json_print(line);
    json_decref(line);
  } else {
    if (all->n > 1) printf("%s==> %lld <==\n", i ? "\n" : "", (long long)i + 1);
    printf("%s%s\n", prompt, written);
  }
  mem_free(prompt), mem_free(written);
}

/* What other replicas wrote comes to rank 0. */
static void bring_together(const struct trained *t, struct scripts *all, int64_t length) {
  const struct comm *part = &t->grid.part_comm;
  for (int r = 0; r < part->size; r++) {
    const int64_t from = all->n * r / part->size, to = all->n * (r + 1) / part->size;
    for (int64_t i = from; i < to; i++) {
      struct script *s = &all->of[i];
      comm_share(part, s->token, (s->n_prompt + length) * (int64_t)sizeof *s->token, r);
      s->n = s->n_prompt + length;
    }
  }
}

static struct status sample(struct trained *t, const struct sample_request *r,
                            struct scripts *all) {
  TRY(collect(t, r, all));
  struct rnn rnn = {0};
  const struct status s = trained_rnn(t, all->n, 1, &rnn);
  if (!s.code) {
    int64_t first, share;
    rnn_share(all->n, &t->grid, &first, &share);
    write_on(&rnn, r, all, first);
    bring_together(t, all, r->length);
    for (int64_t i = 0; i < all->n && t->world->rank == 0; i++) print(t, all, i);
  }
  if (rnn.network) rnn_close(&rnn);
  return s;
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct job job = job_defaults();
  struct sample_request request = {
      .model = {.which = "best"}, .length = 300, .seed = 1, .temperature = 0.8};
  TRY(parse(argc, argv, &job, &request));
  TRY(job_start(world, &job));
  struct trained trained;
  struct scripts all = {0};
  struct status s =
      trained_open(world, &job, &request.model, job.parts ? (int)job.parts : world->size, &trained);
  if (!s.code) s = sample(&trained, &request, &all);
  for (int64_t i = 0; i < all.n; i++) mem_free(all.of[i].token);
  mem_free(all.of);
  trained_close(&trained);
  job_stop(&job);
  return s;
}

const struct verb verb_sample = {"sample", "text from a trained model", run};
