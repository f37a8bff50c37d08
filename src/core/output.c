/* Keeps the standard streams apart from other files, and makes sure that results are written. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A network file system may refuse the data only when the file is closed; a copy of the
 * descriptor tells the same, and the original stays open. */
static bool closes_well(void) {
  const int copy = dup(STDOUT_FILENO);
  return copy < 0 || !close(copy);
}

/* Not to be written to, so that output which nobody takes is not mistaken for written. */
void output_start(void) {
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY))
    if (fd > STDERR_FILENO) {
      close(fd);
      return;
    }
}

/* stdio forgets why an earlier write failed: one more byte brings the reason back. */
static bool fails_again(void) {
  return ferror(stdout) && write(STDOUT_FILENO, "\n", 1) != 1;
}

struct status output_flush(void) {
  const bool broken = ferror(stdout);
  errno = 0;
  const bool written = !fflush(stdout) && !fails_again() && closes_well();
  const int why = written ? 0 : errno;
  if (written && !broken) return fine();
  if (why == EPIPE) return (struct status){.code = EXIT_OUTPUT};
  return failure(EXIT_OUTPUT, "cannot write the result to standard output: %s",
                 why ? strerror(why) : "part of it is missing");
}
