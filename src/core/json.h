/* JSON, by jansson: this is the only header that includes it. The helpers here turn what is wrong
 * with a configuration into one line that names source, key, value and remedy. */
#ifndef FASCICLE_JSON_H
#define FASCICLE_JSON_H

#include "fail.h"
#include "types.h"

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Parse a file or a text (repeated keys refused). `*json` is a new reference: json_decref it. */
struct status json_from_file(const char *path, json_t **json);
struct status json_from_text(const char *text, const char *source, json_t **json);

/* Read one member of an object into *value, which keeps its value (the default) when the key is
 * absent. Wrong type or out of range: EXIT_USAGE. `where` names the object in messages
 * ("lif.json: stimulus[2]"). */
struct status json_take_int(const json_t *object, const char *where, const char *key, int64_t low,
                            int64_t high, int64_t *value);
struct status json_take_real(const json_t *object, const char *where, const char *key, double low,
                             double high, double *value);
struct status json_take_flag(const json_t *object, const char *where, const char *key, bool *value);
/* The string lives as long as the object. */
struct status json_take_text(const json_t *object, const char *where, const char *key,
                             const char **value);

/* Refuse any key that is not among `known` (n of them); the message lists those that are. */
struct status json_only_keys(const json_t *object, const char *where, const char *const *known,
                             int n);

/* Apply "a.b=value" to an object, making objects on the way; value is JSON, or a string when it is
 * not. A number names an entry of an array that is there, "stimulus.0.rate_hz=20", and the one
 * after the last adds an entry. EXIT_USAGE says how far the path leads. */
struct status json_set_path(json_t *object, const char *assignment);

/* An integer that may be too large for a double: a JSON integer, or a string of digits. */
struct status json_big_id(const json_t *value, const char *where, uint64_t *id);

/* Whether JSON can hold a text of n bytes: it is UTF-8. */
bool json_can_hold(const char *text, int64_t n);

/* The number; null where it is not finite, which JSON has no word for. A new reference. */
json_t *json_finite(double x);

/* Text with sorted keys and 2-space indent, ending in a newline; free() it. */
char *json_pretty(const json_t *json);

/* On one line without a newline, members in their order, for JSON lines and
 * attributes; free() it. */
char *json_line(const json_t *json);
/* The same in counted memory: mem_free() it. */
char *json_line_kept(const json_t *json);
/* The same on stdout, ended by a newline: the result of a verb with --json. */
void json_print(const json_t *json);

#ifdef __cplusplus
}
#endif
#endif
