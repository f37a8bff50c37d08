/* Which column plays which role, and the step from batch to batch. */
#include "convert.h"
#include "mem.h"
#include "signals.h"

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
    if (!c->open) return failure(EXIT_USAGE, "--%s: unknown key '%s'; known are %s", c->option, key, list);
    if (c->n == MAX_CHOICES) return failure(EXIT_USAGE, "--%s: more than %d columns", c->option, MAX_CHOICES);
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

struct status choice_find(const struct column_choice *choice, const struct table *table, const char *option,
                          bool required, int *column) {
  *column = choice->name ? table_find(table, choice->name) : -1;
  if (*column >= 0) return fine();
  if (*column == -2)
    return failure(EXIT_INPUT, "%s: column '%s' occurs more than once; choose by position: --%s %s=1",
                   table_path(table), choice->name, option, choice->key);
  if (!choice->chosen && !required) return fine();
  char wanted[160], remedy[160];
  snprintf(wanted, sizeof wanted, "'%s' (%s)", choice->name, choice->key);
  snprintf(remedy, sizeof remedy, "name it, or give its position from 1: --%s %s=COLUMN", option,
           choice->key);
  return table_no_column(table, wanted, remedy);
}

struct status next_batch(struct table *table, struct table_batch *batch, struct progress *progress) {
  if (signals_pending() == REQUEST_STOP)
    return failure(EXIT_RUNTIME, "stopped on request; nothing was written");
  TRY(table_next(table, batch));
  progress_show(progress, table_done(table), NULL);
  return fine();
}
