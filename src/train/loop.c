/* The loop of a training: steps, evaluations, checkpoints, requests to stop. */
#include "held_out.h"
#include "core/log.h"
#include "core/mem.h"
#include "step.h"
#include "train.h"
#include "core/watchdog.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- one step ---- */

/* What one step tells all ranks. */
struct step_result {
  double loss, norm; /* mean nats per character; of the gradient before the clip */
  enum request request;
};

/* Gives a step to the backend, which may work on it while the host goes on. */
static void queue_step(struct training *t) {
  const struct train_config *c = &t->config;
  corpus_windows(&t->corpus, c, t->queued, t->first_sample, t->rnn.shape.batch, t->token,
                 t->target);
  const struct train_step step = {.token = t->token,
                                  .target = t->target,
                                  .batch = c->batch,
                                  .step = t->queued,
                                  .last_step = c->train_steps,
                                  .optimizer = &c->optimizer,
                                  .carry_state = c->carry_state};
  train_step_queue(&t->rnn, &step);
  t->queued++;
}

/* Loss and requests ride in one exchange. */
static struct step_result share_result(struct training *t, const struct model_figures *figures) {
  const enum request mine = job_request(t->job);
  double sums[3] = {t->grid.part == 0 ? figures->nats : 0, mine == REQUEST_SAVE,
                    mine == REQUEST_STOP};
  comm_sum_f64(t->world, sums, 3);
  return (struct step_result){.loss =
                                  sums[0] / (double)(t->config.batch * t->config.steps_per_window),
                              .norm = sqrt(figures->squares),
                              .request = sums[2] > 0   ? REQUEST_STOP
                                         : sums[1] > 0 ? REQUEST_SAVE
                                                       : REQUEST_NONE};
}

static struct status not_finite(const struct training *t, int64_t step, const char *what) {
  const bool saved = t->last_checkpoint[0] != 0;
  return failure(EXIT_RUNTIME, "step %lld: %s; %s%.700s%s a lower learning rate or init_scale",
                 (long long)step, what,
                 saved ? "the last good checkpoint is " : "no checkpoint was written yet",
                 t->last_checkpoint, saved ? "; go on from there with" : "; start again with");
}

static struct status check_finite(const struct training *t, const struct step_result *r) {
  char what[128];
  if (isfinite(r->loss) && isfinite(r->norm)) return fine();
  snprintf(what, sizeof what, "the loss is not finite (loss %g, gradient norm %g)", r->loss,
           r->norm);
  return not_finite(t, t->done.step + 1, what);
}

/* Takes the result of the oldest step under way: that one is done. */
static struct status settle(struct training *t, struct step_result *r) {
  const struct model_figures figures = t->rnn.backend->model->figures(t->rnn.model);
  const enum request before = r->request;
  *r = share_result(t, &figures);
  if (before > r->request) r->request = before;
  TRY(check_finite(t, r));
  t->done.step++;
  t->done.loss_sum += r->loss, t->done.loss_steps++;
  return fine();
}

/* ---- records ---- */

static void record_step(struct training *t, const struct step_result *r) {
  const struct train_config *c = &t->config;
  const struct activity activity = rnn_activity(&t->rnn, t->world);
  const double factor = optim_factor(&c->optimizer, t->done.step - 1, c->train_steps),
               now = seconds_now();
  const double loss = t->done.loss_sum / (double)t->done.loss_steps;
  const double steps = (double)(t->done.step - t->recorded_step) / (now - t->recorded_at);
  const double edges = steps * (double)t->network.facts.n_edges * (double)c->batch *
                       (double)(c->steps_per_window * c->microsteps);
  rundir_record(&t->dir,
                json_pack("{s:s, s:I, s:o, s:o, s:f, s:f, s:f, s:o, s:o, s:f, s:f, s:I, s:I}",
                          "record", "step", "step", (json_int_t)t->done.step, "loss",
                          json_finite(loss), "bits", json_finite(loss / log(2)), "gradient_norm",
                          r->norm, "lr_edges", factor * c->optimizer.lr_edges, "lr_adapters",
                          factor * c->optimizer.lr_adapters, "saturated",
                          json_finite(activity.saturated), "mean_leak",
                          json_finite(activity.mean_leak), "steps_per_s", steps, "edges_per_s",
                          edges, "sent_bytes_per_step", (json_int_t)rnn_sent_bytes(&t->rnn),
                          "peak_bytes", (json_int_t)t->job->backend->peak()));
  t->done.loss_sum = 0, t->done.loss_steps = 0;
  t->recorded_at = now, t->recorded_step = t->done.step;
}

/* ---- checkpoints and evaluation ---- */

/* The checkpoint of the steps done. */
static struct status save(struct training *t) {
  char path[FILE_PATH];
  rundir_checkpoint_path(&t->dir, t->done.step, path);
  if (t->carried) rnn_get_start(&t->rnn, t->carried);
  TRY(train_checkpoint_write(t->world, path, &t->rnn, &t->identity, &t->done, t->carried));
  TRY(rundir_checkpoint_written(t->world, &t->dir, t->done.step));
  memcpy(t->last_checkpoint, path, sizeof path);
  t->last_saved = t->done.step;
  return fine();
}

static struct evaluation measure(struct training *t) {
  const struct train_config *c = &t->config;
  if (t->carried) rnn_get_start(&t->rnn, t->carried);
  const struct evaluation e =
      evaluate_windows(&t->rnn, t->world, c->batch, t->corpus.validation, t->corpus.n_validation,
                       (uint64_t)c->seed, c->eval_windows);
  if (t->carried) rnn_set_start(&t->rnn, t->carried);
  return e;
}

/* A better model is kept at once: its checkpoint is written again when it stands already, now
 * with the record in it. */
static struct status evaluate_and_keep(struct training *t) {
  const double started = seconds_now();
  const struct evaluation e = measure(t);
  if (!isfinite(e.nats)) return not_finite(t, t->done.step, "the validation loss is not finite");
  const bool better = e.nats < t->done.best;
  rundir_record(&t->dir, json_pack("{s:s, s:I, s:f, s:f, s:I, s:b}", "record", "evaluation", "step",
                                   (json_int_t)t->done.step, "loss", e.nats, "bits", e.bits,
                                   "characters", (json_int_t)e.characters, "best", better));
  if (better) {
    t->done.best = e.nats, t->done.best_step = t->done.step;
    TRY(save(t));
    TRY(rundir_best(t->world, &t->dir, t->done.step));
  }
  log_line("step %lld: validation %.4f nats, %.4f bits a character%s", (long long)t->done.step,
           e.nats, e.bits, better ? " (best so far)" : "");
  const double spent = seconds_now() - started;
  t->recorded_at += spent; /* steps per second are those of training */
  return fine();
}

static bool due(int64_t step, int64_t every, int64_t last) {
  return every > 0 && (step % every == 0 || step == last);
}

/* Does step `step` end with something that must see all of it? */
static bool ends_with_more(const struct training *t, int64_t step) {
  const struct train_config *c = &t->config;
  return due(step, c->log_every, c->train_steps) ||
         due(step, c->checkpoint_every, c->train_steps) ||
         (t->corpus.n_validation > 0 && due(step, c->eval_every, c->train_steps)) ||
         step == c->train_steps;
}

/* The checkpoint comes before the evaluation: whatever happens there, the steps are kept. */
static struct status after_step(struct training *t) {
  const struct train_config *c = &t->config;
  if (due(t->done.step, c->checkpoint_every, c->train_steps)) TRY(save(t));
  if (t->corpus.n_validation > 0 && due(t->done.step, c->eval_every, c->train_steps))
    TRY(evaluate_and_keep(t));
  return fine();
}

static struct status serve(struct training *t, enum request request) {
  if (request == REQUEST_NONE) return fine();
  if (t->last_saved != t->done.step) TRY(save(t));
  if (request == REQUEST_SAVE) {
    signals_saved();
    log_line("step %lld: checkpoint written on request", (long long)t->done.step);
    return fine();
  }
  if (t->done.step == t->config.train_steps) return fine();
  TRY(rundir_again(t->world, &t->dir, t->done.step));
  return failure(
      EXIT_AGAIN,
      "stopped on request at step %lld of %lld; %s is written; run the same command again "
      "with --resume auto",
      (long long)t->done.step, (long long)t->config.train_steps, t->last_checkpoint);
}

static void show(struct training *t, struct progress *p, const struct step_result *r) {
  char extra[96];
  int n = snprintf(extra, sizeof extra, "loss %.3f", r->loss);
  if (isfinite(t->done.best))
    snprintf(extra + n, sizeof extra - (size_t)n, ", validation %.3f", t->done.best);
  progress_show(p, t->done.step, extra);
}

/* Until at most `left` steps are under way. The next step is queued before the last one's result is
 * waited for, so that a device never stands still for the host. */
static struct status settle_steps(struct training *t, struct step_result *r, int left) {
  while (t->queued - t->done.step > left) TRY(settle(t, r));
  return fine();
}

struct status train_loop(struct training *t) {
  const struct train_config *c = &t->config;
  struct progress progress = progress_start("train", "steps", t->done.step, c->train_steps);
  t->recorded_at = seconds_now(), t->recorded_step = t->done.step;
  struct step_result r = {0};
  struct status s = fine();
  t->queued = t->done.step;
  while (!s.code && t->done.step < c->train_steps) {
    watchdog_window("training step");
    queue_step(t);
    s = settle_steps(t, &r, ends_with_more(t, t->queued) ? 0 : 1);
    if (!s.code && r.request != REQUEST_NONE) s = settle_steps(t, &r, 0);
    watchdog_window_over("training step");
    if (s.code) break;
    show(t, &progress, &r);
    if (t->done.step < t->queued) continue;
    if (due(t->done.step, c->log_every, c->train_steps)) record_step(t, &r);
    s = after_step(t);
    if (!s.code) s = serve(t, r.request);
    r.request = REQUEST_NONE;
  }
  progress_end(&progress, t->done.step);
  if (!s.code && t->last_saved != t->done.step) s = save(t);
  return s;
}
