/* Chooses the verb, starts MPI, runs the verb, and ends with its exit code. */
#include "core/log.h"
#include "core/output.h"
#include "core/monitor.h"
#include "core/waits.h"
#include "core/words.h"
#include "run/launch.h"
#include "run/options.h"
#include "run/verbs.h"

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
  printf("\n`fascicle help VERB` or `fascicle VERB --help` explains a verb with an example. Under "
         "MPI: mpirun -n R fascicle VERB ...\n");
}

static const struct verb *find_verb(const char *name) {
  if (!strcmp(name, "--version")) return &verb_info;
  for (int i = 0; i < N_VERBS; i++)
    if (!strcmp(name, verbs[i]->name)) return verbs[i];
  return NULL;
}

/* The verb that was probably meant; NULL when none is near. */
static const struct verb *nearest_verb(const char *name) {
  const struct verb *best = NULL;
  int least = WORD_FAR;
  for (int i = 0; i < N_VERBS; i++) {
    const int d = word_distance(verbs[i]->name, name, strlen(name));
    if (d < least) least = d, best = verbs[i];
  }
  return best;
}

static struct status unknown_verb(const char *name) {
  const struct verb *meant = nearest_verb(name);
  return failure(EXIT_USAGE, "unknown verb '%s'; %s%s%s`fascicle --help` lists them", name,
                 meant ? "is '" : "", meant ? meant->name : "", meant ? "' meant? " : "");
}

static bool is_help(const char *word) {
  return !strncmp(word, "--help", 6) || !strcmp(word, "-h");
}

static bool wants_help(int argc, char **argv) {
  for (int i = 2; i < argc && strcmp(argv[i], "--"); i++)
    if (is_help(argv[i])) return true;
  return false;
}

/* `help VERB` in the words of `VERB --help`. */
static struct status help(int argc, char **argv) {
  struct comm alone = {.size = 1};
  char option[] = "--help", *words[] = {argc > 2 ? argv[2] : NULL, option, NULL};
  const struct verb *verb = argc > 2 ? find_verb(argv[2]) : NULL;
  if (argc > 2 && !verb) return unknown_verb(argv[2]);
  if (!verb) return print_usage(), fine();
  return verb->run(&alone, 2, words);
}

static struct status end_of(struct status s) {
  return s.code == HELP_SHOWN ? fine() : s;
}

static struct status or_output(struct status s) {
  return s.code ? s : output_flush();
}

static int end_alone(struct status s) {
  s = or_output(end_of(s));
  if (s.code && *s.text) log_error(s.text);
  return s.code;
}

/* Before MPI is up one rank speaks too; the others leave with 0, lest the launcher ends it
 * before. */
static int before_mpi(int argc, char **argv) {
  struct comm alone = {.size = 1};
  if (host_launched_rank() > 0) return EXIT_FINE;
  if (argc < 2) return print_usage(), EXIT_USAGE;
  if (is_help(argv[1]) || !strcmp(argv[1], "help")) return end_alone(help(argc, argv));
  const struct verb *verb = find_verb(argv[1]);
  return end_alone(verb ? verb->run(&alone, argc - 1, argv + 1) : unknown_verb(argv[1]));
}

/* The ranks of a host keep an eye on each other from here on. */
static void meet(const struct comm *world) {
  struct comm host = comm_split_host(world);
  monitor_start(&host, world->size);
  comm_free(&host);
}

static struct status run(const struct verb *verb, struct comm *world, int argc, char **argv) {
  TRY(launch_check(world, argc, argv));
  const struct status s = end_of(verb->run(world, argc - 1, argv + 1));
  return agree(world, or_output(s));
}

int main(int argc, char **argv) {
  output_start();
  const struct verb *verb = argc > 1 ? find_verb(argv[1]) : NULL;
  if (!verb || wants_help(argc, argv)) return before_mpi(argc, argv);
  waits_settle(argv);
  launch_signals();
  struct comm world = comm_start(&argc, &argv);
  log_start(world.rank, false);
  meet(&world);
  const struct status s = run(verb, &world, argc, argv);
  if (s.code && *s.text) log_error(s.text);
  comm_finish(&world, s.code);
}
