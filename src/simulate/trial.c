/* One trial: restore or begin, batch after batch, record, save, merge. */
#include "checkpoint.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/numbers.h"
#include "core/rng.h"
#include "trial.h"
#include "core/watchdog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS_LINES = 1000 }; /* about so many lines a run */

/* ---- where it goes ---- */

static struct status open_folder(struct trial *t) {
  struct simulation *sim = t->sim;
  char name[64], path[FILE_PATH];
  t->dir = &sim->dir;
  if (sim->trials > 1) {
    snprintf(name, sizeof name, "trial_%lld", (long long)t->number);
    TRY(rundir_below(t->comm, &sim->dir, name, &t->below));
    t->dir = &t->below;
  }
  rundir_file(t->dir, "trace", path);
  t->facts = json_deep_copy(sim->facts);
  json_object_set_new(t->facts, "trial", json_integer(t->number));
  t->provenance = json_line(t->facts);
  return agree(t->comm, t->comm->rank == 0 ? folder_make(path) : fine());
}

/* ---- the state at its beginning ---- */

static int64_t clamped(__int128 x) {
  return (int64_t)(x > LIF_MOST_VALUE ? LIF_MOST_VALUE : x < -LIF_MOST_VALUE ? -LIF_MOST_VALUE : x);
}

/* How far from its mean an initial potential is drawn, by a quantile of the standard normal. The
 * last counter word is a stimulus' trial with its bits turned over: no two draws share a number. */
static int64_t initial_deviation(const struct trial *t, int entry, lidx row) {
  const struct lif_config *config = &t->sim->config;
  const uint64_t id = (uint64_t)t->sim->net.id[row];
  const struct rng_block b = rng_draw(config->seed, (uint32_t)id, (uint32_t)(id >> 32),
                                      (uint32_t)entry, ~(uint32_t)t->number);
  const int64_t sd = lif_units_integer(&config->linear.units, config->initial[entry].v_sd_mv);
  const __int128 product =
      (__int128)config->linear.quantile[b.v[0] / (0x100000000 / LIF_QUANTILES)] * sd;
  return clamped((product + ((__int128)1 << 31)) >> 32);
}

/* v of a model, as entry `entry` of `initial` says */
static int64_t initial_component(const struct trial *t, int entry, lidx row) {
  const struct lif_model_config *m = &t->sim->config.linear;
  const struct lif_initial *initial = &t->sim->config.initial[entry];
  const double rest = m->neuron[m->model.class_of[row]].v_rest_mv;
  const int64_t mean =
      isnan(initial->v_mv) ? 0 : lif_units_integer(&m->units, initial->v_mv - rest);
  if (!(initial->v_sd_mv > 0)) return mean;
  return clamped((__int128)mean + initial_deviation(t, entry, row));
}

static void set_potential(struct trial *t, int entry, lidx row) {
  const struct lif_config *config = &t->sim->config;
  if (config->linear.kind)
    t->state.component[row] = initial_component(t, entry, row);
  else
    t->state.potential[row] = (int32_t)config->initial[entry].potential;
}

static void set_initial(struct trial *t) {
  const struct lif_config *config = &t->sim->config;
  for (int k = 0; k < config->n_initial; k++) {
    const struct lif_initial *initial = &config->initial[k];
    lidx *row;
    const lidx n = lif_own_rows(&t->sim->net, initial->neurons.n, initial->neurons.node, &row);
    for (lidx i = 0; i < n; i++) t->state.counter[row[i]] = (uint16_t)initial->refractory;
    for (lidx i = 0; i < n; i++) set_potential(t, k, row[i]);
    mem_free(row);
  }
}

static struct lif_place place_of(const struct trial *t) {
  const struct lif_config *config = &t->sim->config;
  return (struct lif_place){t->sim->file, &t->sim->net, config->linear.kind, config->params.model,
                            t->sim->first};
}

static struct status begin_or_restore(struct trial *t) {
  char path[FILE_PATH];
  const struct lif_place place = place_of(t);
  struct lif_point *point = &t->point;
  *point = (struct lif_point){.trial = t->number, .config = t->sim->digests};
  TRY(rundir_find_checkpoint(t->comm, t->dir, t->sim->job.resume, path));
  lif_state_init(&t->sim->net, t->sim->config.params.model, &t->state);
  if (!path[0]) {
    set_initial(t);
    return fine();
  }
  TRY(lif_restore(t->comm, path, &place, point, &t->state));
  if (point->step > t->sim->steps)
    return failure(EXIT_USAGE, "--steps %lld: %s has %lld steps already", (long long)t->sim->steps,
                   path, (long long)point->step);
  log_line("going on from step %lld: %s", (long long)point->step, path);
  return fine();
}

struct lif_setup trial_setup(const struct simulation *sim) {
  return (struct lif_setup){.backend = sim->job.backend->lif,
                            .net = &sim->net,
                            .first_of_rank = sim->first,
                            .stimulus = sim->stimulus,
                            .n_stimuli = sim->config.n_inputs,
                            .params = sim->config.params,
                            .seed = sim->config.seed,
                            .n_threads = sim->job.n_threads};
}

static void open_recorder(struct trial *t) {
  const struct simulation *sim = t->sim;
  struct spikes_facts facts = {.dt_ms = sim->config.dt_ms,
                               .first_step = t->point.step,
                               .n_nodes = sim->neurons.n,
                               .rank = t->comm->rank,
                               .ranks = t->comm->size,
                               .segment = t->point.next_segment};
  snprintf(facts.population, sizeof facts.population, "%s", sim->neurons.population);
  snprintf(facts.graph_digest, sizeof facts.graph_digest, "%s",
           connectome_facts(sim->file)->graph_digest);
  recorder_open(t->run, &sim->config, t->dir->path, t->provenance, &facts, &t->recorder);
}

/* Everything that an earlier run wrote after the point that we go on from is
 * removed: it is made again. */
static struct status open_at_point(struct trial *t) {
  TRY(open_folder(t));
  TRY(begin_or_restore(t));
  watchdog_pause("looking at spike segments");
  const struct status s =
      t->comm->rank == 0 ? trace_go_on(t->dir->path, t->point.next_segment, t->point.step) : fine();
  TRY(agree(t->comm, s));
  watchdog_resume();
  return fine();
}

/* With a replica's first trial the run is described, before any replica goes on: what
 * it merges names neurons. */
struct status trial_open(struct trial *t, struct simulation *sim, int64_t number) {
  *t = (struct trial){.sim = sim, .comm = &sim->grid.replica_comm, .number = number};
  struct status s = open_at_point(t);
  if (number != sim->grid.replica) return s;
  if (!s.code) s = simulate_describe(t->comm, sim);
  return agree(&sim->grid.part_comm, s);
}

struct status trial_start(struct trial *t, struct lif_run *run) {
  const int64_t step = t->point.step;
  t->run = run;
  TRY(rundir_rewind(t->comm, t->dir, step, -1));
  TRY(rundir_metrics(t->comm, t->dir, step, t->facts));
  TRY(lif_write(run, t->comm, &t->state, (uint32_t)t->number));
  lif_state_free(
      &t->state); /* the backend holds it now; checkpoints copy it out for as long as they write */
  t->line_step = step, t->line_time = t->started = seconds_now();
  open_recorder(t);
  return fine();
}

void trial_close(struct trial *t) {
  recorder_free(&t->recorder);
  lif_state_free(&t->state);
  rundir_close(&t->below);
  json_decref(t->facts);
  free(t->provenance);
  *t = (struct trial){0};
}

/* ---- metrics ---- */

static double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

static void write_line(struct trial *t) {
  const int64_t step = t->run->step, n_steps = step - t->line_step;
  if (n_steps == 0) return;
  int64_t sums[2] = {t->spikes, t->events};
  comm_sum_i64(t->comm, sums, 2);
  const double now = seconds_now(), wall = now - t->line_time;
  const double simulated = (double)n_steps * t->sim->config.dt_ms / 1000;
  const double rate = ratio((double)sums[0], simulated * (double)t->sim->neurons.n);
  const double speed = ratio((double)sums[1], wall);
  rundir_record(t->dir, json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "record", "steps",
                                  "step", (json_int_t)step, "steps", (json_int_t)n_steps, "spikes",
                                  (json_int_t)sums[0], "events", (json_int_t)sums[1], "rate_hz",
                                  rate, "steps_per_second", ratio((double)n_steps, wall),
                                  "events_per_second", speed));
  snprintf(t->shown, sizeof t->shown, "%.3g Hz  %.3g events/s  %.3g x real time", rate, speed,
           ratio(simulated, wall));
  t->all_events += sums[1];
  t->line_step = step, t->line_time = now, t->spikes = t->events = 0;
}

/* ---- checkpoints ---- */

struct status trial_save(struct trial *t) {
  char path[FILE_PATH];
  const struct lif_place place = place_of(t);
  write_line(t);
  recorder_close_segment(&t->recorder);
  const struct lif_point point = {t->run->step, t->number, recorder_align(&t->recorder, t->comm),
                                  t->sim->digests};
  lif_state_init(&t->sim->net, t->sim->config.params.model, &t->state);
  lif_read(t->run, &t->state);
  rundir_checkpoint_path(t->dir, point.step, path);
  TRY(lif_save(t->comm, path, &place, &point, &t->state, t->facts));
  lif_state_free(&t->state);
  TRY(rundir_checkpoint_written(t->comm, t->dir, point.step));
  signals_saved();
  return fine();
}

/* ---- the loop ---- */

static int64_t until_multiple(int64_t step, int64_t every) {
  return every > 0 ? every - step % every : INT64_MAX;
}

/* A replica that receives a request to stop leaves `again` in the run's folder; the others look
 * there. */
enum request trial_request(const struct trial *t, double *looked) {
  const struct simulation *sim = t->sim;
  const enum request own = job_request(&sim->job);
  if (own == REQUEST_STOP || sim->grid.replicas == 1 || t->comm->rank ||
      seconds_now() - *looked < 1)
    return own;
  char path[FILE_PATH];
  *looked = seconds_now();
  rundir_file(&sim->dir, "again", path);
  return file_exists(path) ? REQUEST_STOP : own;
}

void trial_take(struct trial *t, const struct lif_batch *batch) {
  const int64_t steps = t->sim->steps,
                every = steps / METRICS_LINES > 0 ? steps / METRICS_LINES : 1;
  t->spikes += recorder_take(&t->recorder, batch);
  t->events += batch->events;
  if (t->run->step - t->line_step >= every) write_line(t);
}

int64_t trial_steps_left(const struct trial *t) {
  const int64_t step = t->run->step, left = t->sim->steps - step;
  return least_i64(least_i64(left, until_multiple(step, t->sim->job.checkpoint_every)),
                   recorder_steps_left(&t->recorder));
}

bool trial_save_due(const struct trial *t, enum request request) {
  const int64_t step = t->run->step, every = t->sim->job.checkpoint_every;
  const bool more = step < t->sim->steps;
  return request == REQUEST_SAVE ||
         (more && (request == REQUEST_STOP || (every > 0 && step % every == 0)));
}

static struct status run_steps(struct trial *t, struct lif_fault *fault, bool *stopped) {
  const int64_t steps = t->sim->steps;
  struct progress progress = progress_start("simulate", "steps", t->run->step, steps);
  double looked = 0;
  fault->step = LIF_NO_FAULT;
  while (t->run->step < steps) {
    struct lif_batch batch;
    lif_batch(t->run, t->comm, trial_steps_left(t), trial_request(t, &looked), &batch);
    trial_take(t, &batch);
    *fault = batch.fault;
    if (fault->step != LIF_NO_FAULT) return fine();
    if (trial_save_due(t, batch.request)) TRY(trial_save(t));
    *stopped = batch.request == REQUEST_STOP && t->run->step < steps;
    if (*stopped) return fine();
    progress_show(&progress, t->run->step, t->shown);
  }
  progress_end(&progress, t->run->step);
  return fine();
}

/* ---- the end ---- */

static struct status merge(struct trial *t, struct trial_result *result) {
  struct status s = fine();
  comm_barrier(t->comm); /* every rank's last segment is in place */
  watchdog_pause("merging spike segments");
  if (t->comm->rank == 0) s = trace_merge(t->dir->path, t->provenance, false, &result->trace);
  s = agree(t->comm, s);
  watchdog_resume();
  if (s.code) return s;
  comm_share(t->comm, &result->trace, sizeof result->trace, 0);
  result->merged = true;
  rundir_record(t->dir, json_pack("{s:s, s:I, s:I, s:s}", "record", "merged", "step",
                                  (json_int_t)result->trace.last_step + 1, "spikes",
                                  (json_int_t)result->trace.n_spikes, "spikes_digest",
                                  result->trace.spikes_digest));
  return s;
}

static struct status fault_status(const struct trial *t, const struct lif_fault *fault) {
  char label[64];
  neurons_label(&t->sim->neurons, fault->node, label);
  const struct lif_model_kind *kind = t->sim->config.linear.kind;
  if (!kind) return lif_fault_status(fault, label);
  const int component = fault->phase > LIF_INPUT ? fault->phase - LIF_INTEGRATE : 0;
  return lif_model_fault_status(fault, lif_model_component(kind, component).name, label);
}

/* After a fault: what was recorded before it is kept, then the fault is the result. */
static struct status end_with_fault(struct trial *t, const struct lif_fault *fault,
                                    struct trial_result *result) {
  write_line(t);
  recorder_close_segment(&t->recorder);
  TRY(merge(t, result));
  return fault_status(t, fault);
}

static struct status end_whole(struct trial *t, struct trial_result *result) {
  struct lif_fault fault;
  lif_final_check(t->run, t->comm, &fault);
  if (fault.step != LIF_NO_FAULT) return end_with_fault(t, &fault, result);
  TRY(trial_save(t));
  return merge(t, result);
}

struct status trial_end(struct trial *t, const struct lif_fault *fault, bool stopped,
                        struct trial_result *result) {
  result->stopped = stopped;
  result->step = t->run->step, result->made = t->run->step - t->point.step;
  result->seconds = seconds_now() - t->started;
  struct status end = fine();
  if (fault->step != LIF_NO_FAULT)
    end = end_with_fault(t, fault, result);
  else if (!stopped)
    end = end_whole(t, result);
  result->events = t->all_events;
  return end;
}

static struct status run_open(struct trial *t, struct lif_run *run, struct trial_result *result) {
  struct lif_fault fault;
  bool stopped = false;
  TRY(trial_start(t, run));
  TRY(run_steps(t, &fault, &stopped));
  return trial_end(t, &fault, stopped, result);
}

struct status simulate_trial(struct simulation *sim, int64_t number, struct trial_result *result) {
  struct trial t;
  struct lif_run *run = NULL;
  const struct lif_setup setup = trial_setup(sim);
  *result = (struct trial_result){0};
  struct status s = trial_open(&t, sim, number);
  if (!s.code) s = lif_open(t.comm, &setup, &run);
  if (!s.code) s = run_open(&t, run, result);
  trial_close(&t);
  lif_close(run);
  return s;
}
