/* The account of every row read: kept, or dropped for one stated reason. It is printed, given as
 * JSON and stored in the artifact; `account_check` proves that the sums agree. */
#ifndef FASCICLE_CONVERT_ACCOUNT_H
#define FASCICLE_CONVERT_ACCOUNT_H

#include "core/json.h"
#include "io/table/table.h"

enum { MAX_REASONS = 64, MAX_INPUTS = 4 };

struct reason {
  char *text;
  int64_t rows;
};

/* One input table. */
struct input_account {
  const char *role; /* "edges", "nodes", "transmitters" */
  char *path;
  struct table_facts facts;
  json_t *columns;  /* role -> column name */
  json_t *left_out; /* names of columns that nothing takes, or NULL */
  int64_t kept;
  int n_reasons;
  struct reason reason[MAX_REASONS];
};

struct account {
  int n_inputs;
  struct input_account input[MAX_INPUTS];
  /* negative: weights below 0 */
  int64_t merged_rows, merged_pairs, self_loops, parallel_edges, isolated, saturated,
      scaled_to_zero, negative;
  int64_t weak, weak_weight; /* edges below --min-weight, and their weights in units of the table */
  int64_t weight_sum;        /* of |weight|, in units of the table */
  int64_t above_0, below_0, at_0;                      /* edges by the sign of their impulse */
  json_t *edges_by_transmitter, *nodes_by_transmitter; /* label -> count, or NULL */
};

struct input_account *account_input(struct account *account, const char *role);

/* The place of a reason, made on first use; "further reasons" when there are too many. */
int account_reason(struct input_account *input, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Copies path and facts of a table that was read to its end. */
void account_table(struct input_account *input, const struct table *table);

/* Fatal when kept + dropped is not what was read. */
void account_check(const struct account *account);

json_t *account_inputs_json(const struct account *account);
void account_print(const struct account *account);
void account_free(struct account *account);

#endif
