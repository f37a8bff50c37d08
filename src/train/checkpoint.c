/* Writing, and the meta text. Reading stands in train/restore.c. */
#include "checkpoint.h"
#include "io/hdf5/fields.h"
#include "core/mem.h"
#include "blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct block_form block_forms[MODEL_BLOCKS] = {
    {"edge/theta", BY_EDGE,
     "trainable scalar of each edge, file order; value = theta in_degree^(-1/2)"},
    {"node/rho", BY_NODE, "trainable leak of each neuron, row order; leak = 1 / (1 + exp(-rho))"},
    {"node/bias", BY_NODE, "bias of each neuron, row order"},
    {"adapter/embedding", SHARED, "token by column"},
    {"adapter/projection", BY_INPUT, "input neuron (row order) by column, the bias last"},
    {"adapter/readout", BY_OUTPUT, "output neuron (row order) by token"},
    {"adapter/readout_bias", SHARED, "by token"},
};

static const char *const suffixes[] = {"", "_m", "_v"};
static const enum model_array arrays[] = {MODEL_PARAMETERS, MODEL_MOMENT1, MODEL_MOMENT2};

enum model_array block_array(int kind) {
  return arrays[kind];
}

struct field block_field(const struct rnn *rnn, int block, int kind, char name[BLOCK_NAME]) {
  const struct network *n = rnn->network;
  const struct block_form *form = &block_forms[block];
  snprintf(name, BLOCK_NAME, "%s%s", form->name, suffixes[kind]);
  struct field f = {.name = name, .type = F_F32, .unit = "1", .about = form->about, .width = 1};
  switch (form->place) {
  case BY_EDGE:
    f.n_global = n->facts.n_edges, f.first = n->share.first_edge, f.n_local = n->share.n_edges;
    break;
  case BY_NODE:
    f.n_global = n->facts.n_nodes, f.first = n->share.first, f.n_local = n->share.n_own;
    break;
  case BY_INPUT:
    f.n_global = n->input.n, f.first = n->input.first, f.n_local = n->input.n_own;
    f.width = rnn->shape.embedding + 1;
    break;
  case BY_OUTPUT:
    f.n_global = n->output.n, f.first = n->output.first, f.n_local = n->output.n_own;
    f.width = rnn->shape.vocabulary;
    break;
  case SHARED:
    f.n_global = f.n_local = rnn->shape.vocabulary;
    f.width = block == MODEL_EMBEDDING ? rnn->shape.embedding : 1;
  }
  return f;
}

/* ---- between the order of the parameters and that of the file ---- */

struct reorder {
  const float *from;
  float *to;
};

static void to_file(void *self, eidx at, lidx source, lidx target, eidx in_file) {
  const struct reorder *r = self;
  (void)source, (void)target;
  r->to[in_file] = r->from[at];
}

static void from_file(void *self, eidx at, lidx source, lidx target, eidx in_file) {
  const struct reorder *r = self;
  (void)source, (void)target;
  r->to[at] = r->from[in_file];
}

void edges_to_file(const struct network *network, const float *from, float *to) {
  network_edges(network, to_file, &(struct reorder){from, to});
}

void edges_from_file(const struct network *network, const float *from, float *to) {
  network_edges(network, from_file, &(struct reorder){from, to});
}

/* ---- meta text ---- */

static char *meta_text(const struct rnn *rnn, const struct train_identity *id,
                       const struct progress_of_training *p) {
  const struct connectome_facts *facts = &rnn->network->facts;
  json_t *meta =
      json_pack("{s:I, s:o, s:I, s:f, s:I, s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:I}", "step",
                (json_int_t)p->step, "best", isfinite(p->best) ? json_real(p->best) : json_null(),
                "best_step", (json_int_t)p->best_step, "loss_sum", p->loss_sum, "loss_steps",
                (json_int_t)p->loss_steps, "graph", id->graph, "graph_digest", facts->graph_digest,
                "order_digest", facts->order_digest, "corpus", id->corpus, "corpus_sha256",
                id->corpus_sha256, "vocabulary", id->vocabulary->n, "nodes",
                (json_int_t)facts->n_nodes, "edges", (json_int_t)facts->n_edges);
  if (!meta) DIE(EXIT_RUNTIME, "cannot describe the checkpoint in JSON: is a path not UTF-8?");
  json_object_set_new(meta, "config", train_config_json(id->config));
  if (id->provenance) json_object_set(meta, "provenance", (json_t *)id->provenance);
  char *text = json_line(meta);
  json_decref(meta);
  return text;
}

static struct status no_meta(const char *path) {
  return failure(EXIT_INPUT,
                 "%s: its description is not that of a training checkpoint; it is damaged", path);
}

/* Counts that a run can have come to, and sums that can go on. */
static bool can_be(const struct progress_of_training *p) {
  const double largest = 1e300;
  return p->step >= 0 && p->best_step >= 0 && p->best_step <= p->step && p->loss_steps >= 0 &&
         p->loss_steps <= p->step && fabs(p->loss_sum) < largest;
}

static struct status read_meta(const char *path, struct train_meta *m) {
  TRY(json_from_text(m->text, path, &m->json));
  const json_t *j = m->json;
  m->config = json_object_get(j, "config");
  m->graph = json_string_value(json_object_get(j, "graph"));
  m->graph_digest = json_string_value(json_object_get(j, "graph_digest"));
  m->order_digest = json_string_value(json_object_get(j, "order_digest"));
  m->corpus = json_string_value(json_object_get(j, "corpus"));
  m->corpus_sha256 = json_string_value(json_object_get(j, "corpus_sha256"));
  const json_t *best = json_object_get(j, "best");
  m->progress = (struct progress_of_training){
      .step = json_integer_value(json_object_get(j, "step")),
      .best = json_is_number(best) ? json_number_value(best) : INFINITY,
      .best_step = json_integer_value(json_object_get(j, "best_step")),
      .loss_sum = json_number_value(json_object_get(j, "loss_sum")),
      .loss_steps = json_integer_value(json_object_get(j, "loss_steps"))};
  const bool whole = json_is_object(m->config) && m->graph && m->graph_digest && m->order_digest &&
                     m->corpus && m->corpus_sha256 && can_be(&m->progress);
  return whole ? fine() : no_meta(path);
}

struct status train_checkpoint_open(const struct comm *world, const char *path,
                                    struct fields_file **file, struct train_meta *meta) {
  *meta = (struct train_meta){0};
  TRY(fields_open(world, path, TRAIN_CHECKPOINT, file, &meta->text));
  return read_meta(path, meta);
}

void train_checkpoint_close(struct fields_file *file, struct train_meta *meta) {
  if (file) fields_close(file);
  if (meta->json) json_decref(meta->json);
  mem_free(meta->text);
  *meta = (struct train_meta){0};
}

/* ---- writing ---- */

enum { MAX_FIELDS = 3 * MODEL_BLOCKS + 3 };

struct writing {
  struct field field[MAX_FIELDS];
  char name[MAX_FIELDS][BLOCK_NAME];
  void *owned[MAX_FIELDS];
  int n;
};

static void add_field(struct writing *w, struct field field, void *owned) {
  w->field[w->n] = field;
  w->owned[w->n++] = owned;
}

static void add_block(struct writing *w, struct rnn *rnn, int block, int kind, bool writes,
                      bool leads) {
  struct field f = block_field(rnn, block, kind, w->name[w->n]);
  const int64_t n = rnn->at.at[block + 1] - rnn->at.at[block];
  float *host = NEW(float, n);
  rnn->backend->get(host, rnn->backend->model->array(rnn->model, arrays[kind]) + rnn->at.at[block],
                    (size_t)n * sizeof *host);
  if (block == MODEL_EDGES) {
    float *in_file = NEW(float, n);
    edges_to_file(rnn->network, host, in_file);
    mem_free(host);
    host = in_file;
  }
  if (block_forms[block].place == SHARED ? !leads : !writes) f.n_local = 0;
  f.data = host;
  add_field(w, f, host);
}

/* Small arrays that every rank holds: rank 0 writes them. */
static void add_list(struct writing *w, const char *name, uint32_t *data, int64_t n, bool leads,
                     const char *about) {
  add_field(w,
            (struct field){.name = name,
                           .type = F_U32,
                           .n_global = n,
                           .n_local = leads ? n : 0,
                           .width = 1,
                           .data = data,
                           .unit = "1",
                           .about = about},
            NULL);
}

/* The columns of all replicas side by side: [n_own][batch]. */
static void add_carried(struct writing *w, struct rnn *rnn, int64_t batch, const float *carried,
                        bool writes) {
  const struct network *n = rnn->network;
  const int64_t n_own = n->graph.n_own;
  const struct comm *part = &rnn->grid->part_comm;
  int64_t *counts = NEW(int64_t, part->size);
  float *all = comm_gather_varied(part, carried, n_own * rnn->shape.batch, sizeof *all, counts);
  float *rows = NEW(float, n_own *batch);
  for (int64_t r = 0, column = 0, at = 0; r < part->size; r++) {
    const int64_t width = n_own ? counts[r] / n_own : 0;
    for (int64_t i = 0; i < n_own; i++)
      for (int64_t b = 0; b < width; b++) rows[i * batch + column + b] = all[at + i * width + b];
    at += counts[r], column += width;
  }
  mem_free(all), mem_free(counts);
  add_field(
      w,
      (struct field){
          .name = CARRIED_STATE,
          .type = F_F32,
          .n_global = n->facts.n_nodes,
          .first = n->share.first,
          .n_local = writes ? n_own : 0,
          .width = (int)batch,
          .data = rows,
          .unit = "1",
          .about = "state of each neuron (row order) at the end of the last window, by sample"},
      rows);
}

/* A model with a value that is not finite is no checkpoint: it would push the good ones out. */
static struct status all_finite(const struct comm *world, const struct writing *w,
                                const char *path) {
  int64_t bad = 0;
  for (int f = 0; f < w->n; f++) {
    if (w->field[f].type != F_F32) continue;
    const float *x = w->field[f].data;
    for (int64_t i = 0; i < w->field[f].n_local * w->field[f].width; i++) bad += !isfinite(x[i]);
  }
  comm_sum_i64(world, &bad, 1);
  if (bad == 0) return fine();
  return failure(EXIT_RUNTIME,
                 "%s is not written: %lld values of the model are not finite; go on from the "
                 "checkpoint before it with a lower learning rate",
                 path, (long long)bad);
}

struct status train_checkpoint_write(const struct comm *world, const char *path, struct rnn *rnn,
                                     const struct train_identity *id,
                                     const struct progress_of_training *progress,
                                     const float *carried) {
  const bool writes = rnn->grid->replica == 0, leads = world->rank == 0;
  struct writing *w = NEW_ZERO(struct writing, 1);
  for (int kind = 0; kind < 3; kind++)
    for (int b = 0; b < MODEL_BLOCKS; b++) add_block(w, rnn, b, kind, writes, leads);
  add_list(w, NODE_OF_ROW, rnn->network->node_of_row, rnn->network->facts.n_nodes, leads,
           "node id of each row of the graph used");
  add_list(w, VOCABULARY, id->vocabulary->code, id->vocabulary->n, leads,
           "Unicode code point of each token");
  if (carried) add_carried(w, rnn, id->config->batch, carried, writes);
  char *meta = meta_text(rnn, id, progress);
  struct status s = all_finite(world, w, path);
  if (!s.code) s = fields_write(world, path, TRAIN_CHECKPOINT, meta, w->field, w->n);
  for (int i = 0; i < w->n; i++) mem_free(w->owned[i]);
  free(meta);
  mem_free(w);
  return s;
}
