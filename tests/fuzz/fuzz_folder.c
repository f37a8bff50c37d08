/* The folder of a run, one of its small files replaced: byte 0 chooses the run and the
 * file (pointers to checkpoints, metrics, the lock, ...), byte 1 what is done with the
 * folder, the rest is the file. */
#include "fuzz_base.h"

#include <ftw.h>

static const char *const replaced[] = {"run/checkpoints/latest", "run/checkpoints/best",
                                       "run/metrics.jsonl",      "run/lock",
                                       "run/config.json",        "run/again",
                                       "run/.fascicle-run",      "run/log.txt"};
enum { N_REPLACED = sizeof replaced / sizeof *replaced, MOST_FILES = 64 };

/* What the runs left: "lif/..." and "train/...". */
static char made[MOST_FILES][128];
static int n_made;

static int note_file(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info, (void)walk;
  if (kind == FTW_F && n_made < MOST_FILES) snprintf(made[n_made++], sizeof *made, "%s", path);
  return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  fuzz_start();
  base_graphs(), base_settings();
  fuzz_must(&verb_simulate, BASE_SIMULATE("base2.h5", "--steps", "4", "--checkpoint-every", "2"));
  if (rename("run", "lif")) abort();
  fuzz_must(&verb_train, BASE_TRAIN("base2.h5", "--set", "carry_state=true"));
  if (rename("run", "train")) abort();
  nftw("lif", note_file, 8, FTW_PHYS), nftw("train", note_file, 8, FTW_PHYS);
  fuzz_seal(" run ");
  return 0;
}

/* The whole run again, under the name `run`. */
static void lay_out(const char *which) {
  const size_t n = strlen(which);
  if (mkdir("run", 0700) || mkdir("run/checkpoints", 0700) || mkdir("run/trace", 0700)) abort();
  for (int i = 0; i < n_made; i++) {
    char to[160];
    if (strncmp(made[i], which, n) || made[i][n] != '/') continue;
    snprintf(to, sizeof to, "run%s", made[i] + n);
    fuzz_copy(made[i], to);
  }
}

static void use_lif(uint8_t how) {
  switch (how) {
  case 0: fuzz_verb(&verb_simulate, BASE_SIMULATE("base2.h5", "--steps", "4", "--force")); break;
  case 1: fuzz_verb(&verb_trace, "merge", "run", NULL); break;
  case 2: fuzz_verb(&verb_trace, "rates", "run", NULL); break;
  default: fuzz_verb(&verb_simulate, BASE_SIMULATE("base2.h5", "--steps", "6", "--resume", "auto"));
  }
}

static void use_train(uint8_t how) {
  switch (how) {
  case 0:
    fuzz_verb(&verb_evaluate, "run", "--graph", "base2.h5", "--text", "text.txt", "--watchdog", "0",
              NULL);
    break;
  case 1:
    fuzz_verb(&verb_sample, "run", "--graph", "base2.h5", "--which", "latest", "--prompt", "the",
              "--length", "3", "--watchdog", "0", NULL);
    break;
  case 2:
    fuzz_verb(&verb_train, BASE_TRAIN("base2.h5", "--set", "train_steps=1", "--force"));
    break;
  default:
    fuzz_verb(&verb_train, BASE_TRAIN("base2.h5", "--set", "train_steps=3", "--set",
                                      "carry_state=true", "--resume", "auto"));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  fuzz_begin(data, size);
  const bool lif = data[0] & 1;
  fuzz_remove("run");
  lay_out(lif ? "lif" : "train");
  FILE *file = fopen(replaced[data[0] / 2 % N_REPLACED], "wb");
  if (!file || fwrite(data + 2, 1, size - 2, file) != size - 2 || fclose(file)) abort();
  (lif ? use_lif : use_train)(data[1] % 6);
  return 0;
}
