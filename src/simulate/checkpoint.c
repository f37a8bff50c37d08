#include "checkpoint.h"
#include "io/hdf5/fields.h"
#include "run/job.h"
#include "core/mem.h"
#include "partition/rows.h"
#include "run/folder.h"

#include <stdlib.h>
#include <string.h>

static const char kind[] = "fascicle lif checkpoint";
enum { FORMAT_VERSION = 1, N_FIELDS = 4 };
static const int64_t MOST_SEGMENTS = (int64_t)1 << 40;

json_t *lif_config_digests(const json_t *config) {
  json_t *digests = json_object();
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)config, key, value) {
    char text[DIGEST_TEXT];
    if (!strcmp(key, "about")) continue; /* remarks: any JSON, without effect */
    job_json_digest(value, text);
    json_object_set_new(digests, key, json_string(text));
  }
  return digests;
}

/* The arrays of `state` as fields; id [n_local] goes along, so that the rows can be sorted out. */
static void describe(const struct lif_net *net, gidx first, int64_t n_local,
                     const struct lif_state *state, int64_t *id, struct field fields[N_FIELDS]) {
  const struct field all[N_FIELDS] = {
      {"lif/node_id", F_I64, net->n_global, first, n_local, 1, id, "", "node id of each row"},
      {"lif/potential", F_I32, net->n_global, first, n_local, 1, state->potential, "",
       "membrane potential after the last step made"},
      {"lif/refractory", F_U16, net->n_global, first, n_local, 1, state->counter, "steps",
       "refractory steps left"},
      {"lif/ring", F_I64, net->n_global, first, n_local, net->max_delay, state->ring, "",
       "sums under way: column d is due at step + d"}};
  memcpy(fields, all, sizeof all);
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
  struct field fields[N_FIELDS];
  json_t *meta = make_meta(place, point, provenance);
  char *text = json_line(meta);
  describe(place->net, place->net->first, place->net->n_own, state, (int64_t *)place->net->id,
           fields);
  const struct status s = fields_write(comm, path, kind, text, fields, N_FIELDS);
  free(text), json_decref(meta);
  return s;
}

/* ---- is it ours? ---- */

static struct status check_config(const char *path, const json_t *theirs, const json_t *ours) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)ours, key, value) {
    if (json_equal(value, json_object_get(theirs, key))) continue;
    return failure(
        EXIT_USAGE,
        "%s: written by a run with another \"%s\": a run goes on only as it began; use that "
        "configuration, or start in another --output",
        path, key);
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

/* One row on its way to its owner: its row here, V, counter, then the ring. */
struct row_head {
  gidx row;
  int32_t potential;
  uint16_t counter;
};

static size_t packed_bytes(const struct lif_net *net) {
  return sizeof(struct row_head) + (size_t)net->max_delay * sizeof(int64_t);
}

static lidx unpack(const struct lif_net *net, const char *from, struct lif_state *state) {
  struct row_head head;
  memcpy(&head, from, sizeof head);
  const lidx i = (lidx)(head.row - net->first);
  state->potential[i] = head.potential, state->counter[i] = head.counter;
  memcpy(state->ring + (int64_t)i * net->max_delay, from + sizeof head,
         (size_t)net->max_delay * sizeof(int64_t));
  return i;
}

/* What arrived, `n` rows, into the state; false unless it is each of our rows once. */
static bool unpack_all(const struct lif_net *net, const char *arrived, int64_t n,
                       struct lif_state *state) {
  if (n != net->n_own) return false;
  bool *seen = NEW_ZERO(bool, n), once = true;
  for (int64_t i = 0; i < n; i++) {
    const lidx row = unpack(net, arrived + (size_t)i * packed_bytes(net), state);
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
  const size_t bytes = packed_bytes(net);
  uint32_t *row_of_node = NEW(uint32_t, net->n_global);
  connectome_row_of_node(place->file, row_of_node);
  int64_t *send_n = NEW_ZERO(int64_t, comm->size), *recv_n = NEW(int64_t, comm->size);
  int64_t *at = NEW_ZERO(int64_t, comm->size);
  for (int64_t i = 0; i < n; i++)
    send_n[rows_owner(place->first_of_rank, comm->size, row_of_node[id[i]])]++;
  for (int r = 1; r < comm->size; r++) at[r] = at[r - 1] + send_n[r - 1];
  char *pack = mem_alloc(n, bytes);
  for (int64_t i = 0; i < n; i++) {
    const struct row_head head = {row_of_node[id[i]], got->potential[i], got->counter[i]};
    char *to = pack + (size_t)at[rows_owner(place->first_of_rank, comm->size, head.row)]++ * bytes;
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, got->ring + i * net->max_delay,
           (size_t)net->max_delay * sizeof(int64_t));
  }
  char *arrived = comm_swap_varied(comm, pack, send_n, bytes, recv_n);
  int64_t n_arrived = 0;
  for (int r = 0; r < comm->size; r++) n_arrived += recv_n[r];
  const bool whole = unpack_all(net, arrived, n_arrived, state);
  mem_free(arrived), mem_free(pack), mem_free(at), mem_free(recv_n), mem_free(send_n),
      mem_free(row_of_node);
  return whole;
}

/* ---- reading ---- */

/* Rows [first, first + n) of the file, as they stand there. */
static struct status read_rows(const struct comm *comm, struct fields_file *file,
                               const struct lif_net *net, gidx first, int64_t n, int64_t *id,
                               const struct lif_state *state) {
  struct field fields[N_FIELDS];
  describe(net, first, n, state, id, fields);
  for (int i = 0; i < N_FIELDS; i++) TRY(fields_read(comm, file, &fields[i]));
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
  struct status s = read_rows(comm, file, net, net->first, net->n_own, id, state);
  if (!s.code) s = agree(comm, check_ids(path, net, id));
  int64_t same = !s.code && same_ids(net, id);
  if (!s.code) comm_min_i64(comm, &same, 1);
  if (!s.code && !same) {
    struct lif_state home;
    lif_state_init(net, NULL, &home);
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
