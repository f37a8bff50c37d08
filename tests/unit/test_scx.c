/* ranks: 1 */
/* .scx: the reference's own artifacts come back byte for byte; a generated one round-trips;
 * tests/cli/test_scx.py mutates. With two arguments the program reads a folder and writes it again:
 * 0, or the status code and its line. */
#include "check.h"
#include "core/mem.h"
#include "io/scx/scx.h"

#include <unistd.h>

static int copy(const char *from, const char *to) {
  struct scx scx;
  struct status s = scx_read(from, &scx);
  if (!s.code) s = scx_write(&scx, 1, to);
  if (s.code) fprintf(stderr, "%s\n", s.text);
  scx_free(&scx);
  return s.code;
}

/* Seven neurons in blocks of three, one without edges, parallel edges kept in order. */
static void test_round_trip(void) {
  uint64_t id[] = {1ull << 60, 5, 4, 3, 2, 1, 0};
  uint16_t type[7] = {0, 1, 65535};
  int8_t sign[7] = {1, -1, 0}, side[7] = {0, 3};
  uint32_t source[] = {0, 0, 2, 6}, target[] = {6, 6, 2, 0};
  int16_t weight[] = {-32768, 32767, 0, 7};
  uint16_t delay[] = {1, 65535, 2, 3};
  struct scx scx = {.dataset_id = "caf\xc3\xa9",
                    .n_neurons = 7,
                    .n_edges = 4,
                    .external_id = id,
                    .type_code = type,
                    .transmitter_code = sign,
                    .side_code = side,
                    .source = source,
                    .target = target,
                    .weight = weight,
                    .delay = delay};
  char folder[64], manifest[96], text[4096] = "";
  snprintf(folder, sizeof folder, "/tmp/fascicle_scx_%d", (int)getpid());
  CHECK_FINE(scx_write(&scx, 3, folder));
  CHECK_EQ(scx_write(&scx, 3, folder).code, EXIT_OUTPUT);
  struct scx back;
  CHECK_FINE(scx_read(folder, &back));
  CHECK_EQ(back.n_blocks, 3);
  CHECK_EQ(back.block[2].source_count, 1);
  CHECK(!memcmp(back.external_id, id, sizeof id) && !memcmp(back.type_code, type, sizeof type));
  CHECK(!memcmp(back.source, source, sizeof source) && !memcmp(back.target, target, sizeof target));
  CHECK(!memcmp(back.weight, weight, sizeof weight) && !memcmp(back.delay, delay, sizeof delay));
  snprintf(manifest, sizeof manifest, "%s/manifest.json", folder);
  FILE *file = fopen(manifest, "r");
  CHECK(file && fread(text, 1, sizeof text - 1, file) > 0);
  fclose(file);
  CHECK(strstr(text, "\"dataset_id\": \"caf\\u00e9\""));
  scx_free(&back);
  char command[96];
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK_EQ(system(command), 0);
}

int main(int argc, char **argv) {
  if (argc == 3) return copy(argv[1], argv[2]);
  test_start(&argc, &argv);
  test_round_trip();
  return test_end();
}
