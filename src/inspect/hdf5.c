/* HDF5 files other than graphs: checkpoints, spike files, and what others wrote. */
#include "inspect.h"
#include "io/hdf5/fields.h"
#include "io/hdf5/h5.h"
#include "core/mem.h"
#include "io/spikes/spikes.h"

#include <stdio.h>
#include <string.h>

json_t *json_or_text(const char *text) {
  json_t *json = json_loads(text, 0, NULL);
  return json ? json : json_string(text);
}

/* ---- any HDF5 file: its datasets ---- */

static json_t *dataset_json(struct h5_file *h5, const char *path, const struct h5_shape *shape) {
  static const char *const described[] = {"unit", "units", "about"};
  json_t *item = json_pack("{s:s, s:s, s:I}", "name", path, "type", ftype_name(shape->type), "rows",
                           (json_int_t)shape->n);
  if (shape->width > 1) json_object_set_new(item, "width", json_integer(shape->width));
  for (size_t i = 0; i < sizeof described / sizeof *described; i++) {
    char *text = h5_text(h5, path, described[i]);
    if (text && *text) json_object_set_new(item, described[i], json_string(text));
    mem_free(text);
  }
  return item;
}

struct listing {
  struct h5_file *h5;
  json_t *list;
};

static struct status list_dataset(void *self, const char *path) {
  const struct listing *l = self;
  struct h5_shape shape;
  char name[1100];
  snprintf(name, sizeof name, "/%s", path);
  if (h5_shape(l->h5, name, &shape))
    json_array_append_new(l->list, dataset_json(l->h5, name, &shape));
  return fine();
}

static void add_texts(struct h5_file *h5, json_t *facts) {
  static const char *const names[] = {"format", "created_by", "created_utc"};
  for (int i = 0; i < 3; i++) {
    char *text = h5_text(h5, "/", names[i]);
    if (text) json_object_set_new(facts, names[i], json_string(text));
    mem_free(text);
  }
}

static struct status list_file(const char *path, json_t *facts) {
  struct h5_file h5;
  TRY(h5_open(path, &h5));
  json_t *list = json_array();
  add_texts(&h5, facts);
  const struct status s = h5_walk(&h5, list_dataset, &(struct listing){&h5, list});
  json_object_set_new(facts, "datasets", list);
  h5_close(&h5);
  return s;
}

struct status inspect_hdf5(const struct comm *comm, const struct inspect_request *request,
                           json_t *facts) {
  if (request->verify)
    return failure(EXIT_INPUT,
                   "%s: --verify: not a file of fascicle, so it carries no checksums that it knows",
                   request->path);
  return agree(comm, comm->rank == 0 ? list_file(request->path, facts) : fine());
}

/* ---- checkpoints ---- */

struct status inspect_fields(const struct comm *comm, const struct inspect_request *request,
                             const char *kind, json_t *facts) {
  struct fields_file *file;
  char *meta;
  TRY(fields_open(comm, request->path, kind, &file, &meta));
  struct status s = request->verify ? fields_verify(comm, file, request->path) : fine();
  fields_close(file);
  if (!s.code) s = agree(comm, comm->rank == 0 ? list_file(request->path, facts) : fine());
  json_object_set_new(facts, "meta", json_or_text(meta));
  if (request->verify) json_object_set_new(facts, "verified", json_true());
  mem_free(meta);
  return s;
}

/* ---- spikes ---- */

/* Of a segment, by name: their units. */
static void add_variables(const struct spikes_file *file, json_t *facts) {
  const struct spikes_variable *variable;
  const int n = spikes_variables(file, &variable);
  if (!n) return;
  json_t *units = json_object();
  for (int v = 0; v < n; v++)
    json_object_set_new(units, variable[v].name, json_string(variable[v].unit));
  json_object_set_new(facts, "variables", units);
}

static void add_spikes(struct spikes_file *file, json_t *facts) {
  const struct spikes_facts *f = spikes_facts(file);
  int64_t records, recorded;
  spikes_potential_shape(file, &records, &recorded);
  json_object_set_new(facts, "population", json_string(f->population));
  json_object_set_new(facts, "neurons", json_integer(f->n_nodes));
  json_object_set_new(facts, "spikes", json_integer(spikes_number(file)));
  json_object_set_new(facts, "steps",
                      json_pack("{s:I, s:I}", "first", (json_int_t)f->first_step, "last",
                                (json_int_t)f->last_step));
  json_object_set_new(facts, "dt_ms", json_real(f->dt_ms));
  json_object_set_new(facts, "written_by",
                      json_pack("{s:I, s:I, s:I}", "rank", (json_int_t)f->rank, "of",
                                (json_int_t)f->ranks, "segment", (json_int_t)f->segment));
  json_object_set_new(
      facts, "potential",
      json_pack("{s:I, s:I}", "records", (json_int_t)records, "neurons", (json_int_t)recorded));
  add_variables(file, facts);
  json_object_set_new(facts, "graph_digest", json_string(f->graph_digest));
}

static struct status collect_spikes(const struct inspect_request *request, json_t *facts) {
  struct spikes_file *file;
  TRY(spikes_open(request->path, &file));
  add_spikes(file, facts);
  struct status s = request->verify ? spikes_verify(file) : fine();
  spikes_close(file);
  if (!s.code) s = list_file(request->path, facts);
  if (request->verify) json_object_set_new(facts, "verified", json_true());
  return s;
}

struct status inspect_spikes(const struct comm *comm, const struct inspect_request *request,
                             json_t *facts) {
  return agree(comm, comm->rank == 0 ? collect_spikes(request, facts) : fine());
}
