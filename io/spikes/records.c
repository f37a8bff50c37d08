/* Potentials and variables of segments -> one grid of steps by neurons: /potential of the merged
 * file, and a SONATA report for each variable of a model. */
#include "io/files/files.h"
#include "core/mem.h"
#include "core/numbers.h"
#include "inside.h"
#include "core/watchdog.h"

#include <stdio.h>
#include <string.h>

/* ---- the grid ---- */

/* Sort, each value once; returns the new number. */
static int64_t unique(int64_t *x, int64_t n) {
  sort_i64(x, n);
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++)
    if (i == 0 || x[i] != x[kept - 1]) x[kept++] = x[i];
  return kept;
}

/* All steps and all neurons that any segment recorded. */
struct grid_of_records {
  int64_t n_steps, n_neurons, *step, *neuron;
};

/* Those of potentials, or of variables. */
static bool has_records(const struct spikes_file *s, bool variables) {
  return s->n_records > 0 && (s->n_variables > 0) == variables;
}

static struct grid_of_records find_records(struct spikes_file **segment, int n, bool variables) {
  struct grid_of_records g = {0};
  int64_t steps = 0, neurons = 0;
  for (int i = 0; i < n; i++)
    if (has_records(segment[i], variables))
      steps += segment[i]->n_records, neurons += segment[i]->n_recorded;
  g.step = NEW(int64_t, steps), g.neuron = NEW(int64_t, neurons);
  steps = neurons = 0;
  for (int i = 0; i < n; i++) {
    if (!has_records(segment[i], variables)) continue;
    spikes_record_steps(segment[i], g.step + steps), steps += segment[i]->n_records;
    spikes_record_neurons(segment[i], g.neuron + neurons), neurons += segment[i]->n_recorded;
  }
  g.n_steps = unique(g.step, steps), g.n_neurons = unique(g.neuron, neurons);
  return g;
}

static void free_records(struct grid_of_records *g) {
  mem_free(g->step), mem_free(g->neuron);
}

/* Rows [at, at + m) of the grid from one segment; its rows are one run of the grid's. */
static void scatter_rows(struct spikes_file *s, int v, const struct grid_of_records *g, int64_t at,
                         int64_t m, uint32_t *value) {
  int64_t *step = NEW(int64_t, s->n_records), *neuron = NEW(int64_t, s->n_recorded);
  spikes_record_steps(s, step), spikes_record_neurons(s, neuron);
  const int64_t begin = find_i64(g->step, g->n_steps, step[0]);
  const int64_t from = most_i64(at, begin), to = least_i64(at + m, begin + s->n_records);
  if (from < to) {
    uint32_t *part = NEW(uint32_t, (to - from) * s->n_recorded);
    spikes_record_rows(s, v, from - begin, to - from, part);
    for (int64_t j = 0; j < s->n_recorded; j++) {
      const int64_t column = find_i64(g->neuron, g->n_neurons, neuron[j]);
      for (int64_t i = from; i < to; i++)
        value[(i - at) * g->n_neurons + column] = part[(i - from) * s->n_recorded + j];
    }
    mem_free(part);
  }
  mem_free(step), mem_free(neuron);
}

/* Rows [at, at + m) from all segments. */
static void gather_rows(struct spikes_file **segment, int n, int v, bool variables,
                        const struct grid_of_records *g, int64_t at, int64_t m, uint32_t *value) {
  memset(value, 0, (size_t)(m * g->n_neurons) * sizeof *value);
  for (int i = 0; i < n; i++)
    if (has_records(segment[i], variables) && segment[i]->facts.first_step <= g->step[at + m - 1] &&
        segment[i]->facts.last_step >= g->step[at])
      scatter_rows(segment[i], v, g, at, m, value);
}

/* ---- potentials ---- */

static void put_potential(struct spikes_file **segment, int n, const struct grid_of_records *g,
                          struct h5_file *out) {
  const int width = (int)g->n_neurons;
  const int64_t piece = h5_piece_rows(width);
  uint32_t *value = NEW(uint32_t, piece * width);
  h5_write_packed(out, "/potential/step", F_I64, g->n_steps, 1, g->step);
  h5_write_packed(out, "/potential/node_ids", F_U64, g->n_neurons, 1, g->neuron);
  h5_make_packed(out, "/potential/value", F_I32, g->n_steps, width);
  spikes_put_potential_about(out);
  for (int64_t at = 0; at < g->n_steps; at += piece) {
    const int64_t m = least_i64(piece, g->n_steps - at);
    gather_rows(segment, n, 0, false, g, at, m, value);
    h5_put_packed(out, "/potential/value", at, m, value);
    pulse("merging potentials");
  }
  mem_free(value);
}

void spikes_merge_potential(struct spikes_file **segment, int n, struct h5_file *out) {
  struct grid_of_records g = find_records(segment, n, false);
  if (g.n_steps && g.n_neurons) put_potential(segment, n, &g, out);
  free_records(&g);
}

/* ---- reports ---- */

/* A segment that has variables, or NULL; EXIT_INPUT unless all that do have the same. */
static struct status same_variables(struct spikes_file **segment, int n,
                                    const struct spikes_file **model) {
  *model = NULL;
  for (int i = 0; i < n; i++) {
    const struct spikes_file *s = segment[i];
    if (!has_records(s, true)) continue;
    if (!*model) *model = s;
    bool same = s->n_variables == (*model)->n_variables && s->every == (*model)->every;
    for (int v = 0; v < s->n_variables && same; v++)
      same = !strcmp(s->variable[v].name, (*model)->variable[v].name) &&
             !strcmp(s->variable[v].unit, (*model)->variable[v].unit);
    if (!same)
      return failure(EXIT_INPUT, "%s and %s hold other variables: they are not one run",
                     (*model)->path, s->path);
  }
  return fine();
}

static struct status check_regular(const struct grid_of_records *g, const struct spikes_file *s) {
  for (int64_t i = 1; i < g->n_steps; i++)
    if (g->step[i] - g->step[i - 1] != s->every)
      return failure(
          EXIT_INPUT,
          "%s: variables are of every %lld steps, but those of step %lld are followed by "
          "those of step %lld: a segment is damaged or missing",
          s->path, (long long)s->every, (long long)g->step[i - 1], (long long)g->step[i]);
  return fine();
}

/* What each column is: one element, 0, of each neuron. */
static void put_mapping(struct h5_file *out, const char *group, const struct grid_of_records *g) {
  char path[SPIKES_PATH + 32], second[SPIKES_PATH + 32];
  uint32_t *element = NEW_ZERO(uint32_t, g->n_neurons);
  uint64_t *pointer = NEW(uint64_t, g->n_neurons + 1);
  for (int64_t i = 0; i <= g->n_neurons; i++) pointer[i] = (uint64_t)i;
  snprintf(path, sizeof path, "%s/mapping/node_ids", group);
  h5_write(out, path, F_U64, g->n_neurons, 1, g->neuron);
  h5_put_values(out, path, "sorted", F_U8, 1, &(const uint8_t){1});
  snprintf(path, sizeof path, "%s/mapping/element_ids", group);
  h5_write(out, path, F_U32, g->n_neurons, 1, element);
  snprintf(path, sizeof path, "%s/mapping/index_pointers", group);
  h5_write(out, path, F_U64, g->n_neurons + 1, 1, pointer);
  snprintf(second, sizeof second, "%s/mapping/index_pointer", group);
  h5_link(out, path, second); /* the name that bmtk and the guide know */
  mem_free(element), mem_free(pointer);
}

static void put_time(struct h5_file *out, const char *group, const struct spikes_file *s,
                     const struct grid_of_records *g) {
  const double dt = s->facts.dt_ms;
  const double time[3] = {(double)g->step[0] * dt,
                          (double)(g->step[0] + g->n_steps * s->every) * dt, (double)s->every * dt};
  char path[SPIKES_PATH + 32];
  snprintf(path, sizeof path, "%s/mapping/time", group);
  h5_write(out, path, F_F64, 3, 1, time);
  h5_put_text(out, path, "units", "ms");
}

static void put_about(struct h5_file *out, const char *group, const struct spikes_file *s, int v,
                      const struct grid_of_records *g) {
  h5_put_text(out, group, "variable", s->variable[v].name);
  h5_put_text(out, group, "about", "row i: after update first_step + i x every, at that x dt_ms");
  h5_put_values(out, group, "dt_ms", F_F64, 1, &s->facts.dt_ms);
  h5_put_number(out, group, "first_step", g->step[0]);
  h5_put_number(out, group, "every", s->every);
  h5_put_text(out, group, "graph_digest", s->facts.graph_digest);
}

/* libsonata's wheel knows no deflate: contiguous. */
static void put_values(struct spikes_file **segment, int n, int v, const char *unit,
                       const struct grid_of_records *g, const char *group, struct h5_file *out) {
  enum { AT_ONCE = 8 * H5_CHUNK }; /* values: what a segment's rows are of is read anew each time */
  const int width = (int)g->n_neurons;
  const int64_t piece = least_i64(g->n_steps, most_i64(1, AT_ONCE / width));
  char path[SPIKES_PATH + 32];
  snprintf(path, sizeof path, "%s/data", group);
  h5_make_matrix(out, path, F_F32, g->n_steps, width);
  h5_put_text(out, path, "units", unit);
  uint32_t *value = NEW(uint32_t, piece * width);
  for (int64_t at = 0; at < g->n_steps; at += piece) {
    const int64_t m = least_i64(piece, g->n_steps - at);
    gather_rows(segment, n, v, true, g, at, m, value);
    h5_put(out, path, F_F32, at, m, value);
    pulse("merging variables");
  }
  mem_free(value);
}

static struct status write_report(struct spikes_file **segment, int n, const struct spikes_file *s,
                                  int v, const struct grid_of_records *g, const char *provenance,
                                  const char *folder) {
  char path[FILE_PATH], tmp[FILE_PATH], group[SPIKES_PATH];
  struct h5_file out;
  if (snprintf(path, sizeof path, "%s/%s.h5", folder, s->variable[v].name) >= FILE_PATH)
    return failure(EXIT_OUTPUT, "%.200s...: the path is too long", folder);
  TRY(file_tmp_own(path, tmp));
  TRY(h5_create(tmp, &out));
  snprintf(group, sizeof group, "/report/%s", s->facts.population);
  spikes_put_root(&out, provenance);
  put_values(segment, n, v, s->variable[v].unit, g, group, &out);
  put_mapping(&out, group, g);
  put_time(&out, group, s, g);
  put_about(&out, group, s, v, g);
  h5_close(&out);
  return file_publish(tmp, path);
}

static struct status write_reports(struct spikes_file **segment, int n, const struct spikes_file *s,
                                   const struct grid_of_records *g, const char *provenance,
                                   const char *folder) {
  if (g->n_neurons > INT32_MAX)
    return failure(EXIT_INPUT, "%s: more neurons than a report can hold", s->path);
  TRY(check_regular(g, s));
  TRY(folder_make(folder));
  for (int v = 0; v < s->n_variables; v++)
    TRY(write_report(segment, n, s, v, g, provenance, folder));
  return fine();
}

struct status spikes_reports(struct spikes_file **segment, int n, const char *provenance,
                             const char *folder, struct spikes_reported *reported) {
  const struct spikes_file *s;
  *reported = (struct spikes_reported){0};
  TRY(same_variables(segment, n, &s));
  if (!s) return fine();
  char *stored = provenance ? NULL : spikes_provenance(segment[0]);
  struct grid_of_records g = find_records(segment, n, true);
  const struct status status =
      write_reports(segment, n, s, &g, provenance ? provenance : stored, folder);
  reported->n = s->n_variables, reported->n_records = g.n_steps, reported->n_recorded = g.n_neurons;
  memcpy(reported->variable, s->variable, sizeof reported->variable);
  free_records(&g);
  mem_free(stored);
  return status;
}
