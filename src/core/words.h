/* What was probably meant by a mistyped word. */
#ifndef FASCICLE_WORDS_H
#define FASCICLE_WORDS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How far the first n bytes of `typed` are from `word`: letters to add, drop or change, or 1 when
 * they are the beginning of it (3 letters at least); WORD_FAR when they have little in common. */
enum { WORD_FAR = 3 };
int word_distance(const char *word, const char *typed, size_t n);

#ifdef __cplusplus
}
#endif
#endif
