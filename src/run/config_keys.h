/* Keys of a configuration, from a table: reading and checking them, writing config.json, and the
 * lists that explain them to the user come from the same rows. */
#ifndef FASCICLE_CONFIG_KEYS_H
#define FASCICLE_CONFIG_KEYS_H

#include "core/json.h"
#include "core/types.h"

#include <stddef.h>

enum config_kind {
  CONFIG_INT,    /* int64_t, in int_low .. int_high */
  CONFIG_REAL,   /* double, in low .. high */
  CONFIG_FLAG,   /* bool */
  CONFIG_WORD,   /* an enum that counts the words of `words` from 0 */
  CONFIG_OBJECT, /* a struct that has a table too: `inner` */
  CONFIG_OTHER   /* anything else, such as a list: the owner of the table reads it */
};

struct config_key {
  const char *name;
  enum config_kind kind;
  size_t offset; /* of the value in the struct that the table describes; not for CONFIG_OTHER */
  int64_t int_low, int_high;
  double low, high;
  const char *words;                /* CONFIG_WORD: "fp32|mixed" */
  const struct config_table *inner; /* CONFIG_OBJECT */
  /* JSON, such as "32", "[]" or "\"fp32\""; NULL: the key must be given; "": it may be absent
   * and then has no value. A CONFIG_OBJECT has those of its inner table. */
  const char *initially;
  const char *range; /* what the lists say of the range, where the bounds do not say it well */
  const char *unit;  /* "ms", "steps"; NULL: none */
  const char *help;  /* may hold Markdown's `code`; no line breaks */
};

struct config_table {
  const char *title; /* "stimulus of kind current"; heads its list */
  const struct config_key *key;
  int n;
};

/* The table of an array of keys. */
#define CONFIG_TABLE(title, keys)                                                                  \
  { (title), (keys), (int)(sizeof(keys) / sizeof *(keys)) }

/* A CONFIG_INT of at most this much has no upper bound as far as users are told. */
#define CONFIG_MOST INT64_C(1000000000000000)

/* Set every value of `config`, the struct that the table describes, that has a default. */
void config_defaults(const struct config_table *table, void *config);

/* Read the object `json` over what `config` holds: EXIT_USAGE, with `where` as in json_take_int,
 * for unknown keys, missing ones, wrong types and values out of range. Keys of kind CONFIG_OTHER
 * are only known and, where they must be given, missed. Local. */
struct status config_read(const struct config_table *table, const json_t *json, const char *where,
                          void *config);

/* Add the defaults of absent keys to `json`, those of CONFIG_OTHER too. */
void config_fill(const struct config_table *table, json_t *json);

/* All keys with their values, but those of CONFIG_OTHER. A new reference. */
json_t *config_json(const struct config_table *table, const void *config);

/* List the keys on stdout: for a terminal, or as the Markdown tables of jobs/conf/README.md. */
void config_print(const struct config_table *table);
void config_print_markdown(const struct config_table *table);

#endif
