/* Writing CSV. */
#ifndef FASCICLE_CSV_H
#define FASCICLE_CSV_H

#include "files.h"

#include <stdio.h>

/* One field: quoted where it holds a comma, a quote or a line end. */
void csv_put(FILE *file, const char *text);

/* A table that appears whole or not at all. After csv_begin write to `file`, then csv_end.
 * EXIT_OUTPUT: nothing is left behind. Local. */
struct csv {
  FILE *file;
  const char *path; /* must live until csv_end */
  char tmp[FILE_PATH];
};
struct status csv_begin(const char *path, struct csv *csv);
struct status csv_end(struct csv *csv);

#endif
