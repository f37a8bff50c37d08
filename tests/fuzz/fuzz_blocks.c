/* .scx through convert, all of it: byte 0 chooses options, the rest is a folder whose sizes and
 * checksums are right (fuzz_scx.h). What comes out must verify. */
#include "fuzz_run.h"
#include "fuzz_scx.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  fuzz_start();
  scx_links();
  scx_folder((const uint8_t *)"", 1);
  fuzz_seal(" out.h5  back.scx ");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const kinds[] = {"sum", "keep", "refuse", "sum"};
  if (size < 2) return 0;
  fuzz_begin(data, size);
  const uint8_t a = data[0];
  const bool leaves = scx_folder(data + 1, size - 1);
  const int done =
      fuzz_verb(&verb_convert, "--edges", "in", "--output", "out.h5", "--duplicates", kinds[a & 3],
                "--self-loops", a & 4 ? "drop" : "keep", "--isolated", a & 8 ? "drop" : "keep",
                "--zero-weights", a & 16 ? "drop" : "keep", a & 32 ? "--packed" : "--streamable",
                a & 64 ? "--no-order" : "--parts", a & 64 ? NULL : "2", NULL);
  if (leaves && !done) abort();
  if (!done && fuzz_verb(&verb_inspect, "out.h5", "--verify", NULL)) abort();
  if (!done && a & 128)
    fuzz_verb(&verb_export, "out.h5", "--format", "scx", "--watchdog", "0", "--output", "back.scx",
              NULL);
  unlink("out.h5"), fuzz_remove("back.scx");
  return 0;
}
