/* Checks that all ranks were started alike, and takes the signals. */
#include "launch.h"
#include "build.h"
#include "core/digest.h"
#include "io/files/files.h"
#include "core/signals.h"

#include <stdio.h>
#include <string.h>

/* Builds of other versions may not even take the same steps. */
static struct status same_build(const struct comm *world) {
  char build[256] = "", first[256];
  snprintf(build, sizeof build, "%s, commit %s, %s, %s", BUILD_VERSION, BUILD_COMMIT, BUILD_TYPE,
           BUILD_COMPILER);
  memcpy(first, build, sizeof first);
  comm_share(world, first, sizeof first, 0);
  const struct status other = failure(
      EXIT_USAGE,
      "the ranks run different programs: rank 0 fascicle %s; rank %d %s; start one program on all",
      first, world->rank, build);
  return agree(world, strcmp(first, build) ? other : fine());
}

static struct status same_words(const struct comm *world, int argc, char **argv) {
  struct sha256 sha;
  char words[DIGEST_TEXT];
  sha256_init(&sha);
  for (int i = 1; i < argc; i++) sha256_add(&sha, argv[i], strlen(argv[i]) + 1);
  sha256_end(&sha, words);
  if (comm_equal(world, words, sizeof words)) return fine();
  return failure(
      EXIT_USAGE,
      "the ranks were started with different command lines; give all ranks the same words");
}

struct status launch_check(const struct comm *world, int argc, char **argv) {
  TRY(same_build(world));
  return same_words(world, argc, argv);
}

void launch_signals(void) {
  fail_clean_with(files_abandon);
  signals_start();
}
