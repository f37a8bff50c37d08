/* What a format implements for io/table/table.c. Internal to the table files. */
#ifndef FASCICLE_TABLE_READER_H
#define FASCICLE_TABLE_READER_H

#include "table.h"

struct table {
  char *path;
  int fd;
  const struct table_reader *reader;
  void *state; /* the reader's own */
  struct table_facts facts;
  int n_columns;
  char **name; /* [n_columns] */
  char **type; /* [n_columns] or NULL: all "text" */
  bool has_header, header_guessed;
  int n_wants; /* -1 before table_select */
  struct table_want *wants;
  int64_t done;
  int share, n_shares; /* 1: all of it */
  const char *delimiter_option, *header_option;
};

struct table_reader {
  /* True when the first `n` bytes (all of them if the file is shorter than
   * 64) are of this format. */
  bool (*recognises)(const char *head, int64_t n);
  /* Fills n_columns, name, type, has_header, facts.format and state; facts.bytes is set already. */
  struct status (*open)(struct table *table, const struct table_format *format);
  bool (*looks_numeric)(const struct table *table, int column);
  /* Wants are in table->wants and refer to columns that exist. */
  struct status (*select)(struct table *table);
  /* Sets facts.sha256 before it returns n = 0; facts.rows is kept by io/table/table.c. */
  struct status (*next)(struct table *table, struct table_batch *batch);
  void (*close)(struct table *table); /* accepts a state that open left half made */
  bool (*may_keep)(const struct table *table, int column); /* NULL: every column may */
};

extern const struct table_reader text_reader, feather_reader;

/* NULL when it is UTF-8 without zero bytes, otherwise what is wrong. */
const char *span_text(struct span s);

#endif
