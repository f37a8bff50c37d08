/* fascicle train: set the run up, resume it, and say how it ended. */
#include "train.h"
#include "io/hdf5/fields.h"
#include "core/log.h"
#include "core/mem.h"
#include "recurrence.h"
#include "core/signals.h"
#include "initial.h"
#include "saved_model.h"
#include "run/verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct usage usage = {
    .verb = "train",
    .operands = "graph.h5",
    .fewest = 1,
    .most = 1,
    .about =
        "Train a character model whose recurrent core is wired by the graph. Writes the run's "
        "folder: "
        "config.json, metrics.jsonl, log.txt, checkpoints. Ranks form parts x replicas: a part "
        "holds a range "
        "of neurons, a replica takes its share of the batch. Every key of the configuration has a "
        "default; --help-keys lists them. A run that is stopped by a signal or --max-time leaves "
        "with code "
        "75 and a checkpoint; the same command with --resume auto goes on, on any number of ranks.",
    .example = "  fascicle train graph.h5 --text shakespeare.txt --config "
               "jobs/conf/train_larva.json --output run\n"
               "  mpirun -n 4 fascicle train graph.h5 --text shakespeare.txt --output run --parts "
               "2 --resume auto\n"
               "  fascicle train graph.h5 --text shakespeare.txt --output try --set "
               "train_steps=100 --set batch=8",
    .keys = &train_config_keys,
    .n_keys = 1};

struct request_line {
  const char *graph, *text, *precision;
};

static struct status parse(int argc, char **argv, struct job *job, struct request_line *line) {
  struct option options[JOB_OPTIONS + 3];
  int n = job_options(job, options);
  const struct option own[] = {
      {"text", OPTION_TEXT, "FILE", "the text to learn, UTF-8", &line->text, 0, 0},
      {"precision", OPTION_TEXT, "fp32|mixed",
       "mixed: what is read along edges is rounded to 16 bits (as configured)", &line->precision, 0,
       0},
      job_exchange_option(job),
  };
  n = options_append(options, n, own, sizeof own / sizeof *own);
  TRY(options_parse(&usage, options, n, argc, argv, &line->graph));
  if (!line->text) return failure(EXIT_USAGE, "train: --text FILE is missing");
  if (!job->output) return failure(EXIT_USAGE, "train: --output DIR is missing");
  return fine();
}

static struct status configure(struct training *t, const struct request_line *line) {
  json_t *json;
  TRY(job_config(t->world, t->job, &json));
  char where[FILE_PATH];
  job_config_name(t->job, where, sizeof where);
  const struct status s = train_config_read(json, where, &t->config);
  json_decref(json);
  if (s.code) return s;
  if (t->job->checkpoint_every >= 0) t->config.checkpoint_every = t->job->checkpoint_every;
  if (line->precision)
    t->config.precision = !strcmp(line->precision, "mixed") ? PRECISION_MIXED : PRECISION_FP32;
  return fine();
}

/* A path that still leads there from another folder; as given when it cannot be resolved, or when
 * checkpoints, which are to tell it, cannot hold it. */
static const char *absolute(const struct comm *world, const char *path, char to[FILE_PATH]) {
  if (world->rank == 0 && (!realpath(path, to) || !json_can_hold(to, (int64_t)strlen(to))))
    snprintf(to, FILE_PATH, "%s", path);
  comm_share(world, to, FILE_PATH, 0);
  return to;
}

static struct status fits(const struct training *t, const struct rnn_shape *shape) {
  int64_t bytes = rnn_bytes(t->job->backend, &t->network, shape);
  comm_max_i64(t->world, &bytes, 1);
  if (bytes <= t->job->memory_bytes) return fine();
  return failure(
      EXIT_USAGE,
      "training needs %.3g GiB on a rank, %.3g GiB are allowed: use more --parts, a smaller batch "
      "or steps_per_window, or raise --memory",
      (double)bytes / 0x1p30, (double)t->job->memory_bytes / 0x1p30);
}

static struct status open_rnn(struct training *t) {
  const struct train_config *c = &t->config;
  int64_t share;
  rnn_share(c->batch, &t->grid, &t->first_sample, &share);
  const struct rnn_shape shape = {.batch = (int)share,
                                  .steps = (int)c->steps_per_window,
                                  .microsteps = (int)c->microsteps,
                                  .vocabulary = t->corpus.vocabulary.n,
                                  .embedding = (int)c->embedding,
                                  .want_gradient = true,
                                  .mixed = c->precision == PRECISION_MIXED,
                                  .frozen = c->frozen_edges};
  TRY(fits(t, &shape));
  TRY(rnn_open(t->job->backend, &t->network, &shape, t->job->n_threads, &t->rnn));
  rnn_set_scale(&t->rnn, c->normalize);
  const int64_t places = share * c->steps_per_window;
  t->token = NEW(int32_t, places), t->target = NEW(int32_t, places);
  if (c->carry_state) t->carried = NEW_ZERO(float, (int64_t)t->network.graph.n_own *share);
  return fine();
}

static struct status open_all(struct training *t, const struct request_line *line) {
  const struct train_config *c = &t->config;
  int parts = (int)t->job->parts;
  TRY(corpus_open(t->world, line->text, c, &t->corpus));
  if (parts == 0) TRY(train_choose_parts(t, line->graph, &parts));
  TRY(job_grid(t->world, t->job, parts, &t->grid));
  if (c->batch < t->grid.replicas)
    return failure(EXIT_USAGE,
                   "\"batch\" is %lld, but there are %d replicas; raise it, or use more --parts",
                   (long long)c->batch, t->grid.replicas);
  TRY(network_open(t->world, &t->grid, line->graph, c->n_input, c->n_output, &t->network));
  return open_rnn(t);
}

/* ---- where to begin ---- */

static void say_change(const char *change) {
  log_warning("changed since the checkpoint: %s", change);
}

static struct status fits_checkpoint(const struct training *t, const char *path,
                                     const struct train_meta *meta) {
  json_t *now = train_config_json(&t->config);
  const struct status s = train_config_compare(meta->config, now, say_change);
  json_decref(now);
  if (s.code) return s;
  if (strcmp(meta->corpus_sha256, t->corpus.sha256))
    return failure(EXIT_INPUT, "%s: trained on another text (%.600s); give that one to --text",
                   path, meta->corpus);
  return fine();
}

/* A damaged checkpoint is named, and the one before it, which is taken only
 * when the user says so. */
static struct status damaged(const struct comm *world, const char *path, struct status s) {
  char before[FILE_PATH];
  if (world->rank == 0) rundir_checkpoint_before(path, before);
  comm_share(world, before, FILE_PATH, 0);
  if (!before[0]) return s;
  return failure(s.code, "%.600s; the one before is %.300s: give it to --resume", s.text, before);
}

static struct status load(struct training *t, const char *path) {
  struct fields_file *file = NULL;
  struct train_meta meta;
  struct status s = train_checkpoint_open(t->world, path, &file, &meta);
  if (!s.code) s = fields_verify(t->world, file, path);
  if (s.code) {
    s = damaged(t->world, path, s);
  } else {
    s = fits_checkpoint(t, path, &meta);
    if (!s.code)
      s = train_checkpoint_load(t->world, path, file, &meta, &t->rnn, t->config.batch, t->carried);
    t->done = meta.progress;
  }
  train_checkpoint_close(file, &meta);
  if (s.code) return s;
  if (t->carried) rnn_set_start(&t->rnn, t->carried);
  t->last_saved = t->done.step;
  snprintf(t->last_checkpoint, sizeof t->last_checkpoint, "%s", path);
  log_line("resumed from %s at step %lld", path, (long long)t->done.step);
  return rundir_rewind(t->world, &t->dir, t->done.step, t->done.best_step);
}

static void start(struct training *t) {
  const double low = 0.7, high = 1.3;
  const double radius = start_values(&t->rnn, &t->config);
  log_line("spectral radius of the start values: %.3f", radius);
  if (!t->config.frozen_edges && (radius < low || radius > high))
    log_warning(
        "the start spectral radius is %.3f; far from 1 a core learns badly: try init_scale %.3g",
        radius, radius > 0 ? t->config.init_scale / radius : 1.0);
}

static struct status begin(struct training *t) {
  char path[FILE_PATH];
  t->done = (struct progress_of_training){.best = INFINITY};
  t->last_saved = -1;
  TRY(rundir_find_checkpoint(t->world, &t->dir, t->job->resume, path));
  if (path[0]) return load(t, path);
  start(t);
  return fine();
}

/* ---- the run ---- */

static struct status describe_run(struct training *t, const struct request_line *line,
                                  char graph[FILE_PATH], char text[FILE_PATH]) {
  char digest[DIGEST_TEXT];
  json_t *config = train_config_json(&t->config);
  job_json_digest(config, digest);
  t->provenance = job_provenance(t->world, t->job, &t->grid);
  t->identity = (struct train_identity){.graph = absolute(t->world, line->graph, graph),
                                        .corpus = absolute(t->world, line->text, text),
                                        .corpus_sha256 = t->corpus.sha256,
                                        .vocabulary = &t->corpus.vocabulary,
                                        .config = &t->config,
                                        .provenance = t->provenance};
  json_object_set_new(t->provenance, "config_digest", json_string(digest));
  json_object_set_new(t->provenance, "graph_digest", json_string(t->network.facts.graph_digest));
  json_object_set_new(t->provenance, "text_sha256", json_string(t->corpus.sha256));
  json_object_set_new(t->provenance, "seed", json_integer(t->config.seed));
  const struct status s = rundir_config(t->world, &t->dir, config);
  json_decref(config);
  return s;
}

static void say_sizes(const struct training *t) {
  int64_t own = t->rnn.at.at[MODEL_READOUT] - t->rnn.at.at[MODEL_PROJECTION] +
                t->rnn.at.at[MODEL_READOUT_BIAS] - t->rnn.at.at[MODEL_READOUT] +
                t->rnn.at.at[MODEL_EMBEDDING];
  comm_sum_i64(&t->grid.replica_comm, &own, 1);
  const int64_t all = own + t->rnn.at.at[MODEL_EMBEDDING + 1] - t->rnn.at.at[MODEL_EMBEDDING] +
                      t->corpus.vocabulary.n;
  log_line("%lld neurons, %lld edges, %lld parameters; %d characters, %lld to learn, %lld to "
           "validate; %d "
           "part%s x %d replica%s",
           (long long)t->network.facts.n_nodes, (long long)t->network.facts.n_edges, (long long)all,
           t->corpus.vocabulary.n, (long long)t->corpus.n_train, (long long)t->corpus.n_validation,
           t->grid.parts, t->grid.parts == 1 ? "" : "s", t->grid.replicas,
           t->grid.replicas == 1 ? "" : "s");
  recurrence_say_exchange(&t->network.graph, &t->grid.replica_comm);
}

static void print_result(const struct training *t) {
  if (!t->job->json || t->world->rank > 0) return;
  json_t *result = json_pack("{s:I, s:o, s:I, s:s, s:f}", "step", (json_int_t)t->done.step, "best",
                             isfinite(t->done.best) ? json_real(t->done.best) : json_null(),
                             "best_step", (json_int_t)t->done.best_step, "checkpoint",
                             t->last_checkpoint, "seconds", seconds_now() - t->job->started);
  json_print(result);
  json_decref(result);
}

static struct status run_in_folder(struct training *t, const struct request_line *line) {
  char graph[FILE_PATH], text[FILE_PATH];
  job_reads(t->job, line->graph), job_reads(t->job, line->text);
  TRY(rundir_open(t->world, t->job, &t->dir));
  say_sizes(t);
  TRY(begin(t));
  TRY(describe_run(t, line, graph, text));
  TRY(rundir_metrics(t->world, &t->dir, t->done.step, t->provenance));
  TRY(train_loop(t));
  train_check_memory(t);
  print_result(t);
  return fine();
}

static void training_free(struct training *t) {
  rundir_close(&t->dir);
  rnn_close(&t->rnn);
  network_close(&t->network);
  corpus_free(&t->corpus);
  job_grid_close(&t->grid);
  mem_free(t->token), mem_free(t->target), mem_free(t->carried);
  if (t->provenance) json_decref(t->provenance);
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct job job = job_defaults();
  struct request_line line = {0};
  signals_install();
  TRY(parse(argc, argv, &job, &line));
  TRY(job_start(world, &job));
  TRY(trained_can(&job));
  struct training *t = NEW_ZERO(struct training, 1);
  t->world = world, t->job = &job;
  struct status s = configure(t, &line);
  if (!s.code) s = open_all(t, &line); /* the folder is made when nothing is wrong with the input */
  if (!s.code) s = run_in_folder(t, &line);
  training_free(t);
  mem_free(t);
  job_stop(&job);
  return s;
}

const struct verb verb_train = {"train", "train a character model wired by the graph", run};
