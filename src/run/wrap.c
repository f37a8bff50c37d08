/* Break text into lines of a terminal. */
#include "wrap.h"

#include <stdio.h>
#include <string.h>

void print_wrapped(const char *text, int indent, int column) {
  const int width = 100;
  for (const char *word = text; *word;) {
    const int n = (int)strcspn(word, " \n"), blank = column > indent;
    if (column + blank + n > width)
      column = printf("\n%*s", indent, "") - 1 + printf("%.*s", n, word);
    else
      column += printf("%s%.*s", blank ? " " : "", n, word);
    word += n;
    if (*word == '\n') column = printf("\n%*s", indent, "") - 1;
    if (*word) word++;
  }
  printf("\n");
}
