/* fascicle simulate: fixed-point LIF neurons on a connectome. */
#include "simulate.h"
#include "checkpoint.h"
#include "graph/load.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/signals.h"
#include "run/verbs.h"

#include <stdio.h>
#include <string.h>

static const struct usage usage = {
    .verb = "simulate",
    .operands = "graph.h5",
    .fewest = 1,
    .most = 1,
    .about =
        "Simulate integrate-and-fire neurons wired by a connectome, in integers: the same spikes "
        "on any number of ranks and threads, and with any ordering of the graph.\n\n"
        "The configuration is JSON and names a model: lif_exp (the fly model of Shiu et al. 2024), "
        "psc_exp and psc_alpha (NEST's, for cortical models), lif_delta, all by exact propagators "
        "in 64-bit fixed point; without \"model\" lif_shift, whose leak is V -= V >> k. "
        "--help-keys lists every key; a fly's:\n"
        "{\"model\": \"lif_exp\", \"dt_ms\": 0.1, \"weight_mv\": 0.275, \"delay_ms\": 1.8,\n"
        "\"neuron\": {\"v_rest_mv\": -52, \"v_threshold_mv\": -45, \"v_reset_mv\": -52, "
        "\"tau_m_ms\": 20,\n\"tau_syn_ms\": 5, \"refractory_ms\": 2.2},\n"
        "\"stimulus\": [{\"neurons\": N, \"kind\": \"poisson\", \"rate_hz\": 100, \"weight\": "
        "250, \"into\": \"v\",\n\"no_refractory\": true}],\n"
        "\"silence\": [{\"neurons\": N, \"mode\": \"output\"}]}\n"
        "where N is \"all\" or {\"body_ids\": [..]}, {\"types\": [..]}, {\"names\": [..]}, "
        "{\"indices\": [..]}, {\"COLUMN\": [..]}. jobs/conf/README.md says what a step "
        "computes.\n\n"
        "DIR receives spikes.h5 (SONATA), metrics.jsonl, checkpoints/ and trace/. SIGTERM and "
        "SIGUSR1 write a checkpoint and leave with code 75; SIGUSR2 writes one and goes on.",
    .example = "  fascicle simulate graph.h5 --config jobs/conf/lif_example.json --steps 1000 "
               "--output run\n"
               "  mpirun -n 4 fascicle simulate graph.h5 --config lif.json --steps 100000 \\\n"
               "    --checkpoint-every 10000 --resume auto --output run"};

/* ---- words ---- */

static struct status parse(struct simulation *sim, int argc, char **argv) {
  struct option options[JOB_OPTIONS + 3];
  sim->job = job_defaults();
  sim->steps = -1, sim->trials = 1, sim->residency = "auto";
  int n = job_options(&sim->job, options);
  const struct option own[] = {
      {"steps", OPTION_INT, "N", "steps of the whole run, those before a resume included",
       &sim->steps, 0, INT64_MAX / 4},
      {"trials", OPTION_INT, "K", "repeat with K sequences of random numbers: DIR/trial_0/ ...",
       &sim->trials, 1, UINT32_MAX},
      {"residency", OPTION_TEXT, "auto|resident|streamed",
       "where the edges are kept (auto); streamed: in the file, and threads on cores that "
       "--threads leaves "
       "free read ahead; threads share what they read, ranks do not",
       &sim->residency, 0, 0},
  };
  n = options_append(options, n, own, sizeof own / sizeof *own);
  struct usage with_keys = usage;
  with_keys.keys = lif_config_tables(&with_keys.n_keys);
  TRY(options_parse(&with_keys, options, n, argc, argv, &sim->graph));
  if (sim->steps < 0)
    return failure(EXIT_USAGE, "--steps N is missing: how many steps to simulate");
  if (!sim->job.config)
    return failure(EXIT_USAGE, "--config FILE is missing: jobs/conf/lif_example.json is one");
  if (!sim->job.output) return failure(EXIT_USAGE, "--output DIR is missing: where the results go");
  if (sim->trials > 1 && strcmp(sim->job.resume, "none") && strcmp(sim->job.resume, "auto"))
    return failure(
        EXIT_USAGE,
        "--resume %s: with --trials only auto is possible, each trial has its own checkpoints",
        sim->job.resume);
  return fine();
}

/* ---- who does what ---- */

/* Bytes that one rank of `parts` holds for the graph: resident edges, offsets
 * by source, its neurons. */
static double share_bytes(const struct connectome_facts *facts, int64_t parts, bool resident) {
  const double row = 64 + 8.0 * (facts->max_delay + 1);
  return (resident ? 8.0 * (double)facts->n_edges / (double)parts : 0) +
         8.0 * (double)facts->n_nodes + row * (double)facts->n_nodes / (double)parts;
}

/* What a GPU streams stands in host memory. */
static int64_t room_for_edges(const struct comm *world, const struct simulation *sim) {
  if (!sim->job.backend->own_memory || strcmp(sim->residency, "streamed"))
    return sim->job.memory_bytes;
  int64_t host = mem_of_host() / sim->job.local_size;
  comm_min_i64(world, &host, 1);
  return host;
}

/* Trials are shared out before the graph is: as many copies as there are
 * trials and as memory allows. */
static int choose_parts(const struct comm *world, const struct simulation *sim) {
  if (sim->job.parts) return (int)sim->job.parts;
  const double room = (double)room_for_edges(world, sim);
  for (int parts = 1; parts < world->size; parts++) {
    if (world->size % parts || world->size / parts > sim->trials) continue;
    const bool resident = strcmp(sim->residency, "streamed") != 0 || sim->job.backend->own_memory;
    if (share_bytes(connectome_facts(sim->file), parts, resident) <= room) return parts;
  }
  return world->size;
}

static struct status open_grid(const struct comm *world, struct simulation *sim) {
  const int parts = choose_parts(world, sim);
  if (parts > 0 && world->size % parts == 0 && world->size / parts > sim->trials)
    return failure(
        EXIT_USAGE,
        "--parts %d: %d ranks make %d copies of the graph, but there %s %lld trial%s; raise "
        "--parts or --trials",
        parts, world->size, world->size / parts, sim->trials == 1 ? "is" : "are",
        (long long)sim->trials, sim->trials == 1 ? "" : "s");
  TRY(job_grid(world, &sim->job, parts, &sim->grid));
  if (sim->grid.replicas > 1)
    log_line("%d copies of the graph, %d rank%s each, share %lld trials", sim->grid.replicas, parts,
             parts == 1 ? "" : "s", (long long)sim->trials);
  return fine();
}

/* ---- the network ---- */

static void split(struct simulation *sim) {
  const struct comm *comm = &sim->grid.replica_comm;
  sim->first = NEW(gidx, comm->size + 1);
  load_split(comm, sim->file, comm->size, sim->first);
}

static void load_net(struct simulation *sim) {
  const struct comm *comm = &sim->grid.replica_comm;
  const double started = seconds_now();
  const gidx first = sim->first[comm->rank], last = sim->first[comm->rank + 1];
  const bool on_host = sim->streamed && sim->job.backend->own_memory;
  if (sim->streamed && !on_host)
    lif_net_stream(sim->file, first, last, sim->held, sim->job.n_readers, &sim->net);
  else
    lif_net_load(sim->file, first, last, &sim->net);
  sim->net.on_host = on_host, sim->net.device_room = sim->device_room;
  if (sim->config.linear.delay) lif_net_delay(&sim->net, (int)sim->config.linear.delay);
  lif_config_own_classes(&sim->config, sim->net.n_own, sim->net.id);
  for (int i = 0; i < sim->config.n_silences; i++) {
    const struct lif_silence *silence = &sim->config.silence[i];
    lidx *row;
    const lidx n = lif_own_rows(&sim->net, silence->neurons.n, silence->neurons.node, &row);
    lif_net_silence(&sim->net, n, row, silence->remove ? LIF_REMOVED : LIF_MUTED);
    mem_free(row);
  }
  const struct connectome_facts *facts = connectome_facts(sim->file);
  comm_barrier(comm);
  log_line("%s: %lld neurons, %lld edges, delays %d..%d, %s in %.2f s", sim->graph,
           (long long)facts->n_nodes, (long long)facts->n_edges, sim->net.min_delay,
           sim->net.max_delay, sim->streamed && !on_host ? "opened" : "loaded",
           seconds_now() - started);
}

/* Of own rows, from an entry of the configuration. */
static struct lif_stimulus stimulus_of(const struct simulation *sim, int i) {
  const struct lif_input *in = &sim->config.input[i];
  const struct lif_net *net = &sim->net;
  const int64_t n = in->neurons.n;
  const nodeid *node = in->neurons.node;
  switch (in->kind) {
  case LIF_SPIKES: return lif_listed(net, i, n, node, in->n_steps, in->step);
  case LIF_REPLAY: return lif_replay(net, i, n, node, in->n_steps, in->step, in->node);
  case LIF_POISSON:
    return lif_poisson(net, i, n, node, in->first_step, in->last_step, in->probability,
                       (int32_t)in->value);
  case LIF_CURRENT:
  case LIF_NOISE: break;
  }
  return lif_current(net, i, n, node, in->first_step, in->last_step, (int32_t)in->value);
}

static void make_stimuli(struct simulation *sim) {
  sim->stimulus = NEW_ZERO(struct lif_stimulus, sim->config.n_inputs);
  for (int i = 0; i < sim->config.n_inputs; i++) {
    const struct lif_input *in = &sim->config.input[i];
    struct lif_stimulus *stimulus = &sim->stimulus[i];
    *stimulus = stimulus_of(sim, i);
    stimulus->kind = in->kind;
    stimulus->into = (enum lif_into)in->into, stimulus->amount = in->amount;
    stimulus->n_tails = in->n_tails, stimulus->tail = in->tail;
    stimulus->amount_of = in->amount_of, stimulus->quantile = sim->config.linear.quantile;
  }
}

/* ---- the folder ---- */

static json_t *collect_facts(const struct comm *world, const struct simulation *sim) {
  const struct connectome_facts *graph = connectome_facts(sim->file);
  char digest[DIGEST_TEXT];
  job_json_digest(sim->json, digest);
  json_t *facts = job_provenance(world, &sim->job, &sim->grid);
  json_object_set_new(facts, "graph", json_string(sim->graph));
  json_object_set_new(facts, "graph_digest", json_string(graph->graph_digest));
  json_object_set_new(facts, "order_digest", json_string(graph->order_digest));
  json_object_set_new(facts, "config_digest", json_string(digest));
  json_object_set_new(facts, "seed", json_integer((json_int_t)sim->config.seed));
  json_object_set_new(facts, "steps_wanted", json_integer(sim->steps));
  json_object_set_new(facts, "trials", json_integer(sim->trials));
  json_object_set_new(facts, "refractory_input", json_string("lost"));
  return facts;
}

static struct status write_neurons(const struct comm *comm, const struct simulation *sim) {
  const struct neurons *n = &sim->neurons;
  char path[FILE_PATH];
  rundir_file(&sim->dir, "neurons.h5", path);
  const struct selection *spikes = &sim->config.spikes;
  const struct spikes_names names = {.n = n->n,
                                     .body_id = n->body_id,
                                     .name = n->name,
                                     .n_types = n->type.n_labels,
                                     .type = n->type.label,
                                     .type_code = n->type.code,
                                     .only_some = !sim->config.record_all,
                                     .n_recorded = spikes->n,
                                     .recorded = spikes->node};
  return agree(comm, sim->dir.leader ? spikes_names_write(path, &names) : fine());
}

struct status simulate_describe(const struct comm *comm, const struct simulation *sim) {
  TRY(rundir_config(comm, &sim->dir, sim->json));
  return write_neurons(comm, sim);
}

static struct status open_folder(const struct comm *world, struct simulation *sim) {
  job_reads(&sim->job, sim->graph);
  for (int i = 0; i < sim->config.n_inputs; i++)
    if (sim->config.input[i].file) job_reads(&sim->job, sim->config.input[i].file);
  TRY(rundir_open(world, &sim->job, &sim->dir));
  sim->facts = collect_facts(world, sim);
  return fine();
}

/* ---- set up and take down ---- */

/* Where a step takes less than threads need to meet, above all on a machine that others use, one of
 * them makes it alone; the others may read ahead. */
static void choose_threads(struct simulation *sim) {
  enum { FEW_MICROSECONDS = 20 };
  const struct connectome_facts *facts = connectome_facts(sim->file);
  const double neuron_us = sim->config.linear.kind ? 0.02 : 0.001, edge_us = 0.003;
  const double firing = 0.01; /* of the neurons in a step */
  const double step_us =
      ((double)facts->n_nodes * neuron_us + (double)facts->n_edges * firing * edge_us) /
      sim->grid.parts;
  if (sim->job.threads_chosen || sim->job.n_threads == 1 || sim->job.backend->own_memory ||
      step_us > FEW_MICROSECONDS)
    return;
  sim->job.n_threads = 1;
  log_line("one thread a rank: a step of this graph is short (--threads N asks for more)");
}

/* V -= V >> k leaves 0 .. 2^k - 1 as they are: the smallest shift decides where a leak ends. */
static void say_leak(const struct simulation *sim) {
  const struct lif_params *p = &sim->config.params;
  const int64_t range = (int64_t)p->threshold - p->reset;
  int least = 31;
  for (int k = 0; k < p->n_shifts; k++) least = p->shift[k] < least ? p->shift[k] : least;
  const int64_t rest = ((int64_t)1 << least) - 1;
  if (p->model || !p->n_shifts || range <= 0 || 100 * rest <= range) return;
  log_line(
      "the leak ends at %lld, as V >> %d is then 0; threshold - reset is %lld: for a leak that "
      "goes on to below 1 %% of that, multiply weights (convert --scale), potentials and "
      "stimuli by %lld%s",
      (long long)rest, least, (long long)range, (long long)((100 * rest + range - 1) / range),
      least == 31 ? ", or give \"decay_shifts\": [] for no leak" : "");
}

/* Hosts may have files of their own under one name. */
static struct status check_same(const struct comm *world, const char *where,
                                const json_t *digests) {
  char first[DIGEST_TEXT], own[DIGEST_TEXT];
  job_json_digest(digests, own);
  memcpy(first, own, sizeof first);
  comm_share(world, first, sizeof first, 0);
  return agree(world, strcmp(first, own) == 0
                          ? fine()
                          : failure(EXIT_USAGE,
                                    "%s: files that it names differ between hosts: name files that "
                                    "all ranks share",
                                    where));
}

static struct status set_up(struct comm *world, struct simulation *sim) {
  TRY(job_start(world, &sim->job));
  TRY(job_config(world, &sim->job, &sim->json));
  TRY(connectome_open(world, sim->graph, &sim->file));
  neurons_load(sim->file, &sim->neurons);
  char where[FILE_PATH];
  job_config_name(&sim->job, where, sizeof where);
  TRY(agree(world, lif_config_read(sim->json, where, &sim->neurons, &sim->config)));
  sim->digests = lif_config_digests(sim->json, &sim->config);
  TRY(check_same(world, where, sim->digests));
  TRY(open_grid(world, sim));
  choose_threads(sim);
  split(sim);
  TRY(simulate_residency(world, sim));
  TRY(open_folder(world, sim));
  if (load_is_unsigned(sim->file))
    log_warning("%s: every edge is excitatory: nothing gave signs when it was converted "
                "(convert --transmitters FILE, or weights below 0)",
                sim->graph);
  say_leak(sim);
  load_net(sim);
  make_stimuli(sim);
  return fine();
}

static void take_down(struct simulation *sim) {
  rundir_close(&sim->dir);
  for (int i = 0; sim->stimulus && i < sim->config.n_inputs; i++)
    lif_stimulus_free(&sim->stimulus[i]);
  mem_free(sim->stimulus), mem_free(sim->first);
  lif_net_free(&sim->net);
  if (sim->grid.parts) job_grid_close(&sim->grid);
  lif_config_free(&sim->config);
  neurons_free(&sim->neurons);
  if (sim->file) connectome_close(sim->file);
  json_decref(sim->json), json_decref(sim->digests), json_decref(sim->facts);
  job_stop(&sim->job);
}

/* ---- all trials ---- */

static void say_result(const struct simulation *sim, int64_t trial, const struct trial_result *r) {
  if (!r->merged || sim->grid.replica_comm.rank) return;
  const double seconds =
      (double)(r->trace.last_step - r->trace.first_step + 1) * sim->config.dt_ms / 1000;
  const double rate = seconds > 0 && sim->neurons.n
                          ? (double)r->trace.n_fired / seconds / (double)sim->neurons.n
                          : 0;
  char name[64] = "", path[FILE_PATH];
  if (sim->trials > 1) snprintf(name, sizeof name, "trial_%lld/", (long long)trial);
  strcat(name, "spikes.h5");
  rundir_file(&sim->dir, name, path);
  char recorded[96] = "";
  if (!sim->config.record_all)
    snprintf(recorded, sizeof recorded, "; %lld of them recorded, those of %lld neurons",
             (long long)r->trace.n_spikes, (long long)sim->config.spikes.n);
  log_line("%s: %lld spikes in %.6g s of simulated time, %.4g Hz a neuron%s", path,
           (long long)r->trace.n_fired, seconds, rate, recorded);
  const double factor =
      r->seconds > 0 ? (double)r->made * sim->config.dt_ms / 1000 / r->seconds : 0;
  log_line("%.3g times as fast as real time", factor);
  if (!sim->job.json) return;
  json_t *facts = json_pack(
      "{s:s, s:I, s:I, s:I, s:I, s:f, s:s, s:f, s:f, s:f, s:I}", "spikes_file", path, "trial",
      (json_int_t)trial, "steps", (json_int_t)r->step, "spikes", (json_int_t)r->trace.n_fired,
      "spikes_recorded", (json_int_t)r->trace.n_spikes, "rate_hz", rate, "spikes_digest",
      r->trace.spikes_digest, "seconds", r->seconds, "steps_per_second",
      r->seconds > 0 ? (double)r->made / r->seconds : 0, "events_per_second",
      r->seconds > 0 ? (double)r->events / r->seconds : 0, "peak_bytes", (json_int_t)mem_peak());
  json_object_set_new(facts, "real_time_factor", json_real(factor));
  json_print(facts);
  json_decref(facts);
}

/* Trials of this replica from `first` on that have ended; where one failed, it was the last. */
static void say_results(const struct simulation *sim, int64_t first,
                        const struct trial_result *result, int n, bool failed) {
  for (int k = 0; k < n; k++) {
    const bool last = k + 1 == n || !result[k + 1].merged;
    if (!(failed && last)) say_result(sim, first + (int64_t)k * sim->grid.replicas, &result[k]);
  }
}

/* A replica takes every replicas-th trial; the first that is stopped or fails ends its share. */
static struct status run_trials(struct simulation *sim, bool *stopped, int64_t *step) {
  struct trial_result *result = NEW_ZERO(struct trial_result, sim->at_once);
  struct status s = fine();
  for (int64_t trial = sim->grid.replica; trial < sim->trials && !*stopped && !s.code;) {
    int n = 1;
    s = sim->at_once > 1 ? simulate_together(sim, trial, sim->at_once, result, &n)
                         : simulate_trial(sim, trial, result);
    say_results(sim, trial, result, n, s.code != 0);
    *stopped = result[0].stopped, *step = result[0].step;
    if (!s.code && *stopped && sim->grid.replicas > 1)
      s = rundir_again(&sim->grid.replica_comm, &sim->dir, *step);
    trial += (int64_t)n * sim->grid.replicas;
  }
  mem_free(result);
  return s;
}

static struct status run_all(const struct comm *world, struct simulation *sim) {
  bool stopped = false;
  int64_t step = 0;
  TRY(agree(world, run_trials(sim, &stopped, &step)));
  simulate_check_memory(sim);
  const struct status again =
      failure(EXIT_AGAIN,
              "stopped on request at step %lld of %lld with a checkpoint in %s; the "
              "same command with --resume auto goes on",
              (long long)step, (long long)sim->steps, sim->dir.path);
  const struct status s = agree(world, stopped ? again : fine());
  if (s.code) TRY(rundir_again(world, &sim->dir, step));
  return s;
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct simulation sim = {.steps = -1};
  signals_install();
  TRY(parse(&sim, argc, argv));
  struct status s = set_up(world, &sim);
  if (!s.code) s = run_all(world, &sim);
  take_down(&sim);
  return s;
}

const struct verb verb_simulate = {
    "simulate", "integrate-and-fire neurons on a connectome, in exact integers", run};
