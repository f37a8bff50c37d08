/* Computes firing rates of neurons and types from a spike file. */
#include "rates.h"
#include "io/files/files.h"
#include "io/files/csv.h"
#include "core/mem.h"
#include "io/spikes/spikes.h"

#include <stdio.h>
#include <string.h>

enum { CHUNK = 1 << 18 };

static int64_t *count_spikes(struct spikes_file *file) {
  const int64_t n = spikes_number(file);
  int64_t *count = NEW_ZERO(int64_t, spikes_facts(file)->n_nodes + 1), *step = NEW(int64_t, CHUNK);
  nodeid *node = NEW(nodeid, CHUNK);
  for (int64_t at = 0; at < n; at += CHUNK) {
    const int64_t m = n - at < CHUNK ? n - at : CHUNK;
    spikes_read(file, at, m, step, node);
    for (int64_t i = 0; i < m; i++)
      if (node[i] >= 0 && node[i] < spikes_facts(file)->n_nodes) count[node[i]]++;
  }
  mem_free(step), mem_free(node);
  return count;
}

struct tables {
  const struct spikes_names *names;
  const int64_t *count;    /* [n] spikes */
  const uint8_t *recorded; /* [n] or NULL: all; the others are in no table */
  int64_t n;
  double seconds;
};

static bool is_recorded(const struct tables *t, int64_t i) {
  return !t->recorded || t->recorded[i];
}

/* [n] flags, or NULL where all neurons were recorded. */
static uint8_t *mark_recorded(const struct spikes_names *names) {
  if (!names->only_some) return NULL;
  uint8_t *recorded = NEW_ZERO(uint8_t, names->n + 1);
  for (int64_t i = 0; i < names->n_recorded; i++) recorded[names->recorded[i]] = 1;
  return recorded;
}

static const char *type_of(const struct spikes_names *names, int64_t i) {
  return names->type_code && names->type_code[i] < (uint32_t)names->n_types
             ? names->type[names->type_code[i]]
             : "";
}

static double rate(int64_t spikes, double seconds) {
  return seconds > 0 ? (double)spikes / seconds : 0;
}

static void put_neurons(const struct tables *t, FILE *file) {
  fputs("node_id,body_id,type,spikes,rate_hz\n", file);
  for (int64_t i = 0; i < t->n; i++) {
    if (!is_recorded(t, i)) continue;
    fprintf(file, "%lld,", (long long)i);
    if (t->names->name)
      csv_put(file, t->names->name[i]);
    else if (t->names->body_id)
      fprintf(file, "%llu", (unsigned long long)t->names->body_id[i]);
    fputc(',', file);
    if (t->names->body_id) csv_put(file, type_of(t->names, i));
    fprintf(file, ",%lld,%.9g\n", (long long)t->count[i], rate(t->count[i], t->seconds));
  }
}

static void put_types(const struct tables *t, FILE *file) {
  fputs("type,neurons,active,spikes,rate_hz\n", file);
  const int n = t->names->n_types;
  int64_t *sum = NEW_ZERO(int64_t, 3 * (int64_t)n + 1);
  for (int64_t i = 0; n && i < t->n; i++) {
    if (!is_recorded(t, i)) continue;
    int64_t *row = sum + 3 * (int64_t)t->names->type_code[i];
    row[0]++, row[1] += t->count[i] > 0, row[2] += t->count[i];
  }
  for (int k = 0; k < n; k++) {
    const int64_t *row = sum + 3 * (int64_t)k;
    if (row[0] == 0) continue;
    csv_put(file, t->names->type[k]);
    fprintf(file, ",%lld,%lld,%lld,%.9g\n", (long long)row[0], (long long)row[1], (long long)row[2],
            rate(row[2], t->seconds) / (double)row[0]);
  }
  mem_free(sum);
}

static struct status write_table(const char *dir, const char *name, const struct tables *t,
                                 void (*put)(const struct tables *, FILE *)) {
  char path[FILE_PATH];
  struct csv csv;
  if (snprintf(path, sizeof path, "%s/%s", dir, name) >= FILE_PATH)
    return failure(EXIT_OUTPUT, "%.200s...: the path is too long", dir);
  TRY(csv_begin(path, &csv));
  put(t, csv.file);
  return csv_end(&csv);
}

static void summarise(const struct tables *t, struct trace_rates *rates) {
  *rates = (struct trace_rates){.n_neurons = t->n, .seconds = t->seconds};
  rates->n_recorded = t->names->only_some ? t->names->n_recorded : t->n;
  int64_t highest = 0;
  for (int64_t i = 0; i < t->n; i++) {
    rates->n_active += t->count[i] > 0, rates->n_spikes += t->count[i];
    if (t->count[i] > highest) highest = t->count[i];
  }
  rates->n_types = t->names->n_types;
  rates->mean_hz =
      rates->n_recorded ? rate(rates->n_spikes, t->seconds) / (double)rates->n_recorded : 0;
  rates->highest_hz = rate(highest, t->seconds);
}

/* Names that are for another number of neurons are of no use. */
static struct status read_names(const char *path, int64_t n, struct spikes_names *names) {
  const struct status s = spikes_names_read(path, names);
  if (s.code || names->n == n) return s;
  return failure(EXIT_INPUT, "%s: /body_id has %lld entries for %lld neurons", path,
                 (long long)names->n, (long long)n);
}

struct status trace_rates(const char *dir, struct trace_rates *rates) {
  char path[FILE_PATH], trace[FILE_PATH];
  if (snprintf(path, sizeof path, "%s/spikes.h5", dir) >= FILE_PATH)
    return failure(EXIT_INPUT, "%.200s...: the path is too long", dir);
  snprintf(trace, sizeof trace, "%s/trace", dir);
  if (!file_exists(path) && !file_exists(trace))
    return failure(EXIT_INPUT,
                   "%s: no spikes in it; give the --output folder of a `fascicle simulate`", dir);
  if (!file_exists(path))
    return failure(EXIT_INPUT, "%s: there is no such file; `fascicle trace merge %s` makes it",
                   path, dir);
  struct spikes_file *file;
  struct spikes_names names;
  TRY(spikes_open(path, &file));
  const struct spikes_facts facts = *spikes_facts(file);
  struct status s =
      read_names(path, facts.n_nodes, &names); /* first: so many neurons are in the file */
  int64_t *count = s.code ? NULL : count_spikes(file);
  uint8_t *recorded = s.code ? NULL : mark_recorded(&names);
  spikes_close(file);
  const struct tables t = {&names, count, recorded, facts.n_nodes,
                           (double)(facts.last_step - facts.first_step + 1) * facts.dt_ms / 1000};
  if (!s.code) s = write_table(dir, "rates.csv", &t, put_neurons);
  if (!s.code) s = write_table(dir, "type_rates.csv", &t, put_types);
  if (!s.code) summarise(&t, rates);
  spikes_names_free(&names), mem_free(count), mem_free(recorded);
  return s;
}
