/* Columns of numbers of a graph's neurons. */
#include "select.h"
#include "core/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_name(char **names, const char *name) {
  for (; names && *names; names++)
    if (!strcmp(*names, name)) return true;
  return false;
}

/* The names of both kinds of columns, for a message. */
static void list_names(const struct neurons *neurons, char *list, size_t size) {
  char **const kinds[] = {neurons->number, neurons->column};
  size_t at = 0;
  snprintf(list, size, "none");
  for (int k = 0; k < 2; k++)
    for (char **name = kinds[k]; name && *name && at < size; name++)
      at += (size_t)snprintf(list + at, size - at, "%s%s", at ? ", " : "", *name);
}

static struct status no_column(const struct neurons *neurons, const char *name, const char *where) {
  char list[400];
  list_names(neurons, list, sizeof list);
  return failure(EXIT_USAGE, "%s: the graph has no column \"%s\"; columns that it has: %s", where,
                 name, list);
}

/* The number that a label says, NAN for "". False: it says none. */
static bool number_of(const char *label, double *value) {
  char *end;
  *value = NAN;
  if (!*label) return true;
  if (strspn(label, "0123456789+-.eE") != strlen(label)) return false;
  *value = strtod(label, &end);
  return !*end && isfinite(*value);
}

static struct status of_labels(const struct node_column *c, int64_t n, const char *where,
                               double *value) {
  double *of = NEW(double, c->n_labels);
  struct status s = fine();
  for (int l = 0; l < c->n_labels && !s.code; l++)
    if (!number_of(c->label[l], &of[l]))
      s = failure(EXIT_USAGE,
                  "%s: column \"%s\" holds labels, \"%.60s\" among them; numbers are wanted", where,
                  c->name, c->label[l]);
  for (int64_t i = 0; i < n && !s.code; i++) value[i] = of[c->code[i]];
  mem_free(of);
  return s;
}

static struct status take_values(const struct node_column *c, int64_t n, const char *where,
                                 double *value) {
  if (c->code) return of_labels(c, n, where, value);
  for (int64_t i = 0; i < n; i++) value[i] = c->f64 ? c->f64[i] : (double)c->i64[i];
  return fine();
}

struct status neurons_numbers(const struct neurons *neurons, const char *name, const char *where,
                              double **value) {
  struct node_column column;
  *value = NULL;
  if (!has_name(neurons->number, name) && !has_name(neurons->column, name))
    return no_column(neurons, name, where);
  connectome_column(neurons->file, name, &column);
  *value = NEW(double, neurons->n);
  const struct status s = take_values(&column, neurons->n, where, *value);
  node_column_free(&column);
  if (s.code) mem_free(*value), *value = NULL;
  return s;
}
