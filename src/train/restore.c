/* Reading a checkpoint into any grid and any ordering of its graph. */
#include "io/hdf5/fields.h"
#include "core/mem.h"
#include "blocks.h"
#include "checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows [from, from + n) of a field are our rows [to, to + n). */
struct run {
  int64_t from, n, to;
};

/* Where our rows stand in the checkpoint. */
struct places {
  const struct rnn *rnn;
  bool same_order;      /* one run, as they stand */
  int64_t *row_of_node; /* of the checkpoint's ordering */
  int64_t *edge_of_row; /* [n_nodes + 1] of the checkpoint's ordering */
  int64_t impossible;   /* values read so far that no training leaves behind */
};

/* ---- the checkpoint's ordering ---- */

static void index_rows(struct places *p, const uint32_t *old_node_of_row) {
  const struct network *n = p->rnn->network;
  const int64_t N = n->facts.n_nodes;
  int32_t *degree = NEW(int32_t, N);
  for (int64_t row = 0; row < N; row++) degree[n->node_of_row[row]] = n->in_degree[row];
  p->row_of_node = NEW(int64_t, N), p->edge_of_row = NEW(int64_t, N + 1);
  p->edge_of_row[0] = 0;
  for (int64_t row = 0; row < N; row++) {
    p->row_of_node[old_node_of_row[row]] = row;
    p->edge_of_row[row + 1] = p->edge_of_row[row] + degree[old_node_of_row[row]];
  }
  mem_free(degree);
}

static bool is_permutation(const uint32_t *node_of_row, int64_t n) {
  bool *seen = NEW_ZERO(bool, n), whole = true;
  for (int64_t row = 0; row < n && whole; row++) {
    whole = node_of_row[row] < n && !seen[node_of_row[row]];
    if (whole) seen[node_of_row[row]] = true;
  }
  mem_free(seen);
  return whole;
}

static struct status find_places(const struct comm *world, struct fields_file *file,
                                 const struct train_meta *meta, const struct rnn *rnn,
                                 struct places *p) {
  const struct connectome_facts *facts = &rnn->network->facts;
  *p = (struct places){.rnn = rnn, .same_order = !strcmp(meta->order_digest, facts->order_digest)};
  if (p->same_order) return fine();
  uint32_t *old = NEW(uint32_t, facts->n_nodes);
  const struct status s = fields_read(world, file,
                                      &(struct field){.name = NODE_OF_ROW,
                                                      .type = F_U32,
                                                      .n_global = facts->n_nodes,
                                                      .n_local = facts->n_nodes,
                                                      .width = 1,
                                                      .data = old});
  const bool whole = s.code || is_permutation(old, facts->n_nodes);
  if (!s.code && whole) index_rows(p, old);
  mem_free(old);
  if (whole) return s;
  return failure(EXIT_INPUT, "the checkpoint is damaged: its '%s' does not hold each neuron once",
                 NODE_OF_ROW);
}

static void places_free(struct places *p) {
  mem_free(p->row_of_node), mem_free(p->edge_of_row);
}

/* ---- runs ---- */

static int by_from(const void *a, const void *b) {
  const struct run *x = a, *y = b;
  return (x->from > y->from) - (x->from < y->from);
}

/* The row in the checkpoint of our own row i. */
static int64_t row_before(const struct places *p, lidx i) {
  return p->row_of_node[network_node(p->rnn->network, i)];
}

static struct run *edge_runs(const struct places *p, int64_t *n) {
  const struct share *share = &p->rnn->network->share;
  struct run *run = NEW(struct run, share->n_own);
  for (lidx i = 0; i < share->n_own; i++)
    run[i] = (struct run){p->edge_of_row[row_before(p, i)],
                          share->row_ptr[i + 1] - share->row_ptr[i], share->row_ptr[i]};
  *n = share->n_own;
  return run;
}

static struct run *node_runs(const struct places *p, int64_t *n) {
  const struct share *share = &p->rnn->network->share;
  struct run *run = NEW(struct run, share->n_own);
  for (lidx i = 0; i < share->n_own; i++) run[i] = (struct run){row_before(p, i), 1, i};
  *n = share->n_own;
  return run;
}

/* The neurons of a role stand by row: sort them all by the checkpoint's rows, keep ours. */
static struct run *role_runs(const struct places *p, const struct role *role, int64_t *n) {
  const struct network *network = p->rnn->network;
  struct run *all = NEW(struct run, role->n);
  for (int64_t i = 0; i < role->n; i++)
    all[i] = (struct run){p->row_of_node[network->node_of_row[role->row[i]]], 1, i - role->first};
  qsort(all, (size_t)role->n, sizeof *all, by_from);
  *n = 0;
  for (int64_t i = 0; i < role->n; i++)
    if (all[i].to >= 0 && all[i].to < role->n_own) all[(*n)++] = (struct run){i, 1, all[i].to};
  return all;
}

static struct run *runs_of(const struct places *p, enum block_place place, int64_t *n) {
  const struct network *network = p->rnn->network;
  struct run *run = place == BY_EDGE    ? edge_runs(p, n)
                    : place == BY_NODE  ? node_runs(p, n)
                    : place == BY_INPUT ? role_runs(p, &network->input, n)
                                        : role_runs(p, &network->output, n);
  qsort(run, (size_t)*n, sizeof *run, by_from);
  return run;
}

/* ---- reading ---- */

/* Copy what the piece of rows [first, first + n) holds of our runs; *at is the first run
 * that may reach into it. */
static void take_piece(const struct field *piece, const struct run *run, int64_t n_runs,
                       int64_t *at, float *out) {
  const int64_t end = piece->first + piece->n_local;
  const float *data = piece->data;
  while (*at < n_runs && run[*at].from + run[*at].n <= piece->first) (*at)++;
  for (int64_t r = *at; r < n_runs && run[r].from < end; r++) {
    const int64_t from = run[r].from > piece->first ? run[r].from : piece->first;
    const int64_t to = run[r].from + run[r].n < end ? run[r].from + run[r].n : end;
    if (to > from)
      memcpy(out + (run[r].to + from - run[r].from) * piece->width,
             data + (from - piece->first) * piece->width,
             (size_t)((to - from) * piece->width) * sizeof *out);
  }
}

/* Our rows of a field into `out`. Another ordering: every rank reads the field
 * through, piece by piece. */
static struct status read_rows(const struct comm *world, struct fields_file *file,
                               const struct places *p, enum block_place place, struct field field,
                               float *out) {
  enum { PIECE = 1 << 22 };
  field.data = out;
  if (p->same_order || place == SHARED) return fields_read(world, file, &field);
  int64_t n_runs, at = 0;
  struct run *run = runs_of(p, place, &n_runs);
  const int64_t rows = PIECE / field.width > 0 ? PIECE / field.width : 1;
  float *piece = NEW(float, (rows < field.n_global ? rows : field.n_global) * field.width);
  struct status s = fine();
  field.data = piece;
  for (field.first = 0; field.first < field.n_global && !s.code; field.first += rows) {
    field.n_local = field.n_global - field.first < rows ? field.n_global - field.first : rows;
    s = fields_read(world, file, &field);
    if (!s.code) take_piece(&field, run, n_runs, &at, out);
  }
  mem_free(run), mem_free(piece);
  return s;
}

/* Values that no checkpoint of ours holds: not finite, or a negative mean of squares. */
static int64_t impossible(const float *x, int64_t n, bool squares) {
  int64_t bad = 0;
  for (int64_t i = 0; i < n; i++) bad += !isfinite(x[i]) || (squares && x[i] < 0);
  return bad;
}

static struct status read_block(const struct comm *world, struct fields_file *file,
                                struct places *p, struct rnn *rnn, int block, int kind) {
  char name[BLOCK_NAME];
  const struct field field = block_field(rnn, block, kind, name);
  const int64_t n = rnn->at.at[block + 1] - rnn->at.at[block];
  float *host = NEW(float, n);
  const struct status s = read_rows(world, file, p, block_forms[block].place, field, host);
  if (!s.code) p->impossible += impossible(host, n, kind == 2);
  if (!s.code && block == MODEL_EDGES) {
    float *ours = NEW(float, n);
    edges_from_file(rnn->network, host, ours);
    mem_free(host);
    host = ours;
  }
  if (!s.code)
    rnn->backend->put(rnn->backend->model->array(rnn->model, block_array(kind)) + rnn->at.at[block],
                      host, (size_t)n * sizeof *host);
  mem_free(host);
  return s;
}

/* Our columns of the carried state. */
static struct status read_carried(const struct comm *world, struct fields_file *file,
                                  struct places *p, const struct rnn *rnn, int64_t batch,
                                  float *carried) {
  const struct network *n = rnn->network;
  const int64_t n_own = n->graph.n_own;
  float *rows = NEW(float, n_own *batch);
  const struct status s = read_rows(world, file, p, BY_NODE,
                                    (struct field){.name = CARRIED_STATE,
                                                   .type = F_F32,
                                                   .n_global = n->facts.n_nodes,
                                                   .first = n->share.first,
                                                   .n_local = n_own,
                                                   .width = (int)batch},
                                    rows);
  int64_t first, width;
  rnn_share(batch, rnn->grid, &first, &width);
  if (!s.code) p->impossible += impossible(rows, n_own * batch, false);
  if (!s.code)
    for (int64_t i = 0; i < n_own; i++)
      for (int64_t b = 0; b < width; b++) carried[i * width + b] = rows[i * batch + first + b];
  mem_free(rows);
  return s;
}

static struct status same_graph(const char *path, const struct train_meta *meta,
                                const struct rnn *rnn) {
  const struct connectome_facts *facts = &rnn->network->facts;
  if (!strcmp(meta->graph_digest, facts->graph_digest)) return fine();
  return failure(
      EXIT_INPUT,
      "%s: the checkpoint belongs to another graph (%.12s of %.600s; this one is %.12s); give the "
      "graph that it was trained on",
      path, meta->graph_digest, meta->graph, facts->graph_digest);
}

struct status train_checkpoint_load(const struct comm *world, const char *path,
                                    struct fields_file *file, const struct train_meta *meta,
                                    struct rnn *rnn, int64_t batch, float *carried) {
  TRY(same_graph(path, meta, rnn));
  struct places p;
  TRY(find_places(world, file, meta, rnn, &p));
  struct status s = fine();
  const int kinds = rnn->shape.want_gradient ? 3 : 1;
  for (int kind = 0; kind < kinds && !s.code; kind++)
    for (int b = 0; b < MODEL_BLOCKS && !s.code; b++) s = read_block(world, file, &p, rnn, b, kind);
  if (!s.code && carried) s = read_carried(world, file, &p, rnn, batch, carried);
  places_free(&p);
  TRY(s);
  comm_sum_i64(world, &p.impossible, 1);
  if (p.impossible)
    return failure(
        EXIT_INPUT,
        "%s: the checkpoint is damaged: it holds values that are not finite, or negative where "
        "none can be; take an earlier one",
        path);
  rnn_refresh(rnn);
  return fine();
}

struct status train_checkpoint_vocabulary(const struct comm *world, struct fields_file *file,
                                          const struct train_meta *meta,
                                          struct vocabulary *vocabulary) {
  const int64_t n = json_integer_value(json_object_get(meta->json, "vocabulary"));
  *vocabulary = (struct vocabulary){0};
  if (n < 1 || n > MAX_VOCABULARY)
    return failure(EXIT_INPUT, "the checkpoint is damaged: its vocabulary holds %lld characters",
                   (long long)n);
  *vocabulary = (struct vocabulary){.n = (int)n, .code = NEW(uint32_t, n)};
  TRY(fields_read(world, file,
                  &(struct field){.name = VOCABULARY,
                                  .type = F_U32,
                                  .n_global = n,
                                  .n_local = n,
                                  .width = 1,
                                  .data = vocabulary->code}));
  for (int64_t i = 0; i < n; i++)
    if (!text_is_code(vocabulary->code[i]) || (i && vocabulary->code[i] <= vocabulary->code[i - 1]))
      return failure(EXIT_INPUT,
                     "the checkpoint is damaged: its vocabulary is not in order at character %lld",
                     (long long)i);
  return fine();
}
