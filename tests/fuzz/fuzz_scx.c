/* .scx: byte 0 decides. 0: the rest is manifest.json as it stands. Else a folder whose manifest fits its
 * files (sizes and checksums right), so that the parsers of blocks and neurons are reached: byte 1 = neurons,
 * byte 2 = length of neurons.bin, rest = one block. */
#include "digest.h"
#include "fuzz.h"
#include "scx.h"

static void sha_of(const void *data, size_t size, char text[DIGEST_TEXT]) {
  struct sha256 s;
  sha256_init(&s);
  sha256_add(&s, data, size);
  sha256_end(&s, text);
}

static void structured(const uint8_t *data, size_t size) {
  const unsigned neurons = data[0] % 16;
  size_t head = neurons * 16u;
  const uint8_t *rest = data + 1;
  size--;
  if (head > size) head = size;
  uint32_t edges = 0;
  if (size - head >= 20) memcpy(&edges, rest + head + 16, 4);
  char neurons_sha[DIGEST_TEXT], block_sha[DIGEST_TEXT], manifest[2048];
  sha_of(rest, head, neurons_sha), sha_of(rest + head, size - head, block_sha);
  const int n = snprintf(
      manifest, sizeof manifest,
      "{\"blocks\": [{\"byte_size\": %zu, \"edge_count\": %u, \"filename\": \"blocks/b.scb\", \"sha256\": "
      "\"%s\", \"source_count\": %u, \"source_start\": 0}], \"dataset_id\": \"x\", \"n_edges\": %u, "
      "\"n_neurons\": %u, \"neurons_byte_size\": %zu, \"neurons_sha256\": \"%s\"}",
      size - head, edges, block_sha, neurons, edges, neurons, head, neurons_sha);
  fuzz_file("manifest.json", manifest, (size_t)n);
  fuzz_file("neurons.bin", rest, head);
  fuzz_file("blocks/b.scb", rest + head, size - head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char blocks[128];
  snprintf(blocks, sizeof blocks, "%s/blocks", fuzz_folder());
  mkdir(blocks, 0700);
  if (size < 2) return 0;
  if (data[0] == 0)
    fuzz_file("manifest.json", data + 1, size - 1);
  else
    structured(data + 1, size - 1);
  struct scx scx;
  const struct status s = scx_read(fuzz_folder(), &scx);
  if (s.code && (s.code != EXIT_INPUT || !*s.text)) abort();
  scx_free(&scx);
  return 0;
}
