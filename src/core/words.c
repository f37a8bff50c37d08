/* Compares words by the letters that differ. */
#include "words.h"

#include <string.h>

enum { MOST = 32, LEAST_BEGINNING = 3 };

/* d[i][j] of their first i and j letters. */
static int edit_distance(const char *a, size_t n_a, const char *b, size_t n_b) {
  int d[MOST][MOST];
  for (size_t i = 0; i <= n_a; i++)
    for (size_t j = 0; j <= n_b; j++) {
      d[i][j] = (int)(i + j);
      if (!i || !j) continue;
      const int change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      const int one = 1 + (d[i - 1][j] < d[i][j - 1] ? d[i - 1][j] : d[i][j - 1]);
      d[i][j] = change < one ? change : one;
    }
  return d[n_a][n_b];
}

int word_distance(const char *word, const char *typed, size_t n) {
  const size_t length = strlen(word);
  if (length >= MOST || n >= MOST) return WORD_FAR;
  if (n >= LEAST_BEGINNING && n < length && !strncmp(word, typed, n)) return 1;
  const int d = edit_distance(word, length, typed, n);
  return d < WORD_FAR && 2 * (size_t)d < length ? d : WORD_FAR;
}
