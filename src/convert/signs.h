/* Sign tables: transmitter label -> +1, -1 or exclude. A small JSON file {"name": .., "about": ..,
 * "citation": .., "signs": {"acetylcholine": 1, "gaba": -1, "unclear": "exclude"}}. No label has a
 * sign by default: "unclear" and "missing" (an empty label, or no row) need entries too. */
#ifndef FASCICLE_SIGNS_H
#define FASCICLE_SIGNS_H

#include "core/digest.h"
#include "core/json.h"

enum sign { SIGN_MINUS = -1, SIGN_EXCLUDE = 0, SIGN_PLUS = 1, SIGN_UNKNOWN = 2 };

struct signs {
  char *path;
  json_t *json; /* the whole file */
  const json_t *table;
  char sha256[DIGEST_TEXT];
};

/* `name` is a path (it holds a '/' or ends in .json) or the name of a shipped table
 * ("shiu": signs_shiu.json in share/fascicle/jobs/conf beside the program, or in jobs/conf
 * of its source). Local. */
struct status signs_read(const char *name, struct signs *signs);
void signs_free(struct signs *signs);

/* The entry of a label; "" is looked up as "missing". */
enum sign signs_of(const struct signs *signs, const char *label);

#endif
