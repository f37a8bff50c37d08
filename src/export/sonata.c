/* export --format sonata: a folder with a circuit, its types and parameters, and a simulation, as
 * bmtk's PointNet (NEST) runs them. */
#include "export.h"
#include "core/log.h"
#include "core/mem.h"
#include "io/files/files.h"
#include "io/graph/connectome.h"
#include "simulate/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_TYPES = 4096 }; /* each has a file */

struct work {
  const struct sonata_request *request;
  struct connectome graph;
  struct lif_config config;
  const char *model;   /* NEST's */
  json_t **parameters; /* [n_types] of NEST's model */
  int n_types;
  struct sonata_form form;
  uint32_t *type; /* [n_nodes] */
  char folder[FILE_PATH];
};

/* ---- which of NEST's models ---- */

static const struct {
  const char *name, *nest;
} models[] = {
    {"lif_delta", "iaf_psc_delta"}, {"psc_exp", "iaf_psc_exp"}, {"psc_alpha", "iaf_psc_alpha"}};
static const double CAPACITY = 250; /* pF, where currents have no part in it: NEST's own default */

static struct status choose_model(struct work *w, const char *where) {
  const struct lif_model_config *m = &w->config.linear;
  for (size_t i = 0; m->kind && i < sizeof models / sizeof *models; i++)
    if (!strcmp(m->kind->name, models[i].name)) w->model = models[i].nest;
  if (!w->model)
    return failure(EXIT_USAGE,
                   "%s: \"model\" is \"%s\", which NEST does not have; lif_delta, psc_exp and "
                   "psc_alpha can be exported",
                   where, m->kind ? m->kind->name : "lif_shift");
  for (int k = 0; k < m->n_classes; k++)
    if (m->neuron[k].adapts)
      return failure(EXIT_USAGE, "%s: NEST's %s has no adaptation", where, w->model);
  if (m->n_classes > MOST_TYPES)
    return failure(EXIT_USAGE, "%s: makes %d classes of neurons; at most %d can be exported", where,
                   m->n_classes, MOST_TYPES);
  return fine();
}

/* V_m must be given: it does not follow E_L. */
static json_t *parameters_of(const struct lif_neuron *n, bool bare) {
  json_t *p = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "C_m",
                        isnan(n->c_m_pf) ? CAPACITY : n->c_m_pf, "tau_m", n->tau_m_ms, "E_L",
                        n->v_rest_mv, "V_m", n->v_rest_mv, "V_th", n->v_threshold_mv, "V_reset",
                        n->v_reset_mv, "t_ref", bare ? 0.0 : n->refractory_ms, "I_e", n->i_e_pa);
  if (isnan(n->tau_syn_ex_ms)) return p;
  json_object_set_new(p, "tau_syn_ex", json_real(n->tau_syn_ex_ms));
  json_object_set_new(p, "tau_syn_in", json_real(n->tau_syn_in_ms));
  return p;
}

static void take_types(struct work *w) {
  const struct lif_model_config *m = &w->config.linear;
  w->n_types = m->n_classes;
  w->parameters = NEW_ZERO(json_t *, m->n_classes);
  for (int k = 0; k < m->n_classes; k++)
    w->parameters[k] = parameters_of(&m->neuron[k], m->bare[k]);
  w->type = NEW(uint32_t, w->graph.n_nodes);
  for (int64_t v = 0; v < w->graph.n_nodes; v++) w->type[v] = m->class_of_node[v];
  w->form = (struct sonata_form){w->type, m->weight, w->config.dt_ms, (int)w->config.linear.delay};
}

/* What the folder will lack. */
static void say_omissions(const struct work *w) {
  const struct lif_config *c = &w->config;
  const struct {
    int n;
    const char *name;
  } parts[] = {{c->n_inputs, "stimulus"}, {c->n_initial, "initial"}, {c->n_silences, "silence"}};
  for (int i = 0; i < 3; i++)
    if (parts[i].n)
      log_warning("\"%s\" of the configuration is not exported: add it to simulation_config.json",
                  parts[i].name);
}

static struct status read_config(const struct comm *alone, const struct job *job, struct work *w) {
  struct connectome_file *file;
  struct neurons neurons;
  json_t *json;
  char where[FILE_PATH];
  if (!isnan(w->request->dt_ms) || !isnan(w->request->weight))
    return failure(EXIT_USAGE, "export: --dt and --weight are those of --config; give one or the "
                               "other");
  TRY(job_config(alone, job, &json));
  job_config_name(job, where, sizeof where);
  struct status s = connectome_open(alone, w->request->graph, &file);
  if (s.code) {
    json_decref(json);
    return s;
  }
  neurons_load(file, &neurons);
  s = lif_config_read(json, where, &neurons, &w->config);
  if (!s.code) s = choose_model(w, where);
  if (!s.code) take_types(w), say_omissions(w);
  neurons_free(&neurons), connectome_close(file), json_decref(json);
  return s;
}

/* Without a configuration: NEST's iaf_psc_exp as it comes. */
static struct status take_defaults(struct work *w) {
  const struct sonata_request *r = w->request;
  w->model = "iaf_psc_exp", w->n_types = 1;
  w->parameters = NEW_ZERO(json_t *, 1), w->parameters[0] = json_object();
  w->type = NEW_ZERO(uint32_t, w->graph.n_nodes);
  w->form = (struct sonata_form){w->type, isnan(r->weight) ? 1.0 : r->weight,
                                 isnan(r->dt_ms) ? 0.1 : r->dt_ms, 0};
  if (w->form.dt_ms > 0 && isfinite(w->form.dt_ms) && isfinite(w->form.weight)) return fine();
  return failure(EXIT_USAGE, "export: --dt %g and --weight %g: numbers are wanted, --dt above 0",
                 w->form.dt_ms, w->form.weight);
}

/* ---- small files ---- */

static struct status path_of(const struct work *w, const char *name, char path[FILE_PATH]) {
  if (snprintf(path, FILE_PATH, "%s/%s", w->folder, name) < FILE_PATH) return fine();
  return failure(EXIT_OUTPUT, "%.200s...: the path is too long", w->folder);
}

static struct status write_text(const struct work *w, const char *name, const char *text) {
  char path[FILE_PATH];
  TRY(path_of(w, name, path));
  return file_write_whole(path, text, strlen(text));
}

/* Takes the reference. */
static struct status write_json(const struct work *w, const char *name, json_t *json) {
  char *text = json_pretty(json);
  const struct status s = write_text(w, name, text);
  free(text), json_decref(json);
  return s;
}

static struct status write_parameters(const struct work *w) {
  char name[64];
  for (int k = 0; k < w->n_types; k++) {
    snprintf(name, sizeof name, "components/cell_models/neurons_%d.json", k);
    TRY(write_json(w, name, json_incref(w->parameters[k])));
  }
  return write_json(w, "components/synaptic_models/static_synapse.json", json_object());
}

/* Columns are parted by a blank. */
static struct status write_types(const struct work *w) {
  const char *population = w->graph.population;
  struct file_text table;
  char path[FILE_PATH];
  TRY(path_of(w, "network/node_types.csv", path));
  file_text_begin(&table);
  fprintf(table.out, "node_type_id population model_type model_template dynamics_params\n");
  for (int k = 0; k < w->n_types; k++)
    fprintf(table.out, "%d \"%s\" point_neuron nest:%s neurons_%d.json\n", k, population, w->model,
            k);
  TRY(file_text_end(&table, path));
  TRY(path_of(w, "network/edge_types.csv", path));
  file_text_begin(&table);
  fprintf(table.out,
          "edge_type_id population model_template dynamics_params\n"
          "0 \"%s__%s__chemical\" static_synapse static_synapse.json\n",
          population, population);
  return file_text_end(&table, path);
}

/* ${configdir}: the folder of the file itself, for bmtk. */
static json_t *circuit(void) {
  return json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:s}, s:{s:[{s:s, s:s}], s:[{s:s, s:s}]}}",
                   "manifest", "$BASE_DIR", "${configdir}", "$NETWORK_DIR", "$BASE_DIR/network",
                   "$MODELS_DIR", "$BASE_DIR/components", "components", "point_neuron_models_dir",
                   "$MODELS_DIR/cell_models", "synaptic_models_dir", "$MODELS_DIR/synaptic_models",
                   "networks", "nodes", "nodes_file", "$NETWORK_DIR/nodes.h5", "node_types_file",
                   "$NETWORK_DIR/node_types.csv", "edges", "edges_file", "$NETWORK_DIR/edges.h5",
                   "edge_types_file", "$NETWORK_DIR/edge_types.csv");
}

static json_t *simulation(const struct work *w) {
  return json_pack(
      "{s:{s:s, s:s}, s:s, s:s, s:{s:f, s:f}, s:{}, s:{}, s:{s:s, s:s, s:s, s:s, s:b}}", "manifest",
      "$BASE_DIR", "${configdir}", "$OUTPUT_DIR", "$BASE_DIR/output", "network",
      "$BASE_DIR/circuit_config.json", "target_simulator", "NEST", "run", "tstop", 1000.0, "dt",
      w->form.dt_ms, "inputs", "reports", "output", "output_dir", "$OUTPUT_DIR", "log_file",
      "log.txt", "spikes_file", "spikes.h5", "spikes_sort_order", "time", "overwrite_output_dir",
      1);
}

static const char script[] =
    "\"\"\"Runs this folder: python run_pointnet.py [simulation_config.json]\"\"\"\n"
    "import os\n"
    "import sys\n\n"
    "from bmtk.simulator import pointnet\n\n"
    "here = os.path.dirname(os.path.abspath(__file__))\n"
    "configure = pointnet.Config.from_json(sys.argv[1] if len(sys.argv) > 1 else "
    "os.path.join(here, "
    "\"simulation_config.json\"))\n"
    "configure.build_env()\n"
    "network = pointnet.PointNetwork.from_config(configure)\n"
    "pointnet.PointSimulator.from_config(configure, network).run()\n";

/* ---- all of it ---- */

static struct status write_graph(struct work *w) {
  char nodes[FILE_PATH], edges[FILE_PATH];
  TRY(path_of(w, "network/nodes.h5", nodes));
  TRY(path_of(w, "network/edges.h5", edges));
  return connectome_write_sonata(&w->graph, &w->form, nodes, edges);
}

static struct status write_all(struct work *w) {
  static const char *const folders[] = {"network", "components/cell_models",
                                        "components/synaptic_models"};
  char path[FILE_PATH];
  for (int i = 0; i < 3; i++) {
    TRY(path_of(w, folders[i], path));
    TRY(folder_make(path));
  }
  TRY(write_graph(w));
  TRY(write_types(w));
  TRY(write_parameters(w));
  TRY(write_json(w, "circuit_config.json", circuit()));
  TRY(write_json(w, "simulation_config.json", simulation(w)));
  return write_text(w, "run_pointnet.py", script);
}

/* The folder is there whole, or not at all. */
static struct status write_folder(struct work *w) {
  const char *output = w->request->output;
  if (file_exists(output))
    return failure(EXIT_OUTPUT, "%s: it exists; choose another name or remove it", output);
  TRY(file_tmp_own(output, w->folder));
  struct status s = write_all(w);
  if (!s.code && rename(w->folder, output))
    s = failure(EXIT_OUTPUT, "%s: cannot rename %s to it: %s", output, w->folder, strerror(errno));
  if (s.code) folder_remove(w->folder);
  file_finished(w->folder);
  if (s.code) return s;
  log_line("%s: %lld neurons of %d type%s of NEST's %s, %lld edges; python %s/run_pointnet.py runs "
           "it (bmtk, NEST)",
           output, (long long)w->graph.n_nodes, w->n_types, w->n_types == 1 ? "" : "s", w->model,
           (long long)w->graph.n_edges, output);
  return fine();
}

static void free_work(struct work *w) {
  for (int k = 0; k < w->n_types; k++) json_decref(w->parameters[k]);
  mem_free(w->parameters), mem_free(w->type);
  lif_config_free(&w->config);
  connectome_free(&w->graph);
}

struct status export_sonata(const struct comm *alone, const struct job *job,
                            const struct sonata_request *request) {
  struct work w = {.request = request};
  struct status s = connectome_load(request->graph, &w.graph);
  if (!s.code) s = job->config || job->set.n ? read_config(alone, job, &w) : take_defaults(&w);
  if (!s.code) s = write_folder(&w);
  free_work(&w);
  return s;
}
