/* Opening an artifact and reading ranges of it. */
#include "inside.h"
#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- opening ---- */

static struct status missing(const struct h5_file *h5, const char *what) {
  return failure(EXIT_INPUT, "%s: damaged or incomplete: %s is missing; make the file again",
                 h5->path, what);
}

static struct status take_text(struct h5_file *h5, const char *name, char *to, size_t size) {
  char *text = h5_text(h5, "/", name);
  if (!text) return missing(h5, name);
  const bool fits = snprintf(to, size, "%s", text) < (int)size;
  mem_free(text);
  return fits ? fine() : failure(EXIT_INPUT, "%s: attribute '%s' is too long", h5->path, name);
}

static struct status take_number(struct h5_file *h5, const char *at, const char *name, int64_t low,
                                 int64_t high, int64_t *value) {
  if (!h5_number(h5, at, name, value)) return missing(h5, name);
  if (*value >= low && *value <= high) return fine();
  return failure(EXIT_INPUT, "%s: attribute '%s' is %lld, not within %lld..%lld", h5->path, name,
                 (long long)*value, (long long)low, (long long)high);
}

static struct status take_facts(struct h5_file *h5, struct connectome_facts *f) {
  int64_t least, most, parallel, blocks;
  TRY(take_text(h5, "population", f->population, sizeof f->population));
  TRY(take_text(h5, "graph_digest", f->graph_digest, sizeof f->graph_digest));
  TRY(take_text(h5, "order_digest", f->order_digest, sizeof f->order_digest));
  TRY(take_number(h5, "/", "n_nodes", 0, UINT32_MAX, &f->n_nodes));
  TRY(take_number(h5, "/", "n_edges", 0, INT64_MAX / 64, &f->n_edges));
  TRY(take_number(h5, "/", "min_delay", 0, UINT16_MAX, &least));
  TRY(take_number(h5, "/", "max_delay", least, UINT16_MAX, &most));
  TRY(take_number(h5, "/", "max_in_impulse", 0, INT64_MAX, &f->max_in_impulse));
  TRY(take_number(h5, "/", "parallel_edges", 0, 1, &parallel));
  if (!h5_is_group(h5, "/order")) return missing(h5, "group /order");
  TRY(take_number(h5, "/order", "blocks", 0, 1 << 30, &blocks));
  if (f->n_edges && !least)
    return failure(EXIT_INPUT, "%s: attribute 'min_delay' is 0; the shortest is 1 step", h5->path);
  f->min_delay = (int)least, f->max_delay = (int)most, f->constant_delay = least == most;
  f->parallel_edges = parallel, f->n_blocks = (int)blocks;
  return fine();
}

enum presence {
  REQUIRED,
  OPTIONAL,
  UNWRITTEN /* required, but its values may all be the fill value */
};

/* n rows of `width` elements of the type promised, with room in the file for so much. */
static struct status check_table(struct h5_file *h5, const char *path, enum ftype type, int64_t n,
                                 int64_t width, enum presence presence) {
  struct h5_shape shape;
  if (!h5_shape(h5, path, &shape)) return presence == OPTIONAL ? fine() : missing(h5, path);
  if (shape.rank != (width > 1 ? 2 : 1) || shape.width != width || shape.n != n)
    return failure(EXIT_INPUT, "%s: damaged: %s holds %lld elements, not %lld", h5->path, path,
                   (long long)(shape.n * shape.width), (long long)(n * width));
  if (shape.type != type)
    return failure(EXIT_INPUT, "%s: damaged: %s is not of type %s", h5->path, path,
                   ftype_name(type));
  if (!shape.whole && presence != UNWRITTEN)
    return failure(EXIT_INPUT, "%s: damaged: %s was never written, or not all of it", h5->path,
                   path);
  return fine();
}

/* One-dimensional. */
static struct status check_set(struct h5_file *h5, const char *path, enum ftype type, int64_t n,
                               enum presence presence) {
  return check_table(h5, path, type, n, 1, presence);
}

static struct status check_sets(struct h5_file *h5, struct connectome_facts *f) {
  char path[CONNECTOME_NAME];
  const char *p = f->population;
  TRY(check_set(h5, node_path(p, "0/body_id", path), F_U64, f->n_nodes, REQUIRED));
  f->has_names = h5_has(h5, node_path(p, "0/name", path));
  TRY(check_set(h5, edge_path(p, "source_node_id", path), F_U32, f->n_edges, REQUIRED));
  f->packed = f->n_edges && !h5_has_attribute(h5, path, "crc32");
  TRY(check_set(h5, edge_path(p, "target_node_id", path), F_U32, f->n_edges, REQUIRED));
  TRY(check_set(h5, edge_path(p, "0/impulse", path), F_I16, f->n_edges, REQUIRED));
  TRY(check_set(h5, edge_path(p, "0/delay_steps", path), F_U16, f->n_edges,
                f->constant_delay ? UNWRITTEN : REQUIRED));
  TRY(check_set(h5, edge_path(p, "0/nsyns", path), F_U32, f->n_edges, OPTIONAL));
  f->has_counts = h5_has(h5, path);
  TRY(check_set(h5, "/order/row_ptr", F_I64, f->n_nodes + 1, REQUIRED));
  f->ordered = h5_has(h5, "/order/row_of_node");
  if (f->ordered) TRY(check_set(h5, "/order/row_of_node", F_U32, f->n_nodes, REQUIRED));
  if (f->ordered) TRY(check_set(h5, "/order/node_of_row", F_U32, f->n_nodes, REQUIRED));
  if (f->n_blocks) TRY(check_set(h5, "/order/block", F_I64, (int64_t)f->n_blocks + 1, REQUIRED));
  f->streamable = h5_has(h5, "/out/edge");
  if (f->streamable) TRY(check_set(h5, "/out/ptr", F_I64, f->n_nodes + 1, REQUIRED));
  if (f->streamable)
    TRY(check_table(h5, "/out/edge", F_U32, f->n_edges, CONNECTOME_OUT_WIDTH, REQUIRED));
  return fine();
}

static struct status check_file(struct connectome_file *file) {
  TRY(h5_check_format(&file->h5, CONNECTOME_FORMAT, CONNECTOME_VERSION));
  TRY(take_facts(&file->h5, &file->facts));
  return check_sets(&file->h5, &file->facts);
}

struct status connectome_open_alone(const char *path, struct connectome_file **file) {
  *file = NEW_ZERO(struct connectome_file, 1);
  struct status s = h5_open(path, &(*file)->h5);
  if (!s.code) s = check_file(*file);
  if (!s.code) return s;
  connectome_close(*file);
  *file = NULL;
  return s;
}

struct status connectome_open(const struct comm *comm, const char *path,
                              struct connectome_file **file) {
  struct status s = agree(comm, connectome_open_alone(path, file));
  if (!s.code && !comm_equal(comm, &(*file)->facts, sizeof(*file)->facts))
    s = failure(EXIT_INPUT,
                "%s: the hosts see different files under this name; put the graph on a file system "
                "that all share",
                path);
  if (!s.code) return s;
  connectome_close(*file);
  *file = NULL;
  return s;
}

const struct connectome_facts *connectome_facts(const struct connectome_file *file) {
  return &file->facts;
}

void connectome_close(struct connectome_file *file) {
  if (!file) return;
  h5_close(&file->h5);
  mem_free(file);
}

/* ---- ranges ---- */

static _Noreturn void broken(const struct connectome_file *file, const char *what, int64_t at,
                             int64_t value) {
  DIE(EXIT_INPUT, "%s: damaged: %s, element %lld is %lld; make the file again", file->h5.path, what,
      (long long)at, (long long)value);
}

void connectome_row_ptr(struct connectome_file *file, gidx first, int64_t n, eidx *row_ptr) {
  h5_read(&file->h5, "/order/row_ptr", F_I64, first, n, row_ptr);
  for (int64_t i = 0; i < n; i++)
    if (row_ptr[i] < (i ? row_ptr[i - 1] : 0) || row_ptr[i] > file->facts.n_edges ||
        (first + i == 0 && row_ptr[i]) ||
        (first + i == file->facts.n_nodes && row_ptr[i] != file->facts.n_edges))
      broken(file, "/order/row_ptr", first + i, row_ptr[i]);
}

/* A permutation of 0 .. n - 1, or the identity where there is none. */
static void read_permutation(struct connectome_file *file, const char *path, uint32_t *to) {
  const int64_t n = file->facts.n_nodes;
  if (!file->facts.ordered) {
    for (int64_t i = 0; i < n; i++) to[i] = (uint32_t)i;
    return;
  }
  h5_read(&file->h5, path, F_U32, 0, n, to);
  bool *seen = NEW_ZERO(bool, n);
  for (int64_t i = 0; i < n; i++) {
    if (to[i] >= n || seen[to[i]]) broken(file, path, i, to[i]);
    seen[to[i]] = true;
  }
  mem_free(seen);
}

void connectome_row_of_node(struct connectome_file *file, uint32_t *row_of_node) {
  read_permutation(file, "/order/row_of_node", row_of_node);
}

void connectome_node_of_row(struct connectome_file *file, uint32_t *node_of_row) {
  read_permutation(file, "/order/node_of_row", node_of_row);
}

void connectome_blocks(struct connectome_file *file, int64_t *block) {
  const int n = file->facts.n_blocks;
  if (!n) return;
  h5_read(&file->h5, "/order/block", F_I64, 0, n + 1, block);
  for (int i = 0; i <= n; i++)
    if (block[i] < (i ? block[i - 1] : 0) || (i == n && block[i] != file->facts.n_nodes) ||
        (!i && block[i]))
      broken(file, "/order/block", i, block[i]);
}

static void read_edges(struct connectome_file *file, const char *name, enum ftype type, eidx first,
                       eidx n, void *to) {
  char path[CONNECTOME_NAME];
  h5_read(&file->h5, edge_path(file->facts.population, name, path), type, first, n, to);
}

static void read_node_ids(struct connectome_file *file, const char *name, eidx first, eidx n,
                          uint32_t *to) {
  read_edges(file, name, F_U32, first, n, to);
  for (eidx e = 0; e < n; e++)
    if (to[e] >= file->facts.n_nodes) broken(file, name, first + e, to[e]);
}

void connectome_sources(struct connectome_file *file, eidx first, eidx n, uint32_t *source) {
  read_node_ids(file, "source_node_id", first, n, source);
}

void connectome_targets(struct connectome_file *file, eidx first, eidx n, uint32_t *target) {
  read_node_ids(file, "target_node_id", first, n, target);
}

void connectome_impulses(struct connectome_file *file, eidx first, eidx n, int16_t *impulse) {
  read_edges(file, "0/impulse", F_I16, first, n, impulse);
}

void connectome_delays(struct connectome_file *file, eidx first, eidx n, uint16_t *delay) {
  const struct connectome_facts *f = &file->facts;
  if (f->constant_delay) {
    for (eidx e = 0; e < n; e++) delay[e] = (uint16_t)f->min_delay;
    return;
  }
  read_edges(file, "0/delay_steps", F_U16, first, n, delay);
  for (eidx e = 0; e < n; e++)
    if (delay[e] < f->min_delay || delay[e] > f->max_delay)
      broken(file, "0/delay_steps", first + e, delay[e]);
}

void connectome_counts(struct connectome_file *file, eidx first, eidx n, uint32_t *count) {
  read_edges(file, "0/nsyns", F_U32, first, n, count);
}

void connectome_out_ptr(struct connectome_file *file, gidx first, int64_t n, eidx *ptr) {
  h5_read(&file->h5, "/out/ptr", F_I64, first, n, ptr);
  for (int64_t i = 0; i < n; i++)
    if (ptr[i] < (i ? ptr[i - 1] : 0) || ptr[i] > file->facts.n_edges)
      broken(file, "/out/ptr", first + i, ptr[i]);
}

void connectome_out(struct connectome_file *file, eidx first, eidx n, struct lif_edge *edge) {
  const struct connectome_facts *f = &file->facts;
  h5_read_rows(&file->h5, "/out/edge", F_U32, first, n, CONNECTOME_OUT_WIDTH, edge);
  for (eidx e = 0; e < n; e++)
    if (edge[e].target >= f->n_nodes || edge[e].delay < f->min_delay ||
        edge[e].delay > f->max_delay)
      broken(file, "/out/edge", first + e, edge[e].target);
}

int64_t connectome_out_place(struct connectome_file *file, int *descriptor) {
  const struct h5_location place = h5_locate(&file->h5, "/out/edge", F_U32);
  /* A descriptor of our own: that of the library carries a lock, and goes with the file. */
  struct stat theirs, ours;
  *descriptor =
      open(file->h5.path, O_RDONLY | O_CLOEXEC | O_NOATIME); /* a tenth less for a small read */
  if (*descriptor < 0)
    *descriptor = open(file->h5.path, O_RDONLY | O_CLOEXEC); /* of somebody else */
  if (*descriptor < 0)
    DIE(EXIT_INPUT, "%s: cannot open it again: %s", file->h5.path, strerror(errno));
  if (place.bytes && (fstat(place.descriptor, &theirs) || fstat(*descriptor, &ours) ||
                      theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev))
    DIE(EXIT_INPUT, "%s: another file has taken its place", file->h5.path);
  return place.offset;
}

const char *connectome_path(const struct connectome_file *file) {
  return file->h5.path;
}

/* ---- nodes ---- */

void connectome_body_ids(struct connectome_file *file, gidx first, int64_t n, uint64_t *body_id) {
  char path[CONNECTOME_NAME];
  h5_read(&file->h5, node_path(file->facts.population, "0/body_id", path), F_U64, first, n,
          body_id);
}

static int64_t texts_count(char **texts) {
  int64_t n = 0;
  while (texts[n]) n++;
  return n;
}

char **connectome_names(struct connectome_file *file) {
  char path[CONNECTOME_NAME];
  char **names = h5_read_texts(&file->h5, node_path(file->facts.population, "0/name", path));
  if (texts_count(names) != file->facts.n_nodes) broken(file, path, 0, texts_count(names));
  return names;
}

/* Codes are stored in 8 bits where those suffice. */
static uint32_t *read_codes(struct connectome_file *file, const char *path, enum ftype stored) {
  const int64_t n = file->facts.n_nodes;
  uint32_t *code = NEW(uint32_t, n);
  if (stored != F_U8) {
    h5_read(&file->h5, path, F_U32, 0, n, code);
    return code;
  }
  uint8_t *small = NEW(uint8_t, n);
  h5_read(&file->h5, path, F_U8, 0, n, small);
  for (int64_t i = 0; i < n; i++) code[i] = small[i];
  mem_free(small);
  return code;
}

static void read_enumeration(struct connectome_file *file, const char *path, enum ftype stored,
                             const char *labels, struct node_column *c) {
  c->label = h5_read_texts(&file->h5, labels);
  c->n_labels = int_from(texts_count(c->label), "labels of a column");
  c->code = read_codes(file, path, stored);
  for (int64_t i = 0; i < file->facts.n_nodes; i++)
    if (c->code[i] >= (uint32_t)c->n_labels) broken(file, path, i, c->code[i]);
}

void connectome_column(struct connectome_file *file, const char *name, struct node_column *column) {
  char part[CONNECTOME_NAME - 64], path[CONNECTOME_NAME], labels[CONNECTOME_NAME];
  const char *p = file->facts.population;
  const int64_t n = file->facts.n_nodes;
  struct h5_shape shape;
  *column = (struct node_column){0};
  snprintf(part, sizeof part, "0/%s", name);
  node_path(p, part, path);
  if (is_reserved_column(name) || strchr(name, '/') || !h5_shape(&file->h5, path, &shape)) return;
  if (shape.rank != 1 || shape.n != n || !shape.whole) broken(file, path, 0, shape.n);
  column->name = mem_string(name);
  snprintf(part, sizeof part, "0/@library/%s", name);
  if (h5_has(&file->h5, node_path(p, part, labels)))
    read_enumeration(file, path, shape.type, labels, column);
  else if (shape.type == F_F64)
    h5_read(&file->h5, path, F_F64, 0, n, column->f64 = NEW(double, n));
  else
    h5_read(&file->h5, path, F_I64, 0, n, column->i64 = NEW(int64_t, n));
}

bool connectome_has_labels(struct connectome_file *file, const char *name) {
  char part[CONNECTOME_NAME - 64], path[CONNECTOME_NAME];
  snprintf(part, sizeof part, "0/@library/%s", name);
  return h5_has(&file->h5, node_path(file->facts.population, part, path));
}

char **connectome_column_names(struct connectome_file *file) {
  char path[CONNECTOME_NAME];
  char **names = h5_members(&file->h5, node_path(file->facts.population, "0", path));
  int kept = 0;
  for (int i = 0; names[i]; i++) {
    struct h5_shape shape;
    char part[CONNECTOME_NAME - 64];
    const bool fits = snprintf(part, sizeof part, "0/%s", names[i]) < (int)sizeof part;
    if (!fits || is_reserved_column(names[i]) ||
        !h5_shape(&file->h5, node_path(file->facts.population, part, path), &shape))
      mem_free(names[i]);
    else
      names[kept++] = names[i];
  }
  names[kept] = NULL;
  return names;
}

char *connectome_provenance(struct connectome_file *file) {
  char *text = h5_text(&file->h5, "/", "source_json");
  return text ? text : mem_string("{}");
}
