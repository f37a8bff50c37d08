/* Sign tables: found, read, checked, looked up. */
#include "signs.h"
#include "core/mem.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_path(const char *name) {
  const size_t n = strlen(name);
  return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json"));
}

/* The folder of the running program. */
static void program_folder(char folder[PATH_MAX]) {
  const ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
  folder[n > 0 ? n : 0] = 0;
  char *slash = strrchr(folder, '/');
  if (slash) *slash = 0;
}

/* Without "..", for messages. */
static void tidy(char path[PATH_MAX]) {
  char real[PATH_MAX];
  if (realpath(path, real)) memcpy(path, real, strlen(real) + 1);
}

static struct status find(const char *name, char path[PATH_MAX]) {
  if (is_path(name)) return snprintf(path, PATH_MAX, "%s", name), fine();
  char folder[PATH_MAX];
  program_folder(folder);
  static const char *const places[] = {"../share/fascicle/jobs/conf", "../jobs/conf"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    const int n = snprintf(path, PATH_MAX, "%s/%s/signs_%s.json", folder, places[i], name);
    if (n < PATH_MAX && !access(path, R_OK)) return tidy(path), fine();
  }
  return failure(EXIT_USAGE, "--signs %s: neither a shipped sign table nor a path of a JSON file",
                 name);
}

static struct status check_entries(const struct signs *s) {
  if (!json_is_object(s->table) || json_object_size(s->table) == 0)
    return failure(EXIT_USAGE, "%s: \"signs\" must be an object with an entry for each label",
                   s->path);
  const char *label;
  json_t *value;
  json_object_foreach((json_t *)s->table, label, value) {
    const bool word = json_is_string(value) && !strcmp(json_string_value(value), "exclude");
    const json_int_t sign = json_is_integer(value) ? json_integer_value(value) : 0;
    if (!word && sign != 1 && sign != -1)
      return failure(EXIT_USAGE, "%s: the sign of \"%s\" must be 1, -1 or \"exclude\"", s->path,
                     label);
  }
  return fine();
}

static struct status read_table(const char *name, struct signs *s) {
  char path[PATH_MAX];
  int64_t bytes;
  TRY(find(name, path));
  s->path = mem_string(path);
  TRY(sha256_file(path, s->sha256, &bytes));
  TRY(json_from_file(path, &s->json));
  static const char *const known[] = {"name", "about", "citation", "signs"};
  TRY(json_only_keys(s->json, path, known, sizeof known / sizeof *known));
  s->table = json_object_get(s->json, "signs");
  return check_entries(s);
}

struct status signs_read(const char *name, struct signs *signs) {
  *signs = (struct signs){0};
  const struct status s = read_table(name, signs);
  if (s.code) signs_free(signs);
  return s;
}

void signs_free(struct signs *s) {
  mem_free(s->path);
  json_decref(s->json);
  *s = (struct signs){0};
}

enum sign signs_of(const struct signs *s, const char *label) {
  const json_t *value = json_object_get(s->table, *label ? label : "missing");
  if (!value) return SIGN_UNKNOWN;
  return json_is_string(value) ? SIGN_EXCLUDE : (enum sign)json_integer_value(value);
}
