/* Reads what `fascicle plan` is asked: words, machine, configuration. */
#include "plan.h"
#include "models/models.h"

#include <math.h>
#include <string.h>

static const struct usage usage = {
    .verb = "plan",
    .operands = "[graph.h5]",
    .most = 1,
    .about =
        "Bytes of a rank by item, bytes that travel in a step, predicted time of a step and of the "
        "whole run, and the grid that fits, for a graph file or for one that does not exist yet "
        "(--nodes, --edges: sources "
        "at "
        "random, so the halo is at its largest). A job that does not fit ends with code 2 and the "
        "smallest change that would, after the same table.\n\n"
        "In training on a split graph the states of halo rows are saved with the others in the "
        "forward "
        "pass, not sent again in the backward pass: the gradients of edges from the halo need "
        "them.",
    .example = "  fascicle plan graph.h5 --job train --ranks 4\n"
               "  fascicle plan --nodes 211577 --edges 24700000 --job train --ranks 16 --device "
               "h200 --set "
               "batch=128\n"
               "  fascicle plan graph.h5 --job simulate --ranks 2 --parts 2 --memory 8 --json\n"
               "  fascicle plan graph.h5 --job train --ranks 128 --gpus-per-host 8 --device h200 "
               "--network-bandwidth 50"};

struct plan_request plan_request_defaults(void) {
  return (struct plan_request){.ranks = 1,
                               .device = "cpu",
                               .threads = 1,
                               .edges = -1,
                               .residency = "auto",
                               .transport = "auto",
                               .vocabulary = 65,
                               .characters = 1115394,
                               .active = 0.01,
                               .dt_ms = NAN,
                               .far_edges = -1,
                               .min_delay = 1,
                               .nvlink_latency = -1,
                               .network_latency = -1,
                               .job = job_defaults()};
}

static struct status check_model(struct plan_request *r) {
  char names[128];
  if (!r->model || !strcmp(r->model, "lif_shift")) {
    r->model = NULL;
    return fine();
  }
  if (plan_trains(r)) return failure(EXIT_USAGE, "plan: --model is for --job simulate");
  lif_model_names(names, sizeof names);
  if (lif_model_find(r->model)) return fine();
  return failure(EXIT_USAGE, "plan: --model %s: there are \"lif_shift\", %s", r->model, names);
}

struct status plan_request_parse(int argc, char **argv, struct plan_request *r) {
  const struct option options[] = {
      {"job", OPTION_TEXT, "train|simulate", "which job", &r->kind, 0, 0},
      {"ranks", OPTION_INT, "R", "ranks of the job (1)", &r->ranks, 1, 1 << 20},
      {"parts", OPTION_INT, "P",
       "ranks that share one copy of the graph (train: the fewest that fit; simulate: all, for one "
       "trial)",
       &r->parts, 1, 1 << 20},
      {"config", OPTION_TEXT, "FILE", "the training's configuration", &r->config, 0, 0},
      {"set", OPTION_LIST, "KEY=VALUE", "change one key of it; may be repeated", &r->set, 0, 0},
      {"device", OPTION_TEXT, machine_names(), "whose measured rates to use (cpu)", &r->device, 0,
       0},
      {"machine", OPTION_TEXT, "FILE", "a machine's rates, like jobs/conf/machine_h200.json",
       &r->machine_file, 0, 0},
      {"gpus-per-host", OPTION_INT, "G",
       "ranks of one host (all): others are reached by the network", &r->per_host, 1, 1 << 20},
      {"transport", OPTION_TEXT, "auto|nccl|peer|mpi",
       "as in train and simulate (auto: peer where a copy of the graph stays on one host, else "
       "nccl)",
       &r->transport, 0, 0},
      {"nvlink-bandwidth", OPTION_REAL, "GB/S", "of a rank within its host, each way (as measured)",
       &r->nvlink_rate, 0, 0},
      {"nvlink-latency", OPTION_REAL, "US",
       "of an exchange within a host, microseconds (as measured)", &r->nvlink_latency, 0, 0},
      {"network-bandwidth", OPTION_REAL, "GB/S", "of a rank to other hosts, each way",
       &r->network_rate, 0, 0},
      {"network-latency", OPTION_REAL, "US", "of an exchange between hosts, microseconds",
       &r->network_latency, 0, 0},
      job_exchange_option(&r->job),
      {"residency", OPTION_TEXT, "auto|resident|streamed",
       "simulate: where the edges are kept (auto)", &r->residency, 0, 0},
      {"memory", OPTION_REAL, "GIB", "what a rank may use (cpu: its share of this host's)",
       &r->memory_gib, 0, 0},
      {"min-delay", OPTION_INT, "N", "without a graph file: shortest delay in steps (1)",
       &r->min_delay, 1, UINT16_MAX},
      {"far-edges", OPTION_REAL, "SHARE",
       "without a graph file: edges whose source is in another part (those of a random graph, (P - "
       "1) / P)",
       &r->far_edges, 0, 0},
      {"threads", OPTION_INT, "N", "threads of each rank (1; a GPU counts as one)", &r->threads, 1,
       4096},
      {"nodes", OPTION_INT, "N", "neurons, without a graph file", &r->nodes, 1, UINT32_MAX},
      {"edges", OPTION_INT, "E", "edges, without a graph file", &r->edges, 0, INT64_MAX},
      {"vocabulary", OPTION_INT, "V", "distinct characters of the text (65)", &r->vocabulary, 2,
       1 << 20},
      {"characters", OPTION_INT, "N", "characters of the text (1115394)", &r->characters, 1,
       INT64_MAX},
      {"steps", OPTION_INT, "N",
       "of the whole run (train: train_steps; simulate: one second of simulated time)", &r->steps,
       1, INT64_MAX},
      {"model", OPTION_TEXT, "NAME",
       "simulate: of the neurons, as in a configuration (lif_shift; without adaptation)", &r->model,
       0, 0},
      {"dt-ms", OPTION_REAL, "MS",
       "simulate: the time that a step stands for (1; 0.1 with --model)", &r->dt_ms, 0, 0},
      {"active", OPTION_REAL, "SHARE", "simulate: neurons that fire in a step (0.01)", &r->active,
       0, 0},
      {"json", OPTION_FLAG, NULL, "one JSON object on stdout", &r->as_json, 0, 0}};
  TRY(options_parse(&usage, options, sizeof options / sizeof *options, argc, argv, &r->path));
  if (!r->kind) return failure(EXIT_USAGE, "plan: --job train|simulate is missing");
  if (!r->path && (!r->nodes || r->edges < 0))
    return failure(EXIT_USAGE, "plan: give a graph file, or --nodes N and --edges E");
  if (!strcmp(r->kind, "train") && strcmp(r->residency, "auto"))
    return failure(EXIT_USAGE,
                   "plan: --residency is for --job simulate: training keeps its edges in memory");
  if (r->far_edges > 1 || (r->path && r->far_edges >= 0))
    return failure(EXIT_USAGE,
                   "plan: --far-edges %g: a share of 0 to 1, without a graph file, is wanted",
                   r->far_edges);
  if (r->path && (r->nodes || r->edges >= 0))
    return failure(EXIT_USAGE, "plan: a graph file and --nodes exclude each other");
  TRY(check_model(r));
  if (isnan(r->dt_ms)) r->dt_ms = r->model ? 0.1 : 1;
  if (!(r->dt_ms > 0)) return failure(EXIT_USAGE, "plan: --dt-ms %g: it must be above 0", r->dt_ms);
  if (r->parts && r->ranks % r->parts)
    return failure(EXIT_USAGE, "--parts %lld: it must divide --ranks %lld", (long long)r->parts,
                   (long long)r->ranks);
  return fine();
}

struct status plan_request_config(const struct plan_request *r, struct train_config *c) {
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

struct status plan_request_machine(struct plan_request *r) {
  struct machine *m = &r->machine;
  TRY(r->machine_file ? machine_load(r->machine_file, m) : machine_find(r->device, m));
  if (strcmp(r->transport, "auto") && !machine_link(m, r->transport))
    return failure(EXIT_USAGE, "--transport %s: the machine %s has no such link", r->transport,
                   m->name);
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

bool plan_on_gpu(const struct plan_request *r) {
  return strcmp(r->machine.name, "cpu") != 0;
}

bool plan_trains(const struct plan_request *r) {
  return !strcmp(r->kind, "train");
}
