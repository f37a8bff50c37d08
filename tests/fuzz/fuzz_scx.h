/* A .scx folder, FOLDER/in, whose manifest fits its files (sizes and checksums right), so that what
 * reads blocks and neurons is reached. */
#ifndef FASCICLE_FUZZ_SCX_H
#define FASCICLE_FUZZ_SCX_H

#include "core/digest.h"
#include "fuzz.h"

static inline void sha_of(const void *data, size_t size, char text[DIGEST_TEXT]) {
  struct sha256 s;
  sha256_init(&s);
  sha256_add(&s, data, size);
  sha256_end(&s, text);
}

/* What a block may be called: the first is right, those after it lead out of the
 * folder or through a link. */
static const char *const names[] = {"blocks/b.scb", "../outside",         "blocks/../../outside",
                                    "blocks/link",  "linked/b.scb",       "../in/blocks/b.scb",
                                    "/dev/null",    "/proc/self/cmdline", "blocks/../blocks/b.scb"};
enum { N_NAMES = sizeof names / sizeof *names };

/* Links beside the files, once. */
static inline void scx_links(void) {
  static bool made;
  char from[200], to[200];
  if (made) return;
  made = true;
  snprintf(from, sizeof from, "%s/in", fuzz_folder()), mkdir(from, 0700);
  snprintf(from, sizeof from, "%s/in/blocks", fuzz_folder()), mkdir(from, 0700);
  snprintf(to, sizeof to, "%s/in/blocks/link", fuzz_folder());
  if (symlink("../../outside", to)) abort();
  snprintf(to, sizeof to, "%s/in/linked", fuzz_folder());
  if (symlink("blocks", to)) abort();
}

/* Low half of byte 0 = neurons, high half = what the block is called, rest = neurons.bin and one
 * block. True when the manifest names a block that must not be read. At least one byte. */
static inline bool scx_folder(const uint8_t *data, size_t size) {
  const unsigned neurons = data[0] % 16, name = data[0] / 16 % N_NAMES;
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
      "{\"blocks\": [{\"byte_size\": %zu, \"edge_count\": %u, \"filename\": \"%s\", \"sha256\": "
      "\"%s\", \"source_count\": %u, \"source_start\": 0}], \"dataset_id\": \"x\", \"n_edges\": "
      "%u, "
      "\"n_neurons\": %u, \"neurons_byte_size\": %zu, \"neurons_sha256\": \"%s\"}",
      size - head, edges, names[name], block_sha, neurons, edges, neurons, head, neurons_sha);
  fuzz_file("in/manifest.json", manifest, (size_t)n);
  fuzz_file("in/neurons.bin", rest, head);
  fuzz_file("in/blocks/b.scb", rest + head, size - head);
  fuzz_file("outside", rest + head, size - head);
  return name > 0;
}

#endif
