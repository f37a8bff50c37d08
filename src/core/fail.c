#include "fail.h"
#include "comm.h"
#include "witness.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

_Noreturn void die_at(const char *file, int line, int code, const char *format, ...) {
  char text[1200], host[256] = "?";
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  gethostname(host, sizeof host - 1);
  const char *base = strrchr(file, '/');
  witness_leave();
  fprintf(stderr, "fascicle: rank %d of %d on %s: %s (%s:%d)\n", my_rank, n_ranks, host, text,
          base ? base + 1 : file, line);
  fflush(stderr);
  if (mpi_up && n_ranks > 1) MPI_Abort(MPI_COMM_WORLD, code); /* alone it only adds words of its own */
  _exit(code);
}

void check_mpi_at(const char *file, int line, int code, const char *call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  die_at(file, line, EXIT_RUNTIME, "MPI: %s: %s", call, text);
}
