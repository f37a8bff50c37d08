/* Ids as they come, numbers or names, given small indices in order of arrival; at the end their
 * rank is the canonical node id. Labels of node columns are kept the same way. */
#ifndef FASCICLE_CONVERT_IDS_H
#define FASCICLE_CONVERT_IDS_H

#include "io/table/table.h"

enum { NO_INDEX = UINT32_MAX };

struct ids {
  bool names;
  int64_t n, capacity;
  uint64_t *id;            /* numbers: [n]; names: a hash of each */
  char *text;              /* names: all of them, trimmed; name i is text[at[i] .. at[i + 1]) */
  int64_t *at, text_bytes; /* [n + 1] */
  uint32_t *blanks; /* names: outer blanks of the first form seen; top bit: other forms were seen */
  struct slot *slot; /* open addressing, n_slots a power of two */
  int64_t n_slots;
};

void ids_init(struct ids *ids, bool names);
void ids_free(struct ids *ids);

/* Nothing will be looked up any more: gives the larger part of the memory back. */
void ids_seal(struct ids *ids);

/* The index of a number; NO_INDEX when it is not there and `add` is false. */
uint32_t ids_number(struct ids *ids, uint64_t id, bool add);

/* The index of a name; outer blanks do not count. */
uint32_t ids_name(struct ids *ids, const char *text, int64_t n, bool add);

/* A column of ids in a batch (TABLE_ID or TABLE_TEXT) and the index of each row [n]. */
struct ids_column {
  const struct table_column *from;
  uint32_t *index;
};

/* Whole columns at once; rows with use[i] false are left alone (use NULL: all). Runs on all threads
 * when nothing is added. */
void ids_map(struct ids *ids, const struct ids_column *column, int n_columns, int64_t n,
             const bool *use, bool add);

/* The index of every id of another list, added where it is missing: [from->n], mem_free it.
 * `from` needs no slots. */
uint32_t *ids_join(struct ids *ids, const struct ids *from);

/* A counted copy of one id as text. */
char *ids_text(const struct ids *ids, uint32_t index);

/* Names that occur with different outer blanks. */
int64_t ids_mixed_blanks(const struct ids *ids);

/* The indices with keep[i] (NULL: all) in ascending order of number, or byte order of name;
 * *n_kept of them. mem_free it. */
uint32_t *ids_sorted(const struct ids *ids, const bool *keep, int64_t *n_kept);

#endif
