/* Says where this process is, and what its launcher promised. */
#include "host.h"

#include <stdlib.h>
#include <unistd.h>

struct host host_here(void) {
  struct host host = {"?"};
  gethostname(host.name, sizeof host.name - 1);
  return host;
}

int host_promised_tasks(const char **variable, const char **rank) {
  static const struct {
    const char *launched, *tasks,
        *rank; /* variables; PMI_SIZE is that of the launchers of other MPIs */
  } launcher[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                  {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
                  {"PMI_SIZE", "PMI_SIZE", "PMI_RANK"}};
  for (size_t i = 0; i < sizeof launcher / sizeof *launcher; i++) {
    if (!getenv(launcher[i].launched) || !getenv(launcher[i].tasks)) continue;
    *variable = launcher[i].tasks, *rank = getenv(launcher[i].rank);
    return atoi(getenv(launcher[i].tasks));
  }
  return 0;
}

int host_launched_rank(void) {
  const char *variable, *rank = NULL;
  return host_promised_tasks(&variable, &rank) > 0 && rank ? atoi(rank) : 0;
}
