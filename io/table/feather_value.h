/* Single values of fixed width as they are in an Arrow file (little-endian, any alignment). */
#ifndef FASCICLE_FEATHER_VALUE_H
#define FASCICLE_FEATHER_VALUE_H

#include "feather_schema.h"

enum { VALUE_TEXT = 40 };

/* A signed integer of 1, 2, 4 or 8 bytes. */
int64_t value_int(const uint8_t *at, int bytes);

/* An integer or float as an id or a count: NULL when fine, otherwise what is wrong. Floats must
 * be whole and below 2^53. */
const char *value_id(const struct arrow_value *v, const uint8_t *at, uint64_t *id);
const char *value_count(const struct arrow_value *v, const uint8_t *at, int64_t *count);

/* An integer or float in digits; floats with the fewest that give the same value back. */
void value_text(const struct arrow_value *v, const uint8_t *at, char text[VALUE_TEXT]);

#endif
