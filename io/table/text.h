/* Rows and fields of delimited text: what io/table/text.c (blocks) and
 * io/table/rows.c (rows) share. */
#ifndef FASCICLE_TABLE_TEXT_H
#define FASCICLE_TABLE_TEXT_H

#include "reader.h"

enum { BLANKS = 0 }; /* the delimiter "any run of blanks and tabs" */

/* One row cut into fields. */
struct row {
  int n, capacity;
  struct span *field;
  bool *doubled;     /* [n] the field holds "" for a quote */
  int lines;         /* lines of the file that it took */
  const char *fault; /* a literal: what is wrong, or NULL */
};
void row_free(struct row *row);

/* Cut the row at `at`; returns where the next begins, or NULL when the row is not complete before
 * `end` (never when `last`: the text ends there). An empty line gives n = 0. */
const char *row_split(char delimiter, const char *at, const char *end, bool last, struct row *row);

/* Copy a field, a doubled quote as one; returns the bytes written. */
int64_t field_copy(struct span s, bool doubled, char *to);

struct fault {
  int64_t row, line; /* within the chunk, from 1; row 0: no fault */
  char what[700];
};

/* A run of rows that one thread reads into columns. */
struct text_chunk {
  const char *from, *to;
  int64_t rows, lines, capacity;
  struct table_column *column; /* [n_wants] */
  int64_t *text_capacity;      /* [n_wants] */
  struct row row;
  struct fault fault;
};
void text_chunk_init(struct text_chunk *chunk, const struct table *table, int64_t rows);
void text_chunk_free(struct text_chunk *chunk, int n_wants);

/* Parse rows from `from`; `partial`: the last row may be incomplete, then `to` is
 * set to where it begins. */
void text_chunk_parse(struct text_chunk *chunk, const struct table *table, char delimiter,
                      bool last, bool partial);

struct text {
  char delimiter;
  char *buffer;
  int64_t capacity, start, have; /* unread text is buffer[start .. have) */
  int64_t left;                  /* bytes that may still be read from the file */
  int64_t fresh;                 /* buffer[fresh .. have) is not hashed yet */
  bool ended, primed;            /* nothing follows `have`; the first block was read by open */
  struct sha256 sha;
  int64_t rows, lines; /* before the next chunk */
  int max_chunks, n_chunks, next_chunk;
  struct text_chunk *chunk;
};

#endif
