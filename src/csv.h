/* Writing CSV. */
#ifndef FASCICLE_CSV_H
#define FASCICLE_CSV_H

#include <stdio.h>

/* One field: quoted where it holds a comma, a quote or a line end. */
void csv_put(FILE *file, const char *text);

#endif
