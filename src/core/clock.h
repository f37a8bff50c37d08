/* The time. */
#ifndef FASCICLE_CLOCK_H
#define FASCICLE_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds on a clock that never jumps. */
double seconds_now(void);

/* UTC now as "2026-11-30T08:10:11Z"; `text` holds at least 32 bytes. */
void time_utc(char *text);

#ifdef __cplusplus
}
#endif
#endif
