/* fascicle order: (re)compute the partition ordering of a graph. */
#include "reorder.h"
#include "io/files/files.h"
#include "core/log.h"
#include "core/mem.h"
#include "run/options.h"
#include "run/verbs.h"
#include "run/watchdog_option.h"

#include <stdio.h>

static const struct usage usage = {
    .verb = "order",
    .operands = "graph.h5",
    .fewest = 1,
    .most = 1,
    .about = "Order the neurons of a graph so that connected ones are near each other (one "
             "nested METIS bisection), and write the graph anew with its edges in that order. Any "
             "number of "
             "ranks up to --parts then owns contiguous rows. Node ids do not change. Prints, for "
             "2, 4, 8 ... "
             "parts, the edges cut, the rows that must travel in each step (halo rows) against an "
             "all-gather, and how evenly edges and neurons are spread.",
    .example = "  fascicle order graph.h5 --output ordered.h5\n"
               "  fascicle order graph.h5 --output ordered.h5 --parts 256 --json"};

struct request {
  const char *input, *output;
  int64_t parts, seed;
  bool streamable, packed, force, as_json;
  double watchdog;
};

static void report(const struct request *r, const struct connectome *g, double seconds) {
  json_t *facts = reorder_facts(g);
  if (r->as_json) {
    json_object_set_new(facts, "graph", json_string(r->input));
    json_object_set_new(facts, "output", json_string(r->output));
    json_object_set_new(facts, "nodes", json_integer(g->n_nodes));
    json_object_set_new(facts, "edges", json_integer(g->n_edges));
    json_object_set_new(facts, "seconds", json_real(seconds));
    json_object_set_new(facts, "peak_bytes", json_integer(mem_resident_peak()));
    json_print(facts);
  } else {
    printf("%s: %lld neurons, %lld edges; %s, %d parts, %.3g s\n", r->output, (long long)g->n_nodes,
           (long long)g->n_edges, g->order_method, g->n_blocks, seconds);
    reorder_print(facts, g);
  }
  json_decref(facts);
}

/* On rank 0 alone: the file is written by one process. */
static struct status order_file(const struct request *r, struct connectome *g) {
  TRY(file_may_write(r->output, 0, r->force));
  TRY(connectome_load(r->input, g));
  const double start = seconds_now();
  TRY(reorder_graph(g, (int)r->parts, (int)r->seed));
  const double seconds = seconds_now() - start;
  g->packed |= r->packed; /* kept where the input is packed */
  TRY(connectome_write(g, r->output, r->streamable, r->force));
  report(r, g, seconds);
  return fine();
}

static struct status check_request(const struct request *r) {
  if (!r->output)
    return failure(EXIT_USAGE,
                   "order: --output is missing; `fascicle order --help` shows an example");
  if (r->parts & (r->parts - 1))
    return failure(EXIT_USAGE, "--parts %lld: it must be a power of two", (long long)r->parts);
  return fine();
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct request r = {.parts = REORDER_PARTS, .seed = REORDER_SEED, .watchdog = WATCHDOG_CHOSEN};
  const struct option options[] = {
      {"output", OPTION_TEXT, "FILE", "the ordered graph to write", &r.output, 0, 0},
      {"parts", OPTION_INT, "N", "parts of the finest level, a power of two (64)", &r.parts, 1,
       65536},
      {"seed", OPTION_INT, "S", "seed of the partitioner (1)", &r.seed, 0, INT32_MAX},
      {"streamable", OPTION_FLAG, NULL,
       "also store the source-major copy; kept where the input has one", &r.streamable, 0, 0},
      {"packed", OPTION_FLAG, NULL,
       "deflate the edges: a quarter of the size, but not for libsonata's wheel", &r.packed, 0, 0},
      {"force", OPTION_FLAG, NULL, "replace an existing output", &r.force, 0, 0},
      watchdog_option(&r.watchdog),
      {"json", OPTION_FLAG, NULL, "one JSON object on stdout", &r.as_json, 0, 0}};
  TRY(options_parse(&usage, options, sizeof options / sizeof *options, argc, argv, &r.input));
  TRY(check_request(&r));
  TRY(watchdog_begin(r.watchdog));
  struct connectome_file *file;
  TRY(connectome_open(world, r.input, &file));
  r.streamable |= connectome_facts(file)->streamable;
  connectome_close(file);
  struct connectome graph = {0};
  watchdog_pause("ordering");
  const struct status s = world->rank == 0 ? order_file(&r, &graph) : fine();
  comm_wait_for_all(world);
  watchdog_resume();
  connectome_free(&graph);
  return agree(world, s);
}

const struct verb verb_order = {"order",
                                "order a graph's neurons so that it splits well over ranks", run};
