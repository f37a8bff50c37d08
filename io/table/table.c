/* The table interface: opens a file, finds its format, names its columns, hands batches on. */
#include "reader.h"
#include "core/mem.h"
#include "core/watchdog.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct table_reader *const readers[] = {&feather_reader, &text_reader};
enum { N_READERS = sizeof readers / sizeof *readers, HEAD = 64 };

/* What is wrong with a file, and the line that prepares it. */
#define IMPORT "python3 jobs/import.py FILE makes a table of it and prints the line to run"

/* Formats that people pass by mistake, by their first bytes. */
static const struct {
  const char *magic;
  int n;
  const char *what;
} others[] = {
    {"PAR1", 4, "a Parquet file; " IMPORT},
    {"FEA1", 4,
     "a Feather version 1 file; write it again as version 2 (pyarrow.feather.write_feather)"},
    {"\x1f\x8b", 2, "compressed by gzip; unpack it first (gunzip -k FILE); " IMPORT " too"},
    {"\x28\xb5\x2f\xfd", 4, "compressed by zstd; unpack it first (unzstd FILE)"},
    {"BZh", 3, "compressed by bzip2; unpack it first (bunzip2 -k FILE)"},
    {"\xfd"
     "7zXZ",
     5, "compressed by xz; unpack it first (unxz -k FILE)"},
    {"PK\x03\x04", 4,
     "a zip archive, such as .npz of SciPy or a spreadsheet; of an .npz " IMPORT
     "; unpack others, or export them as CSV"},
    {"\x93NUMPY", 6, "an array of NumPy (.npy); " IMPORT},
    {"%%MatrixMarket", 14, "a matrix in MatrixMarket form; " IMPORT},
    {"<?xml", 5, "XML, such as GraphML; of GraphML " IMPORT},
    {"<graphml", 8, "GraphML; " IMPORT},
    {"{", 1, "JSON; write its edges as CSV: pre,post,weight"},
    {"\x89HDF", 4, "an HDF5 file, not a table; of SONATA edges " IMPORT},
    {"\xff\xfe", 2, "UTF-16 text; write it as UTF-8 (iconv -f UTF-16 -t UTF-8)"},
    {"\xfe\xff", 2, "UTF-16 text; write it as UTF-8 (iconv -f UTF-16 -t UTF-8)"},
};

static struct status open_file(struct table *t, char head[HEAD], int64_t *n) {
  t->fd = open(t->path, O_RDONLY | O_CLOEXEC);
  if (t->fd < 0) return failure(EXIT_INPUT, "%s: cannot open: %s", t->path, strerror(errno));
  struct stat facts;
  if (fstat(t->fd, &facts))
    return failure(EXIT_INPUT, "%s: cannot read: %s", t->path, strerror(errno));
  if (!S_ISREG(facts.st_mode)) return failure(EXIT_INPUT, "%s: not a regular file", t->path);
  t->facts.bytes = facts.st_size;
  *n = pread(t->fd, head, HEAD, 0);
  if (*n < 0) return failure(EXIT_INPUT, "%s: cannot read: %s", t->path, strerror(errno));
  return *n ? fine() : failure(EXIT_INPUT, "%s: the file is empty (0 bytes)", t->path);
}

static struct status find_reader(struct table *t, const struct table_format *format,
                                 const char *head, int64_t n) {
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (n >= others[i].n && !memcmp(head, others[i].magic, (size_t)others[i].n))
      return failure(EXIT_INPUT, "%s: this is %s", t->path, others[i].what);
  for (int i = 0; i < N_READERS && !t->reader; i++)
    if (readers[i]->recognises(head, n)) t->reader = readers[i];
  if (t->reader == &text_reader && (*head == '#' || *head == '%') &&
      (!format->header || !strcmp(format->header, "auto")))
    return failure(EXIT_INPUT,
                   "%s: its first line is a comment, '%c ..'; grep -v '^[#%%]' FILE > edges.txt "
                   "leaves such lines out (if it is the header: %s yes)",
                   t->path, *head, t->header_option);
  if (t->reader) return fine();
  return failure(EXIT_INPUT, "%s: neither delimited text nor Feather (Arrow IPC)", t->path);
}

/* Names of columns end up in JSON. */
static struct status check_names(const struct table *t) {
  for (int i = 0; i < t->n_columns; i++) {
    const struct span name = {t->name[i], (int64_t)strlen(t->name[i])};
    const char *wrong = span_text(name);
    if (wrong)
      return failure(EXIT_INPUT, "%s: the name of column %d is %s: %s", t->path, i + 1,
                     span_shown(name), wrong);
  }
  return fine();
}

static struct status open_table(struct table *t, const struct table_format *format) {
  char head[HEAD];
  int64_t n = 0;
  TRY(open_file(t, head, &n));
  TRY(find_reader(t, format, head, n));
  TRY(t->reader->open(t, format));
  return check_names(t);
}

struct status table_open(const char *path, const struct table_format *format,
                         struct table **table) {
  static const struct table_format plain;
  struct table *t = NEW_ZERO(struct table, 1);
  *t = (struct table){.path = mem_string(path), .fd = -1, .n_wants = -1, .n_shares = 1};
  if (!format) format = &plain;
  t->delimiter_option = format->delimiter_option ? format->delimiter_option : "--delimiter";
  t->header_option = format->header_option ? format->header_option : "--header";
  const struct status s = open_table(t, format);
  if (s.code) table_close(t), t = NULL;
  *table = t;
  return s;
}

void table_close(struct table *t) {
  if (!t) return;
  if (t->reader && t->state) t->reader->close(t);
  for (int i = 0; i < t->n_columns; i++) {
    mem_free(t->name[i]);
    if (t->type) mem_free(t->type[i]);
  }
  mem_free(t->name), mem_free(t->type), mem_free(t->wants);
  if (t->fd >= 0) close(t->fd);
  mem_free(t->path), mem_free(t);
}

const char *table_path(const struct table *t) {
  return t->path;
}

int table_n_columns(const struct table *t) {
  return t->n_columns;
}

const char *table_column_name(const struct table *t, int column) {
  ASSERT(column >= 0 && column < t->n_columns);
  return t->name[column];
}

const char *table_column_type(const struct table *t, int column) {
  ASSERT(column >= 0 && column < t->n_columns);
  return t->type ? t->type[column] : "text";
}

bool table_has_header(const struct table *t) {
  return t->has_header;
}

bool table_header_guessed(const struct table *t) {
  return t->header_guessed;
}

const char *table_header_option(const struct table *t) {
  return t->header_option;
}

int table_position(const struct table *t, const char *text) {
  text += *text == '#';
  char *end;
  const long position = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : 0;
  return position >= 1 && position <= t->n_columns && !*end ? (int)position - 1 : COLUMN_NONE;
}

int table_find(const struct table *t, const char *name) {
  const int position = table_position(t, name);
  int found = COLUMN_NONE;
  for (int i = 0; i < t->n_columns; i++)
    if (!strcmp(t->name[i], name)) found = found == COLUMN_NONE ? i : COLUMN_REPEATED;
  if (found == COLUMN_NONE) return position;
  return position == COLUMN_NONE || position == found ? found : COLUMN_UNCLEAR;
}

static void list_columns(const struct table *t, char *list, size_t size) {
  size_t at = 0;
  *list = 0;
  for (int i = 0; i < t->n_columns && at + 80 < size; i++) {
    const struct span name = {t->name[i], (int64_t)strlen(t->name[i])};
    at += (size_t)snprintf(list + at, size - at, "%s%s", i ? ", " : "", span_shown(name));
    if (i + 1 < t->n_columns && at + 80 >= size) snprintf(list + at, size - at, " ...");
  }
}

static bool names_hold_number(const struct table *t) {
  for (int i = 0; i < t->n_columns; i++)
    if (span_is_number((struct span){t->name[i], (int64_t)strlen(t->name[i])})) return true;
  return false;
}

struct status table_no_column(const struct table *t, const char *wanted, const char *remedy) {
  char list[600], hint[200] = "";
  list_columns(t, list, sizeof list);
  if (t->n_columns == 1 && !t->type)
    snprintf(hint, sizeof hint, "; only one column was found: is another delimiter meant? See %s",
             t->delimiter_option);
  else if (t->header_guessed && names_hold_number(t))
    snprintf(hint, sizeof hint, "; if the first row is data and no header: %s no",
             t->header_option);
  return failure(EXIT_INPUT, "%s: column %s is wanted; the file has %d: %s%s%s%s", t->path, wanted,
                 t->n_columns, list, hint, *remedy ? "; " : "", remedy);
}

bool table_looks_numeric(const struct table *t, int column) {
  ASSERT(column >= 0 && column < t->n_columns);
  return t->reader->looks_numeric(t, column);
}

bool table_may_keep(const struct table *t, int column) {
  ASSERT(column >= 0 && column < t->n_columns);
  return !t->reader->may_keep || t->reader->may_keep(t, column);
}

void table_share(struct table *t, int share, int n_shares) {
  ASSERT(t->n_wants < 0 && share >= 0 && share < n_shares);
  t->share = share, t->n_shares = n_shares;
}

struct status table_select(struct table *t, const struct table_want *wants, int n) {
  if (t->n_wants >= 0) DIE(EXIT_RUNTIME, "%s: table_select was called twice", t->path);
  for (int i = 0; i < n; i++)
    if (wants[i].column < 0 || wants[i].column >= t->n_columns)
      DIE(EXIT_RUNTIME, "%s: column %d of %d is wanted", t->path, wants[i].column, t->n_columns);
  t->wants = NEW(struct table_want, n);
  if (n) memcpy(t->wants, wants, (size_t)n * sizeof *wants);
  t->n_wants = n;
  return t->reader->select(t);
}

struct status table_next(struct table *t, struct table_batch *batch) {
  ASSERT(t->n_wants >= 0);
  *batch = (struct table_batch){.first_row = t->facts.rows + 1};
  pulse("reading a table");
  TRY(t->reader->next(t, batch));
  t->facts.rows += batch->n;
  return fine();
}

struct span table_text(const struct table_column *c, int64_t row) {
  return (struct span){c->text + c->at[row], c->at[row + 1] - c->at[row]};
}

int64_t table_done(const struct table *t) {
  return t->done;
}

const struct table_facts *table_facts(const struct table *t) {
  return &t->facts;
}

static struct status scan(struct table *t) {
  TRY(table_select(t, NULL, 0));
  struct table_batch batch = {.n = 1};
  while (batch.n) TRY(table_next(t, &batch));
  return fine();
}

struct status table_scan(const char *path, const struct table_format *format,
                         struct table **table) {
  TRY(table_open(path, format, table));
  const struct status s = scan(*table);
  if (s.code) table_close(*table), *table = NULL;
  return s;
}
