/* Measures the steps of a simulation, alone or trials together. */
#include "lif_time.h"
#include "core/clock.h"
#include "core/mem.h"

static void stop_at_fault(const struct lif_batch *batch) {
  if (batch->fault.step != LIF_NO_FAULT)
    DIE(EXIT_RUNTIME, "bench lif: %s", lif_fault_status(&batch->fault, NULL).text);
}

/* What is summed over the steps that count: events, spikes, events from the host, steps. */
enum { EVENTS, SPIKES, HOST_EVENTS, COUNTS };

static void add_counts(const struct lif_batch *batch, int64_t *counts) {
  stop_at_fault(batch);
  counts[EVENTS] += batch->events, counts[SPIKES] += batch->sent,
      counts[HOST_EVENTS] += batch->host_events;
}

static void summarize(const struct lif_fixture *fixture, double *seconds, int64_t n, int64_t steps,
                      int64_t *counts, struct lif_measured *m) {
  m->seconds = bench_slowest(fixture->comm, bench_median(seconds, n));
  m->best = bench_slowest(fixture->comm, seconds[0]);
  m->held_bytes = mem_held();
  counts[SPIKES] = fixture->comm->rank ? 0 : counts[SPIKES]; /* each rank counts those of all */
  comm_sum_i64(fixture->comm, counts, COUNTS), comm_max_i64(fixture->comm, &m->held_bytes, 1);
  const double made = (double)steps;
  m->events = (double)counts[EVENTS] / made, m->spikes = (double)counts[SPIKES] / made;
  m->host_events = (double)counts[HOST_EVENTS] / made;
}

void lif_time_steps(const struct lif_fixture *fixture, struct lif_run *run, int64_t warm_up,
                    int64_t n_steps, struct lif_measured *m) {
  double *seconds = NEW(double, n_steps);
  int64_t n = 0, counts[COUNTS] = {0}, steps = 0;
  comm_barrier(fixture->comm);
  while (run->step < n_steps) {
    struct lif_batch batch;
    const double before = seconds_now();
    lif_batch(run, fixture->comm, (run->step < warm_up ? warm_up : n_steps) - run->step,
              REQUEST_NONE, &batch);
    stop_at_fault(&batch);
    if (batch.step < warm_up) continue;
    seconds[n++] = (seconds_now() - before) / batch.n_steps;
    add_counts(&batch, counts), steps += batch.n_steps;
  }
  summarize(fixture, seconds, n, steps, counts, m);
  mem_free(seconds);
}

void lif_time_trials(const struct lif_fixture *fixture, struct lif_group *g, int64_t warm_up,
                     int64_t n_steps, struct lif_measured *m) {
  double *seconds = NEW(double, n_steps);
  struct lif_batch *batch = NEW(struct lif_batch, g->n);
  int64_t n = 0, counts[COUNTS] = {0}, steps = 0;
  while (g->step < n_steps) {
    const int64_t first = g->step;
    const double before = seconds_now();
    lif_group_batch(g, (first < warm_up ? warm_up : n_steps) - first, batch);
    if (g->alive < g->n) stop_at_fault(&batch[g->alive]);
    if (first < warm_up) continue;
    const int64_t made = (g->step - first) * g->n;
    seconds[n++] = (seconds_now() - before) / (double)made;
    for (int k = 0; k < g->n; k++) add_counts(&batch[k], counts);
    steps += made;
  }
  summarize(fixture, seconds, n, steps, counts, m);
  mem_free(seconds), mem_free(batch);
}
