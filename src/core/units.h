/* Amounts as people read them: "437 MB", "1.4 h", "24,700,000". Each writes into `text` and returns
 * it. */
#ifndef FASCICLE_UNITS_H
#define FASCICLE_UNITS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { UNITS_TEXT = 32 };

/* Powers of 1000: bytes, kB, MB, GB, TB; three digits. */
const char *units_bytes(int64_t bytes, char text[UNITS_TEXT]);
/* Powers of 1024, as memory is counted: bytes, KiB, MiB, GiB, TiB. */
const char *units_memory(int64_t bytes, char text[UNITS_TEXT]);
/* From ns to days; three digits. */
const char *units_time(double seconds, char text[UNITS_TEXT]);
/* With a comma before every three digits. */
const char *units_count(int64_t n, char text[UNITS_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
