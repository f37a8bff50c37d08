/* The account of every row of the tables: counted, printed, written as JSON. */
#include "account.h"
#include "core/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct input_account *account_input(struct account *a, const char *role) {
  for (int i = 0; i < a->n_inputs; i++)
    if (!strcmp(a->input[i].role, role)) return &a->input[i];
  ASSERT(a->n_inputs < MAX_INPUTS);
  struct input_account *input = &a->input[a->n_inputs++];
  *input = (struct input_account){.role = role, .columns = json_object()};
  return input;
}

int account_reason(struct input_account *input, const char *format, ...) {
  char text[160];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  for (int i = 0; i < input->n_reasons; i++)
    if (!strcmp(input->reason[i].text, text)) return i;
  if (input->n_reasons == MAX_REASONS) return MAX_REASONS - 1;
  const char *kept = input->n_reasons == MAX_REASONS - 1 ? "further reasons" : text;
  input->reason[input->n_reasons] = (struct reason){mem_string(kept), 0};
  return input->n_reasons++;
}

void account_table(struct input_account *input, const struct table *table) {
  mem_free(input->path);
  input->path = mem_string(table_path(table));
  input->facts = *table_facts(table);
}

void account_check(const struct account *a) {
  for (int i = 0; i < a->n_inputs; i++) {
    const struct input_account *in = &a->input[i];
    int64_t rows = in->kept;
    for (int r = 0; r < in->n_reasons; r++) rows += in->reason[r].rows;
    if (rows != in->facts.rows)
      DIE(EXIT_RUNTIME, "%s: %lld rows were read, %lld accounted for", in->path,
          (long long)in->facts.rows, (long long)rows);
  }
}

static json_t *input_json(const struct input_account *in) {
  json_t *dropped = json_object();
  for (int r = 0; r < in->n_reasons; r++)
    if (in->reason[r].rows)
      json_object_set_new(dropped, in->reason[r].text, json_integer(in->reason[r].rows));
  const char *slash = strrchr(in->path, '/');
  return json_pack("{s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:o, s:O, s:O*}", "role", in->role, "file",
                   slash ? slash + 1 : in->path, "format", in->facts.format, "bytes",
                   (json_int_t)in->facts.bytes, "sha256", in->facts.sha256, "rows",
                   (json_int_t)in->facts.rows, "kept", (json_int_t)in->kept, "dropped", dropped,
                   "columns", in->columns, "columns_left_out", in->left_out);
}

json_t *account_inputs_json(const struct account *a) {
  json_t *list = json_array();
  for (int i = 0; i < a->n_inputs; i++) json_array_append_new(list, input_json(&a->input[i]));
  return list;
}

/* Which column was taken for what, since defaults choose among several names. */
static void print_columns(const struct input_account *in) {
  const char *role, *gap = "  columns ";
  json_t *column;
  json_object_foreach(in->columns, role, column) {
    printf("%s%s = %s", gap, role, json_string_length(column) ? json_string_value(column) : "''");
    gap = ", ";
  }
  if (json_object_size(in->columns)) putchar('\n');
  for (size_t i = 0; i < json_array_size(in->left_out); i++)
    printf(
        "%s%s",
        i ? ", "
          : "  left out, since they hold neither labels nor numbers (--node-columns keeps them): ",
        json_string_value(json_array_get(in->left_out, i)));
  if (json_array_size(in->left_out)) putchar('\n');
}

void account_print(const struct account *a) {
  for (int i = 0; i < a->n_inputs; i++) {
    const struct input_account *in = &a->input[i];
    printf("%s: %s, %lld bytes, sha256 %.16s...\n", in->path, in->facts.format,
           (long long)in->facts.bytes, in->facts.sha256);
    printf("  %13lld rows read\n  %13lld kept\n", (long long)in->facts.rows, (long long)in->kept);
    print_columns(in);
    for (int r = 0; r < in->n_reasons; r++)
      if (in->reason[r].rows)
        printf("  %13lld dropped: %s\n", (long long)in->reason[r].rows, in->reason[r].text);
  }
}

void account_free(struct account *a) {
  for (int i = 0; i < a->n_inputs; i++) {
    for (int r = 0; r < a->input[i].n_reasons; r++) mem_free(a->input[i].reason[r].text);
    mem_free(a->input[i].path);
    json_decref(a->input[i].columns), json_decref(a->input[i].left_out);
  }
  json_decref(a->edges_by_transmitter), json_decref(a->nodes_by_transmitter);
  *a = (struct account){0};
}
