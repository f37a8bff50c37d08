/* Prints JSON facts as lines for people. */
#include "inspect.h"
#include "core/units.h"

#include <stdio.h>
#include <string.h>

enum { INDENT = 2, NAME_WIDTH = 18, LIST_SHOWN = 12 };

/* Ids are names, not amounts: no separators. */
static bool is_id(const char *name) {
  return !strcmp(name, "id") || !strcmp(name, "seed") || strstr(name, "_id") ||
         strstr(name, "version");
}

static void print_scalar(const char *name, const json_t *value) {
  if (json_is_string(value))
    printf("%s", json_string_length(value) ? json_string_value(value) : "''");
  else if (json_is_boolean(value))
    printf(json_is_true(value) ? "yes" : "no");
  else if (json_is_integer(value) && is_id(name))
    printf("%lld", (long long)json_integer_value(value));
  else if (json_is_integer(value))
    printf("%s", units_count(json_integer_value(value), (char[UNITS_TEXT]){0}));
  else if (json_is_real(value))
    printf("%.6g", json_real_value(value));
  else
    printf("none");
}

static bool is_scalar(const json_t *value) {
  return !json_is_object(value) && !json_is_array(value);
}

/* Members that fit on one line: all scalars. */
static bool is_flat(const json_t *value) {
  const char *key;
  json_t *member;
  if (!json_is_object(value) || json_object_size(value) > 12) return false;
  json_object_foreach((json_t *)value, key, member) {
    if (!is_scalar(member)) return false;
    if (json_is_string(member) && json_string_length(member) > 100) return false;
  }
  return true;
}

static void print_flat(const json_t *value) {
  const char *key, *comma = "";
  json_t *member;
  json_object_foreach((json_t *)value, key, member) {
    printf("%s%s ", comma, key);
    print_scalar(key, member);
    comma = "; ";
  }
}

static void print_member(const char *name, const json_t *value, int depth);

static void print_list(const char *name, const json_t *list, int depth) {
  const size_t n = json_array_size(list);
  printf("%*s%s\n", depth * INDENT, "", name);
  for (size_t i = 0; i < n; i++) {
    const json_t *item = json_array_get(list, i);
    if (is_scalar(item) && i == LIST_SHOWN && n > LIST_SHOWN + 1) {
      printf("%*s... and %zu more (--json lists all)\n", (depth + 1) * INDENT, "", n - i);
      return;
    }
    if (is_flat(item) || is_scalar(item)) {
      printf("%*s", (depth + 1) * INDENT, "");
      if (is_scalar(item))
        print_scalar(name, item);
      else
        print_flat(item);
      putchar('\n');
    } else {
      char number[32];
      snprintf(number, sizeof number, "%zu", i + 1);
      print_member(number, item, depth + 1);
    }
  }
}

static void print_object(const json_t *object, int depth) {
  const char *key;
  json_t *member;
  json_object_foreach((json_t *)object, key, member) print_member(key, member, depth);
}

static void print_member(const char *name, const json_t *value, int depth) {
  const int width = NAME_WIDTH - depth * INDENT;
  if (json_is_array(value) && json_array_size(value)) {
    print_list(name, value, depth);
  } else if (json_is_object(value) && !is_flat(value)) {
    printf("%*s%s\n", depth * INDENT, "", name);
    print_object(value, depth + 1);
  } else {
    printf("%*s%-*s ", depth * INDENT, "", width > 1 ? width : 1, name);
    if (is_scalar(value) || !json_object_size(value)) /* an empty list or group: none */
      print_scalar(name, value);
    else
      print_flat(value);
    putchar('\n');
  }
}

void inspect_print(const json_t *facts) {
  print_object(facts, 0);
}
