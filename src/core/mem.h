/* Memory, counted. Running out is fatal, so callers never test for NULL. Checked builds fill fresh
 * memory with a pattern that reads as NaN in floats. Peak figures are what `plan` predicts. */
#ifndef FASCICLE_MEM_H
#define FASCICLE_MEM_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n elements of `bytes` each, 64-byte aligned; NULL when n is 0. Refuses (DIE)
 * when n * bytes overflows. */
void *mem_alloc(int64_t n, size_t bytes);

/* The same, zeroed. */
void *mem_zero(int64_t n, size_t bytes);

/* Grow to n elements, keeping the first min(old, n); p may be NULL. */
void *mem_grow(void *p, int64_t n, size_t bytes);

/* Accepts NULL. Only for pointers from this file. */
void mem_free(void *p);

/* A counted copy of a string. */
char *mem_string(const char *text);

/* Bytes held now through this file, and the most ever held. */
int64_t mem_held(void);
int64_t mem_peak(void);
/* The most ever held counts from now: what was held before was for measuring, say. */
void mem_peak_restart(void);

/* Largest resident set of the process so far, in bytes, as the kernel counts it. */
int64_t mem_resident_peak(void);

/* Bytes that the processes of this job may use on this host: the least of physical memory, the
 * limits of our cgroups, and what Slurm granted (SLURM_MEM_PER_NODE). */
int64_t mem_of_host(void);

#define NEW(type, n)      ((type *)mem_alloc((n), sizeof(type)))
#define NEW_ZERO(type, n) ((type *)mem_zero((n), sizeof(type)))

#ifdef __cplusplus
}
#endif
#endif
