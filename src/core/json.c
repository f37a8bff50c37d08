/* Reads and writes JSON, and says what is wrong with a configuration. */
#include "json.h"
#include "mem.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct status json_from_file(const char *path, json_t **json) {
  json_error_t error;
  if (access(path, R_OK)) return failure(EXIT_USAGE, "%s: cannot open: %s", path, strerror(errno));
  struct stat about;
  if (!stat(path, &about) && S_ISDIR(about.st_mode))
    return failure(EXIT_USAGE, "%s: is a folder, not a file", path);
  *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (*json) return fine();
  if (error.line < 0) return failure(EXIT_USAGE, "%s: %s", path, error.text);
  return failure(EXIT_USAGE, "%s: line %d, column %d: %s", path, error.line, error.column,
                 error.text);
}

struct status json_from_text(const char *text, const char *source, json_t **json) {
  json_error_t error;
  *json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
  if (*json) return fine();
  return failure(EXIT_USAGE, "%s: line %d, column %d: %s", source, error.line, error.column,
                 error.text);
}

/* The value as a short text, for messages. */
static const char *shown(const json_t *value) {
  static char text[96];
  char *full = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  snprintf(text, sizeof text, "%s", full ? full : "?");
  free(full);
  return text;
}

struct status json_take_int(const json_t *object, const char *where, const char *key, int64_t low,
                            int64_t high, int64_t *value) {
  const json_t *v = json_object_get(object, key);
  if (!v) return fine();
  if (!json_is_integer(v))
    return failure(EXIT_USAGE, "%s: \"%s\" is %s; an integer is wanted", where, key, shown(v));
  const int64_t x = json_integer_value(v);
  if (x < low || x > high)
    return failure(EXIT_USAGE, "%s: \"%s\" is %lld; it must lie in %lld..%lld", where, key,
                   (long long)x, (long long)low, (long long)high);
  *value = x;
  return fine();
}

struct status json_take_real(const json_t *object, const char *where, const char *key, double low,
                             double high, double *value) {
  const json_t *v = json_object_get(object, key);
  if (!v) return fine();
  if (!json_is_number(v))
    return failure(EXIT_USAGE, "%s: \"%s\" is %s; a number is wanted", where, key, shown(v));
  const double x = json_number_value(v);
  if (!(x >= low && x <= high))
    return failure(EXIT_USAGE, "%s: \"%s\" is %g; it must lie in %g..%g", where, key, x, low, high);
  *value = x;
  return fine();
}

struct status json_take_flag(const json_t *object, const char *where, const char *key,
                             bool *value) {
  const json_t *v = json_object_get(object, key);
  if (!v) return fine();
  if (!json_is_boolean(v))
    return failure(EXIT_USAGE, "%s: \"%s\" is %s; true or false is wanted", where, key, shown(v));
  *value = json_is_true(v);
  return fine();
}

struct status json_take_text(const json_t *object, const char *where, const char *key,
                             const char **value) {
  const json_t *v = json_object_get(object, key);
  if (!v) return fine();
  if (!json_is_string(v))
    return failure(EXIT_USAGE, "%s: \"%s\" is %s; a string is wanted", where, key, shown(v));
  *value = json_string_value(v);
  return fine();
}

static bool among(const char *key, const char *const *known, int n) {
  for (int i = 0; i < n; i++)
    if (!strcmp(key, known[i])) return true;
  return false;
}

struct status json_only_keys(const json_t *object, const char *where, const char *const *known,
                             int n) {
  if (!json_is_object(object)) return failure(EXIT_USAGE, "%s: an object { } is wanted", where);
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    if (among(key, known, n)) continue;
    char list[512] = "";
    for (int i = 0; i < n; i++) {
      const size_t at = strlen(list);
      snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", known[i]);
    }
    return failure(EXIT_USAGE, "%s: unknown key \"%s\"; known are %s", where, key, list);
  }
  return fine();
}

/* ---- --set PATH=VALUE ---- */

enum { PATH_MOST = 256 };

/* The value: JSON, else the text itself. NULL when it is not UTF-8. */
static json_t *value_of(const char *text) {
  json_error_t error;
  json_t *value = json_loads(text, JSON_DECODE_ANY, &error);
  return value ? value : json_string(text);
}

/* A place in an array, up to the next dot; -1 when the word is no such number. */
static int64_t index_of(const char *word) {
  const size_t length = strcspn(word, ".");
  int64_t index = 0;
  if (!length || length > 9) return -1;
  for (size_t i = 0; i < length; i++) {
    if (!isdigit((unsigned char)word[i])) return -1;
    index = 10 * index + (word[i] - '0');
  }
  return index;
}

/* Where the path has come to: `so_far` is what lies before `word`. */
struct step {
  const char *assignment, *so_far, *word;
};

static struct status no_entry(const struct step *at, const json_t *array) {
  const size_t n = json_array_size(array);
  if (!n)
    return failure(EXIT_USAGE, "--set %s: \"%s\" is empty; 0 adds its first entry", at->assignment,
                   at->so_far);
  return failure(EXIT_USAGE,
                 "--set %s: \"%s\" has no entry %s; its entries are 0..%zu, and %zu adds one",
                 at->assignment, at->so_far, at->word, n - 1, n);
}

/* The member or entry `word` of `container`; NULL when it is not there yet, but may be. */
static struct status look_up(const struct step *at, const json_t *container, json_t **found) {
  *found = NULL;
  if (json_is_object(container)) {
    *found = json_object_get(container, at->word);
    return fine();
  }
  if (!json_is_array(container))
    return failure(EXIT_USAGE, "--set %s: \"%s\" is %s, which has no members", at->assignment,
                   at->so_far, shown(container));
  const int64_t index = index_of(at->word), n = (int64_t)json_array_size(container);
  if (index < 0 || index > n) return no_entry(at, container);
  *found = json_array_get(container, (size_t)index);
  return fine();
}

/* Takes the reference of `value`. After look_up. */
static void put(json_t *container, const char *word, json_t *value) {
  ASSERT(json_is_object(container) || json_is_array(container));
  if (json_is_object(container))
    json_object_set_new(container, word, value);
  else if (index_of(word) == (int64_t)json_array_size(container))
    json_array_append_new(container, value);
  else
    json_array_set_new(container, (size_t)index_of(word), value);
}

/* Go down to the container of the last word of `path`, making objects on the way. */
static struct status descend(const char *assignment, char *path, json_t **container,
                             const char **last) {
  char so_far[PATH_MOST] = "";
  char *word = path;
  for (char *dot;; word = dot + 1) {
    dot = strchr(word, '.');
    if (dot) *dot = 0;
    json_t *inner;
    const struct step at = {assignment, so_far, word};
    TRY(look_up(&at, *container, &inner));
    *last = word;
    if (!dot) return fine();
    if (!inner && index_of(dot + 1) >= 0)
      return failure(EXIT_USAGE,
                     "--set %s: there is no list \"%s%s%s\"; give it whole, as in %s=[...]",
                     assignment, so_far, *so_far ? "." : "", word, word);
    if (!inner) put(*container, word, inner = json_object());
    *container = inner;
    snprintf(so_far, sizeof so_far, "%.*s", (int)(dot - path), assignment);
  }
}

struct status json_set_path(json_t *object, const char *assignment) {
  const char *equals = strchr(assignment, '='), *last = NULL;
  if (!equals || equals == assignment)
    return failure(EXIT_USAGE,
                   "--set %s: it must read key=value, such as optimizer.clip=1.0 or "
                   "stimulus.0.rate_hz=20",
                   assignment);
  char path[PATH_MOST];
  const size_t length = (size_t)(equals - assignment);
  if (length >= sizeof path)
    return failure(EXIT_USAGE, "--set: the key is longer than %d characters", PATH_MOST - 1);
  memcpy(path, assignment, length);
  path[length] = 0;
  json_t *value = value_of(equals + 1);
  if (!value || !json_can_hold(path, (int64_t)length)) {
    json_decref(value);
    return failure(EXIT_USAGE, "--set: key and value must be UTF-8");
  }
  const struct status s = descend(assignment, path, &object, &last);
  if (s.code)
    json_decref(value);
  else
    put(object, last, value);
  return s;
}

struct status json_big_id(const json_t *value, const char *where, uint64_t *id) {
  if (json_is_integer(value) && json_integer_value(value) >= 0) {
    *id = (uint64_t)json_integer_value(value);
    return fine();
  }
  if (json_is_string(value)) {
    const char *text = json_string_value(value);
    char *end;
    errno = 0;
    *id = strtoull(text, &end, 10);
    if (isdigit((unsigned char)text[0]) && *end == 0 && errno == 0) return fine();
  }
  return failure(EXIT_USAGE, "%s: %s is no id; a whole number is wanted (above 2^53 as a string)",
                 where, shown(value));
}

bool json_can_hold(const char *text, int64_t n) {
  json_t *string = json_stringn(n ? text : "", (size_t)n);
  json_decref(string);
  return string;
}

json_t *json_finite(double x) {
  return isfinite(x) ? json_real(x) : json_null();
}

char *json_pretty(const json_t *json) {
  char *text = json_dumps(json, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  if (!text) DIE(EXIT_RUNTIME, "cannot write JSON");
  const size_t n = strlen(text);
  char *line = realloc(text, n + 2);
  if (!line) DIE(EXIT_RUNTIME, "out of memory for JSON");
  memcpy(line + n, "\n", 2);
  return line;
}

char *json_line(const json_t *json) {
  char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_PRESERVE_ORDER);
  if (!text) DIE(EXIT_RUNTIME, "cannot write JSON");
  return text;
}

char *json_line_kept(const json_t *json) {
  char *line = json_line(json), *kept = mem_string(line);
  free(line);
  return kept;
}

void json_print(const json_t *json) {
  char *line = json_line(json);
  printf("%s\n", line);
  free(line);
}
