/* fascicle info: what this program is and where it runs. */
#include "kernels/interface/backends.h"
#include "build.h"
#include "core/log.h"
#include "core/mem.h"
#include "run/options.h"
#include "core/json.h"
#include "run/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct usage usage = {
    .verb = "info",
    .operands = "",
    .about = "Version, build, libraries, devices and hosts. `fascicle --version` prints the same.",
    .example = "  fascicle info\n  mpirun -n 4 fascicle info --json"};

static void add_mpi(json_t *facts) {
  char text[256];
  comm_library(text);
  json_object_set_new(facts, "mpi", json_string(text));
}

static void add_device(json_t *facts, const struct backend *backend) {
  char text[512];
  backend->describe(text, sizeof text);
  json_object_set_new(facts, backend->name, json_string(text));
}

static void add_hosts(const struct comm *world, json_t *facts) {
  struct host *all = comm_hosts(world);
  json_t *hosts = json_array();
  for (int r = 0; r < world->size; r++) json_array_append_new(hosts, json_string(all[r].name));
  json_object_set_new(facts, "ranks", json_integer(world->size));
  json_object_set_new(facts, "host_of_rank", hosts);
  mem_free(all);
}

static json_t *collect(const struct comm *world) {
  json_t *facts = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "program", "fascicle", "version",
                            BUILD_VERSION, "commit", BUILD_COMMIT, "build", BUILD_TYPE, "compiler",
                            BUILD_COMPILER, "checked", FASCICLE_CHECKED);
  add_mpi(facts);
  json_object_set_new(facts, "hdf5", json_string(BUILD_HDF5));
  json_object_set_new(facts, "cuda_toolkit", json_string(BUILD_CUDA));
  add_device(facts, &backend_cpu);
  add_device(facts, &backend_cuda);
  add_hosts(world, facts);
  return facts;
}

static void print_plain(const json_t *facts) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)facts, key, value) {
    char *text = json_is_string(value) ? strdup(json_string_value(value)) : json_line(value);
    printf("%-14s %s\n", key, text);
    free(text);
  }
}

static struct status run(struct comm *world, int argc, char **argv) {
  bool as_json = false;
  const struct option options[] = {
      {"json", OPTION_FLAG, NULL, "one JSON object on stdout", &as_json, 0, 0}};
  TRY(options_parse(&usage, options, 1, argc, argv, NULL));
  json_t *facts = collect(world);
  if (world->rank == 0) as_json ? json_print(facts) : print_plain(facts);
  json_decref(facts);
  return fine();
}

const struct verb verb_info = {"info", "version, build, libraries, devices, hosts", run};
