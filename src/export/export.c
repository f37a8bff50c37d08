/* fascicle export: writes graphs and trained weights as tables. */
#include "export.h"
#include "io/graph/connectome.h"
#include "io/files/csv.h"
#include "io/files/files.h"
#include "core/log.h"
#include "core/mem.h"
#include "graph/scx.h"
#include "train/saved_model.h"
#include "run/verbs.h"
#include "core/watchdog.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct usage usage = {
    .verb = "export",
    .operands = "FILE",
    .fewest = 1,
    .most = 1,
    .about =
        "Write a table that needs no knowledge of our order of neurons: rows sorted by "
        "presynaptic, "
        "then postsynaptic neuron, named by their body ids. csv: a graph as "
        "body_pre,body_post,weight,impulse,delay. weights: the trained value of every edge of a "
        "run or "
        "checkpoint as body_pre,body_post,value, where value = theta in_degree^(-1/2) is what "
        "multiplies the presynaptic state. scx: a graph as a portable .scx folder; one that was "
        "imported from .scx comes back byte for byte. sonata: a folder that bmtk's PointNet runs "
        "on "
        "NEST: SONATA nodes and edges (syn_weight, delay in ms), tables of types, parameters and "
        "configurations; --config gives it the neurons of a simulation (lif_delta, psc_exp or "
        "psc_alpha), without it they are iaf_psc_exp.",
    .example = "  fascicle export graph.h5 --format csv --output edges.csv\n"
               "  fascicle export run --format weights --output weights.csv\n"
               "  fascicle export graph.h5 --format sonata --config psc.json --output circuit"};

struct export_request {
  struct trained_request model;
  const char *format, *output;
  int64_t block_size;
  double dt_ms, weight;
  bool force;
};

/* Rank 0 does the work, on the CPU: options about devices and ranks have no meaning here. */
static int shared_options(struct export_request *r, struct job *job, struct option *rows) {
  static const char *const taken[] = {"which", "graph", "threads", "memory", "watchdog"};
  struct option all[TRAINED_OPTIONS];
  const int n_all = trained_options(&r->model, job, all);
  return options_named(all, n_all, taken, sizeof taken / sizeof *taken, rows);
}

static struct status parse(int argc, char **argv, struct job *job, struct export_request *r) {
  struct option options[TRAINED_OPTIONS + 8];
  int n = shared_options(r, job, options);
  const struct option own[] = {
      {"format", OPTION_TEXT, "csv|weights|scx|sonata", "what to write", &r->format, 0, 0},
      {"output", OPTION_TEXT, "FILE", "the table or folder", &r->output, 0, 0},
      {"block-size", OPTION_INT, "N", "scx: sources of one block (4096)", &r->block_size, 1,
       UINT32_MAX},
      {"config", OPTION_TEXT, "FILE", "sonata: a simulation's configuration, for its neurons",
       &job->config, 0, 0},
      {"set", OPTION_LIST, "KEY=VALUE", "sonata: change one key of it; may be repeated", &job->set,
       0, 0},
      {"dt", OPTION_REAL, "MS", "sonata, without --config: one step of a delay (0.1)", &r->dt_ms, 0,
       0},
      {"weight", OPTION_REAL, "PA", "sonata, without --config: what one count is worth (1)",
       &r->weight, 0, 0},
      {"force", OPTION_FLAG, NULL, "replace an existing file", &r->force, 0, 0},
  };
  n = options_append(options, n, own, sizeof own / sizeof *own);
  TRY(options_parse(&usage, options, n, argc, argv, &r->model.source));
  if (!r->format) return failure(EXIT_USAGE, "export: --format csv|weights|scx|sonata is missing");
  if (!r->output) return failure(EXIT_USAGE, "export: --output FILE is missing");
  const bool neurons = job->config || job->set.n || !isnan(r->dt_ms) || !isnan(r->weight);
  if (neurons && strcmp(r->format, "sonata"))
    return failure(EXIT_USAGE,
                   "export --format %s: --config, --set, --dt and --weight are for --format sonata",
                   r->format);
  return fine();
}

/* ---- writing a table ---- */

struct table {
  struct csv csv;
  const uint64_t *body_id;
  char **name; /* or NULL */
};

static struct status table_begin(const struct export_request *r, const char *header,
                                 struct table *t) {
  TRY(file_may_write(r->output, 0, r->force));
  TRY(csv_begin(r->output, &t->csv));
  fprintf(t->csv.file, "%s\n", header);
  return fine();
}

static void put_pair(const struct table *t, uint32_t pre, uint32_t post) {
  const uint32_t node[2] = {pre, post};
  for (int i = 0; i < 2; i++) {
    if (t->name)
      csv_put(t->csv.file, t->name[node[i]]);
    else
      fprintf(t->csv.file, "%llu", (unsigned long long)t->body_id[node[i]]);
    if (i == 0) fputc(',', t->csv.file);
  }
}

/* One edge on its way out; `at` is its place in the arrays of values. */
struct edge_row {
  uint32_t pre, post;
  eidx at;
};

static int by_pair(const void *a, const void *b) {
  const struct edge_row *x = a, *y = b;
  if (x->pre != y->pre) return x->pre > y->pre ? 1 : -1;
  if (x->post != y->post) return x->post > y->post ? 1 : -1;
  return (x->at > y->at) - (x->at < y->at);
}

static void sort_rows(struct edge_row *row, eidx n) {
  if (n) qsort(row, (size_t)n, sizeof *row, by_pair);
}

/* ---- csv: a graph ---- */

static struct status write_graph(const struct export_request *r) {
  struct connectome g = {0};
  struct stat about;
  TRY(file_not_input(r->output, r->model.source));
  if (!stat(r->model.source, &about) && S_ISDIR(about.st_mode))
    return failure(EXIT_INPUT, "%s: a folder; csv is for graphs, --format weights for runs",
                   r->model.source);
  TRY(connectome_load(r->model.source, &g));
  struct table t = {.body_id = g.body_id, .name = g.name};
  struct status s = table_begin(r, "body_pre,body_post,weight,impulse,delay", &t);
  if (!s.code) {
    struct edge_row *row = NEW(struct edge_row, g.n_edges);
    for (eidx e = 0; e < g.n_edges; e++) row[e] = (struct edge_row){g.source[e], g.target[e], e};
    sort_rows(row, g.n_edges);
    for (eidx i = 0; i < g.n_edges; i++) {
      const eidx e = row[i].at;
      put_pair(&t, row[i].pre, row[i].post);
      fprintf(t.csv.file, ",%lld,%d,%u\n",
              g.count ? (long long)g.count[e] : (long long)g.impulse[e], g.impulse[e],
              g.delay ? g.delay[e] : g.constant_delay);
    }
    mem_free(row);
    s = csv_end(&t.csv);
  }
  if (!s.code) log_line("%s: %lld edges", r->output, (long long)g.n_edges);
  connectome_free(&g);
  return s;
}

/* ---- scx: a graph ---- */

static struct status write_scx(const struct export_request *r) {
  struct connectome g = {0};
  if (r->force)
    return failure(EXIT_USAGE,
                   "export --format scx: a folder is never replaced; --force does not apply");
  TRY(file_not_input(r->output, r->model.source));
  TRY(connectome_load(r->model.source, &g));
  const struct status s = scx_export(&g, r->block_size, r->output);
  if (!s.code) log_line("%s: %lld edges", r->output, (long long)g.n_edges);
  connectome_free(&g);
  return s;
}

/* ---- sonata: a graph and the neurons of a configuration ---- */

static struct status write_sonata(const struct comm *alone, const struct job *job,
                                  const struct export_request *r) {
  const struct sonata_request request = {r->model.source, r->output, r->dt_ms, r->weight};
  if (r->force)
    return failure(EXIT_USAGE,
                   "export --format sonata: a folder is never replaced; --force does not apply");
  TRY(file_not_input(r->output, r->model.source));
  TRY(file_not_input(r->output, job->config));
  return export_sonata(alone, job, &request);
}

/* ---- weights: a checkpoint ---- */

struct rows_of_edges {
  const struct network *network;
  struct edge_row *row;
};

static void take_edge(void *self, eidx at, lidx source, lidx target, eidx in_file) {
  const struct rows_of_edges *r = self;
  (void)in_file;
  r->row[at] = (struct edge_row){(uint32_t)network_node(r->network, source),
                                 (uint32_t)network_node(r->network, target), at};
}

static struct status write_values(const struct export_request *r, const struct trained *trained,
                                  struct rnn *rnn) {
  const struct network *n = &trained->network;
  const eidx n_edges = network_n_edges(n);
  uint64_t *body_id = NEW(uint64_t, n->facts.n_nodes);
  connectome_body_ids(n->file, 0, n->facts.n_nodes, body_id);
  struct table t = {.body_id = body_id,
                    .name = n->facts.has_names ? connectome_names(n->file) : NULL};
  struct status s = table_begin(r, "body_pre,body_post,value", &t);
  if (!s.code) {
    float *value = NEW(float, n_edges);
    rnn->backend->get(value, rnn->backend->recur->value(rnn->recur),
                      (size_t)n_edges * sizeof *value);
    struct rows_of_edges rows = {n, NEW(struct edge_row, n_edges)};
    network_edges(n, take_edge, &rows);
    sort_rows(rows.row, n_edges);
    for (eidx i = 0; i < n_edges; i++) {
      put_pair(&t, rows.row[i].pre, rows.row[i].post);
      fprintf(t.csv.file, ",%.9g\n", (double)value[rows.row[i].at]);
    }
    mem_free(value), mem_free(rows.row);
    s = csv_end(&t.csv);
  }
  if (!s.code) log_line("%s: %lld edges", r->output, (long long)n_edges);
  for (int64_t i = 0; t.name && i < n->facts.n_nodes; i++) mem_free(t.name[i]);
  mem_free(t.name), mem_free(body_id);
  return s;
}

static struct status write_weights(const struct comm *alone, struct job *job,
                                   const struct export_request *r) {
  struct trained trained;
  struct rnn rnn = {0};
  struct status s = trained_open(alone, job, &r->model, 1, &trained);
  if (!s.code) s = file_not_input(r->output, trained.path);
  if (!s.code) s = file_not_input(r->output, connectome_path(trained.network.file));
  if (!s.code) s = trained_rnn(&trained, 1, 1, &rnn);
  if (!s.code) s = write_values(r, &trained, &rnn);
  if (rnn.network) rnn_close(&rnn);
  trained_close(&trained);
  return s;
}

static struct status write(const struct comm *alone, struct job *job,
                           const struct export_request *r) {
  if (!strcmp(r->format, "csv")) return write_graph(r);
  if (!strcmp(r->format, "sonata")) return write_sonata(alone, job, r);
  return strcmp(r->format, "scx") ? write_weights(alone, job, r) : write_scx(r);
}

/* Rank 0 does it, the others wait for the outcome. */
static struct status run(struct comm *world, int argc, char **argv) {
  struct job job = job_defaults();
  struct export_request request = {
      .model = {.which = "best"}, .block_size = 4096, .dt_ms = NAN, .weight = NAN};
  job.device = "cpu";
  TRY(parse(argc, argv, &job, &request));
  TRY(job_start(world, &job));
  struct comm alone = comm_split(world, world->rank > 0, world->rank);
  struct status s = fine();
  watchdog_pause("export");
  if (world->rank == 0) s = write(&alone, &job, &request);
  comm_wait_for_all(world);
  watchdog_resume();
  s = agree(world, s);
  comm_free(&alone);
  job_stop(&job);
  return s;
}

const struct verb verb_export = {"export", "graphs and trained weights as tables", run};
