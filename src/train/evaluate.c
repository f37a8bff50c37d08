/* fascicle evaluate: the loss of a trained model on a text. */
#include "corpus.h"
#include "held_out.h"
#include "core/mem.h"
#include "text.h"
#include "saved_model.h"
#include "run/verbs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct usage usage = {
    .verb = "evaluate",
    .operands = "DIR_OR_CHECKPOINT",
    .fewest = 1,
    .most = 1,
    .about =
        "Loss of a trained model in nats and bits per character. Without --whole: the mean over "
        "windows "
        "that start anywhere, each from the zero state; the same windows every time. With --whole: "
        "every character, the state carried along. The text that the model was trained on is "
        "scored on "
        "its validation part, any other text as a whole.",
    .example = "  fascicle evaluate run --text shakespeare.txt\n"
               "  fascicle evaluate run/checkpoints/step_00020000.h5 --text shakespeare.txt "
               "--whole --json"};

struct evaluate_request {
  struct trained_request model;
  const char *text, *part;
  bool whole;
  int64_t windows, seed, lanes;
};

static struct status parse(int argc, char **argv, struct job *job, struct evaluate_request *r) {
  struct option options[TRAINED_OPTIONS + 6];
  int n = trained_options(&r->model, job, options);
  const struct option own[] = {
      {"text", OPTION_TEXT, "FILE", "the text (the one trained on)", &r->text, 0, 0},
      {"part", OPTION_TEXT, "auto|validation|train|all", "which part of the text (auto: see above)",
       &r->part, 0, 0},
      {"whole", OPTION_FLAG, NULL, "every character, the state carried along", &r->whole, 0, 0},
      {"windows", OPTION_INT, "N", "windows to score (as in training)", &r->windows, 1, INT64_MAX},
      {"seed", OPTION_INT, "S", "which windows (as in training)", &r->seed, 0, INT64_MAX},
      {"lanes", OPTION_INT, "N",
       "--whole: pieces of the text that run side by side, each led in by 256 characters (32); 1: "
       "in one go",
       &r->lanes, 1, 1 << 20},
  };
  n = options_append(options, n, own, sizeof own / sizeof *own);
  return options_parse(&usage, options, n, argc, argv, &r->model.source);
}

/* The tokens to score: part of `token`. */
struct range {
  int64_t first, n;
  const char *part;
};

static struct range choose(const struct trained *t, const char *part, bool trained_on, int64_t n) {
  if (!strcmp(part, "auto")) part = trained_on ? "validation" : "all";
  const int64_t used = trained_on ? corpus_used(&t->config, n) : n,
                trained = corpus_trained(&t->config, used);
  if (!strcmp(part, "validation")) return (struct range){trained, used - trained, part};
  if (!strcmp(part, "train")) return (struct range){0, trained, part};
  return (struct range){0, n, part};
}

static struct status score(struct trained *t, const struct evaluate_request *r,
                           const int32_t *token, const char *path, const struct range *range,
                           struct evaluation *e) {
  const int64_t T = t->config.steps_per_window;
  if (range->n < text_shortest(T))
    return failure(EXIT_INPUT,
                   "%s: %lld characters in the part \"%s\", but windows of %lld need at least %lld",
                   path, (long long)range->n, range->part, (long long)T,
                   (long long)text_shortest(T));
  int64_t batch = r->whole ? r->lanes : t->config.batch;
  if (batch < t->grid.replicas && !r->whole) batch = t->grid.replicas;
  struct rnn rnn = {0};
  struct status s = trained_rnn(t, batch, T, &rnn);
  if (!s.code && r->whole)
    *e = evaluate_whole(&rnn, t->world, batch, token + range->first, range->n);
  if (!s.code && !r->whole)
    *e = evaluate_windows(&rnn, t->world, batch, token + range->first, range->n,
                          (uint64_t)(r->seed >= 0 ? r->seed : t->config.seed),
                          r->windows ? r->windows : t->config.eval_windows);
  if (rnn.network) rnn_close(&rnn);
  return s;
}

static void print(const struct trained *t, const struct evaluate_request *r, const char *path,
                  const struct range *range, const struct evaluation *e) {
  if (t->world->rank > 0) return;
  const long long step = t->meta.progress.step;
  if (!t->job->json) {
    printf(
        "%s (step %lld) on %s (%s, %s): %.4f nats, %.4f bits per character over %lld characters\n",
        t->path, step, path, range->part, r->whole ? "whole" : "windows", e->nats, e->bits,
        (long long)e->characters);
    return;
  }
  json_t *result = json_pack("{s:s, s:I, s:s, s:s, s:s, s:f, s:f, s:I}", "checkpoint", t->path,
                             "step", (json_int_t)step, "text", path, "part", range->part, "mode",
                             r->whole ? "whole" : "windows", "nats", e->nats, "bits", e->bits,
                             "characters", (json_int_t)e->characters);
  json_print(result);
  json_decref(result);
}

static struct status evaluate(struct trained *t, const struct evaluate_request *r) {
  const char *path = r->text ? r->text : t->meta.corpus;
  struct text text;
  TRY(text_read(t->world, path, &text));
  int32_t *token = NEW(int32_t, text.n);
  struct status s = text_tokens(path, &text, &t->vocabulary, token);
  const struct range range =
      choose(t, r->part, !strcmp(text.sha256, t->meta.corpus_sha256), text.n);
  text_free(&text);
  struct evaluation e = {0};
  if (!s.code) s = score(t, r, token, path, &range, &e);
  if (!s.code && !isfinite(e.nats))
    s = failure(EXIT_INPUT,
                "%.600s: the loss on %.300s is not finite: the model has diverged; take an earlier "
                "checkpoint",
                t->path, path);
  if (!s.code) print(t, r, path, &range, &e);
  mem_free(token);
  return s;
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct job job = job_defaults();
  struct evaluate_request request = {
      .model = {.which = "best"}, .part = "auto", .seed = -1, .lanes = 32};
  TRY(parse(argc, argv, &job, &request));
  TRY(job_start(world, &job));
  struct trained trained;
  struct status s =
      trained_open(world, &job, &request.model, job.parts ? (int)job.parts : 1, &trained);
  if (!s.code) s = evaluate(&trained, &request);
  trained_close(&trained);
  job_stop(&job);
  return s;
}

const struct verb verb_evaluate = {"evaluate", "loss of a trained model on a text", run};
