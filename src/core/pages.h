/* An array that stays in its file: mapped, and read page by page where it is looked at. The process holds
 * nothing of it. Pages that have been read are the system's page cache, which the ranks of a host share,
 * which keeps them while memory lasts, and which gives them up, without writing, when anybody needs memory (a
 * cgroup's limit included): then they are read again. A tool that counts mapped pages as the process' own
 * will show up to the whole array.
 *
 * Tried against this: reading rows into buffers of a fixed size costs a system call for each run of a row
 * (0.8 us, five times the work of a step); and unmapping beyond a limit costs a page fault for each (9 us
 * with what Linux maps around it).
 *
 * Any thread may look at any place. A file that is cut short, or a disk that fails, while it is mapped ends
 * the job with one line and EXIT_INPUT. */
#ifndef FASCICLE_PAGES_H
#define FASCICLE_PAGES_H

#include "types.h"

struct pages {
  const char *at; /* [bytes] the array; any alignment */
  int64_t bytes;  /* 0: nothing is mapped, `at` is NULL */
  char *base;     /* the mapping: whole pages around the array */
  int64_t mapped_bytes;
};

/* Map [offset, offset + bytes) of an open file for reading; the descriptor may be closed afterwards. `path`
 * is for messages. Fatal when it cannot be mapped. */
void pages_open(const char *path, int descriptor, int64_t offset, int64_t bytes, struct pages *pages);
void pages_close(struct pages *pages); /* accepts a zeroed one */

/* Bytes [from, from + n) are wanted soon: those that the page cache lacks are read in the background. Costs a
 * system call. */
void pages_fetch(const struct pages *pages, int64_t from, int64_t n);

/* Page faults of this process so far that had to wait for a disk. */
int64_t pages_waits(void);

#endif
