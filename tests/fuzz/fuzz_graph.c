/* The graph artifact through every verb that reads one. Byte 0: which valid file; byte 1: which
 * verb; the rest changes the file (fuzz_h5.h). */
#include "fuzz_base.h"
#include "fuzz_h5.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  fuzz_start();
  base_graphs(), base_settings();
  fuzz_seal(" graph.h5  canary  run  out.h5  out.csv  out.scx ");
  return 0;
}

static void use(uint8_t how) {
  switch (how) {
  case 0: fuzz_verb(&verb_inspect, "graph.h5", "--json", NULL); break;
  case 1: fuzz_verb(&verb_inspect, "graph.h5", "--verify", NULL); break;
  case 2: fuzz_verb(&verb_inspect, "graph.h5", "--node", "114", "--json", NULL); break;
  case 3: fuzz_verb(&verb_inspect, "graph.h5", "--node", "N3", NULL); break;
  case 4: fuzz_verb(&verb_simulate, BASE_SIMULATE("graph.h5", "--steps", "4")); break;
  case 5:
    fuzz_verb(&verb_simulate, BASE_SIMULATE("graph.h5", "--steps", "4", "--residency", "streamed"));
    break;
  case 6:
    fuzz_verb(&verb_export, "graph.h5", "--format", "csv", "--output", "out.csv", "--watchdog", "0",
              NULL);
    break;
  case 7:
    fuzz_verb(&verb_export, "graph.h5", "--format", "scx", "--output", "out.scx", "--watchdog", "0",
              NULL);
    break;
  case 8: fuzz_verb(&verb_order, "graph.h5", "--output", "out.h5", "--parts", "4", NULL); break;
  case 9: fuzz_verb(&verb_generate, "--shuffle-of", "graph.h5", "--output", "out.h5", NULL); break;
  case 10: fuzz_verb(&verb_plan, "graph.h5", "--job", "simulate", "--ranks", "2", NULL); break;
  default: fuzz_verb(&verb_train, BASE_TRAIN("graph.h5", "--set", "train_steps=1")); break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {data, size};
  fuzz_begin(data, size);
  char base[16];
  snprintf(base, sizeof base, "base%d.h5", take8(&in) % N_BASES);
  const uint8_t how = take8(&in) % 12;
  fuzz_copy(base, "graph.h5");
  fuzz_change("graph.h5", &in);
  use(how);
  fuzz_remove("run"), fuzz_remove("out.h5"), fuzz_remove("out.csv"), fuzz_remove("out.scx");
  return 0;
}
