/* Results on standard output. A verb may claim success only once they are with the system: stdio
 * keeps them back and forgets a failed write, so main asks here before it ends with a code. */
#ifndef FASCICLE_OUTPUT_H
#define FASCICLE_OUTPUT_H

#include "fail.h"

#ifdef __cplusplus
extern "C" {
#endif

/* At the start of the program: where the caller has closed standard input, output or errors, their
 * numbers are taken, lest the next file opened gets them, and with them what is printed. */
void output_start(void);

/* Write out what stdio still holds. EXIT_OUTPUT with the system's reason when that, or an earlier
 * write, failed (full disk, file size limit); without a text when the reader of a pipe has gone:
 * it wants no more, and nobody says a word then. Local. */
struct status output_flush(void);

#ifdef __cplusplus
}
#endif
#endif
