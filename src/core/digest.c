#include "digest.h"
#include "rng.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

void sha256_init(struct sha256 *s) {
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  if (!context || !EVP_DigestInit_ex(context, EVP_sha256(), NULL)) DIE(EXIT_RUNTIME, "OpenSSL: no SHA-256");
  s->state = context;
}

void sha256_add(struct sha256 *s, const void *data, size_t bytes) {
  if (!EVP_DigestUpdate(s->state, data, bytes)) DIE(EXIT_RUNTIME, "OpenSSL: EVP_DigestUpdate failed");
}

void sha256_end(struct sha256 *s, char text[DIGEST_TEXT]) {
  unsigned char raw[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  if (!EVP_DigestFinal_ex(s->state, raw, &n)) DIE(EXIT_RUNTIME, "OpenSSL: EVP_DigestFinal_ex failed");
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

struct sum128 edge_hash(nodeid pre, nodeid post, int64_t weight, int64_t delay) {
  const uint64_t a = (uint64_t)pre, b = (uint64_t)post;
  const uint64_t key = (uint64_t)weight * 0x9E3779B97F4A7C15u + (uint64_t)delay * 0xD1B54A32D192ED03u;
  struct rng_block r = rng_draw(key, (uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32));
  r = rng_draw((uint64_t)delay ^ ((uint64_t)weight << 32), r.v[0], r.v[1], r.v[2], r.v[3]);
  return (struct sum128){.low = (uint64_t)r.v[1] << 32 | r.v[0], .high = (uint64_t)r.v[3] << 32 | r.v[2]};
}
