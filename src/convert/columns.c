/* Which column plays which role, and the step from batch to batch. */
#include "convert.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>

static void add_default(struct column_choices *c, const struct column_default *d, bool header) {
  const char *name = header ? d->named : d->placed;
  ASSERT(c->n < MAX_CHOICES);
  c->item[c->n++] =
      (struct column_choice){mem_string(d->key), name ? mem_string(name) : NULL, false, d->number};
}

static void list_keys(const struct column_choices *c, char *list, size_t size) {
  size_t at = 0;
  *list = 0;
  for (int i = 0; i < c->n && at < size; i++)
    at += (size_t)snprintf(list + at, size - at, "%s%s", i ? ", " : "", c->item[i].key);
}

static struct status take_pair(void *self, const char *key, const char *value) {
  struct column_choices *c = self;
  int i = 0;
  while (i < c->n && strcmp(c->item[i].key, key)) i++;
  if (i == c->n) {
    char list[256];
    list_keys(c, list, sizeof list);
    if (!c->open)
      return failure(EXIT_USAGE, "--%s: unknown key '%s'; known are %s", c->option, key, list);
    if (c->n == MAX_CHOICES)
      return failure(EXIT_USAGE, "--%s: more than %d columns", c->option, MAX_CHOICES);
    c->item[c->n++] = (struct column_choice){.key = mem_string(key)};
  }
  mem_free(c->item[i].name);
  c->item[i].name = mem_string(value);
  c->item[i].chosen = true;
  return fine();
}

void choices_free(struct column_choices *c) {
  for (int i = 0; i < c->n; i++) mem_free(c->item[i].key), mem_free(c->item[i].name);
  c->n = 0;
}

/* The name after the next '|', copied to `name`; NULL after the last one. */
static const char *next_name(const char *list, char *name, size_t size) {
  const size_t n = strcspn(list, "|");
  snprintf(name, size, "%.*s", (int)n, list);
  return list[n] ? list + n + 1 : NULL;
}

/* The first of the default names that the table has; table_find's result of
 * the last one otherwise. */
static int find_default(const struct table *table, const char *list) {
  int column = COLUMN_NONE;
  char name[64];
  while (list && column == COLUMN_NONE) {
    list = next_name(list, name, sizeof name);
    column = table_find(table, name);
  }
  return column;
}

/* "'body_pre' or 'pre' (pre)" */
static void describe(const struct column_choice *choice, char *text, size_t size) {
  size_t at = 0;
  char name[64];
  if (choice->chosen) at = (size_t)snprintf(text, size, "'%s'", choice->name);
  for (const char *list = choice->chosen ? NULL : choice->name; list && at < size;) {
    list = next_name(list, name, sizeof name);
    at += (size_t)snprintf(text + at, size - at, "'%s'%s", name,
                           !list               ? ""
                           : strchr(list, '|') ? ", "
                                               : " or ");
  }
  if (at < size) snprintf(text + at, size - at, " (%s)", choice->key);
}

/* Why a name or number does not lead to one column, and what to write in its place. */
static struct status not_one(const struct column_choice *choice, const struct table *table,
                             const char *option, int found, const char *wanted) {
  if (found == COLUMN_REPEATED)
    return failure(EXIT_INPUT, "%s: column %s occurs more than once; choose by position: --%s %s=1",
                   table_path(table), wanted, option, choice->key);
  return failure(EXIT_INPUT,
                 "%s: column %s is the name of one column and the position of another; --%s %s=#N "
                 "takes the column at position N%s%s%s",
                 table_path(table), wanted, option, choice->key,
                 table_header_guessed(table) ? "; if the first row is data and no header: " : "",
                 table_header_guessed(table) ? table_header_option(table) : "",
                 table_header_guessed(table) ? " no" : "");
}

struct status choice_find(const struct column_choice *choice, const struct table *table,
                          const char *option, bool required, int *column) {
  const int found = !choice->name    ? COLUMN_NONE
                    : choice->chosen ? table_find(table, choice->name)
                                     : find_default(table, choice->name);
  *column = found >= 0 ? found : COLUMN_NONE;
  if (found >= 0) return fine();
  char wanted[160], remedy[160];
  if (choice->name) describe(choice, wanted, sizeof wanted);
  if (found != COLUMN_NONE) return not_one(choice, table, option, found, wanted);
  if (!choice->chosen && !required) return fine();
  snprintf(remedy, sizeof remedy, "name it, or give its position from 1: --%s %s=COLUMN%s", option,
           choice->key, strcmp(choice->key, "weight") ? "" : "; --weight 1 counts rows");
  return table_no_column(table, wanted, remedy);
}

/* ---- header or data? ---- */

enum first_row { ROW_HEADER, ROW_DATA, ROW_UNCLEAR };

static bool name_is_number(const struct table *table, int column) {
  const char *name = table_column_name(table, column);
  return span_is_number((struct span){name, (int64_t)strlen(name)});
}

/* A first row that was taken for a header since not all of it is numbers. A name that leads to a
 * column proves a header; columns by position are judged by what they hold. */
static enum first_row judge_first_row(const struct table *table, const struct column_choices *c) {
  bool placed = false, numbers = false, words = false;
  if (!table_header_guessed(table)) return ROW_HEADER;
  for (int i = 0; i < c->n; i++) {
    const struct column_choice *choice = &c->item[i];
    if (!choice->name || (!choice->chosen && find_default(table, choice->name) < 0)) continue;
    const int column = table_position(table, choice->name);
    if (column < 0) return ROW_HEADER;
    placed = true;
    if (name_is_number(table, column))
      numbers |= choice->number;
    else
      words |= choice->number || table_looks_numeric(table, column);
  }
  if (!placed) return ROW_HEADER;
  return numbers == words ? ROW_UNCLEAR : numbers ? ROW_DATA : ROW_HEADER;
}

static struct status ask_for_header(const struct table *table) {
  const char *first = table_column_name(table, 0);
  return failure(EXIT_USAGE,
                 "%s: the columns are given by position, and nothing tells whether the first row "
                 "(%s ..) is a header: say %s yes or %s no",
                 table_path(table), span_shown((struct span){first, (int64_t)strlen(first)}),
                 table_header_option(table), table_header_option(table));
}

static struct status open_once(const struct table_input *in, const char *header,
                               struct table **table, struct column_choices *choices) {
  struct table_format format = in->format;
  if (header) format.header = header;
  *choices = (struct column_choices){.open = in->open, .option = in->option};
  TRY(table_open(in->path, &format, table));
  for (int i = 0; i < in->n_columns; i++)
    add_default(choices, &in->column[i], table_has_header(*table));
  return in->columns ? options_pairs(in->option, in->columns, take_pair, choices) : fine();
}

struct status table_open_input(const struct table_input *in, struct table **table,
                               struct column_choices *choices) {
  TRY(open_once(in, NULL, table, choices));
  switch (judge_first_row(*table, choices)) {
  case ROW_HEADER: break;
  case ROW_UNCLEAR: return ask_for_header(*table);
  case ROW_DATA:
    table_close(*table);
    choices_free(choices);
    return open_once(in, "no", table, choices);
  }
  return fine();
}

struct status next_batch(struct table *table, struct table_batch *batch,
                         struct progress *progress) {
  TRY(table_next(table, batch));
  progress_show(progress, table_done(table), NULL);
  return fine();
}
