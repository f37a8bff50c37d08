/* Writes and reads spike files: segments of a run, and merged ones. */
#include "inside.h"
#include "io/files/files.h"
#include "core/mem.h"
#include "core/numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char potential_step[] = "/potential/step", potential_neuron[] = "/potential/node_ids",
                  potential_value[] = "/potential/value", step_counts[] = "/step_counts",
                  recorded_neurons[] = "/recorded", variable_step[] = "/variables/step",
                  variable_neuron[] = "/variables/node_ids";

/* ---- writing ---- */

void spikes_dataset(const struct spikes_facts *facts, const char *name, char path[SPIKES_PATH]) {
  snprintf(path, SPIKES_PATH, "/spikes/%s/%s", facts->population, name);
}

void spikes_put_root(struct h5_file *file, const char *provenance) {
  const uint32_t magic = 0x0A7A, version[2] = {0, 1};
  h5_put_values(file, "/", "magic", F_U32, 1, &magic);
  h5_put_values(file, "/", "version", F_U32, 2, version);
  if (provenance) h5_put_text(file, "/", "provenance", provenance);
}

void spikes_put_facts(struct h5_file *file, const struct spikes_facts *f) {
  static const char *const sorting[] = {"none", "by_id", "by_time"};
  char group[SPIKES_PATH], times[SPIKES_PATH];
  snprintf(group, sizeof group, "/spikes/%s", f->population);
  spikes_dataset(f, "timestamps", times);
  h5_put_choice(file, group, "sorting", 3, sorting, 2);
  h5_put_values(file, group, "dt_ms", F_F64, 1, &f->dt_ms);
  h5_put_number(file, group, "first_step", f->first_step);
  h5_put_number(file, group, "last_step", f->last_step);
  h5_put_number(file, group, "n_nodes", f->n_nodes);
  h5_put_number(file, group, "rank", f->rank);
  h5_put_number(file, group, "ranks", f->ranks);
  h5_put_number(file, group, "segment", f->segment);
  h5_put_text(file, group, "graph_digest", f->graph_digest);
  h5_put_text(file, group, "spikes_digest", f->spikes_digest);
  h5_put_text(file, times, "units", "ms");
}

void spikes_hash(struct sha256 *hash, int64_t n, const int64_t *step, const nodeid *node) {
  enum { AT_ONCE = 1024 };
  uint64_t pair[2 * AT_ONCE];
  for (int64_t at = 0; at < n; at += AT_ONCE) {
    const int64_t m = n - at < AT_ONCE ? n - at : AT_ONCE;
    for (int64_t i = 0; i < m; i++)
      pair[2 * i] = (uint64_t)step[at + i], pair[2 * i + 1] = (uint64_t)node[at + i];
    sha256_add(hash, pair, (size_t)m * 2 * sizeof *pair);
  }
}

void spikes_put_potential_about(struct h5_file *file) {
  h5_put_text(file, "/potential", "about", "membrane potential after update `step`, exact");
}

static void write_spikes(struct h5_file *file, const struct spikes_facts *facts,
                         const struct spikes_segment *s) {
  char path[SPIKES_PATH];
  double *time = NEW(double, s->n);
  for (int64_t i = 0; i < s->n; i++) time[i] = (double)s->step[i] * facts->dt_ms;
  spikes_dataset(facts, "node_ids", path);
  h5_write_packed(file, path, F_U64, s->n, 1, s->node);
  spikes_dataset(facts, "timestamps", path);
  h5_write_packed(file, path, F_F64, s->n, 1, time);
  spikes_dataset(facts, "step", path);
  h5_write_packed(file, path, F_U64, s->n, 1, s->step);
  mem_free(time);
}

static void write_potential(struct h5_file *file, const struct spikes_segment *s) {
  if (s->n_records == 0 || s->n_recorded == 0) return;
  h5_write_packed(file, potential_step, F_I64, s->n_records, 1, s->record_step);
  h5_write_packed(file, potential_neuron, F_U64, s->n_recorded, 1, s->recorded);
  h5_write_packed(file, potential_value, F_I32, s->n_records, (int)s->n_recorded, s->potential);
  spikes_put_potential_about(file);
}

static void variable_path(const char *name, char path[SPIKES_PATH]) {
  snprintf(path, SPIKES_PATH, "/variables/value/%s", name);
}

static void write_variables(struct h5_file *file, const struct spikes_segment *s) {
  char path[SPIKES_PATH];
  if (s->n_records == 0 || s->n_recorded == 0 || s->n_variables == 0) return;
  h5_write_packed(file, variable_step, F_I64, s->n_records, 1, s->record_step);
  h5_write_packed(file, variable_neuron, F_U64, s->n_recorded, 1, s->recorded);
  for (int v = 0; v < s->n_variables; v++) {
    variable_path(s->variable[v].name, path);
    h5_write_packed(file, path, F_F32, s->n_records, (int)s->n_recorded, s->variable[v].value);
    h5_put_text(file, path, "units", s->variable[v].unit);
  }
  h5_put_number(file, "/variables", "every", s->every);
}

struct status spikes_write(const char *path, const struct spikes_facts *facts,
                           const struct spikes_segment *s, const char *provenance) {
  struct spikes_facts with_digest = *facts;
  struct sha256 hash;
  sha256_init(&hash);
  spikes_hash(&hash, s->n, s->step, s->node);
  sha256_end(&hash, with_digest.spikes_digest);
  char tmp[FILE_PATH];
  struct h5_file file;
  TRY(file_tmp_name(path, tmp));
  TRY(h5_create(tmp, &file));
  spikes_put_root(&file, provenance);
  write_spikes(&file, facts, s);
  spikes_put_facts(&file, &with_digest);
  h5_write_packed(&file, step_counts, F_U64, facts->last_step - facts->first_step + 1, 1, s->count);
  if (s->n_variables)
    write_variables(&file, s);
  else
    write_potential(&file, s);
  h5_close(&file);
  return file_publish(tmp, path);
}

/* ---- names ---- */

void spikes_put_names(struct h5_file *file, const struct spikes_names *names) {
  h5_write_packed(file, "/body_id", F_U64, names->n, 1, names->body_id);
  if (names->only_some)
    h5_write_packed(file, recorded_neurons, F_U64, names->n_recorded, 1, names->recorded);
  if (names->name) h5_write_texts(file, "/name", names->n, names->name);
  if (!names->type_code) return;
  h5_write_packed(file, "/type", F_U32, names->n, 1, names->type_code);
  h5_write_texts(file, "/type_label", names->n_types, names->type);
}

struct status spikes_names_write(const char *path, const struct spikes_names *names) {
  char tmp[FILE_PATH];
  struct h5_file file;
  TRY(file_tmp_name(path, tmp));
  TRY(h5_create(tmp, &file));
  spikes_put_names(&file, names);
  h5_close(&file);
  return file_publish(tmp, path);
}

/* The neurons that were recorded, where the file says so. False: not all of them was written. */
static bool read_recorded(struct h5_file *file, struct spikes_names *names) {
  struct h5_shape shape;
  if (!h5_has(file, recorded_neurons)) return true;
  if (!h5_shape(file, recorded_neurons, &shape) || !shape.whole) return false;
  names->only_some = true, names->n_recorded = shape.n;
  names->recorded = NEW(nodeid, shape.n);
  h5_read(file, recorded_neurons, F_U64, 0, shape.n, names->recorded);
  return true;
}

/* A name for each neuron, types that are places in the list of labels, recorded ones that ascend.
 */
static bool names_agree(const struct spikes_names *names) {
  int64_t n = 0;
  while (names->name && names->name[n]) n++;
  bool agree = !names->name || n == names->n;
  for (int64_t i = 0; names->type_code && i < names->n; i++)
    agree &= names->type_code[i] < (uint32_t)names->n_types;
  for (int64_t i = 0; i < names->n_recorded; i++)
    agree &=
        names->recorded[i] > (i ? names->recorded[i - 1] : -1) && names->recorded[i] < names->n;
  return agree;
}

struct status spikes_names_read(const char *path, struct spikes_names *names) {
  *names = (struct spikes_names){0};
  struct h5_file file;
  struct h5_shape shape;
  TRY(h5_open(path, &file));
  if (!h5_shape(&file, "/body_id", &shape)) {
    h5_close(&file);
    return failure(EXIT_INPUT, "%s: no /body_id: this is not a file of fascicle's with neurons",
                   path);
  }
  if (!shape.whole) {
    h5_close(&file);
    return failure(EXIT_INPUT,
                   "%s: the file is damaged: /body_id was never written, or not all of it", path);
  }
  names->n = shape.n;
  names->body_id = NEW(uint64_t, names->n);
  h5_read(&file, "/body_id", F_U64, 0, names->n, names->body_id);
  if (h5_has(&file, "/name")) names->name = h5_read_texts(&file, "/name");
  if (h5_has(&file, "/type")) {
    names->type_code = NEW(uint32_t, names->n);
    h5_read(&file, "/type", F_U32, 0, names->n, names->type_code);
    names->type = h5_read_texts(&file, "/type_label");
    while (names->type[names->n_types]) names->n_types++;
  }
  const bool whole = read_recorded(&file, names);
  h5_close(&file);
  if (whole && names_agree(names)) return fine();
  spikes_names_free(names);
  return failure(EXIT_INPUT,
                 "%s: the file is damaged: /name, /type or /recorded does not fit /body_id and "
                 "/type_label",
                 path);
}

void spikes_names_free(struct spikes_names *names) {
  if (names->name) texts_free(names->name);
  if (names->type) texts_free(names->type);
  mem_free(names->body_id), mem_free(names->type_code), mem_free(names->recorded);
  *names = (struct spikes_names){0};
}

/* ---- reading ---- */

static bool read_facts(struct spikes_file *f, const char *group) {
  struct spikes_facts *facts = &f->facts;
  char *graph = h5_text(&f->h5, group, "graph_digest"),
       *spikes = h5_text(&f->h5, group, "spikes_digest");
  snprintf(facts->graph_digest, sizeof facts->graph_digest, "%s", graph ? graph : "");
  snprintf(facts->spikes_digest, sizeof facts->spikes_digest, "%s", spikes ? spikes : "");
  mem_free(graph), mem_free(spikes);
  return h5_real(&f->h5, group, "dt_ms", &facts->dt_ms) &&
         h5_number(&f->h5, group, "first_step", &facts->first_step) &&
         h5_number(&f->h5, group, "last_step", &facts->last_step) &&
         h5_number(&f->h5, group, "n_nodes", &facts->n_nodes) &&
         h5_number(&f->h5, group, "rank", &facts->rank) &&
         h5_number(&f->h5, group, "ranks", &facts->ranks) &&
         h5_number(&f->h5, group, "segment", &facts->segment);
}

/* Numbers that later sums and differences can bear. */
static bool facts_are_sane(const struct spikes_facts *f) {
  const int64_t most = INT64_MAX / 4;
  return isfinite(f->dt_ms) && f->first_step >= 0 && f->first_step <= most &&
         f->last_step >= f->first_step - 1 && f->last_step <= most && f->n_nodes >= 0 &&
         f->n_nodes <= UINT32_MAX && f->rank >= 0 && f->rank < f->ranks && f->ranks <= INT32_MAX &&
         f->segment >= 0;
}

static bool holds(struct spikes_file *f, const char *path, int64_t n) {
  struct h5_shape shape;
  return h5_shape(&f->h5, path, &shape) && shape.whole && shape.n == n;
}

static bool find_potential(struct spikes_file *f) {
  struct h5_shape value;
  if (!h5_has(&f->h5, "/potential") || !h5_shape(&f->h5, potential_value, &value)) return true;
  f->n_records = value.n, f->n_recorded = value.width;
  return value.whole && holds(f, potential_step, value.n) &&
         holds(f, potential_neuron, value.width);
}

/* Names become those of files. */
static bool is_plain(const char *name) {
  return *name && strlen(name) < sizeof((struct spikes_variable *)0)->name &&
         strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

static bool find_variable(struct spikes_file *f, const char *name) {
  struct h5_shape value;
  char path[SPIKES_PATH];
  if (!is_plain(name) || f->n_variables == SPIKES_MOST_VARIABLES) return false;
  variable_path(name, path);
  if (!h5_shape(&f->h5, path, &value) || !value.whole) return false;
  if (f->n_variables && (value.n != f->n_records || value.width != f->n_recorded)) return false;
  char *unit = h5_text(&f->h5, path, "units");
  struct spikes_variable *v = &f->variable[f->n_variables++];
  snprintf(v->name, sizeof v->name, "%s", name);
  snprintf(v->unit, sizeof v->unit, "%s", unit ? unit : "");
  mem_free(unit);
  f->n_records = value.n, f->n_recorded = value.width;
  return true;
}

static bool find_variables(struct spikes_file *f) {
  if (!h5_has(&f->h5, "/variables")) return find_potential(f);
  if (!h5_has(&f->h5, "/variables/value")) return false;
  char **names = h5_members(&f->h5, "/variables/value");
  bool found = names[0] != NULL;
  for (int i = 0; names[i] && found; i++) found = find_variable(f, names[i]);
  texts_free(names);
  return found && h5_number(&f->h5, "/variables", "every", &f->every) && f->every > 0 &&
         f->every <= INT64_MAX / 4 && holds(f, variable_step, f->n_records) &&
         holds(f, variable_neuron, f->n_recorded);
}

static bool find_datasets(struct spikes_file *f) {
  struct h5_shape node, step;
  spikes_dataset(&f->facts, "node_ids", f->node_ids);
  spikes_dataset(&f->facts, "step", f->steps);
  if (!h5_shape(&f->h5, f->node_ids, &node) || !h5_shape(&f->h5, f->steps, &step) ||
      node.n != step.n)
    return false;
  f->n = node.n;
  return node.whole && step.whole && find_variables(f);
}

static bool find_population(struct spikes_file *f) {
  if (!h5_has(&f->h5, "/spikes")) return false;
  char **names = h5_members(&f->h5, "/spikes");
  const bool one = names[0] && !names[1];
  if (one) snprintf(f->facts.population, sizeof f->facts.population, "%s", names[0]);
  texts_free(names);
  return one;
}

void spikes_visit(struct spikes_file *file) {
  const struct status s = h5_open(file->path, &file->h5);
  if (s.code) DIE(s.code, "%s", s.text);
}

void spikes_leave(struct spikes_file *file) {
  h5_close(&file->h5);
}

static bool read_about(struct spikes_file *f) {
  char group[SPIKES_PATH];
  const bool found = find_population(f);
  snprintf(group, sizeof group, "/spikes/%s", f->facts.population);
  return found && read_facts(f, group) && facts_are_sane(&f->facts) && find_datasets(f);
}

struct status spikes_open(const char *path, struct spikes_file **file) {
  struct spikes_file *f = NEW_ZERO(struct spikes_file, 1);
  struct status s = h5_open(path, &f->h5);
  if (!s.code && !read_about(f))
    s = failure(EXIT_INPUT,
                "%s: not a spike file of fascicle's: one population with dt_ms, first_step, "
                "last_step and step is wanted",
                path);
  f->path = mem_string(path);
  spikes_leave(f);
  *file = f;
  if (s.code) spikes_close(f), *file = NULL;
  return s;
}

void spikes_close(struct spikes_file *file) {
  if (!file) return;
  mem_free(file->path);
  mem_free(file);
}

const struct spikes_facts *spikes_facts(const struct spikes_file *file) {
  return &file->facts;
}

int64_t spikes_number(const struct spikes_file *file) {
  return file->n;
}

static void visit_rows(struct spikes_file *f, const char *name, enum ftype type, int64_t first,
                       int64_t n, void *data) {
  spikes_visit(f);
  h5_read(&f->h5, name, type, first, n, data);
  spikes_leave(f);
}

void spikes_read(struct spikes_file *f, int64_t first, int64_t n, int64_t *step, nodeid *node) {
  spikes_visit(f);
  h5_read(&f->h5, f->steps, F_U64, first, n, step);
  h5_read(&f->h5, f->node_ids, F_U64, first, n, node);
  spikes_leave(f);
}

void spikes_counts(struct spikes_file *f, int64_t first, int64_t n, int64_t *count) {
  visit_rows(f, step_counts, F_U64, first, n, count);
}

void spikes_record_steps(struct spikes_file *f, int64_t *step) {
  visit_rows(f, f->n_variables ? variable_step : potential_step, F_I64, 0, f->n_records, step);
}

void spikes_record_neurons(struct spikes_file *f, nodeid *neuron) {
  visit_rows(f, f->n_variables ? variable_neuron : potential_neuron, F_U64, 0, f->n_recorded,
             neuron);
}

void spikes_record_rows(struct spikes_file *f, int v, int64_t first, int64_t n, uint32_t *value) {
  char path[SPIKES_PATH] = "/potential/value";
  if (f->n_variables) variable_path(f->variable[v].name, path);
  spikes_visit(f);
  h5_read_rows(&f->h5, path, f->n_variables ? F_F32 : F_I32, first, n, f->n_recorded, value);
  spikes_leave(f);
}

void spikes_potential_shape(struct spikes_file *f, int64_t *n_records, int64_t *n_recorded) {
  *n_records = f->n_variables ? 0 : f->n_records, *n_recorded = f->n_variables ? 0 : f->n_recorded;
}

void spikes_potential_steps(struct spikes_file *f, int64_t *step) {
  if (!f->n_variables) spikes_record_steps(f, step);
}

void spikes_potential_neurons(struct spikes_file *f, nodeid *neuron) {
  if (!f->n_variables) spikes_record_neurons(f, neuron);
}

void spikes_potential_rows(struct spikes_file *f, int64_t first, int64_t n, int32_t *value) {
  spikes_visit(f);
  h5_read_rows(&f->h5, potential_value, F_I32, first, n, f->n_recorded, value);
  spikes_leave(f);
}

int spikes_variables(const struct spikes_file *f, const struct spikes_variable **variable) {
  *variable = f->variable;
  return f->n_variables;
}

char *spikes_provenance(struct spikes_file *f) {
  spikes_visit(f);
  char *text = h5_text(&f->h5, "/", "provenance");
  spikes_leave(f);
  return text;
}

void spikes_cut(struct spikes_file *f, int64_t last) {
  if (f->facts.last_step <= last) return;
  int64_t *step = NEW(int64_t, f->n > f->n_records ? f->n : f->n_records);
  visit_rows(f, f->steps, F_U64, 0, f->n, step);
  f->n = find_i64(step, f->n, last + 1);
  if (f->n_records) spikes_record_steps(f, step);
  f->n_records = find_i64(step, f->n_records, last + 1);
  f->facts.last_step = last;
  mem_free(step);
}

/* ---- verifying ---- */

static struct status check_order(const struct spikes_file *f, int64_t at, int64_t n,
                                 const int64_t *step, const nodeid *node, int64_t last_step,
                                 nodeid last_node) {
  for (int64_t i = 0; i < n; i++) {
    if (step[i] < f->facts.first_step || step[i] > f->facts.last_step || node[i] < 0 ||
        node[i] >= f->facts.n_nodes)
      return failure(
          EXIT_INPUT,
          "%s: spike %lld is of step %lld, node %lld: outside of steps %lld..%lld or %lld nodes",
          f->path, (long long)(at + i), (long long)step[i], (long long)node[i],
          (long long)f->facts.first_step, (long long)f->facts.last_step,
          (long long)f->facts.n_nodes);
    if (step[i] < last_step || (step[i] == last_step && node[i] <= last_node))
      return failure(EXIT_INPUT, "%s: spike %lld (step %lld, node %lld) is out of order", f->path,
                     (long long)(at + i), (long long)step[i], (long long)node[i]);
    last_step = step[i], last_node = node[i];
  }
  return fine();
}

struct status spikes_verify(struct spikes_file *f) {
  const int64_t piece = H5_CHUNK;
  int64_t *step = NEW(int64_t, piece), last_step = -1;
  nodeid *node = NEW(nodeid, piece), last_node = -1;
  struct sha256 hash;
  char digest[DIGEST_TEXT];
  struct status s = fine();
  sha256_init(&hash);
  for (int64_t at = 0; at < f->n && !s.code; at += piece) {
    const int64_t n = f->n - at < piece ? f->n - at : piece;
    spikes_read(f, at, n, step, node);
    s = check_order(f, at, n, step, node, last_step, last_node);
    spikes_hash(&hash, n, step, node);
    last_step = step[n - 1], last_node = node[n - 1];
  }
  sha256_end(&hash, digest);
  mem_free(step), mem_free(node);
  if (!s.code && strcmp(digest, f->facts.spikes_digest))
    s = failure(
        EXIT_INPUT,
        "%s: the spikes do not have the digest that was written with them: the file is damaged",
        f->path);
  return s;
}
