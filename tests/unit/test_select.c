/* ranks: 1 */
/* Selections and lif.json: what is chosen, what is refused, what is filled in. */
#include "check.h"
#include "simulate/config.h"
#include "core/mem.h"

enum { N = 6 };
static const uint64_t ids[N] = {
    7, 10, 9007199254740992u, 9007199254740993u, 18446744073709551614u, 18446744073709551615u};
static char *labels[] = {"", "A", "B"};
static uint32_t codes[N] = {1, 2, 1, 0, 2, 1};
static char *columns[] = {"side", "superclass", NULL}, *numbers_named[] = {"sign", "x", NULL};
static char *words[N] = {"ADAL", "ADAR", "ADEL", "AVAL", "AVAR", "RIML"};

static struct neurons numbered(void) {
  return (struct neurons){.population = "p",
                          .n = N,
                          .body_id = (uint64_t *)ids,
                          .column = columns,
                          .number = numbers_named,
                          .type = {.name = "type", .n_labels = 3, .label = labels, .code = codes}};
}

static json_t *parse(const char *text) {
  json_t *json;
  CHECK_FINE(json_from_text(text, "text", &json));
  return json;
}

/* The nodes that a SELECT chooses, as a text of digits. */
static const char *chosen(const struct neurons *neurons, const char *text,
                          struct unknown *unknown) {
  static char digits[N + 1];
  struct selection s;
  json_t *json = parse(text);
  CHECK_FINE(select_neurons(neurons, json, "c.json: x", unknown, &s));
  for (int64_t i = 0; i < s.n; i++) digits[i] = (char)('0' + s.node[i]);
  digits[s.n] = 0;
  selection_free(&s);
  json_decref(json);
  return digits;
}

static void test_choices(void) {
  const struct neurons numbers = numbered();
  struct neurons names = {.population = "p", .n = N, .body_id = (uint64_t *)ids, .name = words};
  struct unknown unknown = {0};
  CHECK_TEXT(chosen(&numbers, "\"all\"", &unknown), "012345");
  CHECK_TEXT(chosen(&numbers,
                    "{\"body_ids\": [10, \"9007199254740993\", \"18446744073709551615\"]}",
                    &unknown),
             "135");
  CHECK_TEXT(chosen(&numbers, "{\"types\": [\"A\"], \"indices\": [5, 4, 4]}", &unknown), "0245");
  CHECK_TEXT(chosen(&numbers, "{\"types\": [\"\"]}", &unknown), "3");
  CHECK_TEXT(chosen(&numbers, "{\"indices\": []}", &unknown), "");
  CHECK_TEXT(chosen(&names, "{\"names\": [\"RIML\", \"ADAL\", \"AVAR\"]}", &unknown), "045");
  CHECK_EQ(unknown.n, 0);
  CHECK_EQ(unknown_status(&unknown, "c.json").code, 0);
}

static void test_unknown(void) {
  const struct neurons numbers = numbered();
  struct unknown unknown = {0};
  CHECK_TEXT(chosen(&numbers, "{\"body_ids\": [8, 7], \"types\": [\"C\"], \"indices\": [6, -1]}",
                    &unknown),
             "0");
  CHECK_EQ(unknown.n, 4);
  const struct status s = unknown_status(&unknown, "c.json");
  CHECK_EQ(s.code, EXIT_USAGE);
  CHECK(strstr(s.text, "body id 8 (x), type \"C\" (x), index 6 (x), index -1 (x)"));
  for (int i = 0; i < 500; i++) chosen(&numbers, "{\"indices\": [123456]}", &unknown);
  CHECK_EQ(unknown.n, 504);
  CHECK(strlen(unknown_status(&unknown, "c.json").text) < 900); /* shortened, not cut in a word */
  CHECK(strstr(unknown_status(&unknown, "c.json").text, " ...; "));
}

static void refuse(const char *text, const char *why) {
  const struct neurons numbers = numbered();
  struct unknown unknown = {0};
  struct selection s;
  json_t *json = parse(text);
  const struct status status = select_neurons(&numbers, json, "c.json: x", &unknown, &s);
  CHECK_EQ(status.code, EXIT_USAGE);
  CHECK(strstr(status.text, why));
  json_decref(json);
}

static void test_forms(void) {
  refuse("{}", "chosen by");
  refuse("[1, 2]", "chosen by");
  refuse("\"some\"", "chosen by");
  refuse("{\"ids\": [1]}", "unknown key \"ids\"");
  refuse("{\"ids\": [1]}", "has: side, superclass");
  refuse("{\"x\": [\"1\"]}", "column \"x\" of the graph holds numbers");
  refuse("{\"types\": \"A\"}", "must be a list");
  refuse("{\"types\": [1]}", "must be strings");
  refuse("{\"indices\": [1.0]}", "must be integers");
  refuse("{\"body_ids\": [7.0]}", "no id");
  refuse("{\"names\": [\"ADAL\"]}", "use body_ids");
}

/* A graph without types says so, and what it has. */
static void test_no_such_column(void) {
  struct neurons bare = numbered();
  struct unknown unknown = {0};
  struct selection s;
  bare.type = (struct node_column){0};
  json_t *json = parse("{\"types\": [\"motor\"]}");
  const struct status status = select_neurons(&bare, json, "c.json: x", &unknown, &s);
  CHECK_EQ(status.code, EXIT_USAGE);
  CHECK(strstr(status.text, "no column \"type\"; columns that it has: side, superclass"));
  CHECK_EQ(unknown.n, 0);
  json_decref(json);
}

static void test_config(void) {
  const struct neurons numbers = numbered();
  struct lif_config c;
  json_t *json =
      parse("{\"threshold\": 5, \"decay_shifts\": [1, 2], \"dt_ms\": 0.5, \"stimulus\": ["
            "{\"neurons\": \"all\", \"kind\": \"poisson\", \"rate_hz\": 2000, \"weight\": -3}]}");
  CHECK_FINE(lif_config_read(json, "c.json", &numbers, &c));
  CHECK_EQ(c.params.threshold, 5);
  CHECK_EQ(c.params.n_shifts, 2);
  CHECK(c.input[0].probability == 1.0 && c.input[0].value == -3 &&
        c.input[0].last_step == INT64_MAX);
  CHECK(c.record_all && c.recorded_every == 0 && c.seed == 1);
  lif_config_free(&c);
  /* The resolved configuration reads to the same and is complete. */
  json_t *again = json_deep_copy(json);
  CHECK_FINE(lif_config_read(again, "c.json", &numbers, &c));
  CHECK(json_equal(json, again) && json_integer_value(json_object_get(json, "reset")) == 0);
  lif_config_free(&c);
  json_decref(json), json_decref(again);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  test_choices();
  test_unknown();
  test_forms();
  test_no_such_column();
  test_config();
  return test_end();
}
