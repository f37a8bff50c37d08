/* The text of a run: its tokens, cut into training and validation, and the
 * windows drawn from it. */
#ifndef FASCICLE_CORPUS_H
#define FASCICLE_CORPUS_H

#include "text.h"
#include "config.h"

struct corpus {
  struct vocabulary vocabulary; /* of the whole text, also where only its beginning is used */
  char sha256[DIGEST_TEXT];     /* of the file */
  int64_t n_train, n_validation;
  int32_t *token; /* training first, then validation */
  const int32_t *validation;
};

/* Every rank reads the same. Agreed: EXIT_INPUT when the text is not UTF-8 or
 * too short for a window. */
struct status corpus_open(const struct comm *world, const char *path,
                          const struct train_config *config, struct corpus *corpus);
void corpus_free(struct corpus *corpus);

/* Of a text of n characters: how many are used, and how many of these, the
 * first, are trained on. */
int64_t corpus_used(const struct train_config *config, int64_t n);
int64_t corpus_trained(const struct train_config *config, int64_t used);

/* Samples [first, first + n) of training step `step`: token, target [T][n]. Windows start
 * anywhere, with replacement; with carried states sample s reads the text on from its own
 * place, s n_train / batch. */
void corpus_windows(const struct corpus *corpus, const struct train_config *config, int64_t step,
                    int64_t first, int n, int32_t *token, int32_t *target);

/* One window into column b of `width`: x and the same shifted by one. */
void corpus_window(const int32_t *text, int64_t start, int T, int b, int width, int32_t *token,
                   int32_t *target);

#endif
