/* Command lines, from a table: parsing, --help and the error lines come from the same rows. */
#ifndef FASCICLE_OPTIONS_H
#define FASCICLE_OPTIONS_H

#include "config_keys.h"
#include "core/fail.h"
#include "core/types.h"

enum option_kind {
  OPTION_FLAG, /* bool:            --name           */
  OPTION_INT,  /* int64_t:         --name N         */
  OPTION_REAL, /* double:          --name X         */
  OPTION_TEXT, /* const char *:    --name TEXT      */
  OPTION_LIST  /* struct texts:    --name TEXT, may be repeated */
};

struct texts {
  int n;
  const char *item[64];
};

struct option {
  const char *name; /* without the dashes */
  enum option_kind kind;
  /* How help names the value: "FILE", "sum|keep|refuse"; with `|` only these words are taken. */
  const char *value;
  const char *help;
  void *to; /* where the value goes; keeps its value (the default) when the option is absent */
  int64_t low, high; /* OPTION_INT: the range, unless both are 0 */
};

struct usage {
  const char *verb;     /* "convert" */
  const char *operands; /* "graph.h5" or "" */
  int fewest, most;     /* how many of them */
  const char *about;    /* a few lines */
  const char *example;  /* lines that can be pasted */
  /* What --help-keys lists, and --help-keys=markdown as jobs/conf/README.md has it. */
  const struct config_table *keys;
  int n_keys;
};

enum { HELP_SHOWN = -1 }; /* the status code that options_parse returns after --help */

/* Parse argv[1..]; operands go to `operand` [usage->most]. The `=` form and "--" work. --help (-h)
 * and --help-keys print to stdout and return HELP_SHOWN. Wrong words: EXIT_USAGE with the option,
 * the value and what is allowed; words must be UTF-8. */
struct status options_parse(const struct usage *usage, const struct option *options, int n,
                            int argc, char **argv, const char **operand);

/* For a verb's rows made of tables: append `more`; of n rows `all` those with these names, in the
 * names' order. Both return how many stand in `rows` then. */
int options_append(struct option *rows, int n, const struct option *more, int n_more);
int options_named(const struct option *all, int n, const char *const *name, int n_names,
                  struct option *rows);

/* "a=b" pairs in one text, comma separated: "pre=body_pre,post=body_post". Calls `take` for
 * each; it returns a status. */
struct status options_pairs(const char *option, const char *text,
                            struct status (*take)(void *self, const char *key, const char *value),
                            void *self);

#endif
