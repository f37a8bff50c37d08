/* Writes and reads the checkpoints of a simulation. */
#include "checkpoint.h"
#include "io/hdf5/fields.h"
#include "run/job.h"
#include "core/mem.h"
#include "partition/rows.h"
#include "run/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kind[] = "fascicle lif checkpoint";
enum { FORMAT_VERSION = 1, MOST_FIELDS = 4 + LIF_MOST_COMPONENTS };
static const int64_t MOST_SEGMENTS = (int64_t)1 << 40;

/* The keys of what files hold begin with this; one is of the neurons that the configuration
 * chooses, by labels for example, which checkpoints of before 2026-12 do not have. */
static const char content[] = "content of ", chosen[] = "content of neurons";

static void hash_selection(struct sha256 *hash, const struct selection *s) {
  sha256_add(hash, &s->n, sizeof s->n);
  sha256_add(hash, s->node, (size_t)s->n * sizeof *s->node);
}

static void add_chosen(const struct lif_config *c, json_t *digests) {
  struct sha256 hash;
  char text[DIGEST_TEXT];
  sha256_init(&hash);
  for (int i = 0; i < c->n_inputs; i++) hash_selection(&hash, &c->input[i].neurons);
  for (int i = 0; i < c->n_initial; i++) hash_selection(&hash, &c->initial[i].neurons);
  for (int i = 0; i < c->n_silences; i++) hash_selection(&hash, &c->silence[i].neurons);
  hash_selection(&hash, &c->spikes), hash_selection(&hash, &c->recorded);
  if (c->linear.class_of_node)
    sha256_add(&hash, c->linear.class_of_node,
               (size_t)c->linear.n_nodes * sizeof *c->linear.class_of_node);
  sha256_end(&hash, text);
  json_object_set_new(digests, chosen, json_string(text));
}

static void add_files(const struct lif_config *config, json_t *digests) {
  for (int k = 0; k < config->n_inputs; k++) {
    const struct lif_input *input = &config->input[k];
    char key[64];
    if (!input->file) continue;
    snprintf(key, sizeof key, "%sstimulus[%d].file", content, k);
    json_object_set_new(digests, key, json_string(input->digest));
  }
  for (int i = 0; i < config->linear.n_columns; i++) {
    const struct lif_column *column = &config->linear.column[i];
    char key[160];
    snprintf(key, sizeof key, "%scolumn %.120s", content, column->name);
    json_object_set_new(digests, key, json_string(column->digest));
  }
}

json_t *lif_config_digests(const json_t *json, const struct lif_config *config) {
  json_t *digests = json_object();
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)json, key, value) {
    char text[DIGEST_TEXT];
    if (!strcmp(key, "about")) continue; /* remarks: any JSON, without effect */
    job_json_digest(value, text);
    json_object_set_new(digests, key, json_string(text));
  }
  add_files(config, digests), add_chosen(config, digests);
  return digests;
}

/* Rows of a checkpoint: what run they are of, and which are at hand. */
struct rows {
  const struct lif_place *place;
  gidx first;
  int64_t n;
};

/* A field of n x width numbers of each row. */
static struct field field_of(const struct rows *r, const char *name, enum ftype type, int width,
                             void *data, const char *unit, const char *about) {
  return (struct field){name, type, r->place->net->n_global, r->first, r->n, width, data,
                        unit, about};
}

/* "lif/" and the component's name; lives as long as the program. */
static const char *component_field(const struct lif_model_kind *model, int c) {
  static char name[LIF_MOST_COMPONENTS][32];
  snprintf(name[c], sizeof name[c], "lif/%s", lif_model_component(model, c).name);
  return name[c];
}

/* The arrays of `state` as fields [returned n]; id [r->n] goes along, so that the rows can be
 * sorted out. */
static int describe(const struct rows *r, const struct lif_state *state, int64_t *id,
                    struct field fields[MOST_FIELDS]) {
  const struct lif_place *p = r->place;
  const int delays = p->net->max_delay;
  int n = 0;
  fields[n++] = field_of(r, "lif/node_id", F_I64, 1, id, "", "node id of each row");
  if (!p->model)
    fields[n++] = field_of(r, "lif/potential", F_I32, 1, state->potential, "",
                           "membrane potential after the last step made");
  for (int c = 0; p->model && c < p->model->shape.n_components; c++)
    fields[n++] = field_of(r, component_field(p->kind, c), F_I64, 1, state->component + c * r->n,
                           "2^-32 units", "after the last step made");
  fields[n++] =
      field_of(r, "lif/refractory", F_U16, 1, state->counter, "steps", "refractory steps left");
  fields[n++] = field_of(r, "lif/ring", F_I64, delays, state->ring, "",
                         "sums under way: column d is due at step + d");
  if (lif_model_rings(p->model) == 2)
    fields[n++] = field_of(r, "lif/ring_negative", F_I64, delays, state->ring + r->n * delays, "",
                           "sums of negative weights, as ring");
  return n;
}

/* ---- writing ---- */

static json_t *make_meta(const struct lif_place *place, const struct lif_point *point,
                         const json_t *provenance) {
  const struct connectome_facts *facts = connectome_facts(place->file);
  json_t *meta =
      json_pack("{s:i, s:I, s:I, s:I, s:i, s:s, s:s}", "version", FORMAT_VERSION, "step",
                (json_int_t)point->step, "trial", (json_int_t)point->trial, "next_segment",
                (json_int_t)point->next_segment, "max_delay", place->net->max_delay, "graph_digest",
                facts->graph_digest, "order_digest", facts->order_digest);
  json_object_set(meta, "config", (json_t *)point->config);
  json_object_set(meta, "provenance", (json_t *)provenance);
  return meta;
}

struct status lif_save(const struct comm *comm, const char *path, const struct lif_place *place,
                       const struct lif_point *point, const struct lif_state *state,
                       const json_t *provenance) {
  struct field fields[MOST_FIELDS];
  const struct rows own = {place, place->net->first, place->net->n_own};
  json_t *meta = make_meta(place, point, provenance);
  char *text = json_line(meta);
  const int n = describe(&own, state, (int64_t *)place->net->id, fields);
  const struct status s = fields_write(comm, path, kind, text, fields, n);
  free(text), json_decref(meta);
  return s;
}

/* ---- is it ours? ---- */

static struct status other_config(const char *path, const char *key) {
  const size_t n = sizeof content - 1;
  if (!strcmp(key, chosen))
    return failure(EXIT_USAGE,
                   "%s: the configuration chose other neurons when it was written: labels of the "
                   "graph have changed; bring back the graph, or start in another --output",
                   path);
  if (!strncmp(key, content, n))
    return failure(EXIT_USAGE,
                   "%s: \"%s\" held something else when it was written: a run goes on only as it "
                   "began; bring back what was there, or start in another --output",
                   path, key + n);
  return failure(EXIT_USAGE,
                 "%s: written by a run with another \"%s\": a run goes on only as it began; use "
                 "that configuration, or start in another --output",
                 path, key);
}

static struct status check_config(const char *path, const json_t *theirs, const json_t *ours) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)ours, key, value) {
    const json_t *their = json_object_get(theirs, key);
    const bool unknown = !their && !strcmp(key, chosen);
    if (!unknown && !json_equal(value, their)) return other_config(path, key);
  }
  return fine();
}

static struct status check_meta(const char *path, const json_t *meta, const struct lif_place *place,
                                struct lif_point *point) {
  const struct connectome_facts *facts = connectome_facts(place->file);
  int64_t version = 0, trial = -1, max_delay = 0;
  const char *graph = "";
  TRY(json_take_int(meta, path, "version", 1, INT64_MAX, &version));
  TRY(json_take_int(meta, path, "step", 0, INT64_MAX / 4, &point->step));
  TRY(json_take_int(meta, path, "trial", 0, INT64_MAX, &trial));
  TRY(json_take_int(meta, path, "next_segment", 0, MOST_SEGMENTS, &point->next_segment));
  TRY(json_take_int(meta, path, "max_delay", 1, INT64_MAX, &max_delay));
  TRY(json_take_text(meta, path, "graph_digest", &graph));
  if (version != FORMAT_VERSION)
    return failure(EXIT_INPUT, "%s: has version %lld; this program reads %d", path,
                   (long long)version, FORMAT_VERSION);
  if (strcmp(graph, facts->graph_digest) || max_delay != place->net->max_delay)
    return failure(EXIT_INPUT,
                   "%s: belongs to another graph (digest %.12s...; this one has %.12s...)", path,
                   graph, facts->graph_digest);
  if (trial != point->trial)
    return failure(EXIT_INPUT, "%s: is of trial %lld, not %lld", path, (long long)trial,
                   (long long)point->trial);
  return check_config(path, json_object_get(meta, "config"), point->config);
}

/* ---- rows of another order ---- */

/* One row on its way to its owner: its row here, V, counter, then the components of a model and its
 * rings. */
struct row_head {
  gidx row;
  int32_t potential;
  uint16_t counter;
};

/* Numbers of a row behind its head: component c, then ring r. */
static int64_t numbers_of_row(const struct lif_place *p) {
  return (p->model ? p->model->shape.n_components : 0) +
         (int64_t)lif_model_rings(p->model) * p->net->max_delay;
}

static size_t packed_bytes(const struct lif_place *p) {
  return sizeof(struct row_head) + (size_t)numbers_of_row(p) * sizeof(int64_t);
}

static void pack(const struct lif_place *p, const struct lif_state *state, int64_t n, int64_t i,
                 gidx row, char *to) {
  const int64_t delays = p->net->max_delay;
  const struct row_head head = {row, p->model ? 0 : state->potential[i], state->counter[i]};
  int64_t *number = (int64_t *)(void *)(to + sizeof head);
  memcpy(to, &head, sizeof head);
  for (int c = 0; p->model && c < p->model->shape.n_components; c++)
    *number++ = state->component[c * n + i];
  for (int r = 0; r < lif_model_rings(p->model); r++, number += delays)
    memcpy(number, state->ring + (r * n + i) * delays, (size_t)delays * sizeof *number);
}

static lidx unpack(const struct lif_place *p, const char *from, struct lif_state *state) {
  const int64_t delays = p->net->max_delay, n = p->net->n_own;
  const int64_t *number = (const int64_t *)(const void *)(from + sizeof(struct row_head));
  struct row_head head;
  memcpy(&head, from, sizeof head);
  const lidx i = (lidx)(head.row - p->net->first);
  state->counter[i] = head.counter;
  if (!p->model) state->potential[i] = head.potential;
  for (int c = 0; p->model && c < p->model->shape.n_components; c++)
    state->component[c * n + i] = *number++;
  for (int r = 0; r < lif_model_rings(p->model); r++, number += delays)
    memcpy(state->ring + (r * n + i) * delays, number, (size_t)delays * sizeof *number);
  return i;
}

/* What arrived, `n` rows, into the state; false unless it is each of our rows once. */
static bool unpack_all(const struct lif_place *p, const char *arrived, int64_t n,
                       struct lif_state *state) {
  if (n != p->net->n_own) return false;
  bool *seen = NEW_ZERO(bool, n), once = true;
  for (int64_t i = 0; i < n; i++) {
    const lidx row = unpack(p, arrived + (size_t)i * packed_bytes(p), state);
    once &= !seen[row];
    seen[row] = true;
  }
  mem_free(seen);
  return once;
}

/* Rows `got` (n of them, of nodes id) go to the ranks that own these nodes now. Local: false when a
 * node is there twice or not at all. */
static bool send_home(const struct comm *comm, const struct lif_place *place, int64_t n,
                      const int64_t *id, const struct lif_state *got, struct lif_state *state) {
  const struct lif_net *net = place->net;
  const size_t bytes = packed_bytes(place);
  uint32_t *row_of_node = NEW(uint32_t, net->n_global);
  connectome_row_of_node(place->file, row_of_node);
  int64_t *send_n = NEW_ZERO(int64_t, comm->size), *recv_n = NEW(int64_t, comm->size);
  int64_t *at = NEW_ZERO(int64_t, comm->size);
  for (int64_t i = 0; i < n; i++)
    send_n[rows_owner(place->first_of_rank, comm->size, row_of_node[id[i]])]++;
  for (int r = 1; r < comm->size; r++) at[r] = at[r - 1] + send_n[r - 1];
  char *packed = mem_alloc(n, bytes);
  for (int64_t i = 0; i < n; i++) {
    const gidx row = row_of_node[id[i]];
    const int64_t to = at[rows_owner(place->first_of_rank, comm->size, row)]++;
    pack(place, got, n, i, row, packed + (size_t)to * bytes);
  }
  char *arrived = comm_swap_varied(comm, packed, send_n, bytes, recv_n);
  int64_t n_arrived = 0;
  for (int r = 0; r < comm->size; r++) n_arrived += recv_n[r];
  const bool whole = unpack_all(place, arrived, n_arrived, state);
  mem_free(arrived), mem_free(packed), mem_free(at), mem_free(recv_n), mem_free(send_n),
      mem_free(row_of_node);
  return whole;
}

/* ---- reading ---- */

/* These rows of the file, as they stand there. */
static struct status read_rows(const struct comm *comm, struct fields_file *file,
                               const struct rows *rows, int64_t *id,
                               const struct lif_state *state) {
  struct field fields[MOST_FIELDS];
  const int n = describe(rows, state, id, fields);
  for (int i = 0; i < n; i++) TRY(fields_read(comm, file, &fields[i]));
  return fine();
}

static bool same_ids(const struct lif_net *net, const int64_t *id) {
  for (lidx i = 0; i < net->n_own; i++)
    if (net->id[i] != id[i]) return false;
  return true;
}

static struct status check_ids(const char *path, const struct lif_net *net, const int64_t *id) {
  for (lidx i = 0; i < net->n_own; i++)
    if (id[i] < 0 || id[i] >= net->n_global)
      return failure(EXIT_INPUT, "%s: lif/node_id holds %lld, but the graph has %lld neurons", path,
                     (long long)id[i], (long long)net->n_global);
  return fine();
}

/* Our own row range is read first: with the order of the writer that is all. Otherwise these rows,
 * which the ranks hold once together, travel to their owners. */
static struct status read_state(const struct comm *comm, const char *path, struct fields_file *file,
                                const struct lif_place *place, struct lif_state *state) {
  const struct lif_net *net = place->net;
  int64_t *id = NEW(int64_t, net->n_own);
  const struct rows own = {place, net->first, net->n_own};
  struct status s = read_rows(comm, file, &own, id, state);
  if (!s.code) s = agree(comm, check_ids(path, net, id));
  int64_t same = !s.code && same_ids(net, id);
  if (!s.code) comm_min_i64(comm, &same, 1);
  if (!s.code && !same) {
    struct lif_state home;
    lif_state_init(net, place->model, &home);
    const bool whole = send_home(comm, place, net->n_own, id, state, &home);
    s = agree(comm,
              whole ? fine()
                    : failure(EXIT_INPUT, "%s: lif/node_id does not hold each neuron once", path));
    lif_state_free(state);
    *state = home;
  }
  mem_free(id);
  return s;
}

/* Says which checkpoint could be used instead. */
static struct status with_remedy(const char *path, struct status s) {
  char before[FILE_PATH];
  rundir_checkpoint_before(path, before);
  if (s.code != EXIT_INPUT || !before[0]) return s;
  return failure(EXIT_INPUT, "%.600s; --resume %.300s goes on from the one before", s.text, before);
}

static struct status read_all(const struct comm *comm, const char *path, struct fields_file *file,
                              const json_t *meta, const struct lif_place *place,
                              struct lif_point *point, struct lif_state *state) {
  TRY(check_meta(path, meta, place, point));
  const struct status s = fields_verify(comm, file, path);
  if (s.code) return with_remedy(path, s);
  TRY(read_state(comm, path, file, place, state));
  state->step = point->step;
  return fine();
}

struct status lif_restore(const struct comm *comm, const char *path, const struct lif_place *place,
                          struct lif_point *point, struct lif_state *state) {
  struct fields_file *file;
  char *text;
  json_t *meta;
  struct status s = fields_open(comm, path, kind, &file, &text);
  if (s.code) return with_remedy(path, s);
  s = json_from_text(text, path, &meta);
  if (!s.code) {
    s = read_all(comm, path, file, meta, place, point, state);
    json_decref(meta);
  }
  mem_free(text);
  fields_close(file);
  return s;
}
