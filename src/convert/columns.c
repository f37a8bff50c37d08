/* Which column plays which role, and the step from batch to batch. */
#include "convert.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>

void choice_default(struct column_choices *c, const char *key, const char *name) {
  ASSERT(c->n < MAX_CHOICES);
  c->item[c->n++] = (struct column_choice){mem_string(key), name ? mem_string(name) : NULL, false};
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

struct status choices_parse(struct column_choices *c, const char *text) {
  return text ? options_pairs(c->option, text, take_pair, c) : fine();
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
  int column = -1;
  char name[64];
  while (list && column == -1) {
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

struct status choice_find(const struct column_choice *choice, const struct table *table,
                          const char *option, bool required, int *column) {
  *column = !choice->name    ? -1
            : choice->chosen ? table_find(table, choice->name)
                             : find_default(table, choice->name);
  if (*column >= 0) return fine();
  char wanted[160], remedy[160];
  if (choice->name) describe(choice, wanted, sizeof wanted);
  if (*column == -2)
    return failure(EXIT_INPUT, "%s: column %s occurs more than once; choose by position: --%s %s=1",
                   table_path(table), wanted, option, choice->key);
  if (!choice->chosen && !required) return fine();
  snprintf(remedy, sizeof remedy, "name it, or give its position from 1: --%s %s=COLUMN", option,
           choice->key);
  return table_no_column(table, wanted, remedy);
}

struct status next_batch(struct table *table, struct table_batch *batch,
                         struct progress *progress) {
  TRY(table_next(table, batch));
  progress_show(progress, table_done(table), NULL);
  return fine();
}
