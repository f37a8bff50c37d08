/* Statuses, and the one line with which a job ends. */
#include "fail.h"
#include "comm.h"
#include "host.h"
#include "peers.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int my_rank = 0;
static int n_ranks = 1;
static bool mpi_up = false;

void fail_identify(int rank, int size) {
  my_rank = rank;
  n_ranks = size;
}

int fail_rank(void) {
  return my_rank;
}

void fail_mpi_is_up(bool up) {
  mpi_up = up;
}

struct status fine(void) {
  return (struct status){.code = EXIT_FINE};
}

struct status failure(int code, const char *format, ...) {
  struct status s = {.code = code};
  va_list args;
  va_start(args, format);
  vsnprintf(s.text, sizeof s.text, format, args);
  va_end(args);
  return s;
}

struct status agree(const struct comm *comm, struct status mine) {
  int first = mine.code ? comm->rank : comm->size;
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm->mpi));
  if (first == comm->size) return fine();
  CHECK_MPI(MPI_Bcast(&mine, sizeof mine, MPI_BYTE, first, comm->mpi));
  return mine;
}

/* ---- the last word ---- */

static atomic_flag said = ATOMIC_FLAG_INIT;

static void rest(double seconds) {
  const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

bool fail_speaks(void) {
  return !atomic_flag_test_and_set(&said);
}

static void (*clean_up)(void);

void fail_clean_with(void (*clean)(void)) {
  clean_up = clean;
}

static void clean(void) {
  if (clean_up) clean_up();
}

/* One thread of the process speaks, and one process of the host: what follows for the others is no
 * news. They leave it time to end them. */
static void take_turn(int code) {
  if (!fail_speaks()) rest(3), _exit(code);
  if (peers_speak()) return;
  clean();
  rest(3);
  _exit(code);
}

static _Noreturn void leave(int code) {
  fflush(stderr);
  if (mpi_up && n_ranks > 1)
    MPI_Abort(MPI_COMM_WORLD, code); /* alone it only adds words of its own */
  _exit(code);
}

const char *fail_fresh_line(void) {
  return isatty(STDERR_FILENO) ? "\r\033[K" : "";
}

_Noreturn void die_at(const char *file, int line, int code, const char *format, ...) {
  char text[1200];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const char *base = strrchr(file, '/');
  peers_leave();
  take_turn(code);
  fprintf(stderr, "%sfascicle: rank %d of %d on %s: %s (%s:%d)\n", fail_fresh_line(), my_rank,
          n_ranks, host_here().name, text, base ? base + 1 : file, line);
  clean();
  leave(code);
}

void fail_end_if_told(void) {
  if (!peers_told() || !fail_speaks()) return;
  clean();
  _exit(EXIT_RUNTIME);
}

_Noreturn void fail_stopped(const char *why) {
  if (!fail_speaks()) rest(1), _exit(EXIT_RUNTIME); /* it is ending already */
  clean();
  peers_leave();
  if (my_rank > 0) rest(0.5); /* as a rule rank 0 was asked too */
  const bool speaks = peers_met() ? peers_speak() : host_launched_rank() == 0;
  if (!speaks) _exit(EXIT_RUNTIME);
  fprintf(stderr, "%sfascicle: stopped on request (%s); nothing unfinished is left\n",
          fail_fresh_line(), why);
  leave(EXIT_RUNTIME);
}

void check_mpi_at(const char *file, int line, int code, const char *call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  die_at(file, line, EXIT_RUNTIME, "MPI: %.*s: %s", (int)strcspn(call, "("), call, text);
}
