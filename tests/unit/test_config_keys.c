/* ranks: 1 */
/* Keys of a configuration from a table: each kind read, checked, defaulted and written; and every
 * bound that the table of a training names is the one that holds. */
#include "check.h"
#include "run/config_keys.h"
#include "train/config.h"

#include <math.h>

enum colour { RED, GREEN };

struct inner {
  double x;
};

struct example {
  int64_t count;
  double rate;
  bool flag;
  enum colour colour;
  struct inner inner;
};

#define AT(member) .offset = offsetof(struct example, member)

static const struct config_key inner_keys[] = {
    {"x", CONFIG_REAL, .offset = offsetof(struct inner, x), .low = -1, .high = 1,
     .initially = "0.25", .help = ""},
};
static const struct config_table inner_table = CONFIG_TABLE("inner", inner_keys);
static const struct config_key example_keys[] = {
    {"count", CONFIG_INT, AT(count), INT64_MIN, INT64_MAX, .help = ""},
    {"rate", CONFIG_REAL, AT(rate), .high = 5, .initially = "2.5", .help = ""},
    {"flag", CONFIG_FLAG, AT(flag), .initially = "true", .help = ""},
    {"colour", CONFIG_WORD, AT(colour), .words = "red|green", .initially = "\"green\"", .help = ""},
    {"inner", CONFIG_OBJECT, AT(inner), .inner = &inner_table, .help = ""},
    {"list", CONFIG_OTHER, .initially = "[1]", .help = ""},
    {"about", CONFIG_OTHER, .initially = "", .help = ""},
};
static const struct config_table table = CONFIG_TABLE("example", example_keys);

static struct status read_text(const char *text, struct example *e) {
  json_t *json;
  CHECK_FINE(json_from_text(text, "t", &json));
  config_defaults(&table, e);
  const struct status s = config_read(&table, json, "t", e);
  json_decref(json);
  return s;
}

static void test_reading(void) {
  struct example e = {0};
  CHECK_FINE(read_text("{\"count\": 9223372036854775807}", &e));
  CHECK(e.count == INT64_MAX && e.rate == 2.5 && e.flag && e.colour == GREEN && e.inner.x == 0.25);
  CHECK_FINE(
      read_text("{\"count\": -9223372036854775808, \"rate\": 5, \"flag\": false, \"colour\": "
                "\"red\", \"inner\": {\"x\": -1}, \"list\": 3, \"about\": null}",
                &e));
  CHECK(e.count == INT64_MIN && e.rate == 5 && !e.flag && e.colour == RED && e.inner.x == -1);
}

static void test_refusals(void) {
  static const char *const cases[][2] = {
      {"{}", "t: \"count\" is missing; it has no default"},
      {"[]", "t: an object { } is wanted"},
      {"{\"count\": 1, \"many\": 1}",
       "t: unknown key \"many\"; known are count, rate, flag, colour, inner, list, about"},
      {"{\"count\": 1.5}", "t: \"count\" is 1.5; an integer is wanted"},
      {"{\"count\": 1, \"rate\": 5.5}", "t: \"rate\" is 5.5; it must lie in 0..5"},
      {"{\"count\": 1, \"rate\": null}", "t: \"rate\" is null; a number is wanted"},
      {"{\"count\": 1, \"flag\": 1}", "t: \"flag\" is 1; true or false is wanted"},
      {"{\"count\": 1, \"colour\": \"gree\"}",
       "t: \"colour\" is \"gree\"; it must be one of red|green"},
      {"{\"count\": 1, \"colour\": \"\"}", "t: \"colour\" is \"\"; it must be one of red|green"},
      {"{\"count\": 1, \"colour\": 1}", "t: \"colour\" is 1; a string is wanted"},
      {"{\"count\": 1, \"inner\": 7}", "t: inner: an object { } is wanted"},
      {"{\"count\": 1, \"inner\": {\"y\": 0}}", "t: inner: unknown key \"y\"; known are x"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct example e = {0};
    const struct status s = read_text(cases[i][0], &e);
    CHECK_EQ(s.code, EXIT_USAGE);
    CHECK_TEXT(s.text, cases[i][1]);
  }
}

static void check_line(json_t *json, const char *wanted) {
  char *line = json_line(json);
  CHECK_TEXT(line, wanted);
  free(line);
  json_decref(json);
}

static void test_writing(void) {
  const struct example e = {3, 1.5, true, RED, {0.5}};
  check_line(config_json(&table, &e), "{\"count\":3,\"rate\":1.5,\"flag\":true,\"colour\":\"red\","
                                      "\"inner\":{\"x\":0.5}}");
  json_t *json;
  CHECK_FINE(json_from_text("{\"rate\": 1, \"inner\": {}}", "t", &json));
  config_fill(&table, json);
  check_line(json, "{\"rate\":1,\"inner\":{\"x\":0.25},\"flag\":true,\"colour\":\"green\","
                   "\"list\":[1]}");
}

/* Whether the training takes this value of this key. */
static bool taken(const char *above, const char *name, json_t *value) {
  json_t *json = json_object(), *object = json;
  if (*above) json_object_set_new(json, above, object = json_object());
  json_object_set_new(object, name, value);
  struct train_config config;
  const struct status s = train_config_read(json, "t", &config);
  json_decref(json);
  CHECK(!s.code || s.code == EXIT_USAGE);
  return !s.code;
}

static void check_bounds(const struct config_table *of, const char *above) {
  for (int i = 0; i < of->n; i++) {
    const struct config_key *k = &of->key[i];
    if (k->kind == CONFIG_OBJECT) check_bounds(k->inner, k->name);
    if (k->kind == CONFIG_INT) {
      CHECK(taken(above, k->name, json_integer(k->int_low)));
      CHECK(taken(above, k->name, json_integer(k->int_high)));
      CHECK(!taken(above, k->name, json_integer(k->int_low - 1)));
      CHECK(!taken(above, k->name, json_integer(k->int_high + 1)));
    }
    if (k->kind == CONFIG_REAL) {
      CHECK(taken(above, k->name, json_real(k->low)));
      CHECK(taken(above, k->name, json_real(k->high)));
      CHECK(!taken(above, k->name, json_real(nextafter(k->low, -INFINITY))));
      CHECK(!taken(above, k->name, json_real(nextafter(k->high, INFINITY))));
    }
  }
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  test_reading();
  test_refusals();
  test_writing();
  check_bounds(&train_config_keys, "");
  return test_end();
}
