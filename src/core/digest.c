/* Computes digests: SHA-256 of bytes, and sums of hashes of edges in any order. */
#include "digest.h"
#include "clones.h"
#include "rng.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

void sha256_init(struct sha256 *s) {
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  if (!context || !EVP_DigestInit_ex(context, EVP_sha256(), NULL))
    DIE(EXIT_RUNTIME, "OpenSSL: no SHA-256");
  s->state = context;
}

void sha256_add(struct sha256 *s, const void *data, size_t bytes) {
  if (!EVP_DigestUpdate(s->state, data, bytes))
    DIE(EXIT_RUNTIME, "OpenSSL: EVP_DigestUpdate failed");
}

void sha256_end(struct sha256 *s, char text[DIGEST_TEXT]) {
  unsigned char raw[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  if (!EVP_DigestFinal_ex(s->state, raw, &n))
    DIE(EXIT_RUNTIME, "OpenSSL: EVP_DigestFinal_ex failed");
  EVP_MD_CTX_free(s->state);
  s->state = NULL;
  for (unsigned i = 0; i < 32; i++) snprintf(text + 2 * i, 3, "%02x", raw[i]);
}

struct status sha256_file(const char *path, char text[DIGEST_TEXT], int64_t *bytes) {
  FILE *file = fopen(path, "rbe");
  if (!file) return failure(EXIT_INPUT, "%s: cannot open: %s", path, strerror(errno));
  struct sha256 s;
  sha256_init(&s);
  static char piece[1 << 20];
  *bytes = 0;
  for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0; *bytes += (int64_t)n)
    sha256_add(&s, piece, n);
  const int bad = ferror(file);
  fclose(file);
  sha256_end(&s, text);
  return bad ? failure(EXIT_INPUT, "%s: cannot read: %s", path, strerror(errno)) : fine();
}

void sum128_add(struct sum128 *sum, struct sum128 term) {
  sum->low += term.low;
  sum->high += term.high + (sum->low < term.low);
}

static inline struct sum128 hash(uint64_t pre, uint64_t post, uint64_t weight, uint64_t delay) {
  const uint64_t key = weight * 0x9E3779B97F4A7C15u + delay * 0xD1B54A32D192ED03u;
  struct rng_block r =
      rng_draw(key, (uint32_t)pre, (uint32_t)(pre >> 32), (uint32_t)post, (uint32_t)(post >> 32));
  r = rng_draw(delay ^ (weight << 32), r.v[0], r.v[1], r.v[2], r.v[3]);
  return (struct sum128){.low = (uint64_t)r.v[1] << 32 | r.v[0],
                         .high = (uint64_t)r.v[3] << 32 | r.v[2]};
}

struct sum128 edge_hash(nodeid pre, nodeid post, int64_t weight, int64_t delay) {
  return hash((uint64_t)pre, (uint64_t)post, (uint64_t)weight, (uint64_t)delay);
}

enum { HASH_BLOCK = 256 };

/* A block of edges at a time: the hashes are independent of each other, only their sum carries. */
VECTOR_CLONES static void hash_block(int n, const uint32_t *pre, const uint32_t *post,
                                     const int16_t *weight, const uint16_t *delay,
                                     uint64_t *restrict low, uint64_t *restrict high) {
  for (int i = 0; i < n; i++) {
    const struct sum128 h = hash(pre[i], post[i], (uint64_t)(int64_t)weight[i], delay[i]);
    low[i] = h.low, high[i] = h.high;
  }
}

struct sum128 edge_hash_sum(int64_t n, const uint32_t *pre, const uint32_t *post,
                            const int16_t *weight, const uint16_t *delay, uint16_t constant_delay) {
  uint64_t low[HASH_BLOCK], high[HASH_BLOCK];
  uint16_t constant[HASH_BLOCK];
  struct sum128 sum = {0};
  for (int i = 0; i < HASH_BLOCK; i++) constant[i] = constant_delay;
  for (int64_t at = 0; at < n; at += HASH_BLOCK) {
    const int here = n - at < HASH_BLOCK ? (int)(n - at) : HASH_BLOCK;
    hash_block(here, pre + at, post + at, weight + at, delay ? delay + at : constant, low, high);
    for (int i = 0; i < here; i++) sum128_add(&sum, (struct sum128){low[i], high[i]});
  }
  return sum;
}
