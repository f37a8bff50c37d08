/* Parse, choose, dispatch. */
#include "run/launch.h"
#include "core/log.h"
#include "run/options.h"
#include "run/verbs.h"
#include "core/witness.h"

#include <stdio.h>
#include <string.h>

static const struct verb *const verbs[] = {
    &verb_convert, &verb_generate, &verb_order, &verb_inspect,  &verb_simulate,
    &verb_trace,   &verb_bench,    &verb_train, &verb_evaluate, &verb_sample,
    &verb_export,  &verb_plan,     &verb_info,
};
enum { N_VERBS = sizeof verbs / sizeof *verbs };

static void print_usage(void) {
  printf("Usage: fascicle VERB [options]\n\nTrain and simulate connectomes on one rank or "
         "many.\n\nVerbs:\n");
  for (int i = 0; i < N_VERBS; i++) printf("  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
  printf("\n`fascicle VERB --help` explains a verb with an example. Under MPI: mpirun -n R "
         "fascicle VERB ...\n");
}

static const struct verb *find_verb(const char *name) {
  for (int i = 0; i < N_VERBS; i++)
    if (!strcmp(name, verbs[i]->name)) return verbs[i];
  return NULL;
}

static bool is_help(const char *word) {
  return !strncmp(word, "--help", 6) || !strcmp(word, "-h");
}

static bool wants_help(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
    if (is_help(argv[i])) return true;
  return false;
}

static int run(const struct verb *verb, struct comm *world, int argc, char **argv) {
  struct status s = verb->run(world, argc, argv);
  if (s.code == HELP_SHOWN) return EXIT_FINE;
  if (s.code && *s.text) log_error(s.text);
  return s.code;
}

/* The ranks of a host keep an eye on each other from here on. */
static void meet(const struct comm *world) {
  struct comm host = comm_split_host(world);
  witness_start(&host, world->size);
  comm_free(&host);
}

int main(int argc, char **argv) {
  /* Before MPI is up one rank speaks too; the others leave with 0, lest the
   * launcher ends it before. */
  const bool silent = comm_launched_rank() > 0;
  if (argc < 2 || is_help(argv[1]) || !strcmp(argv[1], "help")) {
    if (silent) return EXIT_FINE;
    print_usage();
    return argc < 2 ? EXIT_USAGE : EXIT_FINE;
  }
  const char *name = strcmp(argv[1], "--version") ? argv[1] : "info";
  const struct verb *verb = find_verb(name);
  if (!verb) {
    if (silent) return EXIT_FINE;
    fprintf(stderr, "fascicle: unknown verb '%s'; `fascicle --help` lists them\n", name);
    return EXIT_USAGE;
  }
  struct comm alone = {.size = 1};
  if (wants_help(argc, argv)) return silent ? EXIT_FINE : run(verb, &alone, argc - 1, argv + 1);
  launch_signals();
  struct comm world = comm_start(&argc, &argv);
  log_start(world.rank, false);
  meet(&world);
  struct status s = launch_check(&world, argc, argv);
  if (s.code) log_error(s.text);
  comm_finish(&world, s.code ? s.code : run(verb, &world, argc - 1, argv + 1));
}
