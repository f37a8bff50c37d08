/* Rows of typed columns from a file, in batches, whatever the format: delimited text (CSV, TSV,
 * blanks) or Feather (Arrow IPC). The file is read once, front to back, in large blocks; memory
 * does not grow with it. Integers stay integers from the file to the caller: nothing goes through a
 * double.
 *
 *   table_open -> what columns there are -> table_select -> table_next until n = 0
 *     -> table_facts -> table_close
 *
 * Everything here is local to one rank. Bad input is EXIT_INPUT with one line: file, row (data rows
 * count from 1), column, value, remedy. */
#ifndef FASCICLE_TABLE_H
#define FASCICLE_TABLE_H

#include "core/digest.h"
#include "core/fail.h"
#include "core/types.h"

/* How to read delimited text; ignored for Feather. Both words may be NULL (= "auto"). */
struct table_format {
  const char *delimiter; /* auto, comma, tab, semicolon, pipe, blank, or one character */
  const char *header;    /* auto (none if every field of the first row is a number), yes, no */
  /* The options that a remedy names; NULL: "--delimiter", "--header". */
  const char *delimiter_option, *header_option;
};

/* What the caller wants a column as. */
enum table_kind {
  TABLE_ID, /* 0 .. 2^64 - 1. A value written as a double is taken if it is whole and below 2^53 */
  TABLE_COUNT, /* a whole number of 64 bits; "9.0" is 9, 0.5 is refused, empty and null are refused
                */
  TABLE_TEXT   /* bytes as they are (quotes undone, blanks kept); null and empty are both length 0
                */
};

struct table_want {
  int column; /* from table_find */
  enum table_kind kind;
};

/* One column of a batch; the arrays of the wanted kind are set. Valid until the next table_next. */
struct table_column {
  uint64_t *id;   /* [n] */
  int64_t *count; /* [n] */
  char *text;     /* all values one after the other; value i is text[at[i] .. at[i + 1]) */
  int64_t *at;    /* [n + 1] */
};

/* Bytes of a text, not ended by a 0. */
struct span {
  const char *at;
  int64_t n;
};
struct span table_text(const struct table_column *column, int64_t row);

/* Without outer blanks and tabs. */
struct span span_trim(struct span s);

struct table_batch {
  int64_t n, first_row;              /* data rows first_row .. first_row + n - 1, counted from 1 */
  const struct table_column *column; /* one per want, in the order of table_select */
};

struct table_facts {
  char format[128]; /* "delimited text (comma, header)" or "Feather (Arrow IPC), lz4, 3 batches" */
  int64_t rows, bytes;
  char sha256[DIGEST_TEXT];
};

/* ---- numbers written as text ---- */

/* True when strtod would take all of it as decimal (blanks around are fine). */
bool span_is_number(struct span s);
/* Its value; false unless span_is_number. */
bool span_real(struct span s, double *x);
/* NULL when fine, otherwise what is wrong, such as "a whole number is wanted". */
const char *span_id(struct span s, uint64_t *id);
const char *span_count(struct span s, int64_t *count);
/* A decimal number in units of 10^-places, rounded half to even; places 0 .. 9. */
const char *span_decimal(struct span s, int places, int64_t *units);

/* A value for a message: at most 60 bytes, a tab as \t, other control bytes as '?', what is not
 * UTF-8 as \xE9, in quotes. Rotating static buffers. */
const char *span_shown(struct span s);

/* Texts (TABLE_TEXT, names of columns) are UTF-8 without zero bytes; others are
 * refused with their row. */

struct table;

struct status table_open(const char *path, const struct table_format *format, struct table **table);
/* Accepts NULL. */
void table_close(struct table *table);

const char *table_path(const struct table *table);
int table_n_columns(const struct table *table);
/* The name without outer blanks; "1", "2" .. when the text has no header. */
const char *table_column_name(const struct table *table, int column);
/* "text" in delimited text; Arrow's word in Feather: "int64", "dictionary of utf8", "list" ... */
const char *table_column_type(const struct table *table, int column);
bool table_has_header(const struct table *table);
/* Was the first row of a text taken for a header because not all of its fields are numbers? */
bool table_header_guessed(const struct table *table);
/* "--header": the option that settles it. */
const char *table_header_option(const struct table *table);

/* What table_find returns in place of a column. */
enum {
  COLUMN_NONE = -1,
  COLUMN_REPEATED = -2, /* the name occurs more than once */
  COLUMN_UNCLEAR = -3   /* a number that is the name of one column and the position of another */
};

/* The column of this name, otherwise of this position: "3" or "#3" is the third. */
int table_find(const struct table *table, const char *name);
/* The column at a position, whatever the names are; COLUMN_NONE when `text` is no position. */
int table_position(const struct table *table, const char *text);

/* The error line for columns that are not there: what `wanted` names, and what the file has. */
struct status table_no_column(const struct table *table, const char *wanted, const char *remedy);

/* True when TABLE_ID would suit this column: an integer column of Feather, or text whose first data
 * row holds a number there. */
bool table_looks_numeric(const struct table *table, int column);

/* True when the column may hold labels or numbers: any of a text file, those of text, integers and
 * reals in Feather. */
bool table_may_keep(const struct table *table, int column);

/* Read only share `share` of n_shares: a run of the record batches, or of the lines of text, in
 * their order. Before table_select. Rows then count from the share's first; there is no SHA-256.
 * Where a quote may hide line ends, the text cannot be shared: table_next fails. */
void table_share(struct table *table, int share, int n_shares);

/* Choose the columns, once, before the first table_next. */
struct status table_select(struct table *table, const struct table_want *wants, int n);

/* The next rows; n = 0 after the last one. */
struct status table_next(struct table *table, struct table_batch *batch);

/* Bytes of the file consumed so far, for progress. */
int64_t table_done(const struct table *table);

/* Complete (rows, SHA-256) after table_next has returned n = 0. */
const struct table_facts *table_facts(const struct table *table);

/* Read all rows without keeping any: facts for `inspect`. The table stays
 * open for its column names. */
struct status table_scan(const char *path, const struct table_format *format, struct table **table);

#endif
