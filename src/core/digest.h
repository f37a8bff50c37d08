/* Fingerprints. SHA-256 for whole files and byte strings (OpenSSL's libcrypto); sums of 128-bit
 * hashes for sets, which do not depend on the order of the members and can be computed in parts. */
#ifndef FASCICLE_DIGEST_H
#define FASCICLE_DIGEST_H

#include "fail.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DIGEST_TEXT = 65 }; /* 64 hex digits and the final 0 */

struct sha256 {
  void *state;
};
void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t bytes);
/* Writes 64 lower-case hex digits; frees the state. */
void sha256_end(struct sha256 *s, char text[DIGEST_TEXT]);

/* SHA-256 of a file, and its size. Local: one rank. EXIT_INPUT when it cannot be read. */
struct status sha256_file(const char *path, char text[DIGEST_TEXT], int64_t *bytes);

/* A number modulo 2^128. */
struct sum128 {
  uint64_t low, high;
};
void sum128_add(struct sum128 *sum, struct sum128 term);

/* The hash of one edge: a fixed mix of (pre id, post id, weight, delay), ids canonical.
 * Two rounds of Philox keyed by the weight and delay, so every bit of the input reaches
 * every bit of the result. */
struct sum128 edge_hash(nodeid pre, nodeid post, int64_t weight, int64_t delay);

/* The sum of edge_hash over n edges; delay NULL: all have constant_delay. One thread, with the
 * widest vectors of the processor. */
struct sum128 edge_hash_sum(int64_t n, const uint32_t *pre, const uint32_t *post,
                            const int16_t *weight, const uint16_t *delay, uint16_t constant_delay);

#ifdef __cplusplus
}
#endif
#endif
