/* Counted blocks of memory; running out is the caller's to handle. core/mem.h is for those to whom
 * it is fatal, core/arrays.h for lists of arrays. */
#ifndef FASCICLE_ALLOC_H
#define FASCICLE_ALLOC_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether n elements of `bytes` each can be one block; *total receives its bytes. */
bool alloc_bytes(int64_t n, size_t bytes, size_t *total);

/* 64-byte aligned, contents undefined; NULL: there is no memory left. */
void *alloc_block(size_t bytes);
void alloc_free(void *block); /* accepts NULL */

/* What alloc_block was asked for. */
size_t alloc_size(const void *block);

/* Bytes of all blocks now, and the most there ever were; restart: since now. */
int64_t alloc_held(void);
int64_t alloc_peak(void);
void alloc_peak_restart(void);

#ifdef __cplusplus
}
#endif
#endif
