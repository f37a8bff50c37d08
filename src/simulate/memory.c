/* Where the edges of a simulation are kept: in memory; in the file with a limit of what is held of
 * them; where a GPU computes, in its memory or in the host's. */
#include "lif/trials.h"
#include "record.h"
#include "core/log.h"
#include "core/mem.h"
#include "cost/cost.h"
#include "simulate.h"

#include <stdio.h>
#include <string.h>

static struct plan_graph graph_of(const struct simulation *sim) {
  const struct connectome_facts *f = connectome_facts(sim->file);
  const int delay = (int)sim->config.linear.delay; /* of every edge, or 0 */
  return (struct plan_graph){
      .n_nodes = f->n_nodes,
      .n_edges = f->n_edges,
      .min_delay = delay        ? delay
                   : f->n_edges ? f->min_delay
                                : 1,
      .max_delay = delay        ? delay
                   : f->n_edges ? f->max_delay
                                : 1,
      .wide = f->max_in_impulse > INT32_MAX,
      .components = sim->config.linear.kind ? sim->config.linear.model.shape.n_components : 0,
      .rings = lif_model_rings(&sim->config.linear.model),
      .parts = sim->grid.parts};
}

static struct plan_share share_of(const struct simulation *sim) {
  const struct comm *comm = &sim->grid.replica_comm;
  eidx from, to;
  connectome_row_ptr(sim->file, sim->first[comm->rank], 1, &from);
  connectome_row_ptr(sim->file, sim->first[comm->rank + 1], 1, &to);
  return (struct plan_share){.n_own = sim->first[comm->rank + 1] - sim->first[comm->rank],
                             .near = to - from};
}

/* ---- before the edges are read ---- */

/* Bytes that a rank needs with resident edges, and with streamed ones; `delays`: of either, what
 * a longest delay of one step would save (on a CPU). */
struct needs {
  int64_t resident, streamed, delays;
};

static double gib(int64_t bytes) {
  return (double)bytes / 0x1p30;
}

static struct status no_copy(const struct simulation *sim) {
  return failure(
      EXIT_USAGE,
      "--residency streamed: %s has no edges by source to stream from; `fascicle order %s "
      "--streamable --output NEW.h5` adds them (convert and generate take --streamable too)",
      sim->graph, sim->graph);
}

/* Rounded up, so that what the line says is enough. */
static double enough(int64_t bytes) {
  return gib(bytes) + 0.001;
}

/* Where delays take most of the memory, that is what to change. */
static void say_delays(const struct needs *needs, int max_delay, char *text, size_t room) {
  text[0] = 0;
  if (needs->delays > needs->streamed / 2)
    snprintf(text, room,
             "; %.3f GiB of this are sums and a checkpoint's copy for each step of the longest "
             "delay, %d steps: a shorter longest delay needs less",
             gib(needs->delays), max_delay);
}

static struct status does_not_fit(const struct simulation *sim, const struct needs *needs,
                                  bool streamed, int max_delay) {
  const int64_t has = sim->job.memory_bytes;
  char delays[256];
  say_delays(needs, max_delay, delays, sizeof delays);
  if (streamed)
    return failure(
        EXIT_USAGE,
        "%s: a rank needs %.3f GiB even with streamed edges and has %.3f GiB; it would fit with "
        "--memory %.3f or more ranks%s",
        sim->graph, gib(needs->streamed), gib(has), enough(needs->streamed), delays);
  if (needs->streamed > has)
    return failure(EXIT_USAGE,
                   "%s: a rank needs %.3f GiB with resident edges (%.3f with streamed ones) and "
                   "has %.3f GiB; it would fit with --memory %.3f or more ranks%s",
                   sim->graph, gib(needs->resident), gib(needs->streamed), gib(has),
                   enough(needs->resident), delays);
  return failure(
      EXIT_USAGE,
      "%s: a rank needs %.3f GiB with resident edges and has %.3f GiB; it would fit with --memory "
      "%.3f, more ranks, or --residency streamed%s",
      sim->graph, gib(needs->resident), gib(has), enough(needs->resident),
      connectome_facts(sim->file)->streamable
          ? ""
          : " on a graph made with --streamable (`fascicle order` adds what it needs to this one)");
}

/* "auto": resident if every rank can, else streamed if the file can. */
static struct status decide(struct simulation *sim, const struct needs *needs, bool resident_fits,
                            bool streamed_fits, int max_delay) {
  const bool streamable = connectome_facts(sim->file)->streamable;
  const bool ordered = !strcmp(sim->residency, "streamed"), any = !strcmp(sim->residency, "auto");
  if (ordered && !streamable) return no_copy(sim);
  sim->streamed = ordered || (any && !resident_fits && streamable);
  if (sim->streamed ? streamed_fits : resident_fits) return fine();
  return does_not_fit(sim, needs, sim->streamed, max_delay);
}

static void say(const struct simulation *sim, const struct needs *needs) {
  const double all = (double)connectome_facts(sim->file)->n_edges * sizeof(struct lif_edge) * 1e-6;
  if (sim->streamed)
    log_line("edges streamed from the file%s: a rank needs at least %.3f of its %.3f GiB; it holds "
             "up to %.1f MB "
             "of edges at a time (all: %.1f MB)%s",
             strcmp(sim->residency, "auto") ? "" : ", as they do not fit", gib(needs->streamed),
             gib(sim->job.memory_bytes), (double)sim->held * 1e-6, all,
             sim->job.n_readers ? "; further threads on free cores read ahead" : "");
  else
    log_line("edges resident: a rank needs %.3f of its %.3f GiB", gib(needs->resident),
             gib(sim->job.memory_bytes));
}

/* Where a CPU computes. */
static struct status on_cpu(const struct comm *world, struct simulation *sim,
                            const struct plan_graph *graph, const struct plan_share *share) {
  const int64_t has = sim->job.memory_bytes;
  struct needs needs = {plan_simulate_memory(graph, share, RECORD_BYTES).total,
                        plan_streamed_memory(graph, share, RECORD_BYTES, PLAN_LEAST_HELD).total, 0};
  struct plan_graph short_delays = *graph;
  short_delays.max_delay = 1;
  needs.delays = needs.streamed -
                 plan_streamed_memory(&short_delays, share, RECORD_BYTES, PLAN_LEAST_HELD).total;
  sim->held = plan_held(graph, share, RECORD_BYTES, has);
  int64_t fits[2] = {needs.resident <= has, needs.streamed <= has};
  comm_min_i64(world, fits, 2);
  comm_max_i64(world, &needs.resident, sizeof needs / sizeof needs.resident);
  TRY(agree(world, decide(sim, &needs, fits[0], fits[1], graph->max_delay)));
  say(sim, &needs);
  return fine();
}

/* ---- where a GPU computes ---- */

/* Resident if every rank can, else streamed from host memory. */
static struct status decide_on_device(struct simulation *sim, const struct needs *needs,
                                      int64_t has) {
  const bool ordered = !strcmp(sim->residency, "streamed"), any = !strcmp(sim->residency, "auto");
  sim->streamed = ordered || (any && needs->resident > has);
  if ((sim->streamed ? needs->streamed : needs->resident) <= has) return fine();
  if (sim->streamed)
    return failure(
        EXIT_USAGE,
        "%s: a GPU needs %.3f GiB even with edges streamed from host memory and has %.3f GiB; it "
        "would fit with --memory %.3f or more ranks",
        sim->graph, gib(needs->streamed), gib(has), enough(needs->streamed));
  return failure(
      EXIT_USAGE,
      "%s: a GPU needs %.3f GiB with resident edges and has %.3f GiB; it would fit with --memory "
      "%.3f, more ranks, or --residency streamed",
      sim->graph, gib(needs->resident), gib(has), enough(needs->resident));
}

/* As many trials of this replica as pay and as the device has room for: they share the edges,
 * a launch and a barrier. */
static int trials_at_once(const struct simulation *sim, const struct plan_graph *graph,
                          const struct plan_share *share, int64_t has) {
  const int64_t mine =
      (sim->trials - sim->grid.replica + sim->grid.replicas - 1) / sim->grid.replicas;
  int n = lif_group_worthwhile(sim->job.backend->lif, (lidx)share->n_own);
  if (sim->grid.replica_comm.size > 1) return 1;
  if (n > mine) n = (int)mine;
  while (n > 1 && plan_device_memory(graph, share, n, sim->streamed ? 0 : -1).total > has) n--;
  return n < 1 ? 1 : n;
}

static int64_t host_share(const struct simulation *sim) {
  return mem_of_host() / sim->job.local_size;
}

static struct status on_device(const struct comm *world, struct simulation *sim,
                               const struct plan_graph *graph, const struct plan_share *share) {
  const int64_t has = sim->job.memory_bytes;
  int64_t host = host_share(sim),
          host_needs = plan_simulate_memory(graph, share, RECORD_BYTES).total;
  struct needs needs = {plan_device_memory(graph, share, 1, -1).total,
                        plan_device_memory(graph, share, 1, 0).total, 0};
  comm_min_i64(world, &host, 1), comm_max_i64(world, &host_needs, 1);
  comm_max_i64(world, &needs.resident, sizeof needs / sizeof needs.resident);
  if (host_needs > host)
    return failure(EXIT_USAGE,
                   "%s: a rank needs %.3f GiB of host memory and has %.3f GiB; use more ranks",
                   sim->graph, gib(host_needs), gib(host));
  TRY(agree(world, decide_on_device(sim, &needs, has)));
  sim->at_once = trials_at_once(sim, graph, share, has);
  if (sim->streamed)
    sim->device_room = has - plan_device_memory(graph, share, sim->at_once, 0).total;
  const int64_t all = 8 * (share->near + share->far);
  if (sim->device_room > all) sim->device_room = all;
  if (sim->streamed)
    log_line("edges streamed from host memory%s: the GPU has %.3f GiB, of which %.1f MB keep edges "
             "that it "
             "has read, of %.1f MB",
             strcmp(sim->residency, "auto") ? "" : ", as they do not fit", gib(has),
             (double)sim->device_room * 1e-6, (double)all * 1e-6);
  else
    log_line("edges resident: the GPU needs %.3f of its %.3f GiB",
             gib(plan_device_memory(graph, share, sim->at_once, -1).total), gib(has));
  return fine();
}

struct status simulate_residency(const struct comm *world, struct simulation *sim) {
  const struct plan_graph graph = graph_of(sim);
  const struct plan_share share = share_of(sim);
  sim->at_once = 1;
  return sim->job.backend->own_memory ? on_device(world, sim, &graph, &share)
                                      : on_cpu(world, sim, &graph, &share);
}

/* ---- after the last step ---- */

void simulate_check_memory(const struct simulation *sim) {
  const struct plan_graph graph = graph_of(sim);
  const struct plan_share share = share_of(sim);
  const struct backend *backend = sim->job.backend;
  const bool device = backend->own_memory;
  const struct plan_memory predicted =
      device
          ? plan_device_memory(&graph, &share, sim->at_once, sim->streamed ? sim->device_room : -1)
      : sim->streamed ? plan_streamed_memory(&graph, &share, 0, sim->held)
                      : plan_simulate_memory(&graph, &share, 0);
  if (device)
    plan_check(&predicted, 0, backend->peak());
  else
    plan_check(&predicted, RECORD_BYTES, mem_peak());
}
