/* Parse a command line by the rows of a table, and explain it. */
#include "options.h"
#include "core/json.h"
#include "core/words.h"
#include "wrap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(const struct usage *u, const struct option *options, int n) {
  printf("Usage: fascicle %s %s%s[options]\n\n", u->verb, u->operands, *u->operands ? " " : "");
  print_wrapped(u->about, 0, 0);
  printf("\nOptions:\n");
  for (int i = 0; i < n; i++) {
    const struct option *o = &options[i];
    const int used = printf("  --%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    if (used > 29)
      printf("\n%31s", "");
    else
      printf("%*s", 31 - used, "");
    print_wrapped(o->help, 31, 31);
  }
  printf("  --help                       this text\n");
  if (u->n_keys) printf("  --help-keys                  the keys of the configuration\n");
  printf("\nExample:\n%s\n", u->example);
}

static void print_keys(const struct usage *u, bool markdown) {
  for (int i = 0; i < u->n_keys; i++) {
    if (i) printf("\n");
    (markdown ? config_print_markdown : config_print)(&u->keys[i]);
  }
}

/* Whether a word asks for help, which then is on stdout. */
static bool helped(const struct usage *u, const struct option *options, int n, const char *word) {
  const bool markdown = !strcmp(word, "--help-keys=markdown");
  if (!strcmp(word, "--help") || !strcmp(word, "-h"))
    print_help(u, options, n);
  else if (u->n_keys && (markdown || !strcmp(word, "--help-keys")))
    print_keys(u, markdown);
  else
    return false;
  return true;
}

static const struct option *find(const struct option *options, int n, const char *name,
                                 size_t length) {
  for (int i = 0; i < n; i++)
    if (strlen(options[i].name) == length && !strncmp(options[i].name, name, length))
      return &options[i];
  return NULL;
}

/* The option that was probably meant; NULL when none is near. */
static const struct option *nearest(const struct option *options, int n, const char *name,
                                    size_t length) {
  const struct option *best = NULL;
  int least = WORD_FAR;
  for (int i = 0; i < n; i++) {
    const int d = word_distance(options[i].name, name, length);
    if (d < least) least = d, best = &options[i];
  }
  return best;
}

/* Is the value one of "a|b|c"? */
static bool allowed(const char *words, const char *value) {
  const size_t length = strlen(value);
  for (const char *at = words; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
    if (strcspn(at, "|") == length && !strncmp(at, value, length)) return true;
  return false;
}

static struct status take_int(const struct option *o, const char *value) {
  char *end;
  errno = 0;
  const int64_t x = strtoll(value, &end, 10);
  if (end == value || *end || errno)
    return failure(EXIT_USAGE, "--%s %s: a whole number is wanted", o->name, value);
  if ((o->low || o->high) && (x < o->low || x > o->high))
    return failure(EXIT_USAGE, "--%s %s: it must lie in %lld..%lld", o->name, value,
                   (long long)o->low, (long long)o->high);
  *(int64_t *)o->to = x;
  return fine();
}

static struct status take_real(const struct option *o, const char *value) {
  char *end;
  const double x = strtod(value, &end);
  if (end == value || *end || !(x - x == 0))
    return failure(EXIT_USAGE, "--%s %s: a number is wanted", o->name, value);
  *(double *)o->to = x;
  return fine();
}

static struct status take(const struct option *o, const char *value) {
  if (o->value && strchr(o->value, '|') && !allowed(o->value, value))
    return failure(EXIT_USAGE, "--%s %s: it must be one of %s", o->name, value, o->value);
  if (o->kind == OPTION_TEXT && !*value) /* as a rule a shell variable that is not set */
    return failure(EXIT_USAGE, "--%s: its value is empty; %s is wanted", o->name, o->value);
  switch (o->kind) {
  case OPTION_FLAG: *(bool *)o->to = true; return fine();
  case OPTION_INT: return take_int(o, value);
  case OPTION_REAL: return take_real(o, value);
  case OPTION_TEXT: *(const char **)o->to = value; return fine();
  case OPTION_LIST: break;
  }
  struct texts *list = o->to;
  if (list->n == (int)(sizeof list->item / sizeof *list->item))
    return failure(EXIT_USAGE, "--%s: given more than %d times", o->name, list->n);
  list->item[list->n++] = value;
  return fine();
}

/* One word that begins with "--"; *i moves on when the value is the next word. */
static struct status take_word(const struct usage *u, const struct option *options, int n, int argc,
                               char **argv, int *i) {
  const char *name = argv[*i] + 2, *equals = strchr(name, '=');
  const size_t length = equals ? (size_t)(equals - name) : strlen(name);
  const struct option *o = find(options, n, name, length);
  if (!o) {
    const struct option *meant = nearest(options, n, name, length);
    return failure(EXIT_USAGE, "%s: unknown option --%.*s; %s%s%s`fascicle %s --help` lists them",
                   u->verb, (int)length, name, meant ? "is --" : "", meant ? meant->name : "",
                   meant ? " meant? " : "", u->verb);
  }
  if (o->kind == OPTION_FLAG)
    return equals ? failure(EXIT_USAGE, "--%s takes no value", o->name) : take(o, "");
  if (equals) return take(o, equals + 1);
  if (*i + 1 >= argc)
    return failure(EXIT_USAGE, "--%s: a value is missing (%s)", o->name, o->value);
  return take(o, argv[++*i]);
}

struct status options_parse(const struct usage *u, const struct option *options, int n, int argc,
                            char **argv, const char **operand) {
  for (int i = 1; i < argc; i++) /* words end up in JSON: configurations, provenance */
    if (!json_can_hold(argv[i], (int64_t)strlen(argv[i])))
      return failure(EXIT_USAGE,
                     "%s: word %d, '%s', is not UTF-8; rename the file, or set a UTF-8 locale",
                     u->verb, i, argv[i]);
  for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
    if (helped(u, options, n, argv[i])) return failure(HELP_SHOWN, "help");
  int n_operands = 0;
  bool only_operands = false;
  for (int i = 1; i < argc; i++) {
    if (!only_operands && !strcmp(argv[i], "--"))
      only_operands = true;
    else if (!only_operands && !strncmp(argv[i], "--", 2))
      TRY(take_word(u, options, n, argc, argv, &i));
    else if (n_operands == u->most)
      return failure(EXIT_USAGE, "%s: unexpected word '%s'; usage: fascicle %s %s%s[options]",
                     u->verb, argv[i], u->verb, u->operands, *u->operands ? " " : "");
    else if (!*argv[i])
      return failure(EXIT_USAGE, "%s: word %d is empty; %s is wanted", u->verb, i, u->operands);
    else
      operand[n_operands++] = argv[i];
  }
  if (n_operands < u->fewest)
    return failure(EXIT_USAGE, "%s: %s is missing; `fascicle %s --help` shows an example", u->verb,
                   u->operands, u->verb);
  return fine();
}

int options_append(struct option *rows, int n, const struct option *more, int n_more) {
  memcpy(rows + n, more, (size_t)n_more * sizeof *more);
  return n + n_more;
}

int options_named(const struct option *all, int n, const char *const *name, int n_names,
                  struct option *rows) {
  int found = 0;
  for (int k = 0; k < n_names; k++)
    for (int i = 0; i < n; i++)
      if (!strcmp(all[i].name, name[k])) rows[found++] = all[i];
  return found;
}

struct status options_pairs(const char *option, const char *text,
                            struct status (*take_pair)(void *self, const char *key,
                                                       const char *value),
                            void *self) {
  char copy[1024];
  if (strlen(text) >= sizeof copy)
    return failure(EXIT_USAGE, "--%s: longer than 1023 characters", option);
  strcpy(copy, text);
  for (char *rest = copy, *pair; (pair = strsep(&rest, ","));) {
    char *equals = strchr(pair, '=');
    if (!equals || equals == pair)
      return failure(EXIT_USAGE, "--%s %s: '%s' must read name=value", option, text, pair);
    *equals = 0;
    TRY(take_pair(self, pair, equals + 1));
  }
  return fine();
}
