/* fascicle generate: synthetic connectomes, the cortical microcircuit, and shuffled controls of
 * real graphs. */
#include "build.h"
#include "io/files/files.h"
#include "core/log.h"
#include "core/mem.h"
#include "run/options.h"
#include "microcircuit.h"
#include "reorder.h"
#include "shuffled.h"
#include "synthetic.h"
#include "run/verbs.h"
#include "run/watchdog_option.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct usage usage = {
    .verb = "generate",
    .operands = "--nodes N --edges E --output graph.h5",
    .about = "Make a synthetic connectome with heavy-tailed degrees, types, transmitters, signs, "
             "synapse counts "
             "and delays; or, with --shuffle-of, a control of a given graph: every neuron keeps "
             "its numbers of "
             "inputs and outputs, but partners are drawn anew; or, with --kind microcircuit, the "
             "cortical "
             "network of Potjans and Diesmann (2014). The same words and seed give the "
             "same graph, "
             "for any number of ranks and threads.",
    .example = "  fascicle generate --nodes 5000 --edges 524324 --output small.h5\n"
               "  fascicle generate --nodes 211577 --edges 24678466 --model modular --delays 1:8 "
               "--output fly.h5\n"
               "  fascicle generate --shuffle-of graph.h5 --shuffle-within superclass --output "
               "control.h5\n"
               "  fascicle generate --kind microcircuit --scale 0.1 --config-output cortex.json "
               "--output cortex.h5"};

struct request {
  int64_t nodes, edges, seed, types, parts;
  double scale, k_scale; /* of the microcircuit; NAN: not given */
  const char *kind, *model, *delays, *population, *output, *shuffle_of, *shuffle_within;
  const char *background, *config_output;
  bool no_order, streamable, packed, force, as_json;
  int64_t min_delay, max_delay;
  double watchdog;
  char digest[DIGEST_TEXT]; /* of the graph to shuffle */
};

static struct status parse_delays(struct request *r) {
  char *end;
  r->min_delay = r->max_delay = strtol(r->delays, &end, 10);
  if (*end == ':' && end[1]) r->max_delay = strtol(end + 1, &end, 10);
  if (*end || r->min_delay < 1 || r->max_delay < r->min_delay || r->max_delay > UINT16_MAX)
    return failure(EXIT_USAGE,
                   "--delays %s: give A or A:B with 1 <= A <= B <= 65535 steps, as in 1:8",
                   r->delays);
  return fine();
}

static struct generate_model model_of(const struct request *r) {
  return (struct generate_model){.n_nodes = r->nodes,
                                 .n_edges = r->edges,
                                 .seed = (uint64_t)r->seed,
                                 .modular = !strcmp(r->model, "modular")};
}

static bool is_microcircuit(const struct request *r) {
  return !strcmp(r->kind, "microcircuit");
}

/* It has its own sizes; nothing else has scales. */
static struct status check_microcircuit(struct request *r) {
  struct microcircuit m;
  if (!is_microcircuit(r)) {
    if (isnan(r->scale) && isnan(r->k_scale) && !r->config_output && !r->background) return fine();
    return failure(EXIT_USAGE, "generate: --scale, --degree-scale, --background and "
                               "--config-output are for --kind microcircuit");
  }
  if (r->nodes >= 0 || r->edges >= 0 || r->shuffle_of || r->model || r->delays || r->types)
    return failure(EXIT_USAGE, "--kind microcircuit: its numbers are published; leave --nodes, "
                               "--edges, --model, --delays, --types and --shuffle-of out");
  if (r->config_output && !strcmp(r->config_output, r->output))
    return failure(EXIT_USAGE, "--config-output %s: it is also the --output", r->config_output);
  if (isnan(r->scale)) r->scale = 1;
  if (isnan(r->k_scale)) r->k_scale = r->scale;
  if (!(r->k_scale > 0 && r->k_scale <= 10))
    return failure(EXIT_USAGE, "--degree-scale %g: it must be above 0 and at most 10", r->k_scale);
  TRY(microcircuit_init(r->scale, r->k_scale, (uint64_t)r->seed, &m));
  r->no_order = true; /* any two populations are linked at random: no cut is better than another */
  return fine();
}

static struct status check_request(struct request *r) {
  if (!r->output)
    return failure(EXIT_USAGE,
                   "generate: --output is missing; `fascicle generate --help` shows an example");
  TRY(check_microcircuit(r));
  if (is_microcircuit(r)) return fine();
  if (!r->model) r->model = "lognormal";
  if (!r->delays) r->delays = "1";
  if (!r->types) r->types = 32;
  if (r->parts & (r->parts - 1))
    return failure(EXIT_USAGE, "--parts %lld: it must be a power of two", (long long)r->parts);
  if (r->shuffle_within && !r->shuffle_of)
    return failure(EXIT_USAGE, "--shuffle-within %s: it needs --shuffle-of FILE",
                   r->shuffle_within);
  if (r->shuffle_of && (r->nodes >= 0 || r->edges >= 0))
    return failure(EXIT_USAGE,
                   "--shuffle-of %s: the graph is given, so leave --nodes and --edges out",
                   r->shuffle_of);
  if (r->shuffle_of) return fine();
  if (r->nodes < 0 || r->edges < 0)
    return failure(EXIT_USAGE,
                   "generate: --nodes N and --edges E are needed (or --shuffle-of FILE)");
  TRY(parse_delays(r));
  const struct generate_model model = model_of(r);
  return generate_check(&model);
}

/* ---- provenance ---- */

static char *text_of(json_t *json) {
  char *text = json_line_kept(json);
  json_decref(json);
  return text;
}

static char *provenance_synthetic(const struct request *r) {
  json_t *rules =
      json_pack("{s:s, s:I, s:I, s:I, s:s, s:I}", "model", r->model, "nodes", (json_int_t)r->nodes,
                "edges", (json_int_t)r->edges, "seed", (json_int_t)r->seed, "delays", r->delays,
                "types", (json_int_t)r->types);
  return text_of(json_pack("{s:s, s:[], s:o}", "program", "fascicle " BUILD_VERSION, "inputs",
                           "generate", rules));
}

static char *provenance_microcircuit(const struct request *r, const struct microcircuit *m) {
  json_t *rules =
      json_pack("{s:s, s:f, s:f, s:I, s:f}", "kind", r->kind, "scale", m->scale, "degree_scale",
                m->k_scale, "seed", (json_int_t)r->seed, "weight_pa", m->weight_pa);
  return text_of(json_pack("{s:s, s:[], s:o}", "program", "fascicle " BUILD_VERSION, "inputs",
                           "generate", rules));
}

/* ---- the kinds ---- */

static struct status make_microcircuit(const struct request *r, struct connectome *g) {
  struct microcircuit m;
  TRY(microcircuit_init(r->scale, r->k_scale, (uint64_t)r->seed, &m));
  microcircuit_make(&m, r->population ? r->population : "neurons", g);
  g->provenance = provenance_microcircuit(r, &m);
  return fine();
}

/* The configuration beside the graph. */
static struct status write_config(const struct request *r) {
  struct microcircuit m;
  if (!r->config_output) return fine();
  TRY(microcircuit_init(r->scale, r->k_scale, (uint64_t)r->seed, &m));
  json_t *config = microcircuit_config(&m, !r->background || strcmp(r->background, "dc"));
  char *text = json_dumps(config, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
  const size_t length = strlen(text);
  text[length] = '\n'; /* in place of the final 0 */
  const struct status s = file_write_whole(r->config_output, text, length + 1);
  free(text), json_decref(config);
  return s;
}

static struct status make_synthetic(const struct request *r, struct connectome *g) {
  const struct synthetic options = {.model = model_of(r),
                                    .min_delay = (uint16_t)r->min_delay,
                                    .max_delay = (uint16_t)r->max_delay,
                                    .types = (int)r->types,
                                    .population = r->population ? r->population : "neurons"};
  synthetic_make(&options, g);
  g->provenance = provenance_synthetic(r);
  return fine();
}

static struct status make_graph(const struct request *r, struct connectome *g, json_t *facts) {
  if (is_microcircuit(r)) return make_microcircuit(r, g);
  if (!r->shuffle_of) return make_synthetic(r, g);
  TRY(connectome_load(r->shuffle_of, g));
  const struct shuffled options = {.path = r->shuffle_of,
                                   .digest = r->digest,
                                   .within = r->shuffle_within,
                                   .seed = (uint64_t)r->seed};
  return shuffled_make(&options, g, facts);
}

/* ---- what is said about it ---- */

static json_t *degrees_json(const struct connectome *g, const uint32_t *end) {
  const struct degree_facts d = generate_degrees(g->n_nodes, g->n_edges, end);
  return json_pack("{s:I, s:I, s:f, s:I}", "least", (json_int_t)d.least, "median",
                   (json_int_t)d.median, "mean", d.mean, "most", (json_int_t)d.most);
}

static void add_facts(const struct request *r, const struct connectome *g, json_t *facts) {
  eidx inhibitory = 0;
  for (eidx e = 0; e < g->n_edges; e++) inhibitory += g->impulse[e] < 0;
  json_object_set_new(facts, "output", json_string(r->output));
  json_object_set_new(facts, "nodes", json_integer(g->n_nodes));
  json_object_set_new(facts, "edges", json_integer(g->n_edges));
  json_object_set_new(facts, "inhibitory_edges", json_integer(inhibitory));
  json_object_set_new(facts, "in_degree", degrees_json(g, g->target));
  json_object_set_new(facts, "out_degree", degrees_json(g, g->source));
  json_object_set_new(facts, "order", json_string(g->row_of_node ? g->order_method : "none"));
}

static void print_degrees(const char *name, const json_t *d) {
  printf("%s-degree: %lld to %lld, median %lld, mean %.1f\n", name,
         (long long)json_integer_value(json_object_get(d, "least")),
         (long long)json_integer_value(json_object_get(d, "most")),
         (long long)json_integer_value(json_object_get(d, "median")),
         json_real_value(json_object_get(d, "mean")));
}

static double seconds_of(const json_t *facts, const char *what) {
  return json_real_value(json_object_get(json_object_get(facts, "seconds"), what));
}

/* What a configuration must say of the weights. */
static void add_weight(const struct request *r, json_t *facts) {
  struct microcircuit m;
  if (is_microcircuit(r) && !microcircuit_init(r->scale, r->k_scale, 0, &m).code)
    json_object_set_new(facts, "weight_pa", json_real(m.weight_pa));
}

static void print_facts(const struct request *r, const struct connectome *g, const json_t *facts) {
  const double inhibitory = (double)json_integer_value(json_object_get(facts, "inhibitory_edges"));
  printf("%s: %lld neurons, %lld edges, %.1f %% inhibitory\n", r->output, (long long)g->n_nodes,
         (long long)g->n_edges, g->n_edges ? 100 * inhibitory / (double)g->n_edges : 0.0);
  print_degrees("in", json_object_get(facts, "in_degree"));
  print_degrees("out", json_object_get(facts, "out_degree"));
  if (r->shuffle_of) shuffled_print(facts);
  if (is_microcircuit(r))
    printf("weights: one count is %.9g pA (weight_pa of a configuration)\n",
           json_real_value(json_object_get(facts, "weight_pa")));
  if (g->row_of_node) printf("order: %s, %d parts\n", g->order_method, g->n_blocks);
  printf("seconds: made %.1f, ordered %.1f, written %.1f; peak %.2f GB\n",
         seconds_of(facts, "made"), seconds_of(facts, "ordered"), seconds_of(facts, "written"),
         (double)mem_resident_peak() / 1e9);
}

static void report(const struct request *r, const struct connectome *g, json_t *facts) {
  add_facts(r, g, facts), add_weight(r, facts);
  if (r->as_json)
    json_print(facts);
  else
    print_facts(r, g, facts);
}

/* On rank 0 alone: the file is written by one process. */
static struct status make_file(const struct request *r, struct connectome *g, json_t *facts) {
  TRY(file_not_input(r->output, r->shuffle_of));
  TRY(file_may_write(r->output, 0, r->force));
  if (r->config_output) TRY(file_may_write(r->config_output, 0, r->force));
  const double start = seconds_now();
  TRY(make_graph(r, g, facts));
  const double made = seconds_now();
  if (!r->no_order && g->n_nodes) TRY(reorder_graph(g, (int)r->parts, REORDER_SEED));
  const double ordered = seconds_now();
  g->packed |= r->packed;
  TRY(connectome_write(g, r->output, r->streamable, r->force));
  TRY(write_config(r));
  json_object_set_new(facts, "seconds",
                      json_pack("{s:f, s:f, s:f}", "made", made - start, "ordered", ordered - made,
                                "written", seconds_now() - ordered));
  json_object_set_new(facts, "peak_bytes", json_integer(mem_resident_peak()));
  report(r, g, facts);
  return fine();
}

/* On every rank, so that a bad file is agreed on. */
static struct status look_at_input(const struct comm *world, struct request *r) {
  if (!r->shuffle_of) return fine();
  struct connectome_file *file;
  TRY(connectome_open(world, r->shuffle_of, &file));
  memcpy(r->digest, connectome_facts(file)->graph_digest, DIGEST_TEXT);
  connectome_close(file);
  return fine();
}

static struct status parse(struct request *r, int argc, char **argv) {
  const struct option options[] = {
      {"kind", OPTION_TEXT, "connectome|microcircuit",
       "connectome (default), or the network of Potjans and Diesmann", &r->kind, 0, 0},
      {"nodes", OPTION_INT, "N", "neurons", &r->nodes, 1, UINT32_MAX - 1},
      {"edges", OPTION_INT, "E", "edges, exactly; no pair twice, no self-loop", &r->edges, 0,
       INT64_MAX},
      {"model", OPTION_TEXT, "lognormal|modular",
       "lognormal (default): heavy-tailed degrees; modular: also 77 % of the edges within modules",
       &r->model, 0, 0},
      {"seed", OPTION_INT, "S", "seed of all draws (1)", &r->seed, 0, INT64_MAX},
      {"delays", OPTION_TEXT, "A:B", "delays in steps, uniform from A to B (1)", &r->delays, 0, 0},
      {"types", OPTION_INT, "K", "cell types (32)", &r->types, 1, 1000000},
      {"population", OPTION_TEXT, "NAME", "SONATA population (neurons)", &r->population, 0, 0},
      {"output", OPTION_TEXT, "FILE", "the graph to write", &r->output, 0, 0},
      {"scale", OPTION_REAL, "X", "microcircuit: numbers of neurons, and of inputs, times X (1)",
       &r->scale, 0, 0},
      {"degree-scale", OPTION_REAL, "K",
       "microcircuit: numbers of inputs times K instead; weights times 1 / sqrt(K)", &r->k_scale, 0,
       0},
      {"config-output", OPTION_TEXT, "FILE", "microcircuit: also its configuration for `simulate`",
       &r->config_output, 0, 0},
      {"background", OPTION_TEXT, "poisson|dc",
       "in that configuration: Poisson events (default), or a constant current in place of them",
       &r->background, 0, 0},
      {"shuffle-of", OPTION_TEXT, "FILE", "shuffle the partners in this graph instead",
       &r->shuffle_of, 0, 0},
      {"shuffle-within", OPTION_TEXT, "COLUMN",
       "every neuron also keeps its number of outputs into each class of this node column",
       &r->shuffle_within, 0, 0},
      {"parts", OPTION_INT, "N", "parts of the ordering, a power of two (64)", &r->parts, 1, 65536},
      {"no-order", OPTION_FLAG, NULL, "leave the neurons in the order of their ids", &r->no_order,
       0, 0},
      {"streamable", OPTION_FLAG, NULL, "also store the source-major copy", &r->streamable, 0, 0},
      {"packed", OPTION_FLAG, NULL,
       "deflate the edges: a quarter of the size, but not for libsonata's wheel", &r->packed, 0, 0},
      {"force", OPTION_FLAG, NULL, "replace an existing output", &r->force, 0, 0},
      watchdog_option(&r->watchdog),
      {"json", OPTION_FLAG, NULL, "one JSON object on stdout", &r->as_json, 0, 0}};
  return options_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL);
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct request r = {.nodes = -1,
                      .edges = -1,
                      .seed = 1,
                      .parts = REORDER_PARTS,
                      .kind = "connectome",
                      .scale = NAN,
                      .k_scale = NAN,
                      .watchdog = WATCHDOG_CHOSEN};
  TRY(parse(&r, argc, argv));
  TRY(check_request(&r));
  TRY(watchdog_begin(r.watchdog));
  TRY(look_at_input(world, &r));
  struct connectome graph = {0};
  json_t *facts = json_object();
  watchdog_pause("generating");
  const struct status s = world->rank == 0 ? make_file(&r, &graph, facts) : fine();
  comm_wait_for_all(world);
  watchdog_resume();
  json_decref(facts);
  connectome_free(&graph);
  return agree(world, s);
}

const struct verb verb_generate = {"generate", "synthetic connectomes and shuffled controls", run};
