/* Configurations: byte 0 says of what (a simulation, on neurons with numbers or with names;
 * a training run; a sign table), the rest is the JSON text, read by the verb itself, which
 * then runs for a few steps. */
#include "fuzz_base.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  fuzz_start();
  base_graphs(), base_settings();
  fuzz_seal(" config.json  run  out.h5 ");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  fuzz_begin(data, size);
  FILE *file = fopen("config.json", "wb");
  if (!file || fwrite(data + 1, 1, size - 1, file) != size - 1 || fclose(file)) abort();
  switch (data[0] % 4) {
  case 0:
  case 1:
    fuzz_verb(&verb_simulate, data[0] % 4 ? "base1.h5" : "base0.h5", "--config", "config.json",
              "--output", "run", "--steps", "3", "--watchdog", "0", "--memory", "0.1", NULL);
    break;
  case 2:
    fuzz_verb(&verb_train, "base0.h5", "--text", "text.txt", "--config", "config.json", "--output",
              "run", "--set", "train_steps=1", "--set", "eval_windows=1", "--watchdog", "0",
              "--memory", "0.02", NULL);
    break;
  default:
    fuzz_verb(&verb_convert, "--edges", "edges.csv", "--nodes", "nodes.csv", "--node-columns",
              "transmitter=transmitter", "--signs", "./config.json", "--no-order", "--output",
              "out.h5", NULL);
  }
  fuzz_remove("run"), fuzz_remove("out.h5");
  return 0;
}
