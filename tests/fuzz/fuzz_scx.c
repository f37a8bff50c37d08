/* .scx: byte 0 decides. 0: the rest is manifest.json as it stands. Else a folder whose manifest
 * fits its files (fuzz_scx.h). A block that lies outside of the folder, or is reached through a
 * link, must be refused though all sizes and checksums fit. */
#include "fuzz_scx.h"
#include "io/scx/scx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char folder[128];
  bool leaves = false;
  scx_links();
  snprintf(folder, sizeof folder, "%s/in", fuzz_folder());
  if (size < 2) return 0;
  if (data[0] == 0)
    fuzz_file("in/manifest.json", data + 1, size - 1);
  else
    leaves = scx_folder(data + 1, size - 1);
  struct scx scx;
  const struct status s = scx_read(folder, &scx);
  if ((s.code && (s.code != EXIT_INPUT || !*s.text)) || (leaves && !s.code)) abort();
  scx_free(&scx);
  return 0;
}
