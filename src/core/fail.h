/* The whole error policy. Three kinds of trouble, one rule each:
 *
 *   agreed  a missing file, a bad option, a graph that does not fit. A `struct status`, the same on
 *           every rank once `agree` has been called, passed up by TRY; rank 0 prints one line; exit
 *           code below.
 *   fatal   a failed MPI, CUDA, NCCL or HDF5 call, out of memory, anything that only one rank saw.
 *           DIE prints one line with rank, host, file and line, then aborts the job. It frees
 *           nothing: a polite exit of one rank leaves the others waiting for ever.
 *   bug     a broken invariant. ASSERT is compiled in every build and active in checked builds.
 *
 * A status is either agreed or not yet looked at: a function without a `struct comm *` may return
 * one, and nobody branches on it before `agree(comm, status)`. */
#ifndef FASCICLE_FAIL_H
#define FASCICLE_FAIL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct comm;

enum exit_code {
  EXIT_FINE = 0,
  EXIT_RUNTIME = 1,   /* runtime failure */
  EXIT_USAGE = 2,     /* usage or configuration */
  EXIT_INPUT = 65,    /* bad input file */
  EXIT_DEVICE = 69,   /* no usable GPU or MPI */
  EXIT_WATCHDOG = 71, /* a silent stall, ended by the watchdog */
  EXIT_OUTPUT = 73,   /* cannot write output */
  EXIT_AGAIN = 75     /* stopped on request with a checkpoint written: run again */
};

struct status {
  int code;        /* an exit_code; 0 is fine */
  char text[1004]; /* one line without a final newline: file, row, key or option, the value, the
                      remedy */
};

/* A status that says all is well. */
struct status fine(void);

/* A status with a code and a printf-style line. */
struct status failure(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Collective: every rank gets the status of the lowest rank that has one, so that all
 * ranks take the same path. */
struct status agree(const struct comm *comm, struct status mine);

/* Return the status from the calling function unless it is fine. */
#define TRY(expression)                                                                            \
  do {                                                                                             \
    struct status try_status_ = (expression);                                                      \
    if (try_status_.code) return try_status_;                                                      \
  } while (0)

/* End the whole job now. Prints "fascicle: rank R on HOST: TEXT (FILE:LINE)" and aborts with the
 * code; silent when somebody of this host has just done so. */
__attribute__((noreturn, format(printf, 4, 5))) void die_at(const char *file, int line, int code,
                                                            const char *format, ...);
#define DIE(code, ...) die_at(__FILE__, __LINE__, code, __VA_ARGS__)

/* Active in checked builds (FASCICLE_CHECKED = 1), always compiled. */
#ifndef FASCICLE_CHECKED
#define FASCICLE_CHECKED 0
#endif
#define ASSERT(condition)                                                                          \
  do {                                                                                             \
    if (FASCICLE_CHECKED && !(condition)) DIE(EXIT_RUNTIME, "broken invariant: %s", #condition);   \
  } while (0)

/* `clean` removes what is unfinished; DIE, fail_stopped and fail_end_if_told call it once, from any
 * thread, while others still run. None until this is called. */
void fail_clean_with(void (*clean)(void));

/* End the whole job now on somebody's request, after cleaning up: one line with the reason,
 * EXIT_RUNTIME. */
__attribute__((noreturn)) void fail_stopped(const char *why);

/* If a rank of this host has said why the job ends: clean up and leave without a word. For the
 * launcher's SIGTERM, which follows such a line. */
void fail_end_if_told(void);

/* What a last word begins with: it wipes a progress bar off a terminal, and is "" elsewhere. */
const char *fail_fresh_line(void);

/* Whether the calling thread is the first of this process to say why it ends;
 * the others stay silent. */
bool fail_speaks(void);

/* Wraps an MPI call: a failure is fatal and carries MPI's own text. */
void check_mpi_at(const char *file, int line, int code, const char *call);
#define CHECK_MPI(call) check_mpi_at(__FILE__, __LINE__, (call), #call)

/* Who we are, for messages; set once by comm_start. */
void fail_identify(int rank, int size);
int fail_rank(void);

/* Set once MPI runs: DIE then uses MPI_Abort, before that it exits. */
void fail_mpi_is_up(bool up);

#ifdef __cplusplus
}
#endif
#endif
