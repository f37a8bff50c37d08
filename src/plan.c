/* fascicle plan: what a job takes, before it is started or its machine exists. */
#include "plan.h"
#include "backends.h"
#include "job.h"
#include "lif_record.h"
#include "mem.h"
#include "options.h"
#include "train_config.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

static const struct usage usage = {
    .verb = "plan",
    .operands = "[graph.h5]",
    .most = 1,
    .about = "Bytes of a rank by item, bytes that travel in a step, predicted time of a step, and the grid "
             "that fits, for a graph file or for one that does not exist yet (--nodes, --edges: sources at "
             "random, so the halo is at its largest). A job that does not fit ends with code 2 and the "
             "smallest change that would, after the same table.\n\n"
             "In training on a split graph the states of halo rows are saved with the others in the forward "
             "pass, not sent again in the backward pass: the gradients of edges from the halo need them.",
    .example = "  fascicle plan graph.h5 --job train --ranks 4\n"
               "  fascicle plan --nodes 211577 --edges 24700000 --job train --ranks 16 --device h200 --set "
               "batch=128\n"
               "  fascicle plan graph.h5 --job simulate --ranks 2 --parts 2 --memory 8 --json\n"
               "  fascicle plan graph.h5 --job train --ranks 128 --gpus-per-host 8 --device h200 "
               "--network-bandwidth 50"};

struct plan_request {
  const char *path, *kind, *config, *device, *machine_file, *residency, *transport;
  struct texts set;
  int64_t ranks, parts, per_host, nodes, edges, min_delay, threads, vocabulary, characters;
  double memory_gib, active, far_edges;
  double nvlink_rate, network_rate;       /* GB/s; 0: the machine's */
  double nvlink_latency, network_latency; /* microseconds; below 0: the machine's */
  bool as_json;
  struct job job; /* for --exchange */
  struct machine machine;
  struct plan_layout layout;
};

struct answer {
  struct plan_graph graph;
  struct plan_training training;
  struct plan_memory memory, host; /* of a rank, on its device; what a simulation takes beside a GPU */
  struct plan_layout layout;       /* with the links that so many parts take */
  struct plan_step step;
  int64_t limit;
  bool streamed;     /* edges stay in the file, or in host memory beside a GPU */
  bool streamable;   /* they could */
  double host_edges; /* the share of them that a GPU does not keep */
};

static struct status parse(int argc, char **argv, struct plan_request *r) {
  const struct option options[] = {
      {"job", OPTION_TEXT, "train|simulate", "which job", &r->kind, 0, 0},
      {"ranks", OPTION_INT, "R", "ranks of the job (1)", &r->ranks, 1, 1 << 20},
      {"parts", OPTION_INT, "P",
       "ranks that share one copy of the graph (train: the fewest that fit; simulate: all, for one trial)",
       &r->parts, 1, 1 << 20},
      {"config", OPTION_TEXT, "FILE", "the training's configuration", &r->config, 0, 0},
      {"set", OPTION_LIST, "KEY=VALUE", "change one key of it; may be repeated", &r->set, 0, 0},
      {"device", OPTION_TEXT, machine_names(), "whose measured rates to use (cpu)", &r->device, 0, 0},
      {"machine", OPTION_TEXT, "FILE", "a machine's rates, like jobs/conf/machine_h200.json",
       &r->machine_file, 0, 0},
      {"gpus-per-host", OPTION_INT, "G", "ranks of one host (all): others are reached by the network",
       &r->per_host, 1, 1 << 20},
      {"transport", OPTION_TEXT, "auto|nccl|peer|mpi",
       "as in train and simulate (auto: peer where a copy of the graph stays on one host, else nccl)",
       &r->transport, 0, 0},
      {"nvlink-bandwidth", OPTION_REAL, "GB/S", "of a rank within its host, each way (as measured)",
       &r->nvlink_rate, 0, 0},
      {"nvlink-latency", OPTION_REAL, "US", "of an exchange within a host, microseconds (as measured)",
       &r->nvlink_latency, 0, 0},
      {"network-bandwidth", OPTION_REAL, "GB/S", "of a rank to other hosts, each way", &r->network_rate, 0,
       0},
      {"network-latency", OPTION_REAL, "US", "of an exchange between hosts, microseconds",
       &r->network_latency, 0, 0},
      job_exchange_option(&r->job),
      {"residency", OPTION_TEXT, "auto|resident|streamed", "simulate: where the edges are kept (auto)",
       &r->residency, 0, 0},
      {"memory", OPTION_REAL, "GIB", "what a rank may use (cpu: its share of this host's)", &r->memory_gib, 0,
       0},
      {"min-delay", OPTION_INT, "N", "without a graph file: shortest delay in steps (1)", &r->min_delay, 1,
       UINT16_MAX},
      {"far-edges", OPTION_REAL, "SHARE",
       "without a graph file: edges whose source is in another part (those of a random graph, (P - 1) / P)",
       &r->far_edges, 0, 0},
      {"threads", OPTION_INT, "N", "threads of each rank (1; a GPU counts as one)", &r->threads, 1, 4096},
      {"nodes", OPTION_INT, "N", "neurons, without a graph file", &r->nodes, 1, UINT32_MAX},
      {"edges", OPTION_INT, "E", "edges, without a graph file", &r->edges, 0, INT64_MAX},
      {"vocabulary", OPTION_INT, "V", "distinct characters of the text (65)", &r->vocabulary, 2, 1 << 20},
      {"characters", OPTION_INT, "N", "characters of the text (1115394)", &r->characters, 1, INT64_MAX},
      {"active", OPTION_REAL, "SHARE", "simulate: neurons that fire in a step (0.01)", &r->active, 0, 0},
      {"json", OPTION_FLAG, NULL, "one JSON object on stdout", &r->as_json, 0, 0}};
  TRY(options_parse(&usage, options, sizeof options / sizeof *options, argc, argv, &r->path));
  if (!r->kind) return failure(EXIT_USAGE, "plan: --job train|simulate is missing");
  if (!r->path && (!r->nodes || r->edges < 0))
    return failure(EXIT_USAGE, "plan: give a graph file, or --nodes N and --edges E");
  if (!strcmp(r->kind, "train") && strcmp(r->residency, "auto"))
    return failure(EXIT_USAGE, "plan: --residency is for --job simulate: training keeps its edges in memory");
  if (r->far_edges > 1 || (r->path && r->far_edges >= 0))
    return failure(EXIT_USAGE, "plan: --far-edges %g: a share of 0 to 1, without a graph file, is wanted",
                   r->far_edges);
  if (r->path && (r->nodes || r->edges >= 0))
    return failure(EXIT_USAGE, "plan: a graph file and --nodes exclude each other");
  if (r->parts && r->ranks % r->parts)
    return failure(EXIT_USAGE, "--parts %lld: it must divide --ranks %lld", (long long)r->parts,
                   (long long)r->ranks);
  return fine();
}

static struct status read_config(const struct plan_request *r, struct train_config *c) {
  json_t *json = r->config ? NULL : json_object();
  if (r->config) TRY(json_from_file(r->config, &json));
  struct status s = fine();
  for (int i = 0; i < r->set.n && !s.code; i++) s = json_set_path(json, r->set.item[i]);
  *c = train_config_defaults();
  if (!s.code) s = train_config_read(json, r->config ? r->config : "--set", c);
  json_decref(json);
  return s;
}

/* A link as the user says where he says anything, else as measured. */
static void override(struct link *link, double rate, double latency) {
  if (rate <= 0 && latency < 0) return;
  const double gb = 1e9;
  const double measured = 1 / (link_seconds(link, 2 * gb, 1) - link_seconds(link, gb, 1)) * gb;
  link_set(link, latency >= 0 ? latency * 1e-6 : link->seconds[0], rate > 0 ? rate * gb : measured);
}

static struct status choose_machine(struct plan_request *r) {
  struct machine *m = &r->machine;
  TRY(r->machine_file ? machine_load(r->machine_file, m) : machine_find(r->device, m));
  if (strcmp(r->transport, "auto") && !machine_link(m, r->transport))
    return failure(EXIT_USAGE, "--transport %s: the machine %s has no such link", r->transport, m->name);
  struct link *network = machine_link(m, "network");
  for (int i = 0; i < m->n_links; i++)
    if (&m->link[i] != network && strncmp(m->link[i].name, "spikes", 6))
      override(&m->link[i], r->nvlink_rate, r->nvlink_latency);
  override(network, r->network_rate, r->network_latency);
  r->layout = (struct plan_layout){.machine = m,
                                   .network = network,
                                   .threads = (int)r->threads,
                                   .ranks_per_host = (int)(r->per_host ? r->per_host : r->ranks)};
  return fine();
}

/* As a run takes them: rows and spikes straight into the other's memory on one host, else the machine's first
 * link, which gradients always take. */
static void choose_links(const struct plan_request *r, int parts, struct plan_layout *l) {
  const struct machine *m = &r->machine;
  const bool one_host = parts <= l->ranks_per_host, peer = strcmp(r->transport, "nccl") && one_host;
  const struct link *asked = machine_link(m, r->transport), *near = peer ? machine_link(m, "peer") : NULL;
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

static bool on_gpu(const struct plan_request *r) {
  return strcmp(r->machine.name, "cpu") != 0;
}

static struct status count(const struct comm *alone, const struct plan_request *r, int parts,
                           struct answer *a) {
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
  a->streamable = on_gpu(r) || connectome_facts(file)->streamable;
  connectome_close(file);
  return fine();
}

static bool trains(const struct plan_request *r) {
  return !strcmp(r->kind, "train");
}

/* Training counts local rows in 31 bits, edges on a GPU in 32. */
static bool can_count(const struct plan_request *r, const struct answer *a) {
  if (!trains(r)) return plan_largest(&a->graph)->n_own <= INT32_MAX;
  const struct plan_share *s = plan_largest(&a->graph);
  return s->n_own + s->n_halo <= INT32_MAX && (!on_gpu(r) || s->near + s->far <= UINT32_MAX - 65536);
}

static bool fits(const struct plan_request *r, const struct answer *a) {
  return a->memory.total <= a->limit && can_count(r, a);
}

/* What `train` would refuse whatever the memory. */
static struct status can_train(const struct plan_request *r, const struct train_config *c, int parts,
                               const struct plan_graph *graph) {
  const char *name = r->path ? r->path : "the graph";
  const int64_t replicas = r->ranks / parts;
  if (c->n_input > graph->n_nodes || c->n_output > graph->n_nodes)
    return failure(EXIT_USAGE,
                   "plan: \"n_input\" is %lld and \"n_output\" %lld, but %s has %lld neurons; choose at most "
                   "so many with --set",
                   (long long)c->n_input, (long long)c->n_output, name, (long long)graph->n_nodes);
  if (c->batch < replicas)
    return failure(EXIT_USAGE,
                   "plan: \"batch\" is %lld, but there are %lld replicas; raise it, or use more --parts",
                   (long long)c->batch, (long long)replicas);
  return fine();
}

/* On a GPU: what it needs, and what is left of the limit keeps edges that it has read. */
static void simulate_on_device(struct answer *a) {
  const struct plan_share *share = plan_largest(&a->graph);
  const int64_t all = 8 * (share->near + share->far);
  int64_t room = a->limit - plan_device_memory(&a->graph, share, 1, 0).total;
  room = room < 0 ? 0 : room > all ? all : room;
  a->memory = plan_device_memory(&a->graph, share, 1, a->streamed ? room : -1);
  a->host = plan_simulate_memory(&a->graph, share, RECORD_BYTES);
  a->host_edges = a->streamed && all ? 1 - (double)room / (double)all : 0;
}

static void simulate_on_cpu(struct answer *a) {
  const struct plan_share *share = plan_largest(&a->graph);
  const int64_t held = plan_held(&a->graph, share, RECORD_BYTES, a->limit);
  a->memory = a->streamed ? plan_streamed_memory(&a->graph, share, RECORD_BYTES, held)
                          : plan_simulate_memory(&a->graph, share, RECORD_BYTES);
}

static void plan_simulation(const struct plan_request *r, struct answer *a) {
  struct plan_layout layout = a->layout;
  if (on_gpu(r))
    simulate_on_device(a);
  else
    simulate_on_cpu(a);
  layout.host_edges = a->host_edges;
  a->step = plan_simulate_step(&a->graph, &layout, r->active);
}

/* The plan for a given number of parts. */
static struct status try_parts(const struct comm *alone, const struct plan_request *r,
                               const struct train_config *c, int parts, struct answer *a) {
  plan_graph_free(&a->graph);
  TRY(count(alone, r, parts, a));
  a->layout = r->layout;
  choose_links(r, parts, &a->layout);
  const struct plan_share *share = plan_largest(&a->graph);
  const int replicas = (int)r->ranks / parts;
  if (!trains(r)) {
    plan_simulation(r, a);
    return fine();
  }
  TRY(can_train(r, c, parts, &a->graph));
  a->training = (struct plan_training){.shape = {.batch = (int)((c->batch + replicas - 1) / replicas),
                                                 .steps = (int)c->steps_per_window,
                                                 .microsteps = (int)c->microsteps},
                                       .vocabulary = (int)r->vocabulary,
                                       .embedding = (int)c->embedding,
                                       .n_input = c->n_input,
                                       .n_output = c->n_output,
                                       .replicas = replicas,
                                       .characters = r->characters,
                                       .mixed = c->precision == PRECISION_MIXED};
  if (on_gpu(r)) {
    a->memory = plan_train_device_memory(&backend_cuda, &a->graph, share, &a->training);
    a->host = plan_train_host_memory(&a->graph, share, &a->training);
  } else
    a->memory = plan_train_memory(&backend_cpu, &a->graph, share, &a->training);
  a->step = plan_train_step(&a->graph, &a->layout, &a->training);
  return fine();
}

static struct status check_streamed(const struct plan_request *r, const struct answer *a) {
  if (!a->streamed || a->streamable) return fine();
  return failure(EXIT_USAGE,
                 "plan: --residency streamed: %s has no edges by source to stream from; `fascicle order %s "
                 "--streamable --output NEW.h5` adds them",
                 r->path, r->path);
}

/* Resident edges do not fit on any number of parts: then as a run would, which streams them if it can. */
static void stream_instead(const struct plan_request *r, struct answer *a) {
  if (strcmp(r->kind, "simulate") || strcmp(r->residency, "auto") || !a->streamable) return;
  if (a->memory.total <= a->limit) return;
  a->streamed = true;
  plan_simulation(r, a);
}

/* Splitting the batch is cheaper than splitting the graph: the fewest parts that fit. A simulation of one
 * trial has nothing else to split. */
static struct status choose(const struct comm *alone, const struct plan_request *r,
                            const struct train_config *c, struct answer *a) {
  a->limit = memory_limit(r);
  a->streamed = !strcmp(r->residency, "streamed");
  const int only = (int)(r->parts || strcmp(r->kind, "simulate") ? r->parts : r->ranks);
  for (int parts = only ? only : 1; parts <= (only ? only : r->ranks); parts++) {
    if (r->ranks % parts || (!only && r->ranks / parts > c->batch)) continue;
    TRY(try_parts(alone, r, c, parts, a));
    if (fits(r, a)) break;
  }
  stream_instead(r, a);
  return check_streamed(r, a);
}

static const char *exchange_name(const struct plan_graph *g) {
  return g->parts == 1 ? "none" : g->all ? "all-gather" : "halo";
}

static json_t *answer_json(const struct plan_request *r, const struct answer *a) {
  json_t *items = json_object();
  for (int i = 0; i < a->memory.n; i++)
    json_object_set_new(items, a->memory.item[i].name, json_integer(a->memory.item[i].bytes));
  const struct plan_share *s = plan_largest(&a->graph);
  return json_pack(
      "{s:s, s:s, s:I, s:i, s:i, s:i, s:I, s:I, s:b, s:s, s:I, s:{s:I, s:I, s:I, s:I, s:I, s:i}, s:o, s:I, "
      "s:I, s:b, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:s, s:s}",
      "job", r->kind, "residency", a->streamed ? "streamed" : "resident", "ranks", (json_int_t)r->ranks,
      "parts", a->graph.parts, "replicas", (int)r->ranks / a->graph.parts, "gpus_per_host",
      r->layout.ranks_per_host, "nodes", (json_int_t)a->graph.n_nodes, "edges", (json_int_t)a->graph.n_edges,
      "counted", a->graph.real, "exchange", exchange_name(&a->graph), "halo_rows_needed",
      (json_int_t)a->graph.needed, "largest_part", "rows", (json_int_t)s->n_own, "halo_rows",
      (json_int_t)s->n_halo, "halo_rows_of_host", (json_int_t)s->n_halo_host, "near_edges",
      (json_int_t)s->near, "far_edges", (json_int_t)s->far, "peers", s->peers, "bytes", items, "total_bytes",
      (json_int_t)a->memory.total, "limit_bytes", (json_int_t)a->limit, "fits", fits(r, a),
      "host_total_bytes", (json_int_t)a->host.total, "host_bytes_per_step", (json_int_t)a->step.bytes_host,
      "network_bytes_per_step", (json_int_t)a->step.bytes_network, "compute_seconds", a->step.compute,
      "exchange_seconds", a->step.exchange, "window_seconds", a->step.window, "gradient_seconds",
      a->step.gradients, "step_seconds", a->step.total, "machine", r->machine.name, "transport",
      a->layout.host->name);
}

static void print_answer(const struct plan_request *r, const struct answer *a) {
  const struct plan_share *s = plan_largest(&a->graph);
  printf("%s, %lld neurons, %lld edges%s: %d part%s x %d replica%s\n", r->kind, (long long)a->graph.n_nodes,
         (long long)a->graph.n_edges, a->graph.real ? "" : " (estimated: sources at random)", a->graph.parts,
         a->graph.parts > 1 ? "s" : "", (int)r->ranks / a->graph.parts,
         r->ranks / a->graph.parts > 1 ? "s" : "");
  printf("  largest part: %lld rows, %lld halo rows, %lld edges from own rows, %lld from the halo\n",
         (long long)s->n_own, (long long)s->n_halo, (long long)s->near, (long long)s->far);
  for (int i = 0; i < a->memory.n; i++)
    printf("  %-54s %14lld bytes\n", a->memory.item[i].name, (long long)a->memory.item[i].bytes);
  printf("  %-54s %14lld bytes, %.2f of %.2f GiB\n", "total of a rank", (long long)a->memory.total,
         (double)a->memory.total / 0x1p30, (double)a->limit / 0x1p30);
  for (int i = 0; i < a->host.n; i++)
    printf("  on the host: %-41s %14lld bytes\n", a->host.item[i].name, (long long)a->host.item[i].bytes);
  if (a->streamed && a->host.n)
    printf("  edges streamed from host memory: %.0f %% of them are read from there each time\n",
           100 * a->host_edges);
  else if (a->streamed)
    printf("  edges streamed from the file; what is not held comes from the page cache while that has it\n");
  if (a->graph.parts > 1 && trains(r))
    printf("  exchange: %s, %.1f %% of an all-gather needed\n", exchange_name(&a->graph),
           100 * (double)a->graph.needed / ((a->graph.parts - 1) * (double)a->graph.n_nodes));
  printf("  a step: %.4g s (work %.4g s; exchanges alone %.4g s); a rank receives %.4g MB from its host, "
         "%.4g MB by network\n",
         a->step.total, a->step.compute, a->step.exchange, (double)a->step.bytes_host / 1e6,
         (double)a->step.bytes_network / 1e6);
  printf("  machine: %s; links %s and network\n", r->machine.about, a->layout.host->name);
}

/* The smallest change that would make it fit: more parts if they help, else how much memory. */
static struct status refuse(const struct comm *alone, const struct plan_request *r,
                            const struct train_config *c, const struct answer *a) {
  struct answer other = {.limit = a->limit, .streamed = a->streamed};
  char remedy[256];
  snprintf(remedy, sizeof remedy, "--memory %.1f or a smaller batch",
           (double)a->memory.total / 0x1p30 + 0.05);
  struct plan_request wider = *r;
  for (int parts = a->graph.parts * 2; parts <= a->graph.parts * 64; parts *= 2) {
    if (wider.ranks % parts) wider.ranks = parts;
    TRY(try_parts(alone, &wider, c, parts, &other));
    if (!fits(&wider, &other)) continue;
    snprintf(remedy, sizeof remedy, "--parts %d on %lld ranks (%.2f GiB each), or --memory %.1f", parts,
             (long long)wider.ranks, (double)other.memory.total / 0x1p30,
             (double)a->memory.total / 0x1p30 + 0.05);
    break;
  }
  plan_graph_free(&other.graph);
  if (!can_count(r, a))
    return failure(EXIT_USAGE,
                   "plan: a rank would hold %lld rows and %lld edges, more than 2,147,483,647 rows or (on a "
                   "GPU) 4,294,901,759 edges; use more --parts",
                   (long long)(plan_largest(&a->graph)->n_own + plan_largest(&a->graph)->n_halo),
                   (long long)(plan_largest(&a->graph)->near + plan_largest(&a->graph)->far));
  return failure(EXIT_USAGE, "plan: a rank needs %.2f GiB and has %.2f GiB; it would fit with %s",
                 (double)a->memory.total / 0x1p30, (double)a->limit / 0x1p30, remedy);
}

static struct status plan(const struct comm *alone, struct plan_request *r) {
  struct train_config config;
  struct answer a = {0};
  TRY(choose_machine(r));
  TRY(read_config(r, &config));
  TRY(choose(alone, r, &config, &a));
  if (r->as_json) {
    json_t *facts = answer_json(r, &a);
    json_print(facts);
    json_decref(facts);
  } else
    print_answer(r, &a);
  struct status s = fits(r, &a) ? fine() : refuse(alone, r, &config, &a);
  plan_graph_free(&a.graph);
  return s;
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct plan_request r = {.ranks = 1,
                           .device = "cpu",
                           .threads = 1,
                           .edges = -1,
                           .residency = "auto",
                           .transport = "auto",
                           .vocabulary = 65,
                           .characters = 1115394,
                           .active = 0.01,
                           .far_edges = -1,
                           .min_delay = 1,
                           .nvlink_latency = -1,
                           .network_latency = -1,
                           .job = job_defaults()};
  TRY(parse(argc, argv, &r));
  struct comm alone = comm_split(world, world->rank > 0, world->rank);
  const struct status s = agree(world, world->rank == 0 ? plan(&alone, &r) : fine());
  comm_free(&alone);
  return s;
}

const struct verb verb_plan = {"plan", "memory, traffic and time of a job before it runs", run};
