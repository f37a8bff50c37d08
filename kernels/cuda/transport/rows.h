/* Rows of state arrays in transit between ranks: packed, added, summed. Launchers on a given
 * stream; sizes of 0 are skipped. */
#ifndef FASCICLE_ROWS_DEVICE_H
#define FASCICLE_ROWS_DEVICE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* packed[i] = rows[row[i]], i < n; rows of `words` 4-byte words. */
void rows_pack(cudaStream_t stream, const void *rows, const int32_t *row, int64_t n, int64_t words,
               void *packed);

/* rows[row[i]] += arrived[i]; no row occurs twice in `row`. */
void rows_add(cudaStream_t stream, float *rows, const int32_t *row, int64_t n, int64_t width,
              const float *arrived);

/* x[i] = parts[0][i] + parts[1][i] + ... in that order; parts [n_parts][stride], but part `own` is
 * x itself, and its place in parts is not looked at. */
void rows_sum(cudaStream_t stream, const float *parts, int n_parts, int64_t stride, int own,
              int64_t n, float *x);

enum { FLAGS_RANKS = 1024 }; /* ranks of a barrier at most: the threads of one block */

/* A barrier of all ranks: raises our flag at each (theirs [n] pointers to it), waits for each one's
 * at ours (mine [n]) and lowers it again. Everything queued before is visible to the others behind
 * it. */
void flags_barrier(cudaStream_t stream, uint32_t *const *theirs, uint32_t *mine, int rank, int n);

#ifdef __cplusplus
}
#endif
#endif
