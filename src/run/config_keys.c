/* Read, check, write and explain the keys of a configuration by the rows of a table. */
#include "config_keys.h"
#include "core/mem.h"
#include "wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *value_of(const struct config_key *key, const void *config) {
  return (char *)config + key->offset;
}

static bool has_default(const struct config_key *key) {
  return key->initially && *key->initially;
}

/* ---- words ---- */

/* Where word i of "a|b|c" begins, its length in *n; NULL beyond the last. */
static const char *word_at(const char *words, int i, int *n) {
  for (; words && i > 0; i--) words = strchr(words, '|') ? strchr(words, '|') + 1 : NULL;
  *n = words ? (int)strcspn(words, "|") : 0;
  return words;
}

static struct status take_word(const json_t *json, const char *where, const struct config_key *key,
                               int *value) {
  const char *text = NULL, *word;
  TRY(json_take_text(json, where, key->name, &text));
  int n;
  for (int i = 0; text && (word = word_at(key->words, i, &n)); i++)
    if (strlen(text) == (size_t)n && !strncmp(text, word, (size_t)n)) {
      *value = i;
      return fine();
    }
  return text ? failure(EXIT_USAGE, "%s: \"%s\" is \"%s\"; it must be one of %s", where, key->name,
                        text, key->words)
              : fine();
}

/* ---- reading ---- */

static struct status only_known(const struct config_table *table, const json_t *json,
                                const char *where) {
  const char **known = NEW(const char *, table->n);
  for (int i = 0; i < table->n; i++) known[i] = table->key[i].name;
  const struct status s = json_only_keys(json, where, known, table->n);
  mem_free(known);
  return s;
}

static struct status read_object(const json_t *json, const char *above,
                                 const struct config_key *key, void *config) {
  const json_t *object = json_object_get(json, key->name);
  char where[512];
  snprintf(where, sizeof where, "%s: %s", above, key->name);
  return object ? config_read(key->inner, object, where, config) : fine();
}

static struct status read_key(const json_t *json, const char *where, const struct config_key *key,
                              void *config) {
  void *value = value_of(key, config);
  if (!key->initially && key->kind != CONFIG_OBJECT && !json_object_get(json, key->name))
    return failure(EXIT_USAGE, "%s: \"%s\" is missing; it has no default", where, key->name);
  switch (key->kind) {
  case CONFIG_INT: return json_take_int(json, where, key->name, key->int_low, key->int_high, value);
  case CONFIG_REAL: return json_take_real(json, where, key->name, key->low, key->high, value);
  case CONFIG_FLAG: return json_take_flag(json, where, key->name, value);
  case CONFIG_WORD: return take_word(json, where, key, value);
  case CONFIG_OBJECT: return read_object(json, where, key, value);
  case CONFIG_OTHER: break;
  }
  return fine();
}

struct status config_read(const struct config_table *table, const json_t *json, const char *where,
                          void *config) {
  TRY(only_known(table, json, where));
  for (int i = 0; i < table->n; i++) TRY(read_key(json, where, &table->key[i], config));
  return fine();
}

/* ---- defaults ---- */

static json_t *default_of(const struct config_key *key) {
  json_t *value;
  const struct status s = json_from_text(key->initially, key->name, &value);
  if (s.code) DIE(EXIT_RUNTIME, "default of a key: %s", s.text);
  return value;
}

void config_fill(const struct config_table *table, json_t *json) {
  for (int i = 0; i < table->n; i++) {
    const struct config_key *key = &table->key[i];
    if (key->kind == CONFIG_OBJECT) {
      if (!json_object_get(json, key->name)) json_object_set_new(json, key->name, json_object());
      config_fill(key->inner, json_object_get(json, key->name));
    } else if (has_default(key) && !json_object_get(json, key->name)) {
      json_object_set_new(json, key->name, default_of(key));
    }
  }
}

void config_defaults(const struct config_table *table, void *config) {
  json_t *json = json_object();
  config_fill(table, json);
  struct status s = fine();
  for (int i = 0; i < table->n && !s.code; i++)
    if (json_object_get(json, table->key[i].name))
      s = read_key(json, "defaults", &table->key[i], config);
  json_decref(json);
  if (s.code) DIE(EXIT_RUNTIME, "%s", s.text);
}

/* ---- writing ---- */

static json_t *value_json(const struct config_key *key, const void *value) {
  int n = 0;
  const char *word;
  switch (key->kind) {
  case CONFIG_INT: return json_integer(*(const int64_t *)value);
  case CONFIG_REAL: return json_real(*(const double *)value);
  case CONFIG_FLAG: return json_boolean(*(const bool *)value);
  case CONFIG_WORD:
    word = word_at(key->words, *(const int *)value, &n);
    return json_stringn(word, (size_t)n);
  case CONFIG_OBJECT: return config_json(key->inner, value);
  case CONFIG_OTHER: break;
  }
  return NULL;
}

json_t *config_json(const struct config_table *table, const void *config) {
  json_t *json = json_object();
  for (int i = 0; i < table->n; i++) {
    const struct config_key *key = &table->key[i];
    if (key->kind != CONFIG_OTHER)
      json_object_set_new(json, key->name, value_json(key, value_of(key, config)));
  }
  return json;
}

/* ---- explaining ---- */

enum { TEXT = 160 };

static void words_text(const char *words, char text[TEXT]) {
  int n, used = 0;
  const char *word;
  for (int i = 0; used < TEXT && (word = word_at(words, i, &n)); i++)
    used += snprintf(text + used, (size_t)(TEXT - used), "%s%.*s", i ? ", " : "", n, word);
}

static void range_text(const struct config_key *key, char text[TEXT]) {
  const char *unit = key->unit ? key->unit : "", *blank = *unit ? " " : "";
  text[0] = 0;
  if (key->range)
    snprintf(text, TEXT, "%s%s%s", key->range, blank, unit);
  else if (key->kind == CONFIG_INT && key->int_high >= CONFIG_MOST)
    snprintf(text, TEXT, "%lld or more%s%s", (long long)key->int_low, blank, unit);
  else if (key->kind == CONFIG_INT)
    snprintf(text, TEXT, "%lld .. %lld%s%s", (long long)key->int_low, (long long)key->int_high,
             blank, unit);
  else if (key->kind == CONFIG_REAL)
    snprintf(text, TEXT, "%g .. %g%s%s", key->low, key->high, blank, unit);
  else if (key->kind == CONFIG_FLAG)
    snprintf(text, TEXT, "true, false");
  else if (key->kind == CONFIG_WORD)
    words_text(key->words, text);
}

/* As JSON; a word without its quotation marks. */
static void default_text(const struct config_key *key, char text[TEXT]) {
  const char *from = !key->initially ? "must be given" : *key->initially ? key->initially : "none";
  const bool quoted = *from == '"' && from[1];
  snprintf(text, TEXT, "%.*s", (int)strlen(from) - 2 * quoted, from + quoted);
}

/* Call print for each row, the rows of inner tables with their names in full. */
static void each_row(const struct config_table *table, const char *above,
                     void (*print)(const struct config_key *key, const char *name)) {
  for (int i = 0; i < table->n; i++) {
    const struct config_key *key = &table->key[i];
    char name[TEXT];
    snprintf(name, sizeof name, "%.100s%s%.50s", above, *above ? "." : "", key->name);
    if (key->kind == CONFIG_OBJECT)
      each_row(key->inner, name, print);
    else
      print(key, name);
  }
}

static void print_row(const struct config_key *key, const char *name) {
  enum { ABOUT = 29 }; /* the column of what is said about a key */
  char range[TEXT], initially[TEXT], facts[2 * TEXT + 16];
  range_text(key, range), default_text(key, initially);
  snprintf(facts, sizeof facts, "%s%s%s%s", range, *range ? "; " : "",
           key->initially ? "default " : "", initially);
  const int used = printf("  %s", name);
  if (used > ABOUT - 2)
    printf("\n%*s", ABOUT, "");
  else
    printf("%*s", ABOUT - used, "");
  print_wrapped(key->help, ABOUT, ABOUT);
  printf("%*s", ABOUT, "");
  print_wrapped(facts, ABOUT, ABOUT);
}

static void print_markdown_row(const struct config_key *key, const char *name) {
  char range[TEXT], initially[TEXT];
  range_text(key, range), default_text(key, initially);
  printf("| `%s` | %s | %s | %s |\n", name, initially, *range ? range : "any", key->help);
}

void config_print(const struct config_table *table) {
  printf("%s:\n", table->title);
  each_row(table, "", print_row);
}

void config_print_markdown(const struct config_table *table) {
  printf("%s:\n\n| key | default | range | |\n|---|---|---|---|\n", table->title);
  each_row(table, "", print_markdown_row);
}
