/* ranks: 1 */
/* seconds: 120 */
/* io/table/table.h on delimited text: numbers exactly, rows that cross blocks and
 * threads, quotes across blocks. */
#include "check.h"
#include "core/mem.h"
#include "io/table/table.h"
#include "io/table/reader.h"

#include <inttypes.h>
#include <omp.h>
#include <unistd.h>

static struct span span_of(const char *text) {
  return (struct span){text, (int64_t)strlen(text)};
}

static void test_ids(void) {
  uint64_t id;
  CHECK(!span_id(span_of("9007199254740993"), &id) && id == 9007199254740993u);
  CHECK(!span_id(span_of(" 18446744073709551615\t"), &id) && id == UINT64_MAX);
  CHECK(!span_id(span_of("007"), &id) && id == 7);
  CHECK(!span_id(span_of("12.0"), &id) && id == 12);
  CHECK(!span_id(span_of("9007199254740991.0"), &id) && id == 9007199254740991u);
  static const char *const bad[] = {"18446744073709551616",
                                    "9007199254740992.0",
                                    "-1",
                                    "",
                                    "1.5",
                                    "x",
                                    "nan",
                                    "99999999999999999999",
                                    "0x10",
                                    "1 2",
                                    "1e400",
                                    "-"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK(span_id(span_of(bad[i]), &id) != NULL);
}

static void test_counts(void) {
  int64_t x;
  CHECK(!span_count(span_of("9.0"), &x) && x == 9);
  CHECK(!span_count(span_of("-2"), &x) && x == -2);
  CHECK(!span_count(span_of("9223372036854775807"), &x) && x == INT64_MAX);
  CHECK(!span_count(span_of("-9223372036854775807"), &x) && x == -INT64_MAX);
  CHECK(!span_count(span_of("1e3"), &x) && x == 1000);
  static const char *const bad[] = {"0.5",   "",     "9223372036854775808", "inf", "1e16", "--1",
                                    "1,000", "9.0.0"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK(span_count(span_of(bad[i]), &x) != NULL);
}

static int64_t decimal(const char *text, int places) {
  int64_t units = -99;
  CHECK(!span_decimal(span_of(text), places, &units));
  return units;
}

static void test_decimals(void) {
  CHECK_EQ(decimal("0.5", 1), 5);
  CHECK_EQ(decimal(" -0.5\t", 3), -500);
  CHECK_EQ(decimal("+12", 2), 1200);
  CHECK_EQ(decimal("1.25e-1", 3), 125);
  CHECK_EQ(decimal("1.5E+2", 0), 150);
  CHECK_EQ(decimal(".25", 1), 2); /* halves to even */
  CHECK_EQ(decimal(".35", 1), 4);
  CHECK_EQ(decimal("-0.25", 1), -2);
  CHECK_EQ(decimal("0.2500001", 1), 3);
  CHECK_EQ(decimal("0.5", 0), 0);
  CHECK_EQ(decimal("1.5", 0), 2);
  CHECK_EQ(decimal("0.05", 0), 0);
  CHECK_EQ(decimal("0.3333333333333333", 9), 333333333);
  CHECK_EQ(decimal("0e999999999999", 9), 0);
  CHECK_EQ(decimal("9223372036.854775807", 9), INT64_MAX);
  CHECK_EQ(decimal("1e-300", 9), 0);
  int64_t x;
  static const char *const bad[] = {"", "x", "1e", "9223372036.854775808", "1e12", "1.2.3", "inf"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK(span_decimal(span_of(bad[i]), 9, &x) != NULL);
}

/* Row i of the large files, from 0: id, count, and a text with everything that is awkward. */
static uint64_t id_of(int64_t i) {
  return (uint64_t)i * 0x9E3779B97F4A7C15u;
}
static int64_t count_of(int64_t i) {
  return (i % 2591) * (i % 2 ? 1 : -1);
}
static int text_of(int64_t i, bool quotes, char *text) {
  if (!quotes)
    return sprintf(text, "name %" PRId64 "%.*s", i * i, (int)(i % 50),
                   "..................................................");
  return sprintf(text, "%" PRId64 ",\"%s\"%s", i, i % 3 ? "\n" : "x", i % 7 ? "" : "\r\n\n");
}

static void write_quoted(FILE *file, const char *text) {
  putc('"', file);
  for (; *text; text++) {
    if (*text == '"') putc('"', file);
    putc(*text, file);
  }
  putc('"', file);
}

/* quoted_from: rows from here on quote their text, so that plain blocks come first. */
static void write_large(const char *path, int64_t rows, int64_t quoted_from) {
  FILE *file = fopen(path, "w");
  char text[200];
  fprintf(file, "\xef\xbb\xbfid,unused,text,count\r\n");
  for (int64_t i = 0; i < rows; i++) {
    text_of(i, i >= quoted_from, text);
    fprintf(file, "%" PRIu64 ",%" PRId64 ",", id_of(i), i);
    if (i >= quoted_from)
      write_quoted(file, text);
    else
      fputs(text, file);
    fprintf(file, ",%" PRId64 "%s", count_of(i), i % 5 ? "\n" : "\r\n\r\n");
  }
  fclose(file);
}

static void read_large(const char *path, int64_t rows, int64_t quoted_from) {
  struct table *t;
  CHECK_FINE(table_open(path, NULL, &t));
  CHECK_EQ(table_n_columns(t), 4);
  CHECK_TEXT(table_column_name(t, 0), "id");
  const struct table_want wants[] = {
      {table_find(t, "id"), TABLE_ID}, {table_find(t, "4"), TABLE_COUNT}, {2, TABLE_TEXT}};
  CHECK_FINE(table_select(t, wants, 3));
  struct table_batch b = {.n = 1};
  int64_t row = 0;
  char text[200];
  for (;;) {
    CHECK_FINE(table_next(t, &b));
    if (!b.n) break;
    CHECK_EQ(b.first_row, row + 1);
    for (int64_t i = 0; i < b.n; i++, row++) {
      const int n = text_of(row, row >= quoted_from, text);
      const struct span s = table_text(&b.column[2], i);
      if (b.column[0].id[i] != id_of(row) || b.column[1].count[i] != count_of(row) || s.n != n ||
          memcmp(s.at, text, (size_t)n))
        DIE(1, "row %" PRId64 " is wrong", row);
    }
  }
  CHECK_EQ(row, rows);
  char sha[DIGEST_TEXT];
  int64_t bytes;
  CHECK_FINE(sha256_file(path, sha, &bytes));
  CHECK_EQ(table_facts(t)->bytes, bytes);
  CHECK_EQ(table_done(t), bytes);
  CHECK_TEXT(table_facts(t)->sha256, sha);
  table_close(t);
}

/* Enough for several blocks. */
static void test_large(const char *path) {
  const int64_t rows = 300000;
  for (int threads = 1; threads <= 4; threads += 3) {
    omp_set_num_threads(threads);
    for (int64_t quoted_from = 0; quoted_from <= rows; quoted_from += rows / 2) {
      write_large(path, rows, quoted_from);
      read_large(path, rows, quoted_from);
    }
  }
}

static struct status first_fault(const char *path, const char *text, enum table_kind kind) {
  FILE *file = fopen(path, "w");
  fputs(text, file);
  fclose(file);
  struct table *t;
  TRY(table_open(path, NULL, &t));
  const struct table_want want = {0, kind};
  struct status s = table_select(t, &want, 1);
  for (struct table_batch b = {.n = 1}; !s.code && b.n;) s = table_next(t, &b);
  table_close(t);
  return s;
}

/* The row and line of a fault are right far into a file that several threads read. */
static void test_fault_far_in(const char *path) {
  const int64_t rows = 2000000;
  for (int64_t bad = 17; bad <= rows; bad += 999983) {
    FILE *file = fopen(path, "w");
    fprintf(file, "a,b\n\n");
    for (int64_t i = 1; i <= rows; i++) fprintf(file, i == bad ? "x,0\n" : "%" PRId64 ",0\n", i);
    fclose(file);
    struct table *t;
    CHECK_FINE(table_open(path, NULL, &t));
    const struct table_want want = {0, TABLE_COUNT};
    CHECK_FINE(table_select(t, &want, 1));
    struct status s = fine();
    for (struct table_batch b = {.n = 1}; !s.code && b.n;) s = table_next(t, &b);
    char wanted[64];
    snprintf(wanted, sizeof wanted, ": row %" PRId64 " (line %" PRId64 "): ", bad, bad + 2);
    CHECK_EQ(s.code, EXIT_INPUT);
    CHECK(strstr(s.text, wanted) != NULL);
    table_close(t);
  }
}

static void test_faults(const char *path) {
  CHECK_EQ(first_fault(path, "a,b\n1,2\n", TABLE_ID).code, 0);
  CHECK(strstr(first_fault(path, "a,b\n1,2\n3\n", TABLE_ID).text, "row 2 (line 3): 1 fields"));
  CHECK(strstr(first_fault(path, "a,b\n\"1\n\",2\n\"3\"x,4\n", TABLE_TEXT).text, "row 2 (line 4)"));
  CHECK(strstr(first_fault(path, "a,b\n1,\"2\n", TABLE_ID).text, "never closed"));
  CHECK(strstr(first_fault(path, "a,b\n1,2\n,4\n", TABLE_ID).text, "row 2"));
  CHECK(first_fault(path, "", TABLE_ID).code == EXIT_INPUT);
}

static void test_scan(const char *path) {
  write_large(path, 1000, 500);
  struct table *t;
  CHECK_FINE(table_scan(path, NULL, &t));
  CHECK_EQ(table_facts(t)->rows, 1000);
  CHECK_TEXT(table_facts(t)->format, "delimited text (comma, header)");
  table_close(t);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  char path[] = "/tmp/fascicle_table_XXXXXX";
  const int fd = mkstemp(path);
  CHECK(fd >= 0);
  close(fd);
  test_ids();
  test_counts();
  test_decimals();
  test_large(path);
  test_fault_far_in(path);
  test_faults(path);
  test_scan(path);
  unlink(path);
  CHECK_EQ(mem_held(), 0);
  return test_end();
}
