/* Runs several trials of one network together, where the backend offers it. */
#include "trials.h"
#include "core/mem.h"
#include "core/watchdog.h"

enum { MOST_AT_ONCE = 4096 }; /* steps between looks at signals */

int lif_group_worthwhile(const struct lif_backend *backend, lidx n_own) {
  return backend->together ? backend->together->worthwhile(n_own) : 1;
}

struct status lif_group_open(const struct lif_setup *setup, int n, struct lif_group *g) {
  *g = (struct lif_group){.setup = *setup, .n = n};
  TRY(setup->backend->together->open(setup->net, &g->setup.params, setup->stimulus,
                                     setup->n_stimuli, setup->seed, n, &g->engine));
  g->run = NEW_ZERO(struct lif_run, n);
  g->own = NEW_ZERO(struct lif_spikes, n), g->tally = NEW_ZERO(struct lif_tally, n);
  for (int k = 0; k < n; k++)
    g->run[k] = (struct lif_run){.setup = g->setup, .engine = g->engine, .lane = k, .shared = true};
  return fine();
}

void lif_group_close(struct lif_group *g) {
  if (g->engine) g->setup.backend->close(g->engine);
  mem_free(g->run), mem_free(g->own), mem_free(g->tally);
  *g = (struct lif_group){0};
}

void lif_group_start(struct lif_group *g, int alive) {
  g->alive = alive, g->step = g->run[0].step;
}

/* The steps before a fault count. */
static void cut(struct lif_group *g, int k, const struct lif_fault *fault,
                struct lif_batch *batch) {
  batch->fault = *fault;
  batch->n_steps = (int)(fault->step - batch->step);
  if (g->setup.unrecorded) return;
  g->own[k].n_steps = batch->n_steps;
  g->own[k].n = g->own[k].step_ptr[batch->n_steps];
}

void lif_group_batch(struct lif_group *g, int64_t n, struct lif_batch *batch) {
  struct lif_fault fault;
  int faulty = g->alive;
  const int64_t made = g->setup.backend->together->run(
      g->engine, g->alive, n < MOST_AT_ONCE ? n : MOST_AT_ONCE, g->setup.unrecorded ? NULL : g->own,
      g->tally, &fault, &faulty);
  for (int k = 0; k < g->alive; k++) {
    const struct lif_tally *t = &g->tally[k];
    batch[k] = (struct lif_batch){.step = g->step,
                                  .n_steps = (int)made,
                                  .own = &g->own[k],
                                  .sent = t->sent,
                                  .events = t->events,
                                  .host_events = t->host_events,
                                  .fault = {.step = LIF_NO_FAULT}};
    if (k == faulty) cut(g, k, &fault, &batch[k]);
    g->run[k].step += batch[k].n_steps;
  }
  g->step += made, g->alive = faulty;
  pulse("simulation step");
}
