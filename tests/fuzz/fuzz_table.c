/* Tables, delimited text and Feather: byte 0 chooses the kind in which columns are wanted, the rest
 * is the file. Every column that can be read is read, to the end or the first fault. */
#include "fuzz.h"
#include "core/log.h"
#include "io/table/table.h"

enum { MOST_ROWS = 1 << 20 };

static struct status read_all(struct table *t, enum table_kind kind) {
  struct table_want wants[16];
  const int n = table_n_columns(t) < 16 ? table_n_columns(t) : 16;
  for (int i = 0; i < n; i++) {
    wants[i] = (struct table_want){i, kind};
    table_looks_numeric(t, i), table_find(t, table_column_name(t, i)), table_column_type(t, i);
  }
  TRY(table_select(t, wants, n));
  int64_t rows = 0, sum = 0;
  for (struct table_batch b = {.n = 1}; b.n && rows < MOST_ROWS; rows += b.n) {
    TRY(table_next(t, &b));
    for (int w = 0; w < n; w++)
      for (int64_t i = 0; i < b.n; i++) {
        if (kind == TABLE_ID) sum += (int64_t)(b.column[w].id[i] & 1);
        if (kind == TABLE_COUNT) sum += b.column[w].count[i] & 1;
        if (kind == TABLE_TEXT)
          for (int64_t k = b.column[w].at[i]; k < b.column[w].at[i + 1]; k++)
            sum += b.column[w].text[k];
      }
  }
  return sum == 1 ? failure(EXIT_INPUT, "the sum is 1")
                  : fine(); /* so that the reads are not left out */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  struct table *t;
  struct status s = table_open(fuzz_file("table", data + 1, size - 1), NULL, &t);
  if (!s.code) {
    s = read_all(t, (enum table_kind)(data[0] % 3));
    table_close(t);
  }
  if (s.code && (s.code != EXIT_INPUT || !*s.text)) abort();
  return 0;
}
