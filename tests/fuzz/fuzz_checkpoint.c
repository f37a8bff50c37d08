/* Checkpoints of simulate and train. Byte 0: which; byte 1: through which verb, with the graph in
 * the order of the checkpoint or another; the rest changes the file (fuzz_h5.h). */
#include "fuzz_base.h"
#include "fuzz_h5.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  fuzz_start();
  base_graphs(), base_settings();
  fuzz_must(&verb_order, "base2.h5", "--output", "other.h5", "--parts", "8", NULL);
  fuzz_must(&verb_simulate, BASE_SIMULATE("base2.h5", "--steps", "4"));
  fuzz_copy("run/checkpoints/step_00000004.h5", "lif.h5");
  fuzz_remove("run");
  fuzz_must(&verb_train, BASE_TRAIN("base2.h5", "--set", "carry_state=true"));
  fuzz_copy("run/checkpoints/step_00000002.h5", "train.h5");
  fuzz_remove("run");
  fuzz_seal(" point.h5  canary  run  out.csv ");
  return 0;
}

static void use_lif(uint8_t how, const char *graph) {
  if (how < 6)
    fuzz_verb(&verb_simulate, BASE_SIMULATE(graph, "--steps", "6", "--resume", "point.h5"));
  else
    fuzz_verb(&verb_inspect, "point.h5", how == 6 ? "--json" : "--verify", NULL);
}

static void use_train(uint8_t how, const char *graph) {
  switch (how) {
  case 0:
  case 1:
  case 2:
    fuzz_verb(&verb_train, BASE_TRAIN(graph, "--set", "train_steps=3", "--set", "carry_state=true",
                                      "--resume", "point.h5"));
    break;
  case 3:
    fuzz_verb(&verb_evaluate, "point.h5", "--graph", graph, "--text", "text.txt", "--watchdog", "0",
              NULL);
    break;
  case 4:
    fuzz_verb(&verb_sample, "point.h5", "--graph", graph, "--prompt", "the", "--length", "3",
              "--watchdog", "0", NULL);
    break;
  case 5:
    fuzz_verb(&verb_export, "point.h5", "--graph", graph, "--format", "weights", "--output",
              "out.csv", "--watchdog", "0", NULL);
    break;
  case 6: fuzz_verb(&verb_inspect, "point.h5", "--verify", NULL); break;
  default:
    fuzz_verb(&verb_export, "point.h5", "--format", "weights", "--output", "out.csv", "--watchdog",
              "0", NULL);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {data, size};
  fuzz_begin(data, size);
  const bool lif = take8(&in) & 1;
  const uint8_t how = take8(&in);
  fuzz_copy(lif ? "lif.h5" : "train.h5", "point.h5");
  fuzz_change("point.h5", &in);
  (lif ? use_lif : use_train)(how % 8, how & 8 ? "other.h5" : "base2.h5");
  fuzz_remove("run"), fuzz_remove("out.csv");
  return 0;
}
