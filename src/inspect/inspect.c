/* fascicle inspect: which kind of file is it, and what does it hold? */
#include "inspect.h"
#include "io/files/files.h"
#include "io/hdf5/h5.h"
#include "core/mem.h"
#include "run/options.h"
#include "io/scx/scx.h"
#include "io/table/table.h"
#include "run/verbs.h"
#include "run/watchdog_option.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct usage usage = {
    .verb = "inspect",
    .operands = "FILE",
    .fewest = 1,
    .most = 1,
    .about = "What a file or folder holds: a graph, a run, a checkpoint, spikes, another HDF5 "
             "file, an .scx folder, or a table (delimited text or Feather). For a graph: sizes, "
             "degrees, signs, delays, labels, ordering, digests and where it came from; or one "
             "neuron with its partners. For a run, also one that goes on: its state and step, "
             "spikes or losses, checkpoints, trials, configuration and origin.",
    .example = "  fascicle inspect graph.h5\n"
               "  mpirun -n 4 fascicle inspect graph.h5 --verify\n"
               "  fascicle inspect graph.h5 --node 10003 --partners 50\n"
               "  fascicle inspect run\n"
               "  fascicle inspect run/checkpoints/step_00001000.h5 --json"};

enum kind { KIND_GRAPH, KIND_FIELDS, KIND_SPIKES, KIND_HDF5, KIND_SCX, KIND_TABLE, KIND_RUN };
static const char *const kind_names[] = {"graph", "checkpoint", "spikes", "HDF5",
                                         "scx",   "table",      "run"};

/* What rank 0 sees at first glance. */
struct glance {
  enum kind kind;
  int64_t bytes;
  char format[64];
};

static void look_inside(struct h5_file *h5, struct glance *g) {
  char *format = h5_text(h5, "/", "format"), *meta = h5_text(h5, "/", "meta");
  snprintf(g->format, sizeof g->format, "%s", format ? format : "");
  int64_t version;
  if (format && !strcmp(format, "fascicle graph"))
    g->kind = KIND_GRAPH;
  else if (format && meta && h5_number(h5, "/", "format_version", &version))
    g->kind = KIND_FIELDS;
  else
    g->kind = KIND_HDF5;
  mem_free(format), mem_free(meta);
}

/* Spike files of ours say from which step to which they go. */
static bool is_our_spikes(struct h5_file *h5) {
  int64_t step;
  if (!h5_is_group(h5, "/spikes")) return false;
  char **populations = h5_members(h5, "/spikes"), path[600];
  bool ours = false;
  if (populations[0]) {
    snprintf(path, sizeof path, "/spikes/%s", populations[0]);
    ours = h5_is_group(h5, path) && h5_number(h5, path, "first_step", &step);
  }
  texts_free(populations);
  return ours;
}

static bool is_hdf5(const char *path) {
  static const char magic[8] = "\211HDF\r\n\032\n";
  char head[8] = "";
  FILE *file = fopen(path, "rbe");
  const size_t n = file ? fread(head, 1, sizeof head, file) : 0;
  if (file) fclose(file);
  return n == sizeof head && !memcmp(head, magic, sizeof head);
}

static struct status look(const char *path, struct glance *g) {
  struct stat info;
  char manifest[FILE_PATH];
  if (stat(path, &info)) return failure(EXIT_INPUT, "%s: cannot open: %s", path, strerror(errno));
  g->bytes = info.st_size;
  if (S_ISDIR(info.st_mode)) {
    g->kind = inspect_is_run(path) ? KIND_RUN : KIND_SCX, g->bytes = 0;
    snprintf(manifest, sizeof manifest, "%s/manifest.json", path);
    if (g->kind == KIND_RUN || file_exists(manifest)) return fine();
    return failure(EXIT_INPUT,
                   "%s: a folder, but neither a run (no metrics.jsonl) nor an .scx artifact (no "
                   "manifest.json)",
                   path);
  }
  struct h5_file h5;
  if (!is_hdf5(path)) {
    g->kind = KIND_TABLE; /* or nothing we know: the table reader says what it is */
    return fine();
  }
  TRY(h5_open(path, &h5));
  look_inside(&h5, g);
  if (g->kind == KIND_HDF5 && is_our_spikes(&h5)) g->kind = KIND_SPIKES;
  h5_close(&h5);
  return fine();
}

static struct status collect_scx(const struct inspect_request *request, json_t *facts) {
  struct scx scx = {0};
  TRY(scx_read(request->path, &scx));
  json_object_set_new(facts, "neurons", json_integer(scx.n_neurons));
  json_object_set_new(facts, "edges", json_integer(scx.n_edges));
  json_object_set_new(facts, "blocks", json_integer(scx.n_blocks));
  json_object_set_new(facts, "manifest", json_or_text(scx.manifest));
  json_object_set_new(facts, "verified", json_true()); /* reading checks every field and checksum */
  scx_free(&scx);
  return fine();
}

static struct status inspect_scx(const struct comm *comm, const struct inspect_request *request,
                                 json_t *facts) {
  return agree(comm, comm->rank == 0 ? collect_scx(request, facts) : fine());
}

static struct status collect_table(const struct inspect_request *request, json_t *facts) {
  struct table *table = NULL;
  struct status s = table_scan(request->path, &request->format, &table);
  if (!s.code) {
    json_t *columns = json_array();
    for (int i = 0; i < table_n_columns(table); i++)
      json_array_append_new(columns, json_pack("{s:s, s:s}", "name", table_column_name(table, i),
                                               "type", table_column_type(table, i)));
    json_object_set_new(facts, "format", json_string(table_facts(table)->format));
    json_object_set_new(facts, "rows", json_integer(table_facts(table)->rows));
    json_object_set_new(facts, "sha256", json_string(table_facts(table)->sha256));
    json_object_set_new(facts, "columns", columns);
  }
  table_close(table);
  return s;
}

static struct status inspect_table(const struct comm *comm, const struct inspect_request *request,
                                   json_t *facts) {
  if (request->verify)
    return failure(EXIT_USAGE, "--verify: %s is a table and carries no checksums", request->path);
  return agree(comm, comm->rank == 0 ? collect_table(request, facts) : fine());
}

static struct status collect(const struct comm *comm, const struct inspect_request *request,
                             const struct glance *g, json_t *facts) {
  if (request->node && g->kind != KIND_GRAPH)
    return failure(EXIT_USAGE, "--node: %s is not a graph", request->path);
  switch (g->kind) {
  case KIND_GRAPH: return inspect_graph(comm, request, facts);
  case KIND_FIELDS: return inspect_fields(comm, request, g->format, facts);
  case KIND_SPIKES: return inspect_spikes(comm, request, facts);
  case KIND_SCX: return inspect_scx(comm, request, facts);
  case KIND_RUN: return inspect_run(comm, request, facts);
  case KIND_TABLE: return inspect_table(comm, request, facts);
  default: return inspect_hdf5(comm, request, facts);
  }
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct inspect_request request = {
      .partners = 20, .labels = 10, .format.delimiter_option = "--delimiter"};
  bool as_json = false;
  double watchdog = WATCHDOG_CHOSEN;
  const struct option options[] = {
      {"node", OPTION_TEXT, "ID", "one neuron, by body id or name, with its partners",
       &request.node, 0, 0},
      {"partners", OPTION_INT, "N",
       "how many of its partners to list each way, the strongest first; 0: all (20)",
       &request.partners, 0, INT64_MAX},
      {"labels", OPTION_INT, "N",
       "how many labels of each column to list, the most frequent first; 0: all (10)",
       &request.labels, 0, INT64_MAX},
      {"verify", OPTION_FLAG, NULL, "recompute digests and checksums; all ranks share the work",
       &request.verify, 0, 0},
      {"delimiter", OPTION_TEXT, "WORD",
       "of a table: comma, tab, semicolon, pipe, blank or one character", &request.format.delimiter,
       0, 0},
      {"header", OPTION_TEXT, "auto|yes|no", "is the first row of a table a header?",
       &request.format.header, 0, 0},
      watchdog_option(&watchdog),
      {"json", OPTION_FLAG, NULL, "one JSON object on stdout", &as_json, 0, 0}};
  TRY(options_parse(&usage, options, sizeof options / sizeof *options, argc, argv, &request.path));
  TRY(watchdog_begin(watchdog));
  watchdog_pause("inspect"); /* all of it reads */
  struct glance g = {0};
  TRY(agree(world, world->rank == 0 ? look(request.path, &g) : fine()));
  comm_share(world, &g, sizeof g, 0);
  json_t *facts = json_object();
  json_object_set_new(facts, "file", json_string(request.path));
  json_object_set_new(facts, "kind", json_string(kind_names[g.kind]));
  if (g.bytes) json_object_set_new(facts, "bytes", json_integer(g.bytes));
  struct status s = collect(world, &request, &g, facts);
  if (!s.code && world->rank == 0) as_json ? json_print(facts) : inspect_print(facts);
  json_decref(facts);
  return s;
}

const struct verb verb_inspect = {"inspect",
                                  "what a graph, run, checkpoint, spike file or table holds", run};
