/* Bytes that travel and time of a step. First-order: work at measured rates, an exchange hidden behind the
 * work on own edges as far as that lasts. */
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Each figure was printed by `fascicle bench` on the machine named; see README, "Measured". */
static const struct plan_machine machines[] = {
    {.name = "cpu",
     .origin = "AMD EPYC with AVX-512, one thread of two: bench recurrence 5,000 / 524,324 and bench lif "
               "211,577 / 24.7M, 2026-11-30",
     .gather_forward = 80e9,
     .gather_backward = 57e9,
     .lif_neuron = 7e-11,
     .lif_event = 3.6e-9,
     .latency = 2e-6,
     .bandwidth = 5e9},
    {.name = "h200",
     .origin = "H200: bench recurrence and gpu_bench_lif at 211,577 / 24.7M, 2026-11-30 "
               "(kernels/cuda/VERSIONS.md); "
               "NCCL 2.28 over NVLink: send + receive 6.8 us at 4 KB, 208 GB/s at 16 MB",
     .gather_forward = 9.1e12,
     .gather_backward = 7.2e12,
     .lif_neuron = 1.3e-11,
     .lif_event = 1.6e-11,
     .latency = 6.8e-6,
     .bandwidth = 208e9,
     .memory = 141ll * 1000 * 1000 * 1000}};
enum { N_MACHINES = sizeof machines / sizeof *machines };

const struct plan_machine *plan_machine_find(const char *name) {
  for (int i = 0; i < N_MACHINES; i++)
    if (!strcmp(machines[i].name, name)) return &machines[i];
  return NULL;
}

const char *plan_machine_names(void) {
  return "cpu|h200";
}

double plan_transfer_floor(const struct plan_machine *m, double bytes) {
  return m->latency + bytes / m->bandwidth;
}

static double exchange_time(const struct plan_machine *m, int parts, double bytes) {
  return parts > 1 ? m->latency + bytes / m->bandwidth : 0;
}

struct plan_step plan_simulate_step(const struct plan_graph *g, const struct plan_machine *m, int threads,
                                    double active) {
  const struct plan_share *s = plan_largest(g);
  const double spikes = active * (double)g->n_nodes, edges = (double)(s->near + s->far);
  struct plan_step step = {.bytes_sent =
                               g->parts > 1 ? (int64_t)(4 * active * (double)s->n_own * (g->parts - 1)) : 0};
  step.compute = ((double)s->n_own * m->lif_neuron +
                  spikes * edges / (double)(g->n_nodes ? g->n_nodes : 1) * m->lif_event) /
                 threads;
  /* Lists of 4-byte rows, once per minimum delay. */
  step.exchange = exchange_time(m, g->parts, 4 * spikes * g->min_delay) / g->min_delay;
  step.total = step.compute + step.exchange;
  return step;
}

struct plan_step plan_train_step(const struct plan_graph *g, const struct plan_machine *m, int threads,
                                 const struct plan_training *t) {
  const struct plan_share *s = plan_largest(g);
  const double k = (double)t->shape.steps * t->shape.microsteps, row = 4.0 * t->shape.batch;
  const double near = (double)s->near * row, far = (double)s->far * row, halo = (double)s->n_halo * row;
  const double forward_near = near / m->gather_forward / threads,
               forward_far = far / m->gather_forward / threads;
  const double backward_near = near / m->gather_backward / threads,
               backward_far = far / m->gather_backward / threads;
  const double travel = exchange_time(m, g->parts, halo);
  const double gradients = 4.0 * (double)(s->near + s->far);
  struct plan_step step = {.bytes_sent = (int64_t)(2 * k * halo)};
  step.compute = k * (forward_near + forward_far + backward_near + backward_far);
  step.exchange = 2 * k * travel;
  step.total = k * (fmax(forward_near, travel) + forward_far + fmax(backward_near, travel) + backward_far);
  if (t->replicas > 1) {
    step.bytes_sent += (int64_t)(2 * gradients);
    step.exchange += m->latency + 2 * gradients / m->bandwidth;
    step.total += m->latency + 2 * gradients / m->bandwidth;
  }
  return step;
}
