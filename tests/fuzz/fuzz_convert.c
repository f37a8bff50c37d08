/* Tables through convert, all of it: byte 0 and 1 choose options, the rest is the edge table, then
 * after a byte 0xFE the node table. What comes out must verify. */
#include "fuzz_base.h"

static void put(const char *name, const uint8_t *data, size_t size) {
  FILE *file = fopen(name, "wb");
  if (!file || (size && fwrite(data, 1, size, file) != size) || fclose(file)) abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  fuzz_start();
  base_graphs();
  fuzz_seal(" e  n  out.h5 ");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 3) return 0;
  fuzz_begin(data, size);
  const uint8_t a = data[0], b = data[1];
  data += 2, size -= 2;
  const uint8_t *cut = memchr(data, 0xFE, size);
  const size_t n_edges = cut ? (size_t)(cut - data) : size;
  put("e", data, n_edges);
  put("n", data + n_edges + (cut != NULL), cut ? size - n_edges - 1 : 0);
  static const char *const kinds[] = {"sum", "keep", "refuse", "sum"};
  static const char *const ids[] = {"auto", "numbers", "names", "auto"};
  static const char *const rules[] = {"listed", "endpoints", "superclass", "traced"};
  const int done =
      fuzz_verb(&verb_convert, "--edges", "e", "--output", "out.h5", "--duplicates", kinds[a & 3],
                "--ids", ids[a >> 2 & 3], "--self-loops", a & 16 ? "drop" : "keep", "--isolated",
                a & 32 ? "drop" : "keep", "--zero-weights", a & 64 ? "drop" : "keep", "--overflow",
                a & 128 ? "saturate" : "refuse", "--underflow", b & 1 ? "keep" : "refuse",
                b & 2 ? "--packed" : "--streamable", b & 4 ? "--merge-kinds" : "--no-order",
                cut ? "--nodes" : NULL, "n", "--node-rule", rules[b >> 3 & 3], "--repeated-ids",
                b & 32 ? "first" : "last", "--signs", b & 64 ? "./signs.json" : "shiu", NULL);
  if (!done && fuzz_verb(&verb_inspect, "out.h5", "--verify", NULL)) abort();
  unlink("out.h5");
  return 0;
}
