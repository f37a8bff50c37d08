/* Trials that go step by step together on one device. What each records, saves and leaves is what
 * it would alone. The first that meets a fault ends the run, as it does where trials follow each
 * other: those above it are given up, those below it go on to their end first. */
#include "lif/trials.h"
#include "core/log.h"
#include "core/mem.h"
#include "trial.h"

struct together {
  struct simulation *sim;
  int n;               /* trials here */
  struct trial *trial; /* [room] by number, sim->grid.replicas apart */
  struct lif_batch *batch;
  struct lif_group group;
  struct lif_fault fault; /* of trial group.alive, where there is one */
};

static int64_t number_of(const struct together *g, int64_t first, int k) {
  return first + (int64_t)k * g->sim->grid.replicas;
}

/* Trials that are at the same step, `room` at most; one that is elsewhere is
 * left for the next call. */
static struct status open_trials(struct together *g, int64_t first, int room) {
  while (g->n < room && number_of(g, first, g->n) < g->sim->trials) {
    struct trial *t = &g->trial[g->n];
    const struct status s = trial_open(t, g->sim, number_of(g, first, g->n));
    if (s.code || t->point.step != g->trial[0].point.step) {
      trial_close(t);
      return s;
    }
    g->n++;
  }
  return fine();
}

static struct status start_trials(struct together *g) {
  const struct lif_setup setup = trial_setup(g->sim);
  TRY(agree(&g->sim->grid.replica_comm, lif_group_open(&setup, g->n, &g->group)));
  for (int k = 0; k < g->n; k++) TRY(trial_start(&g->trial[k], &g->group.run[k]));
  lif_group_start(&g->group, g->n);
  log_line("%d trials together, %lld to %lld", g->n, (long long)g->trial[0].number,
           (long long)g->trial[g->n - 1].number);
  return fine();
}

static void take(struct together *g, int n) {
  for (int k = 0; k < n; k++)
    if (k <= g->group.alive) trial_take(&g->trial[k], &g->batch[k]);
  if (g->group.alive < n) g->fault = g->batch[g->group.alive].fault;
}

static struct status save(struct together *g) {
  for (int k = 0; k < g->group.alive; k++) TRY(trial_save(&g->trial[k]));
  return fine();
}

static struct status run_steps(struct together *g, bool *stopped) {
  const int64_t steps = g->sim->steps;
  struct trial *first = &g->trial[0];
  struct progress progress = progress_start("simulate", "steps", g->group.step, steps);
  double looked = 0;
  while (g->group.alive > 0 && g->group.step < steps) {
    const int n = g->group.alive;
    const enum request request = trial_request(first, &looked);
    lif_group_batch(&g->group, trial_steps_left(first), g->batch);
    take(g, n);
    if (g->group.alive == 0) break;
    if (trial_save_due(first, request)) TRY(save(g));
    *stopped = request == REQUEST_STOP && g->group.step < steps;
    if (*stopped) return fine();
    progress_show(&progress, g->group.step, first->shown);
  }
  progress_end(&progress, g->group.step);
  return fine();
}

/* In the order of their numbers, as if one had followed the other. */
static struct status end_trials(struct together *g, bool stopped, struct trial_result *result) {
  const struct lif_fault none = {.step = LIF_NO_FAULT};
  for (int k = 0; k < g->group.alive; k++) TRY(trial_end(&g->trial[k], &none, stopped, &result[k]));
  if (stopped || g->fault.step == LIF_NO_FAULT) return fine();
  return trial_end(&g->trial[g->group.alive], &g->fault, false, &result[g->group.alive]);
}

static struct status run_together(struct together *g, int64_t first, int room,
                                  struct trial_result *result) {
  bool stopped = false;
  TRY(open_trials(g, first, room));
  TRY(start_trials(g));
  TRY(run_steps(g, &stopped));
  return end_trials(g, stopped, result);
}

struct status simulate_together(struct simulation *sim, int64_t first, int room,
                                struct trial_result *result, int *n) {
  struct together g = {.sim = sim,
                       .trial = NEW_ZERO(struct trial, room),
                       .batch = NEW_ZERO(struct lif_batch, room),
                       .fault = {.step = LIF_NO_FAULT}};
  for (int k = 0; k < room; k++) result[k] = (struct trial_result){0};
  const struct status s = run_together(&g, first, room, result);
  *n = g.n;
  for (int k = 0; k < g.n; k++) trial_close(&g.trial[k]);
  lif_group_close(&g.group);
  mem_free(g.trial), mem_free(g.batch);
  return s;
}
