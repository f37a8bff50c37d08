/* Spike segments, merged files and the file of names, through trace and inspect. Byte 0: which file
 * is changed; byte 1: which verb, and whether the run is one of lif_shift or of a model with
 * variables; the rest changes the file (fuzz_h5.h). */
#include "fuzz_base.h"
#include "fuzz_h5.h"

static const char *const files[] = {"trace/spikes.r0000.s000000.h5",
                                    "trace/spikes.r0000.s000001.h5",
                                    "trace/spikes.r0000.s000002.h5", "spikes.h5", "neurons.h5"};
enum { N_FILES = sizeof files / sizeof *files };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  fuzz_start();
  base_graphs(), base_settings();
  fuzz_must(&verb_simulate, BASE_SIMULATE("base1.h5", "--steps", "12", "--checkpoint-every", "4"));
  if (rename("run", "made")) abort();
  fuzz_must(&verb_simulate, "base1.h5", "--config", "model.json", "--output", "run", "--watchdog",
            "0", "--memory", "0.1", "--steps", "12", "--checkpoint-every", "4", NULL);
  if (rename("run", "model") || mkdir("run", 0700) || mkdir("run/trace", 0700)) abort();
  fuzz_seal(" canary ");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {data, size};
  fuzz_begin(data, size);
  char from[64], to[64];
  const uint8_t file = take8(&in) % N_FILES, verb = take8(&in), how = verb % 7;
  for (int i = 0; i < N_FILES; i++) {
    snprintf(from, sizeof from, "%s/%s", verb / 7 % 2 ? "model" : "made", files[i]),
        snprintf(to, sizeof to, "run/%s", files[i]);
    fuzz_copy(from, to);
  }
  snprintf(to, sizeof to, "run/%s", files[file]);
  fuzz_change(to, &in);
  switch (how) {
  case 0: fuzz_verb(&verb_trace, "merge", "run", NULL); break;
  case 1: fuzz_verb(&verb_trace, "merge", "run", "--packed", NULL); break;
  case 2: fuzz_verb(&verb_trace, "check", "run", NULL); break;
  case 3: fuzz_verb(&verb_trace, "rates", "run", NULL); break;
  case 4: fuzz_verb(&verb_inspect, to, "--verify", NULL); break;
  case 5: fuzz_verb(&verb_inspect, to, "--json", NULL); break;
  default: /* what a merge makes of it must be sound */
    if (!fuzz_verb(&verb_trace, "merge", "run", NULL)) fuzz_verb(&verb_trace, "rates", "run", NULL);
  }
  unlink("run/rates.csv"), unlink("run/type_rates.csv"), fuzz_remove("run/reports");
  return 0;
}
