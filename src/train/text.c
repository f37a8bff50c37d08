/* Reads a text in UTF-8 and turns it into tokens of its vocabulary. */
#include "text.h"
#include "core/mem.h"
#include "core/rng.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool text_is_code(uint32_t code) {
  return code <= HIGHEST_CODE && (code < 0xD800 || code > 0xDFFF);
}

/* Length of a sequence by its first byte; 0 when no sequence starts so. */
static int sequence_length(unsigned char c) {
  return c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
}

/* One code point from at most `left` bytes; returns its length, 0 when it is not UTF-8. */
static int decode_one(const unsigned char *s, int64_t left, uint32_t *code) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const int n = sequence_length(s[0]);
  if (n == 0 || n > left) return 0;
  uint32_t c = n == 1 ? s[0] : s[0] & (0xFFu >> (n + 1));
  for (int i = 1; i < n; i++) {
    if ((s[i] & 0xC0) != 0x80) return 0;
    c = c << 6 | (s[i] & 0x3F);
  }
  if (c < smallest[n] || !text_is_code(c)) return 0;
  *code = c;
  return n;
}

struct status text_decode(const char *source, const char *bytes, int64_t n_bytes,
                          struct text *text) {
  *text = (struct text){.code = NEW(uint32_t, n_bytes)};
  const unsigned char *s = (const unsigned char *)bytes;
  int64_t line = 1, at = n_bytes >= 3 && !memcmp(bytes, "\xEF\xBB\xBF", 3) ? 3 : 0;
  while (at < n_bytes) {
    const int n = decode_one(s + at, n_bytes - at, &text->code[text->n]);
    if (n == 0) {
      text_free(text);
      return failure(EXIT_INPUT,
                     "%s: line %lld, byte %lld (0x%02X) is not UTF-8; convert the text to UTF-8",
                     source, (long long)line, (long long)at, s[at]);
    }
    line += text->code[text->n++] == '\n';
    at += n;
  }
  struct sha256 sum;
  sha256_init(&sum);
  sha256_add(&sum, bytes, (size_t)n_bytes);
  sha256_end(&sum, text->sha256);
  return fine();
}

static struct status read_bytes(const char *path, char **bytes, int64_t *n) {
  FILE *file = fopen(path, "re");
  if (!file) return failure(EXIT_INPUT, "%s: %s", path, strerror(errno));
  int64_t room = 0, got = 1;
  while (got > 0) {
    if (*n == room) *bytes = mem_grow(*bytes, room = room ? 2 * room : 1 << 16, 1);
    got = (int64_t)fread(*bytes + *n, 1, (size_t)(room - *n), file);
    *n += got;
  }
  const int error = ferror(file) ? errno : 0;
  fclose(file);
  if (error) return failure(EXIT_INPUT, "%s: %s", path, strerror(error));
  if (*n == 0) return failure(EXIT_INPUT, "%s: the text is empty", path);
  return fine();
}

struct status text_read(const struct comm *comm, const char *path, struct text *text) {
  char *bytes = NULL;
  int64_t n = 0;
  *text = (struct text){0};
  struct status s = agree(comm, comm->rank == 0 ? read_bytes(path, &bytes, &n) : fine());
  if (!s.code) {
    comm_share(comm, &n, sizeof n, 0);
    if (comm->rank > 0) bytes = NEW(char, n);
    comm_share(comm, bytes, n, 0);
    s = text_decode(path, bytes, n, text);
  }
  mem_free(bytes);
  return s;
}

void text_free(struct text *text) {
  mem_free(text->code);
  *text = (struct text){0};
}

struct status vocabulary_of(const char *source, const struct text *text,
                            struct vocabulary *vocabulary) {
  bool *seen = NEW_ZERO(bool, HIGHEST_CODE + 1);
  int64_t n = 0;
  for (int64_t i = 0; i < text->n; i++) {
    n += !seen[text->code[i]];
    seen[text->code[i]] = true;
  }
  *vocabulary = (struct vocabulary){0};
  if (n <= MAX_VOCABULARY) {
    vocabulary->code = NEW(uint32_t, n);
    for (uint32_t c = 0; c <= HIGHEST_CODE; c++)
      if (seen[c]) vocabulary->code[vocabulary->n++] = c;
  }
  mem_free(seen);
  if (n <= MAX_VOCABULARY) return fine();
  return failure(EXIT_INPUT, "%s: %lld different characters, more than %d", source, (long long)n,
                 MAX_VOCABULARY);
}

void vocabulary_free(struct vocabulary *vocabulary) {
  mem_free(vocabulary->code);
  *vocabulary = (struct vocabulary){0};
}

/* The token of a code point, or -1. */
static int token_of(const struct vocabulary *v, uint32_t code) {
  int low = 0, high = v->n;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (v->code[middle] < code)
      low = middle + 1;
    else
      high = middle;
  }
  return low < v->n && v->code[low] == code ? low : -1;
}

static struct status unknown_character(const char *source, const struct text *text, int64_t at) {
  int64_t line = 1, column = 1;
  for (int64_t i = 0; i < at; i++) {
    column = text->code[i] == '\n' ? 1 : column + 1;
    line += text->code[i] == '\n';
  }
  char shown[5];
  text_encode(text->code[at], shown);
  if (text->code[at] < ' ') strcpy(shown, "?");
  return failure(
      EXIT_INPUT,
      "%s: line %lld, column %lld: the character '%s' (U+%04X) does not occur in the text that the "
      "model was trained on; remove or replace it",
      source, (long long)line, (long long)column, shown, text->code[at]);
}

struct status text_tokens(const char *source, const struct text *text,
                          const struct vocabulary *vocabulary, int32_t *token) {
  for (int64_t i = 0; i < text->n; i++) {
    token[i] = token_of(vocabulary, text->code[i]);
    if (token[i] < 0) return unknown_character(source, text, i);
  }
  return fine();
}

int text_encode(uint32_t c, char *out) {
  int n = 0;
  if (c < 0x80)
    out[n++] = (char)c;
  else if (c < 0x800)
    out[n++] = (char)(0xC0 | c >> 6);
  else if (c < 0x10000)
    out[n++] = (char)(0xE0 | c >> 12), out[n++] = (char)(0x80 | (c >> 6 & 0x3F));
  else {
    out[n++] = (char)(0xF0 | c >> 18);
    out[n++] = (char)(0x80 | (c >> 12 & 0x3F)), out[n++] = (char)(0x80 | (c >> 6 & 0x3F));
  }
  if (c >= 0x80) out[n++] = (char)(0x80 | (c & 0x3F));
  out[n] = 0;
  return n;
}

int64_t text_window(uint64_t seed, uint32_t purpose, int64_t step, int64_t sample, int64_t n,
                    int64_t T) {
  const struct rng_block r =
      rng_draw(seed, (uint32_t)step, (uint32_t)((uint64_t)step >> 32), (uint32_t)sample, purpose);
  return (int64_t)rng_below(r.v[0], r.v[1], (uint64_t)(n - T - 1));
}

int64_t text_shortest(int64_t T) {
  return T + 2;
}
