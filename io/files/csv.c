/* Writes CSV fields, and tables that appear whole or not at all. */
#include "csv.h"

#include <errno.h>
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

struct status csv_begin(const char *path, struct csv *csv) {
  csv->path = path;
  TRY(file_tmp_own(path, csv->tmp));
  csv->file = fopen(csv->tmp, "we");
  return csv->file ? fine()
                   : failure(EXIT_OUTPUT, "%s: cannot write: %s", csv->tmp, strerror(errno));
}

struct status csv_end(struct csv *csv) {
  const bool failed = ferror(csv->file) || fflush(csv->file);
  if (fclose(csv->file) || failed) {
    const int why = errno;
    file_remove(csv->tmp);
    return failure(EXIT_OUTPUT, "%s: cannot write: %s", csv->path, strerror(why));
  }
  return file_publish(csv->tmp, csv->path);
}
