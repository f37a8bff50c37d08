/* The cortical microcircuit as a graph in memory, and the configuration that drives it. */
#include "microcircuit.h"
#include "core/mem.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { P = MICROCIRCUIT_POPULATIONS, LAYERS = P / 2 };
enum { TYPE, LAYER, SIGN, N_COLUMNS };

/* ---- the graph ---- */

/* Labels of every `step`-th population without the last `cut` letters; label 0 is "" (missing). */
static struct node_column column_of(const char *name, int step, size_t cut, int64_t n_nodes) {
  const int n = P / step;
  struct node_column c = {.name = mem_string(name), .n_labels = n + 1, .label = NEW(char *, n + 1)};
  c.label[0] = mem_string("");
  for (int i = 0; i < n; i++) {
    c.label[i + 1] = mem_string(microcircuit_name[i * step]);
    c.label[i + 1][strlen(c.label[i + 1]) - cut] = 0;
  }
  c.code = NEW(uint32_t, n_nodes);
  return c;
}

static void add_columns(const struct microcircuit *m, struct connectome *g) {
  g->n_columns = N_COLUMNS;
  struct node_column *c = g->column = NEW_ZERO(struct node_column, N_COLUMNS);
  c[TYPE] = column_of("type", 1, 0, g->n_nodes);
  c[LAYER] = column_of("layer", P / LAYERS, 1, g->n_nodes);
  c[SIGN] = (struct node_column){.name = mem_string("sign"), .i64 = NEW(int64_t, g->n_nodes)};
  for (int64_t v = 0; v < g->n_nodes; v++) {
    const int p = microcircuit_population(m, v);
    c[TYPE].code[v] = (uint32_t)p + 1, c[LAYER].code[v] = (uint32_t)(p / 2) + 1;
    c[SIGN].i64[v] = microcircuit_inhibitory(p) ? -1 : 1;
  }
}

void microcircuit_make(const struct microcircuit *m, const char *population, struct connectome *g) {
  const eidx n = m->n_edges;
  *g = (struct connectome){
      .population = mem_string(population), .n_nodes = m->first[P], .n_edges = n};
  g->body_id = NEW(uint64_t, g->n_nodes);
  for (int64_t v = 0; v < g->n_nodes; v++) g->body_id[v] = (uint64_t)v + 1;
  add_columns(m, g);
  g->source = NEW(uint32_t, n), g->target = NEW(uint32_t, n);
  g->impulse = NEW(int16_t, n), g->delay = NEW(uint16_t, n);
  microcircuit_edges(m, omp_get_max_threads(), g->source, g->target, g->impulse, g->delay);
}

/* ---- the configuration ---- */

static json_t *neuron_json(void) {
  return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "v_rest_mv", -65.0, "v_threshold_mv",
                   -50.0, "v_reset_mv", -65.0, "tau_m_ms", 10.0, "refractory_ms", 2.0, "c_m_pf",
                   250.0, "tau_syn_ex_ms", 0.5, "tau_syn_in_ms", 0.5);
}

static json_t *about_json(const struct microcircuit *m, bool poisson) {
  char command[200];
  snprintf(command, sizeof command,
           "Graph: fascicle generate --kind microcircuit --scale %g --degree-scale %g --output "
           "microcircuit.h5",
           m->scale, m->k_scale);
  return json_pack("[s, s, s]",
                   "Potjans and Diesmann, Cerebral Cortex 24, 785-806 (2014), "
                   "doi:10.1093/cercor/bhs358: the cortical microcircuit",
                   command,
                   poisson ? "Background: Poisson events of 8 Hz from each external synapse"
                           : "Background: a constant current in place of external synapses");
}

static json_t *population_json(int p) {
  return json_pack("{s:[s]}", "types", microcircuit_name[p]);
}

/* One entry a population: its current, where there is one, and its Poisson source. */
static void add_background(const struct microcircuit *m, bool poisson, json_t *classes,
                           json_t *stimulus) {
  for (int p = 0; p < P; p++) {
    const struct microcircuit_input in = microcircuit_input(m, p, poisson);
    if (in.current_pa != 0)
      json_array_append_new(
          classes, json_pack("{s:o, s:f}", "neurons", population_json(p), "i_e_pa", in.current_pa));
    if (poisson)
      json_array_append_new(stimulus, json_pack("{s:s, s:o, s:f, s:f}", "kind", "poisson",
                                                "neurons", population_json(p), "rate_hz",
                                                in.rate_hz, "weight_pa", in.weight_pa));
  }
}

json_t *microcircuit_config(const struct microcircuit *m, bool poisson) {
  json_t *classes = json_array(), *stimulus = json_array();
  add_background(m, poisson, classes, stimulus);
  return json_pack("{s:o, s:s, s:f, s:f, s:i, s:o, s:o, s:[{s:s, s:f, s:f}], s:o, s:{s:s}}",
                   "about", about_json(m, poisson), "model", "psc_exp", "dt_ms", 0.1, "weight_pa",
                   m->weight_pa, "seed", 1, "neuron", neuron_json(), "classes", classes, "initial",
                   "neurons", "all", "v_mv", -58.0, "v_sd_mv", 10.0, "stimulus", stimulus, "record",
                   "spikes", "all");
}
