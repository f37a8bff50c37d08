/* Text for a terminal of 100 columns. */
#ifndef FASCICLE_WRAP_H
#define FASCICLE_WRAP_H

/* Print `text` and a line break; lines are broken at blanks and start at column `indent`. The
 * first goes on from `column`, where the cursor is. */
void print_wrapped(const char *text, int indent, int column);

#endif
