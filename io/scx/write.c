/* Writing .scx. */
#include "core/digest.h"
#include "io/files/files.h"
#include "core/json.h"
#include "core/mem.h"
#include "scx.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD = 16, HEADER = 20, PATH_ROOM = PATH_MAX + 256 };

struct written {
  int64_t bytes;
  char sha256[DIGEST_TEXT];
};

static struct status save(const char *folder, const char *name, const char *data, int64_t bytes,
                          struct written *written) {
  char path[PATH_ROOM];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wbe");
  if (!file) return failure(EXIT_OUTPUT, "%s: cannot write: %s", path, strerror(errno));
  const bool good = fwrite(data, 1, (size_t)bytes, file) == (size_t)bytes && fflush(file) == 0 &&
                    fsync(fileno(file)) == 0;
  const int why = errno;
  if (fclose(file) || !good)
    return failure(EXIT_OUTPUT, "%s: cannot write: %s", path, strerror(why));
  if (!written) return fine();
  struct sha256 s;
  sha256_init(&s);
  sha256_add(&s, data, (size_t)bytes);
  sha256_end(&s, written->sha256);
  written->bytes = bytes;
  return fine();
}

static struct status save_neurons(const struct scx *scx, const char *folder,
                                  struct written *written) {
  char *data = mem_alloc(RECORD * scx->n_neurons + 1, 1);
  for (int64_t i = 0; i < scx->n_neurons; i++) {
    char *record = data + RECORD * i;
    const uint32_t index = (uint32_t)i;
    memcpy(record, &index, 4);
    memcpy(record + 4, &scx->external_id[i], 8);
    memcpy(record + 12, &scx->type_code[i], 2);
    record[14] = (char)scx->transmitter_code[i], record[15] = (char)scx->side_code[i];
  }
  struct status s = save(folder, "neurons.bin", data, RECORD * scx->n_neurons, written);
  mem_free(data);
  return s;
}

/* One block from edges at .. at + edge_count. */
static struct status save_block(const struct scx *scx, const struct scx_block *block, int64_t at,
                                const char *folder, struct written *written) {
  const int64_t s = block->source_count, e = block->edge_count,
                bytes = HEADER + 4 * (s + 1) + 8 * e;
  char *data = mem_alloc(bytes, 1);
  const uint32_t word[] = {1, (uint32_t)block->source_start, (uint32_t)s, (uint32_t)e};
  memcpy(data, "SCB1", 4);
  memcpy(data + 4, word, sizeof word);
  char *offsets = data + HEADER, *targets = offsets + 4 * (s + 1);
  int64_t k = 0;
  for (int64_t i = 0; i <= s; i++) {
    while (k < e && scx->source[at + k] < block->source_start + i) k++;
    const uint32_t offset = (uint32_t)k;
    memcpy(offsets + 4 * i, &offset, 4);
  }
  if (e) {
    memcpy(targets, scx->target + at, (size_t)(4 * e));
    memcpy(targets + 4 * e, scx->weight + at, (size_t)(2 * e));
    memcpy(targets + 6 * e, scx->delay + at, (size_t)(2 * e));
  }
  struct status status = save(folder, block->filename, data, bytes, written);
  mem_free(data);
  return status;
}

/* jansson writes \uXXXX in capitals; the format has them in lower case. */
static void lower_escapes(char *text) {
  for (char *at = text; (at = strstr(at, "\\u")); at += 6)
    for (int i = 2; i < 6; i++) at[i] = (char)tolower((unsigned char)at[i]);
}

static struct status save_manifest(const struct scx *scx, const struct scx_block *block,
                                   int n_blocks, const struct written *neurons,
                                   const struct written *blocks, const char *folder) {
  json_t *list = json_array();
  for (int i = 0; i < n_blocks; i++)
    json_array_append_new(list, json_pack("{s:I, s:I, s:s, s:s, s:I, s:I}", "byte_size",
                                          (json_int_t)blocks[i].bytes, "edge_count",
                                          (json_int_t)block[i].edge_count, "filename",
                                          block[i].filename, "sha256", blocks[i].sha256,
                                          "source_count", (json_int_t)block[i].source_count,
                                          "source_start", (json_int_t)block[i].source_start));
  json_t *manifest = json_pack(
      "{s:o, s:{}, s:s, s:s, s:s, s:s, s:i, s:s, s:n, s:I, s:I, s:I, s:s, s:s, s:n, s:i, s:s}",
      "blocks", list, "conversion", "dataset_id", scx->dataset_id ? scx->dataset_id : "fascicle",
      "delay_dtype", "uint16", "endianness", "little", "format_id", "scx", "format_version", 1,
      "index_dtype", "uint32", "license", "n_edges", (json_int_t)scx->n_edges, "n_neurons",
      (json_int_t)scx->n_neurons, "neurons_byte_size", (json_int_t)neurons->bytes, "neurons_sha256",
      neurons->sha256, "scope", "full", "source_url", "voltage_scale_pow", 16, "weight_dtype",
      "int16");
  char *text = json_dumps(manifest, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
  json_decref(manifest);
  if (!text) return failure(EXIT_RUNTIME, "%s: cannot write the manifest as JSON", folder);
  lower_escapes(text);
  const size_t n = strlen(text);
  char *line = mem_alloc((int64_t)n + 2, 1);
  memcpy(line, text, n);
  memcpy(line + n, "\n", 2);
  struct status s = save(folder, "manifest.json", line, (int64_t)n + 1, NULL);
  free(text), mem_free(line);
  return s;
}

/* Blocks of block_size sources each; the caller frees the names and the array. */
static struct scx_block *cut_blocks(const struct scx *scx, int64_t block_size, int *n_blocks) {
  *n_blocks = (int)((scx->n_neurons + block_size - 1) / block_size);
  struct scx_block *block = NEW_ZERO(struct scx_block, *n_blocks);
  int64_t k = 0;
  for (int i = 0; i < *n_blocks; i++) {
    char name[64];
    snprintf(name, sizeof name, "blocks/block_%05d.scb", i);
    block[i].filename = mem_string(name);
    block[i].source_start = i * block_size;
    const int64_t left = scx->n_neurons - block[i].source_start;
    block[i].source_count = left < block_size ? left : block_size;
    const int64_t from = k, end = block[i].source_start + block[i].source_count;
    while (k < scx->n_edges && scx->source[k] < end) k++;
    block[i].edge_count = k - from;
  }
  return block;
}

static struct status save_all(const struct scx *scx, const struct scx_block *block, int n_blocks,
                              const char *folder) {
  struct written neurons = {0}, *blocks = NEW_ZERO(struct written, n_blocks);
  struct status s = save_neurons(scx, folder, &neurons);
  int64_t at = 0;
  for (int i = 0; i < n_blocks && !s.code; at += block[i].edge_count, i++)
    s = save_block(scx, &block[i], at, folder, &blocks[i]);
  if (!s.code && scx->manifest)
    s = save(folder, "manifest.json", scx->manifest, (int64_t)strlen(scx->manifest), NULL);
  else if (!s.code)
    s = save_manifest(scx, block, n_blocks, &neurons, blocks, folder);
  mem_free(blocks);
  return s;
}

static void remove_folder(const char *folder, const struct scx_block *block, int n_blocks) {
  char path[PATH_ROOM];
  for (int i = 0; i < n_blocks; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, block[i].filename);
    unlink(path);
  }
  static const char *const names[] = {"manifest.json", "neurons.bin"};
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  snprintf(path, sizeof path, "%s/blocks", folder);
  rmdir(path);
  rmdir(folder);
}

static struct status publish(const char *temporary, const char *folder, bool check) {
  if (check) {
    struct scx again;
    struct status s = scx_read(temporary, &again);
    scx_free(&again);
    if (s.code)
      return failure(EXIT_RUNTIME, "the graph no longer fits its .scx manifest: %.900s", s.text);
  }
  if (rename(temporary, folder))
    return failure(EXIT_OUTPUT, "%s: cannot rename %s to it: %s", folder, temporary,
                   strerror(errno));
  return fine();
}

struct status scx_write(const struct scx *scx, int64_t block_size, const char *folder) {
  char temporary[FILE_PATH], blocks_path[PATH_MAX + 8];
  TRY(file_tmp_own(folder, temporary));
  if (access(folder, F_OK) == 0)
    return failure(EXIT_OUTPUT, "%s: it exists; choose another name or remove it", folder);
  snprintf(blocks_path, sizeof blocks_path, "%s/blocks", temporary);
  if ((mkdir(temporary, 0777) && errno != EEXIST) || (mkdir(blocks_path, 0777) && errno != EEXIST))
    return failure(EXIT_OUTPUT, "%s: cannot make the folder: %s", temporary, strerror(errno));
  int n_blocks = scx->n_blocks;
  struct scx_block *cut = scx->manifest ? NULL : cut_blocks(scx, block_size, &n_blocks);
  const struct scx_block *block = cut ? cut : scx->block;
  if (n_blocks == 0) rmdir(blocks_path);
  struct status s = save_all(scx, block, n_blocks, temporary);
  if (!s.code) s = publish(temporary, folder, scx->manifest != NULL);
  if (s.code) remove_folder(temporary, block, n_blocks);
  file_finished(temporary);
  for (int i = 0; cut && i < n_blocks; i++) mem_free(cut[i].filename);
  mem_free(cut);
  return s;
}
