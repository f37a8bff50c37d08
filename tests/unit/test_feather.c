/* ranks: 1 */
/* io/feather*: values and FlatBuffers by hand. With arguments it is the tool of
 * tests/cli/test_feather.py:
 *
 *   test_feather LIST
 *
 * Each line of LIST: FILE, OUTPUT, then COLUMN:KIND (id, count or text), blank-separated. To OUTPUT
 * go the code and message of the first failure, and the rows that came before it: ids and counts in
 * decimal, texts in hexadecimal. */
#include "check.h"
#include "io/table/feather_value.h"
#include "core/mem.h"
#include "io/table/table.h"

#include <inttypes.h>

static void test_values(void) {
  char text[VALUE_TEXT];
  const struct arrow_value f64 = {ARROW_FLOAT, 8, true}, f32 = {ARROW_FLOAT, 4, true},
                           f16 = {ARROW_FLOAT, 2, true};
  const struct arrow_value i8 = {ARROW_INT, 1, true}, u8 = {ARROW_INT, 1, false};
  const double tenth = 0.1, large = 9007199254740992.0, whole = 12345;
  const float third = 1.0f / 3;
  const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7bff};
  const uint8_t byte = 0xff;
  value_text(&f64, (const uint8_t *)&tenth, text);
  CHECK_TEXT(text, "0.1");
  value_text(&f64, (const uint8_t *)&whole, text);
  CHECK_TEXT(text, "12345");
  value_text(&f32, (const uint8_t *)&third, text);
  CHECK_TEXT(text, "0.33333334");
  value_text(&f16, (const uint8_t *)&halves[1], text);
  CHECK_TEXT(text, "-2");
  value_text(&f16, (const uint8_t *)&halves[3], text);
  CHECK(strtod(text, NULL) == 65504);
  value_text(&i8, &byte, text);
  CHECK_TEXT(text, "-1");
  value_text(&u8, &byte, text);
  CHECK_TEXT(text, "255");
  uint64_t id;
  int64_t count;
  CHECK(!value_id(&f64, (const uint8_t *)&whole, &id) && id == 12345);
  CHECK(value_id(&f64, (const uint8_t *)&large, &id) != NULL);
  CHECK(value_id(&f64, (const uint8_t *)&tenth, &id) != NULL);
  CHECK(value_id(&i8, &byte, &id) != NULL);
  CHECK(!value_count(&i8, &byte, &count) && count == -1);
  CHECK(!value_count(&u8, &byte, &count) && count == 255);
}

/* 16 bytes: a vtable at 4 with one field, the root table at 10, the field's value 7 at 14. */
static void test_flat(void) {
  const uint8_t good[16] = {10, 0, 0, 0, 6, 0, 6, 0, 4, 0, 6, 0, 0, 0, 7, 0};
  struct flat f = {good, sizeof good, false};
  const int64_t root = flat_root(&f);
  CHECK_EQ(root, 10);
  CHECK_EQ(flat_int(&f, root, 0, 1, 9), 7);
  CHECK_EQ(flat_int(&f, root, 1, 1, 9), 9);
  CHECK(!f.bad);
  for (int at = 0; at < 16; at++)
    for (int value = 0; value < 256; value++) { /* whatever a byte says, nothing outside is read */
      uint8_t bytes[16];
      memcpy(bytes, good, sizeof bytes);
      bytes[at] = (uint8_t)value;
      struct flat g = {bytes, sizeof bytes, false};
      int64_t n;
      const int64_t table = flat_root(&g);
      flat_int(&g, table, 0, 8, 0), flat_table(&g, table, 0), flat_text(&g, table, 0, &n);
      CHECK(n >= 0 && n <= 16);
    }
}

/* ---- the tool ---- */

static void print_rows(FILE *out, const struct table_batch *b, const struct table_want *wants,
                       int n) {
  for (int64_t i = 0; i < b->n; i++) {
    for (int w = 0; w < n; w++) {
      const struct table_column *c = &b->column[w];
      if (w) putc(' ', out);
      if (wants[w].kind == TABLE_ID) fprintf(out, "%" PRIu64, c->id[i]);
      if (wants[w].kind == TABLE_COUNT) fprintf(out, "%" PRId64, c->count[i]);
      for (int64_t k = 0; wants[w].kind == TABLE_TEXT && k < table_text(c, i).n; k++)
        fprintf(out, "%02x", (unsigned char)table_text(c, i).at[k]);
      if (wants[w].kind == TABLE_TEXT) putc('.', out);
    }
    putc('\n', out);
  }
}

static struct status dump(FILE *out, const char *path, char *words) {
  struct table *t;
  TRY(table_open(path, NULL, &t));
  struct table_want wants[64];
  int n = 0;
  for (char *word; (word = strsep(&words, " \n"));) {
    char *colon = strrchr(word, ':');
    if (!colon) continue;
    *colon = 0;
    wants[n].column = table_find(t, word);
    wants[n++].kind = colon[1] == 'i' ? TABLE_ID : colon[1] == 'c' ? TABLE_COUNT : TABLE_TEXT;
    if (wants[n - 1].column < 0) {
      const struct status absent = table_no_column(t, word, "");
      table_close(t);
      return absent;
    }
  }
  struct status s = table_select(t, wants, n);
  for (struct table_batch b = {.n = 1}; !s.code && b.n;) {
    s = table_next(t, &b);
    if (!s.code) print_rows(out, &b, wants, n);
  }
  if (!s.code)
    fprintf(out, "rows %" PRId64 " sha256 %s format %s\n", table_facts(t)->rows,
            table_facts(t)->sha256, table_facts(t)->format);
  table_close(t);
  return s;
}

static int run_list(const char *list) {
  FILE *in = fopen(list, "r");
  char line[8192];
  while (fgets(line, sizeof line, in)) {
    char *rest = line, *path = strsep(&rest, " "), *output = strsep(&rest, " ");
    FILE *out = fopen(output, "w");
    const struct status s = dump(out, path, rest);
    if (s.code) fprintf(out, "failed %d %s\n", s.code, s.text);
    fclose(out);
    if (mem_held()) DIE(1, "%s: %" PRId64 " bytes were not given back", path, mem_held());
  }
  fclose(in);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return run_list(argv[1]);
  test_start(&argc, &argv);
  test_values();
  test_flat();
  return test_end();
}
