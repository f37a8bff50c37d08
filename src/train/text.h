/* Text as a sequence of tokens. A token is the position of a Unicode code point in the vocabulary:
 * the distinct code points of the whole text in ascending order. */
#ifndef FASCICLE_TEXT_H
#define FASCICLE_TEXT_H

#include "core/comm.h"
#include "core/digest.h"
#include "core/types.h"

/* A UTF-8 file, decoded. */
struct text {
  int64_t n;      /* code points */
  uint32_t *code; /* [n] */
  char sha256[DIGEST_TEXT];
};

/* Rank 0 reads, all ranks get the text. Agreed EXIT_INPUT: no such file, empty, not UTF-8 (names
 * line and byte). A byte order mark at the start is left out. */
struct status text_read(const struct comm *comm, const char *path, struct text *text);
/* Decode `bytes` bytes; `source` names them in messages. Local. */
struct status text_decode(const char *source, const char *bytes, int64_t n_bytes,
                          struct text *text);
void text_free(struct text *text);

enum { MAX_VOCABULARY = 65536, HIGHEST_CODE = 0x10FFFF };

/* Whether UTF-8 has this code point. */
bool text_is_code(uint32_t code);

struct vocabulary {
  int n;
  uint32_t *code; /* [n] ascending */
};
/* The distinct code points of a text. EXIT_INPUT when there are more than MAX_VOCABULARY. */
struct status vocabulary_of(const char *source, const struct text *text,
                            struct vocabulary *vocabulary);
void vocabulary_free(struct vocabulary *vocabulary);

/* Tokens of a text, token [text->n]. EXIT_INPUT names the first character that the vocabulary does
 * not hold, with its line and column. */
struct status text_tokens(const char *source, const struct text *text,
                          const struct vocabulary *vocabulary, int32_t *token);

/* UTF-8 of one code point into `out` [at least 5], final 0 included;
 * returns the number of bytes. */
int text_encode(uint32_t code, char *out);

/* First token of the window of T inputs and T targets (the next characters) for sample
 * `sample` of step `step`: uniform in [0, n - T - 1), with replacement; a pure function of the
 * key, so the data do not depend on the grid. `purpose` keeps training and evaluation apart.
 * Wants n >= text_shortest(T). */
int64_t text_window(uint64_t seed, uint32_t purpose, int64_t step, int64_t sample, int64_t n,
                    int64_t T);
/* The fewest tokens from which windows of T can be drawn: T + 2. */
int64_t text_shortest(int64_t T);

#endif
