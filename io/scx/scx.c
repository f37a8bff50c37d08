/* Reading .scx. */
#include "scx.h"
#include "core/digest.h"
#include "core/json.h"
#include "core/mem.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RECORD = 16, HEADER = 20, MANIFEST_MOST = 1 << 28 };

void scx_free(struct scx *scx) {
  for (int i = 0; i < scx->n_blocks; i++) mem_free(scx->block[i].filename);
  mem_free(scx->manifest), mem_free(scx->dataset_id), mem_free(scx->block);
  mem_free(scx->external_id), mem_free(scx->type_code);
  mem_free(scx->transmitter_code), mem_free(scx->side_code);
  mem_free(scx->source), mem_free(scx->target), mem_free(scx->weight), mem_free(scx->delay);
  *scx = (struct scx){0};
}

/* A whole file in memory with a final 0; its size must be `want` unless that is negative. */
static struct status slurp(const char *path, int64_t want, char **data, int64_t *bytes) {
  *data = NULL;
  struct stat info;
  FILE *file = fopen(path, "rbe");
  if (!file) return failure(EXIT_INPUT, "%s: cannot open: %s", path, strerror(errno));
  if (fstat(fileno(file), &info) || !S_ISREG(info.st_mode)) {
    fclose(file);
    return failure(EXIT_INPUT, "%s: not a regular file", path);
  }
  *bytes = info.st_size;
  if ((want >= 0 && *bytes != want) || (want < 0 && *bytes > MANIFEST_MOST)) {
    fclose(file);
    return failure(EXIT_INPUT, "%s: %lld bytes, %lld wanted", path, (long long)*bytes,
                   (long long)(want >= 0 ? want : MANIFEST_MOST));
  }
  *data = mem_alloc(*bytes + 1, 1);
  const size_t got = fread(*data, 1, (size_t)*bytes, file);
  fclose(file);
  (*data)[got] = 0;
  if ((int64_t)got == *bytes) return fine();
  mem_free(*data);
  *data = NULL;
  return failure(EXIT_INPUT, "%s: cannot read: %s", path, strerror(errno));
}

/* ---- manifest ---- */

static const char *const manifest_keys[] = {
    "blocks",         "conversion", "dataset_id",     "delay_dtype",
    "endianness",     "format_id",  "format_version", "index_dtype",
    "license",        "n_edges",    "n_neurons",      "neurons_byte_size",
    "neurons_sha256", "scope",      "source_url",     "voltage_scale_pow",
    "weight_dtype"};
static const char *const block_keys[] = {"byte_size", "edge_count",   "filename",
                                         "sha256",    "source_count", "source_start"};
enum { N_MANIFEST_KEYS = sizeof manifest_keys / sizeof *manifest_keys };

struct expected {
  int64_t bytes;
  const char *sha256;
};

/* A status of the JSON helpers speaks of usage; in a manifest it is a bad input file. */
static struct status as_input(struct status s) {
  if (s.code) s.code = EXIT_INPUT;
  return s;
}

static struct status want_key(const json_t *object, const char *where, const char *key) {
  if (json_object_get(object, key)) return fine();
  return failure(EXIT_INPUT, "%s: \"%s\" is missing", where, key);
}

/* A member that may be absent but, where present, has just this value. */
static struct status fixed_text(const json_t *m, const char *where, const char *key,
                                const char *wanted) {
  const char *value = wanted;
  TRY(as_input(json_take_text(m, where, key, &value)));
  if (!strcmp(value, wanted)) return fine();
  return failure(EXIT_INPUT, "%s: \"%s\" is \"%s\"; only \"%s\" is known", where, key, value,
                 wanted);
}

static struct status fixed_int(const json_t *m, const char *where, const char *key,
                               int64_t wanted) {
  int64_t value = wanted;
  TRY(as_input(json_take_int(m, where, key, INT64_MIN, INT64_MAX, &value)));
  if (value == wanted) return fine();
  return failure(EXIT_INPUT, "%s: \"%s\" is %lld; only %lld is known", where, key, (long long)value,
                 (long long)wanted);
}

static struct status text_or_null(const json_t *m, const char *where, const char *key) {
  const json_t *v = json_object_get(m, key);
  if (!v || json_is_null(v) || json_is_string(v)) return fine();
  return failure(EXIT_INPUT, "%s: \"%s\" must be a string or null", where, key);
}

static struct status need_int(const json_t *m, const char *where, const char *key, int64_t most,
                              int64_t *value) {
  TRY(want_key(m, where, key));
  return as_input(json_take_int(m, where, key, 0, most, value));
}

static struct status need_sha(const json_t *m, const char *where, const char *key,
                              const char **sha) {
  TRY(want_key(m, where, key));
  TRY(as_input(json_take_text(m, where, key, sha)));
  if (strlen(*sha) == 64 && strspn(*sha, "0123456789abcdef") == 64) return fine();
  return failure(EXIT_INPUT, "%s: \"%s\" is not 64 lower-case hex digits", where, key);
}

/* Names stay inside the folder: relative, no "..", no links. */
static struct status inside(const char *folder, const char *name, char path[PATH_MAX]) {
  char root[PATH_MAX], real[PATH_MAX];
  const struct status bad =
      failure(EXIT_INPUT, "%s: the block name \"%s\" leaves the folder", folder, name);
  if (name[0] == '/' || name[0] == 0 || strstr(name, "..") || strlen(name) > 200) return bad;
  if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX || !realpath(folder, root))
    return bad;
  if (!realpath(path, real))
    return failure(EXIT_INPUT, "%s: cannot open: %s", path, strerror(errno));
  char direct[2 * PATH_MAX];
  snprintf(direct, sizeof direct, "%s/%s", root, name);
  return strcmp(direct, real) ? bad : fine();
}

static struct status block_entry(const json_t *entry, const char *path, int i,
                                 struct scx_block *block, struct expected *expected) {
  char where[PATH_MAX + 32];
  snprintf(where, sizeof where, "%s: blocks[%d]", path, i);
  TRY(as_input(json_only_keys(entry, where, block_keys, 6)));
  const char *filename = NULL;
  TRY(want_key(entry, where, "filename"));
  TRY(as_input(json_take_text(entry, where, "filename", &filename)));
  block->filename = mem_string(filename);
  TRY(need_int(entry, where, "source_start", UINT32_MAX, &block->source_start));
  TRY(need_int(entry, where, "source_count", UINT32_MAX, &block->source_count));
  TRY(need_int(entry, where, "edge_count", UINT32_MAX, &block->edge_count));
  TRY(need_int(entry, where, "byte_size", INT64_MAX, &expected->bytes));
  TRY(need_sha(entry, where, "sha256", &expected->sha256));
  const int64_t size = HEADER + 4 * (block->source_count + 1) + 8 * block->edge_count;
  if (expected->bytes == size) return fine();
  return failure(EXIT_INPUT, "%s: byte_size %lld does not fit its counts, which give %lld", where,
                 (long long)expected->bytes, (long long)size);
}

static struct status blocks_cover(const struct scx *scx, const char *path) {
  int64_t next = 0, edges = 0;
  for (int i = 0; i < scx->n_blocks; i++) {
    if (scx->block[i].source_start != next)
      return failure(EXIT_INPUT, "%s: blocks[%d] starts at source %lld, %lld is next", path, i,
                     (long long)scx->block[i].source_start, (long long)next);
    next += scx->block[i].source_count, edges += scx->block[i].edge_count;
  }
  if (next != scx->n_neurons)
    return failure(EXIT_INPUT, "%s: the blocks cover %lld of %lld sources", path, (long long)next,
                   (long long)scx->n_neurons);
  if (edges == scx->n_edges) return fine();
  return failure(EXIT_INPUT, "%s: n_edges is %lld, the blocks hold %lld", path,
                 (long long)scx->n_edges, (long long)edges);
}

static struct status fixed_members(const json_t *m, const char *path) {
  TRY(fixed_text(m, path, "format_id", "scx"));
  TRY(fixed_int(m, path, "format_version", 1));
  TRY(fixed_int(m, path, "voltage_scale_pow", 16));
  TRY(fixed_text(m, path, "endianness", "little"));
  TRY(fixed_text(m, path, "index_dtype", "uint32"));
  TRY(fixed_text(m, path, "weight_dtype", "int16"));
  TRY(fixed_text(m, path, "delay_dtype", "uint16"));
  TRY(text_or_null(m, path, "license"));
  TRY(text_or_null(m, path, "source_url"));
  const char *scope = "full";
  TRY(as_input(json_take_text(m, path, "scope", &scope)));
  if (strcmp(scope, "full") && strcmp(scope, "compact"))
    return failure(EXIT_INPUT, "%s: \"scope\" is \"%s\"; it must be \"full\" or \"compact\"", path,
                   scope);
  const json_t *conversion = json_object_get(m, "conversion");
  if (conversion && !json_is_object(conversion))
    return failure(EXIT_INPUT, "%s: \"conversion\" must be an object", path);
  return fine();
}

static struct status parse_manifest(const json_t *m, const char *path, struct scx *scx,
                                    struct expected *neurons, struct expected **blocks) {
  TRY(as_input(json_only_keys(m, path, manifest_keys, N_MANIFEST_KEYS)));
  TRY(fixed_members(m, path));
  TRY(want_key(m, path, "dataset_id"));
  const char *dataset = NULL;
  TRY(as_input(json_take_text(m, path, "dataset_id", &dataset)));
  scx->dataset_id = mem_string(dataset);
  TRY(need_int(m, path, "n_neurons", UINT32_MAX, &scx->n_neurons));
  TRY(need_int(m, path, "n_edges", INT64_MAX, &scx->n_edges));
  TRY(need_int(m, path, "neurons_byte_size", INT64_MAX, &neurons->bytes));
  TRY(need_sha(m, path, "neurons_sha256", &neurons->sha256));
  if (neurons->bytes != RECORD * scx->n_neurons)
    return failure(EXIT_INPUT, "%s: neurons_byte_size is %lld, %lld neurons need %lld", path,
                   (long long)neurons->bytes, (long long)scx->n_neurons,
                   (long long)(RECORD * scx->n_neurons));
  const json_t *list = json_object_get(m, "blocks");
  if (!json_is_array(list)) return failure(EXIT_INPUT, "%s: \"blocks\" must be a list", path);
  const int n = (int)json_array_size(list);
  scx->block = NEW_ZERO(struct scx_block, n);
  scx->n_blocks = n;
  *blocks = NEW_ZERO(struct expected, n);
  for (int i = 0; i < n; i++)
    TRY(block_entry(json_array_get(list, (size_t)i), path, i, &scx->block[i], &(*blocks)[i]));
  return blocks_cover(scx, path);
}

/* ---- binary files ---- */

static struct status checksum(const char *path, const char *data, int64_t bytes,
                              const char *wanted) {
  struct sha256 s;
  char text[DIGEST_TEXT];
  sha256_init(&s);
  sha256_add(&s, data, (size_t)bytes);
  sha256_end(&s, text);
  if (!strcmp(text, wanted)) return fine();
  return failure(EXIT_INPUT, "%s: SHA-256 is %s, the manifest says %s", path, text, wanted);
}

static struct status take_neurons(const char *path, const char *data, struct scx *scx) {
  const int64_t n = scx->n_neurons;
  scx->external_id = NEW(uint64_t, n), scx->type_code = NEW(uint16_t, n);
  scx->transmitter_code = NEW(int8_t, n), scx->side_code = NEW(int8_t, n);
  for (int64_t i = 0; i < n; i++) {
    const char *record = data + RECORD * i;
    uint32_t index;
    memcpy(&index, record, 4);
    if (index != i)
      return failure(EXIT_INPUT, "%s: record %lld has index %u; indices must be 0, 1, 2 ...", path,
                     (long long)i, index);
    memcpy(&scx->external_id[i], record + 4, 8);
    memcpy(&scx->type_code[i], record + 12, 2);
    scx->transmitter_code[i] = (int8_t)record[14], scx->side_code[i] = (int8_t)record[15];
  }
  return fine();
}

static struct status check_header(const char *path, const char *data,
                                  const struct scx_block *block) {
  uint32_t word[4];
  if (memcmp(data, "SCB1", 4)) return failure(EXIT_INPUT, "%s: it does not begin with SCB1", path);
  memcpy(word, data + 4, sizeof word);
  if (word[0] != 1)
    return failure(EXIT_INPUT, "%s: block version %u; only 1 is known", path, word[0]);
  if (word[1] == block->source_start && word[2] == block->source_count &&
      word[3] == block->edge_count)
    return fine();
  return failure(
      EXIT_INPUT,
      "%s: its header says sources %u + %u and %u edges, the manifest %lld + %lld and %lld", path,
      word[1], word[2], word[3], (long long)block->source_start, (long long)block->source_count,
      (long long)block->edge_count);
}

/* Edges `at` .. of the block: source from the offsets, the rest copied and checked. */
static struct status take_block(const char *path, const char *data, const struct scx_block *block,
                                int64_t at, struct scx *scx) {
  TRY(check_header(path, data, block));
  const int64_t s = block->source_count, e = block->edge_count;
  const char *offsets = data + HEADER, *targets = offsets + 4 * (s + 1);
  if (e) {
    memcpy(scx->target + at, targets, (size_t)(4 * e));
    memcpy(scx->weight + at, targets + 4 * e, (size_t)(2 * e));
    memcpy(scx->delay + at, targets + 6 * e, (size_t)(2 * e));
  }
  uint32_t from = 0, to;
  memcpy(&from, offsets, 4);
  if (from != 0) return failure(EXIT_INPUT, "%s: the first offset is %u, not 0", path, from);
  for (int64_t i = 0; i < s; i++, from = to) {
    memcpy(&to, offsets + 4 * (i + 1), 4);
    if (to < from || to > e)
      return failure(EXIT_INPUT, "%s: offset %lld is %u after %u, with %lld edges", path,
                     (long long)i + 1, to, from, (long long)e);
    for (uint32_t k = from; k < to; k++) scx->source[at + k] = (uint32_t)(block->source_start + i);
  }
  if (from != e)
    return failure(EXIT_INPUT, "%s: the last offset is %u, not %lld", path, from, (long long)e);
  for (int64_t k = at; k < at + e; k++)
    if (scx->target[k] >= scx->n_neurons || scx->delay[k] < 1)
      return failure(
          EXIT_INPUT,
          "%s: edge %lld has target %u and delay %u; targets are below %lld, delays at least 1",
          path, (long long)(k - at), scx->target[k], scx->delay[k], (long long)scx->n_neurons);
  return fine();
}

static struct status read_neurons(const char *folder, const struct expected *expected,
                                  struct scx *scx) {
  char path[PATH_MAX];
  TRY(inside(folder, "neurons.bin", path));
  char *data;
  int64_t bytes;
  TRY(slurp(path, expected->bytes, &data, &bytes));
  struct status s = checksum(path, data, bytes, expected->sha256);
  if (!s.code) s = take_neurons(path, data, scx);
  mem_free(data);
  return s;
}

/* The files' sizes are compared with the manifest before anything as large as
 * the edges is allocated. */
static struct status sizes_hold(const char *folder, const struct scx *scx,
                                const struct expected *expected) {
  for (int i = 0; i < scx->n_blocks; i++) {
    char path[PATH_MAX];
    struct stat info;
    TRY(inside(folder, scx->block[i].filename, path));
    if (stat(path, &info)) return failure(EXIT_INPUT, "%s: cannot open: %s", path, strerror(errno));
    if (info.st_size != expected[i].bytes)
      return failure(EXIT_INPUT, "%s: %lld bytes, the manifest says %lld", path,
                     (long long)info.st_size, (long long)expected[i].bytes);
  }
  return fine();
}

static struct status read_blocks(const char *folder, const struct expected *expected,
                                 struct scx *scx) {
  TRY(sizes_hold(folder, scx, expected));
  const int64_t n = scx->n_edges;
  scx->source = NEW(uint32_t, n), scx->target = NEW(uint32_t, n);
  scx->weight = NEW(int16_t, n), scx->delay = NEW(uint16_t, n);
  int64_t at = 0;
  for (int i = 0; i < scx->n_blocks; at += scx->block[i].edge_count, i++) {
    char path[PATH_MAX], *data;
    int64_t bytes;
    TRY(inside(folder, scx->block[i].filename, path));
    TRY(slurp(path, expected[i].bytes, &data, &bytes));
    struct status s = checksum(path, data, bytes, expected[i].sha256);
    if (!s.code) s = take_block(path, data, &scx->block[i], at, scx);
    mem_free(data);
    TRY(s);
  }
  return fine();
}

struct status scx_read(const char *folder, struct scx *scx) {
  *scx = (struct scx){0};
  char path[PATH_MAX];
  int64_t bytes;
  if (snprintf(path, sizeof path, "%s/manifest.json", folder) >= (int)sizeof path)
    return failure(EXIT_INPUT, "%s: the name is too long", folder);
  TRY(slurp(path, -1, &scx->manifest, &bytes));
  json_t *manifest = NULL;
  struct expected neurons = {0}, *blocks = NULL;
  struct status s = as_input(json_from_text(scx->manifest, path, &manifest));
  if (!s.code) s = parse_manifest(manifest, path, scx, &neurons, &blocks);
  if (!s.code) s = read_neurons(folder, &neurons, scx);
  if (!s.code) s = read_blocks(folder, blocks, scx);
  mem_free(blocks);
  json_decref(manifest);
  if (s.code) scx_free(scx);
  return s;
}
