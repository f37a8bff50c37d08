/* fascicle plan: says what a job takes, before it is started or its machine exists. */
#include "plan.h"
#include "kernels/interface/backends.h"
#include "simulate/record.h"
#include "core/mem.h"
#include "run/verbs.h"

#include <stdio.h>
#include <string.h>

/* As a run takes them: rows and spikes straight into the other's memory on one host, else the
 * machine's first link, which gradients always take. */
static void choose_links(const struct plan_request *r, int parts, struct plan_layout *l) {
  const struct machine *m = &r->machine;
  const bool one_host = parts <= l->ranks_per_host, peer = strcmp(r->transport, "nccl") && one_host;
  const struct link *asked = machine_link(m, r->transport),
                    *near = peer ? machine_link(m, "peer") : NULL;
  const struct link *spikes = machine_link(m, peer ? "spikes" : "spikes_hosts");
  l->sums = &m->link[0];
  l->host = asked ? asked : near ? near : l->sums;
  l->spikes = spikes ? spikes : l->host;
}

static int64_t memory_limit(const struct plan_request *r) {
  if (r->memory_gib > 0) return (int64_t)(r->memory_gib * 0x1p30);
  if (r->machine.memory) return r->machine.memory;
  return mem_of_host() / r->ranks;
}

static struct status count(const struct comm *alone, const struct plan_request *r, int parts,
                           struct plan_answer *a) {
  const int per_host = parts < r->layout.ranks_per_host ? parts : r->layout.ranks_per_host;
  if (!r->path) {
    a->graph = (struct plan_graph){.n_nodes = r->nodes,
                                   .n_edges = r->edges,
                                   .min_delay = (int)r->min_delay,
                                   .max_delay = (int)r->min_delay,
                                   .parts = parts,
                                   .per_host = per_host,
                                   .far_share = r->far_edges};
    plan_guess(job_exchange(&r->job), &a->graph);
    a->streamable = true;
    return fine();
  }
  struct connectome_file *file;
  TRY(connectome_open(alone, r->path, &file));
  plan_count(alone, file, parts, per_host, job_exchange(&r->job), &a->graph);
  a->streamable = plan_on_gpu(r) || connectome_facts(file)->streamable;
  connectome_close(file);
  return fine();
}

/* Training counts local rows in 31 bits, edges on a GPU in 32. */
static bool can_count(const struct plan_request *r, const struct plan_answer *a) {
  if (!plan_trains(r)) return plan_largest(&a->graph)->n_own <= INT32_MAX;
  const struct plan_share *s = plan_largest(&a->graph);
  return s->n_own + s->n_halo <= INT32_MAX &&
         (!plan_on_gpu(r) || s->near + s->far <= UINT32_MAX - 65536);
}

bool plan_fits(const struct plan_request *r, const struct plan_answer *a) {
  return a->memory.total <= a->limit && can_count(r, a);
}

/* What `train` would refuse whatever the memory. */
static struct status can_train(const struct plan_request *r, const struct train_config *c,
                               int parts, const struct plan_graph *graph) {
  const char *name = r->path ? r->path : "the graph";
  const int64_t replicas = r->ranks / parts;
  if (c->n_input > graph->n_nodes || c->n_output > graph->n_nodes)
    return failure(
        EXIT_USAGE,
        "plan: \"n_input\" is %lld and \"n_output\" %lld, but %s has %lld neurons; choose at most "
        "so many with --set",
        (long long)c->n_input, (long long)c->n_output, name, (long long)graph->n_nodes);
  if (c->batch < replicas)
    return failure(
        EXIT_USAGE,
        "plan: \"batch\" is %lld, but there are %lld replicas; raise it, or use more --parts",
        (long long)c->batch, (long long)replicas);
  return fine();
}

/* On a GPU: what it needs, and what is left of the limit keeps edges that it has read. */
static void simulate_on_device(struct plan_answer *a) {
  const struct plan_share *share = plan_largest(&a->graph);
  const int64_t all = 8 * (share->near + share->far);
  int64_t room = a->limit - plan_device_memory(&a->graph, share, 1, 0).total;
  room = room < 0 ? 0 : room > all ? all : room;
  a->memory = plan_device_memory(&a->graph, share, 1, a->streamed ? room : -1);
  a->host = plan_simulate_memory(&a->graph, share, RECORD_BYTES);
  a->host_edges = a->streamed && all ? 1 - (double)room / (double)all : 0;
}

static void simulate_on_cpu(struct plan_answer *a) {
  const struct plan_share *share = plan_largest(&a->graph);
  const int64_t held = plan_held(&a->graph, share, RECORD_BYTES, a->limit);
  a->memory = a->streamed ? plan_streamed_memory(&a->graph, share, RECORD_BYTES, held)
                          : plan_simulate_memory(&a->graph, share, RECORD_BYTES);
}

static void plan_simulation(const struct plan_request *r, struct plan_answer *a) {
  struct plan_layout layout = a->layout;
  if (plan_on_gpu(r))
    simulate_on_device(a);
  else
    simulate_on_cpu(a);
  layout.host_edges = a->host_edges;
  a->step = plan_simulate_step(&a->graph, &layout, r->active);
}

static void set_model(const struct lif_model_kind *kind, struct plan_graph *graph) {
  graph->components = kind->n_components;
  graph->rings = lif_model_kind_rings(kind);
}

/* The plan for a given number of parts. */
static struct status try_parts(const struct comm *alone, const struct plan_request *r,
                               const struct train_config *c, int parts, struct plan_answer *a) {
  plan_graph_free(&a->graph);
  TRY(count(alone, r, parts, a));
  if (r->model) set_model(lif_model_find(r->model), &a->graph);
  a->layout = r->layout;
  choose_links(r, parts, &a->layout);
  const struct plan_share *share = plan_largest(&a->graph);
  const int replicas = (int)r->ranks / parts;
  if (!plan_trains(r)) {
    plan_simulation(r, a);
    return fine();
  }
  TRY(can_train(r, c, parts, &a->graph));
  a->training =
      (struct plan_training){.shape = {.batch = (int)((c->batch + replicas - 1) / replicas),
                                       .steps = (int)c->steps_per_window,
                                       .microsteps = (int)c->microsteps},
                             .vocabulary = (int)r->vocabulary,
                             .embedding = (int)c->embedding,
                             .n_input = c->n_input,
                             .n_output = c->n_output,
                             .replicas = replicas,
                             .characters = r->characters,
                             .mixed = c->precision == PRECISION_MIXED};
  if (plan_on_gpu(r)) {
    a->memory = plan_train_device_memory(&backend_cuda, &a->graph, share, &a->training);
    a->host = plan_train_host_memory(&a->graph, share, &a->training);
  } else
    a->memory = plan_train_memory(&backend_cpu, &a->graph, share, &a->training);
  a->step = plan_train_step(&a->graph, &a->layout, &a->training);
  return fine();
}

static struct status check_streamed(const struct plan_request *r, const struct plan_answer *a) {
  if (!a->streamed || a->streamable) return fine();
  return failure(
      EXIT_USAGE,
      "plan: --residency streamed: %s has no edges by source to stream from; `fascicle order %s "
      "--streamable --output NEW.h5` adds them",
      r->path, r->path);
}

/* Resident edges do not fit on any number of parts: then as a run would, which
 * streams them if it can. */
static void stream_instead(const struct plan_request *r, struct plan_answer *a) {
  if (strcmp(r->kind, "simulate") || strcmp(r->residency, "auto") || !a->streamable) return;
  if (a->memory.total <= a->limit) return;
  a->streamed = true;
  plan_simulation(r, a);
}

/* Splitting the batch is cheaper than splitting the graph: the fewest parts that fit. A simulation
 * of one trial has nothing else to split. */
static struct status choose(const struct comm *alone, const struct plan_request *r,
                            const struct train_config *c, struct plan_answer *a) {
  a->limit = memory_limit(r);
  a->streamed = !strcmp(r->residency, "streamed");
  const int only = (int)(r->parts || strcmp(r->kind, "simulate") ? r->parts : r->ranks);
  for (int parts = only ? only : 1; parts <= (only ? only : r->ranks); parts++) {
    if (r->ranks % parts || (!only && r->ranks / parts > c->batch)) continue;
    TRY(try_parts(alone, r, c, parts, a));
    if (plan_fits(r, a)) break;
  }
  stream_instead(r, a);
  return check_streamed(r, a);
}

/* The smallest change that would make it fit: more parts if they help, else how much memory. */
static struct status refuse(const struct comm *alone, const struct plan_request *r,
                            const struct train_config *c, const struct plan_answer *a) {
  struct plan_answer other = {.limit = a->limit, .streamed = a->streamed};
  char remedy[256];
  snprintf(remedy, sizeof remedy, "--memory %.1f or a smaller batch",
           (double)a->memory.total / 0x1p30 + 0.05);
  struct plan_request wider = *r;
  for (int parts = a->graph.parts * 2; parts <= a->graph.parts * 64; parts *= 2) {
    if (wider.ranks % parts) wider.ranks = parts;
    TRY(try_parts(alone, &wider, c, parts, &other));
    if (!plan_fits(&wider, &other)) continue;
    snprintf(remedy, sizeof remedy, "--parts %d on %lld ranks (%.2f GiB each), or --memory %.1f",
             parts, (long long)wider.ranks, (double)other.memory.total / 0x1p30,
             (double)a->memory.total / 0x1p30 + 0.05);
    break;
  }
  plan_graph_free(&other.graph);
  if (!can_count(r, a))
    return failure(
        EXIT_USAGE,
        "plan: a rank would hold %lld rows and %lld edges, more than 2,147,483,647 rows or (on a "
        "GPU) 4,294,901,759 edges; use more --parts",
        (long long)(plan_largest(&a->graph)->n_own + plan_largest(&a->graph)->n_halo),
        (long long)(plan_largest(&a->graph)->near + plan_largest(&a->graph)->far));
  return failure(EXIT_USAGE, "plan: a rank needs %.2f GiB and has %.2f GiB; it would fit with %s",
                 (double)a->memory.total / 0x1p30, (double)a->limit / 0x1p30, remedy);
}

static struct status plan(const struct comm *alone, struct plan_request *r) {
  struct train_config config;
  struct plan_answer a = {0};
  TRY(plan_request_machine(r));
  TRY(plan_request_config(r, &config));
  TRY(choose(alone, r, &config, &a));
  a.steps = r->steps              ? r->steps
            : plan_trains(r)      ? config.train_steps
            : 1000 / r->dt_ms < 1 ? 1
                                  : (int64_t)(1000 / r->dt_ms + 0.5);
  plan_answer_print(r, &a, plan_fits(r, &a));
  struct status s = plan_fits(r, &a) ? fine() : refuse(alone, r, &config, &a);
  plan_graph_free(&a.graph);
  return s;
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct plan_request r = plan_request_defaults();
  TRY(plan_request_parse(argc, argv, &r));
  struct comm alone = comm_split(world, world->rank > 0, world->rank);
  const struct status s = agree(world, world->rank == 0 ? plan(&alone, &r) : fine());
  comm_free(&alone);
  return s;
}

const struct verb verb_plan = {"plan", "memory, traffic and time of a job before it runs", run};
