/* What the program tells people. Rank 0 speaks, on stderr and into the run's log file; facts for
 * machines go to stdout as JSON lines. Progress is a bar on a terminal and plain lines in a job
 * log, at most once a second (terminal) or every ten seconds (log). */
#ifndef FASCICLE_LOG_H
#define FASCICLE_LOG_H

#include "clock.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Only rank 0 prints; call once after comm_start. Quiet silences log_line
 * and progress, not errors. */
void log_start(int rank, bool quiet);

/* Also append every line to this file (rank 0); returns false when it cannot be
 * opened. NULL closes it. */
bool log_to_file(const char *path);

/* One line for people, on stderr. */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line "fascicle: warning: ...". */
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The one line of an agreed failure: "fascicle: TEXT", from rank 0, on stderr, even when
 * quiet. Once; any thread. */
void log_error(const char *text);

/* Long work with a known end. `unit` is plural ("steps", "rows"). */
struct progress {
  const char *what, *unit;
  int64_t total,
      first;    /* `first`: what was done before this run (a resume), not counted in the rate */
  int64_t done; /* by progress_add */
  double started, last_shown;
};
struct progress progress_start(const char *what, const char *unit, int64_t first, int64_t total);
/* `extra` may be NULL: a short remark at the line's end. */
void progress_show(struct progress *p, int64_t done, const char *extra);
/* So much more is done: for work that comes in pieces. A pulse for the watchdog. */
void progress_add(struct progress *p, int64_t more);
/* The bar is wiped off a terminal; nothing is said. */
void progress_wipe(void);
/* Last line: how many, in what time, at what rate. */
void progress_end(struct progress *p, int64_t done);

#ifdef __cplusplus
}
#endif
#endif
