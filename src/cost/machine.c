/* Reads the measured rates of a machine, built in or from a file. */
#include "machine.h"
#include "core/json.h"
#include "machines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct built_in {
  const char *name, *text;
} built_in[] = {{"cpu", MACHINE_CPU}, {"h200", MACHINE_H200}};
enum { N_BUILT_IN = sizeof built_in / sizeof *built_in };

const char *machine_names(void) {
  return "cpu|h200";
}

/* ---- reading ---- */

/* {"value": x, "origin": "how it was measured"} */
static struct status take(const json_t *json, const char *where, const char *key, double low,
                          double *value) {
  const json_t *constant = json_object_get(json, key);
  const char *origin = NULL;
  char inside[512];
  if (!json_is_object(constant) || !json_object_get(constant, "value"))
    return failure(EXIT_USAGE,
                   "%s: \"%s\" is missing; {\"value\": x, \"origin\": \"where from\"} is wanted",
                   where, key);
  snprintf(inside, sizeof inside, "%.400s: %s", where, key);
  TRY(json_take_real(constant, inside, "value", low, 1e18, value));
  TRY(json_take_text(constant, inside, "origin", &origin));
  if (!origin || !origin[0])
    return failure(EXIT_USAGE, "%s: \"origin\" is missing: say where it is from", inside);
  return fine();
}

static struct status take_rates(const json_t *json, const char *where, struct machine *m) {
  double memory = 0;
  const struct {
    const char *key;
    double *to;
    bool rate; /* must be above 0 */
  } constant[] = {{"memory_bytes", &memory, false},
                  {"forward_edge_seconds", &m->forward_edge, false},
                  {"forward_column_seconds", &m->forward_column, false},
                  {"forward_row_seconds", &m->forward_row, false},
                  {"forward_step_seconds", &m->forward_step, false},
                  {"backward_edge_seconds", &m->backward_edge, false},
                  {"backward_column_seconds", &m->backward_column, false},
                  {"backward_row_seconds", &m->backward_row, false},
                  {"backward_step_seconds", &m->backward_step, false},
                  {"least_columns", &m->least_columns, false},
                  {"mixed_edges", &m->mixed_edges, false},
                  {"mixed_columns_share", &m->mixed_columns, true},
                  {"mixed_forward_share", &m->mixed_forward, true},
                  {"mixed_backward_share", &m->mixed_backward, true},
                  {"window_edges", &m->window_edges, false},
                  {"window_gain", &m->window_gain, true},
                  {"launch_seconds", &m->launch, false},
                  {"row_bytes_per_second", &m->row_rate, true},
                  {"train_step_seconds", &m->train_step, false},
                  {"readout_flops", &m->readout, true},
                  {"lif_step_seconds", &m->lif_step, false},
                  {"lif_neuron_seconds", &m->lif_neuron, false},
                  {"lif_component_seconds", &m->lif_component, false},
                  {"lif_active_seconds", &m->lif_active, false},
                  {"lif_active_neuron_seconds", &m->lif_active_neuron, false},
                  {"lif_event_seconds", &m->lif_event, false},
                  {"lif_on_chip_neurons", &m->lif_on_chip, false},
                  {"lif_neuron_beyond_seconds", &m->lif_neuron_beyond, false},
                  {"lif_active_beyond_seconds", &m->lif_active_beyond, false},
                  {"lif_told_bytes", &m->lif_word, false},
                  {"lif_host_event_seconds", &m->lif_host_event, false}};
  for (size_t i = 0; i < sizeof constant / sizeof *constant; i++)
    TRY(take(json, where, constant[i].key, constant[i].rate ? 1e-3 : 0, constant[i].to));
  m->memory = (int64_t)memory;
  return fine();
}

static struct status take_points(const json_t *points, const char *where, struct link *l) {
  const size_t n = json_array_size(points);
  if (n < 2 || n > MACHINE_POINTS)
    return failure(EXIT_USAGE, "%s: \"points\": 2 to %d pairs [bytes, seconds] are wanted", where,
                   MACHINE_POINTS);
  for (size_t i = 0; i < n; i++) {
    const json_t *pair = json_array_get(points, i);
    l->bytes[i] = json_number_value(json_array_get(pair, 0));
    l->seconds[i] = json_number_value(json_array_get(pair, 1));
    if (json_array_size(pair) != 2 || l->bytes[i] < 0 || l->seconds[i] <= 0 ||
        (i > 0 && (l->bytes[i] <= l->bytes[i - 1] || l->seconds[i] < l->seconds[i - 1])))
      return failure(EXIT_USAGE,
                     "%s: \"points\"[%zu]: pairs [bytes, seconds] that ascend are wanted", where,
                     i);
  }
  l->n = (int)n;
  return fine();
}

static struct status take_links(const json_t *json, const char *where, struct machine *m) {
  json_t *links = json_object_get(json, "links"), *link;
  const char *name;
  json_object_foreach(links, name, link) {
    char inside[512];
    const char *origin = NULL;
    snprintf(inside, sizeof inside, "%.400s: links.%.64s", where, name);
    if (m->n_links == MACHINE_LINKS)
      return failure(EXIT_USAGE, "%s: more than %d links", inside, MACHINE_LINKS);
    struct link *l = &m->link[m->n_links++];
    snprintf(l->name, sizeof l->name, "%s", name);
    TRY(json_take_real(link, inside, "beside_work", 0, 1, &l->beside_work));
    TRY(json_take_real(link, inside, "message_seconds", 0, 1, &l->per_message));
    TRY(json_take_real(link, inside, "row_seconds", 0, 1, &l->per_row));
    TRY(json_take_text(link, inside, "origin", &origin));
    if (!origin || !origin[0])
      return failure(EXIT_USAGE, "%s: \"origin\" is missing: say where it is from", inside);
    TRY(take_points(json_object_get(link, "points"), inside, l));
  }
  if (!machine_link(m, "network") || m->n_links < 2)
    return failure(EXIT_USAGE, "%s: \"links\": \"network\" and one within the host are wanted",
                   where);
  return fine();
}

static struct status read(const json_t *json, const char *where, struct machine *m) {
  const char *name = NULL, *about = NULL;
  *m = (struct machine){0};
  TRY(json_take_text(json, where, "name", &name));
  TRY(json_take_text(json, where, "about", &about));
  if (!name || !about) return failure(EXIT_USAGE, "%s: \"name\" and \"about\" are wanted", where);
  snprintf(m->name, sizeof m->name, "%s", name);
  snprintf(m->about, sizeof m->about, "%s", about);
  TRY(take_rates(json, where, m));
  return take_links(json, where, m);
}

struct status machine_load(const char *path, struct machine *m) {
  json_t *json;
  TRY(json_from_file(path, &json));
  const struct status s = read(json, path, m);
  json_decref(json);
  return s;
}

struct status machine_find(const char *name, struct machine *m) {
  for (int i = 0; i < N_BUILT_IN; i++) {
    if (strcmp(built_in[i].name, name)) continue;
    json_t *json;
    TRY(json_from_text(built_in[i].text, name, &json));
    const struct status s = read(json, name, m);
    json_decref(json);
    return s;
  }
  return failure(EXIT_USAGE, "no machine is called %s; there are %s", name, machine_names());
}

/* ---- links ---- */

struct link *machine_link(const struct machine *m, const char *name) {
  for (int i = 0; i < m->n_links; i++)
    if (!strcmp(m->link[i].name, name)) return (struct link *)&m->link[i];
  return NULL;
}

void link_set(struct link *l, double latency, double bandwidth) {
  l->n = 2;
  l->bytes[0] = 0, l->seconds[0] = latency;
  l->bytes[1] = bandwidth, l->seconds[1] = latency + 1;
}

/* Seconds a byte between points i - 1 and i. */
static double slope(const struct link *l, int i) {
  return (l->seconds[i] - l->seconds[i - 1]) / (l->bytes[i] - l->bytes[i - 1]);
}

double link_seconds(const struct link *l, double bytes, int64_t messages) {
  if (bytes <= 0 || messages <= 0) return 0;
  ASSERT(l->n >= 2);
  int i = 1;
  while (i < l->n - 1 && bytes > l->bytes[i]) i++;
  const double beyond = fmax(bytes - l->bytes[i - 1], 0);
  return l->seconds[i - 1] + beyond * slope(l, i) + (double)(messages - 1) * l->per_message;
}

double link_floor(const struct link *l, double bytes) {
  ASSERT(l->n >= 2);
  double best = slope(l, 1);
  for (int i = 2; i < l->n; i++) best = fmin(best, slope(l, i));
  return l->seconds[0] + bytes * best;
}
