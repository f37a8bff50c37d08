/* The cpu backend: the specification that every other backend is held against. */
#include "kernels/interface/backends.h"
#include "kernels/cpu/lif/lif.h"
#include "core/mem.h"
#include "kernels/cpu/model/model.h"
#include "kernels/cpu/recur/recur.h"

#include <stdio.h>
#include <string.h>

static struct status start(int local_rank) {
  (void)local_rank;
  return fine();
}

static void stop(void) {}

static void describe(char *text, size_t size) {
  char line[256] = "", *name = NULL;
  FILE *file = fopen("/proc/cpuinfo", "re");
  while (file && !name && fgets(line, sizeof line, file))
    if (!strncmp(line, "model name", 10) && strchr(line, ':')) name = strchr(line, ':') + 2;
  if (file) fclose(file);
  if (name) name[strcspn(name, "\n")] = 0;
  snprintf(text, size, "cpu: %s", name ? name : "unknown");
}

static void copy(void *to, const void *from, size_t bytes) {
  if (bytes > 0) memcpy(to, from, bytes);
}

const struct backend backend_cpu = {.name = "cpu",
                                    .is_built = true,
                                    .start = start,
                                    .stop = stop,
                                    .describe = describe,
                                    .put = copy,
                                    .get = copy,
                                    .peak = mem_peak,
                                    .recur = &recur_cpu,
                                    .lif = &lif_cpu,
                                    .model = &model_cpu};
