#include "csv.h"

#include <string.h>

void csv_put(FILE *file, const char *text) {
  if (!strpbrk(text, ",\"\n\r")) {
    fputs(text, file);
    return;
  }
  fputc('"', file);
  for (; *text; text++) {
    if (*text == '"') fputc('"', file);
    fputc(*text, file);
  }
  fputc('"', file);
}
