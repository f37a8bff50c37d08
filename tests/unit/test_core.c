/* ranks: 1 2 4 */
/* core/: random numbers against published values, digests, agreement, gathers, JSON, rows. */
#include "check.h"
#include "core/digest.h"
#include "core/json.h"
#include "core/mem.h"
#include "core/numbers.h"
#include "core/rng.h"
#include "core/units.h"
#include "core/words.h"
#include "partition/rows.h"

#include <unistd.h>

/* Known answers of Philox4x32-10 (Random123's kat_vectors). */
static void test_philox(void) {
  struct rng_block r = rng_draw(0, 0, 0, 0, 0);
  CHECK(r.v[0] == 0x6627e8d5 && r.v[1] == 0xe169c58d && r.v[2] == 0xbc57ac4c &&
        r.v[3] == 0x9b00dbd8);
  r = rng_draw(~0ull, ~0u, ~0u, ~0u, ~0u);
  CHECK(r.v[0] == 0x408f276d && r.v[1] == 0x41c83b0e && r.v[2] == 0xa20bc7c6 &&
        r.v[3] == 0x6d5451fd);
  r = rng_draw(0x299f31d0a4093822ull, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344);
  CHECK(r.v[0] == 0xd16cfe09 && r.v[1] == 0x94fdcceb && r.v[2] == 0x5001e420 &&
        r.v[3] == 0x24126ea1);
}

/* Splitmix64 from the seed 0: its first three numbers (the finish of 1, 2 and 3
 * times the golden ratio). */
static void test_numbers(void) {
  const uint64_t golden = 0x9E3779B97F4A7C15u;
  CHECK(mix_u64(golden) == 0xE220A8397B1DCDAFu && mix_u64(2 * golden) == 0x6E789E6AA1B965F4u &&
        mix_u64(3 * golden) == 0x06C45D188009454Fu);
  int64_t x[] = {5, INT64_MIN, -1, INT64_MAX, 5, 0};
  const int64_t sorted[] = {INT64_MIN, -1, 0, 5, 5, INT64_MAX};
  sort_i64(x, 6), sort_i64(NULL, 0);
  CHECK(!memcmp(x, sorted, sizeof x));
  CHECK_EQ(find_i64(x, 6, 5), 3);
  CHECK_EQ(find_i64(x, 6, 6), 5);
  CHECK_EQ(find_i64(x, 6, INT64_MIN), 0);
  CHECK_EQ(find_i64(x, 5, INT64_MAX), 5);
  CHECK(least_i64(-3, 2) == -3 && most_i64(-3, 2) == 2);
}

static void test_digest(void) {
  struct sha256 s;
  char text[DIGEST_TEXT];
  sha256_init(&s);
  sha256_add(&s, "abc", 3);
  sha256_end(&s, text);
  CHECK_TEXT(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  struct sum128 a = {0}, b = {0};
  sum128_add(&a, edge_hash(1, 2, 3, 4)), sum128_add(&a, edge_hash(5, 6, -7, 8));
  sum128_add(&b, edge_hash(5, 6, -7, 8)), sum128_add(&b, edge_hash(1, 2, 3, 4));
  CHECK(a.low == b.low && a.high == b.high);
  struct sum128 c = edge_hash(2, 1, 3, 4), d = edge_hash(1, 2, 3, 4);
  CHECK(c.low != d.low);
  enum { EDGES = 600 }; /* more than two blocks */
  uint32_t pre[EDGES], post[EDGES];
  int16_t weight[EDGES];
  uint16_t delay[EDGES];
  struct sum128 one = {0};
  for (int i = 0; i < EDGES; i++) {
    pre[i] = (uint32_t)i * 2654435761u, post[i] = ~pre[i], weight[i] = (int16_t)(i - 300),
    delay[i] = (uint16_t)(i % 9);
    sum128_add(&one, edge_hash(pre[i], post[i], weight[i], delay[i]));
  }
  const struct sum128 many = edge_hash_sum(EDGES, pre, post, weight, delay, 0);
  CHECK(one.low == many.low && one.high == many.high);
}

static void test_agree(void) {
  CHECK_EQ(agree(&world, fine()).code, 0);
  struct status mine =
      world.rank == world.size - 1 ? failure(EXIT_INPUT, "rank %d", world.rank) : fine();
  struct status s = agree(&world, mine);
  CHECK_EQ(s.code, EXIT_INPUT);
  char wanted[32];
  snprintf(wanted, sizeof wanted, "rank %d", world.size - 1);
  CHECK_TEXT(s.text, wanted);
}

static void test_gather(void) {
  int64_t mine[3] = {world.rank, world.rank * 10, world.rank * 100},
          *counts = NEW(int64_t, world.size);
  const int64_t n = world.rank % 3; /* rank 0 gives nothing */
  int64_t *all = comm_gather_varied(&world, mine, n, sizeof *mine, counts), at = 0;
  for (int r = 0; r < world.size; r++) {
    CHECK_EQ(counts[r], r % 3);
    for (int i = 0; i < r % 3; i++) CHECK_EQ(all[at++], i == 0 ? r : r * 10);
  }
  mem_free(all), mem_free(counts);
  CHECK(comm_equal(&world, "same", 4));
  if (world.size > 1) CHECK(!comm_equal(&world, world.rank ? "b" : "a", 1));
  double x = 0.1 * (world.rank + 1), sum = 0;
  for (int r = 0; r < world.size; r++) sum += 0.1 * (r + 1);
  comm_sum_f64(&world, &x, 1);
  CHECK(x == sum);
}

static void test_swap(void) {
  int64_t *send_n = NEW(int64_t, world.size), *recv_n = NEW(int64_t, world.size), total = 0;
  for (int r = 0; r < world.size; r++) total += send_n[r] = r; /* r copies of my rank to rank r */
  int *send = NEW(int, total + 1);
  for (int64_t i = 0; i < total; i++) send[i] = world.rank;
  int *got = comm_swap_varied(&world, send, send_n, sizeof *send, recv_n);
  for (int r = 0; r < world.size; r++) {
    CHECK_EQ(recv_n[r], world.rank);
    for (int i = 0; i < world.rank; i++) CHECK_EQ(got[r * world.rank + i], r);
  }
  mem_free(send_n), mem_free(recv_n), mem_free(send), mem_free(got);
}

static void test_json(void) {
  json_t *json;
  CHECK_FINE(json_from_text("{\"a\": 3, \"big\": \"720575940661339777\"}", "text", &json));
  int64_t a = 0;
  CHECK_FINE(json_take_int(json, "text", "a", 0, 5, &a));
  CHECK_EQ(a, 3);
  CHECK_EQ(json_take_int(json, "text", "a", 0, 2, &a).code, EXIT_USAGE);
  uint64_t id;
  CHECK_FINE(json_big_id(json_object_get(json, "big"), "text", &id));
  CHECK(id == 720575940661339777u);
  CHECK_FINE(json_set_path(json, "optimizer.clip=0.5"));
  CHECK(json_real_value(json_object_get(json_object_get(json, "optimizer"), "clip")) == 0.5);
  static const char *const known[] = {"a", "big"};
  CHECK_EQ(json_only_keys(json, "text", known, 2).code, EXIT_USAGE);
  json_decref(json);
  CHECK_EQ(json_from_text("{\"a\":1,\"a\":2}", "text", &json).code, EXIT_USAGE);
  char path[] = "/tmp/fascicle_json_XXXXXX";
  const int file = mkstemp(path); /* each rank has its own */
  CHECK_EQ(write(file, "{\"a\":1,\"a\":2}", 13), 13);
  CHECK_EQ(json_from_file(path, &json).code, EXIT_USAGE);
  close(file), unlink(path);
  CHECK_EQ(json_from_file(path, &json).code, EXIT_USAGE);
  CHECK_EQ(json_from_file("/tmp", &json).code, EXIT_USAGE);
}

/* The object after one --set, as a line. */
static void check_set(const char *before, const char *assignment, const char *after) {
  json_t *json;
  CHECK_FINE(json_from_text(before, "text", &json));
  CHECK_FINE(json_set_path(json, assignment));
  char *line = json_line(json);
  CHECK_TEXT(line, after);
  free(line), json_decref(json);
}

static void check_no_set(const char *before, const char *assignment, const char *says) {
  json_t *json;
  CHECK_FINE(json_from_text(before, "text", &json));
  const struct status s = json_set_path(json, assignment);
  CHECK_EQ(s.code, EXIT_USAGE);
  CHECK(strstr(s.text, assignment) != NULL);
  if (!strstr(s.text, says)) DIE(1, "'%s' does not say '%s'", s.text, says);
  char *line = json_line(json);
  CHECK_TEXT(line, before);
  free(line), json_decref(json);
}

static void test_set(void) {
  const char *two = "{\"stimulus\":[{\"rate_hz\":5},{\"rate_hz\":6}]}";
  check_set(two, "stimulus.0.rate_hz=20", "{\"stimulus\":[{\"rate_hz\":20},{\"rate_hz\":6}]}");
  check_set(two, "stimulus.1={\"value\":3}", "{\"stimulus\":[{\"rate_hz\":5},{\"value\":3}]}");
  check_set(two, "stimulus.2.value=3",
            "{\"stimulus\":[{\"rate_hz\":5},{\"rate_hz\":6},{\"value\":3}]}");
  check_set(two, "stimulus=[]", "{\"stimulus\":[]}");
  check_set("{\"s\":[]}", "s.0=word", "{\"s\":[\"word\"]}");
  check_set("{\"a\":[[1,2],[3]]}", "a.0.1=true", "{\"a\":[[1,true],[3]]}");
  check_set("{}", "a.b.c=1.5", "{\"a\":{\"b\":{\"c\":1.5}}}");
  check_no_set(two, "stimulus.3.rate_hz=20", "\"stimulus\" has no entry 3; its entries are 0..1");
  check_no_set(two, "stimulus.first.rate_hz=20", "\"stimulus\" has no entry first");
  check_no_set(two, "stimulus.-1=20", "\"stimulus\" has no entry -1");
  check_no_set(two, "stimulus.0.rate_hz.x=20", "\"stimulus.0.rate_hz\" is 5, which has no members");
  check_no_set("{\"s\":[]}", "s.1=2", "\"s\" is empty");
  check_no_set("{}", "stimulus.0.rate_hz=20", "there is no list \"stimulus\"");
  check_no_set("{}", "=20", "it must read key=value");
}

static void check_near(const char *word, const char *typed, bool near) {
  CHECK_EQ(word_distance(word, typed, strlen(typed)) < WORD_FAR, near);
}

static void test_words(void) {
  check_near("simulate", "simulat", true), check_near("simulate", "sim", true);
  check_near("train", "trian", true), check_near("inspect", "insepct", true);
  check_near("plan", "info", false), check_near("plan", "train", false);
  check_near("simulate", "nonsense", false), check_near("order", "", false);
  CHECK_EQ(word_distance("output", "outputs=3", 7), 1);
  CHECK_EQ(word_distance("output", "output", 6), 0);
}

static void test_units(void) {
  char text[UNITS_TEXT];
  CHECK_TEXT(units_count(0, text), "0");
  CHECK_TEXT(units_count(-1234567, text), "-1,234,567");
  CHECK_TEXT(units_count(INT64_MIN + 1, text), "-9,223,372,036,854,775,807");
  CHECK_TEXT(units_bytes(0, text), "0 bytes");
  CHECK_TEXT(units_bytes(999, text), "999 bytes");
  CHECK_TEXT(units_bytes(1000, text), "1.00 kB");
  CHECK_TEXT(units_bytes(999999, text), "1.00 MB");
  CHECK_TEXT(units_bytes(436694928, text), "437 MB");
  CHECK_TEXT(units_bytes(99960000, text), "100 MB");
  CHECK_TEXT(units_bytes(9999000000, text), "10.0 GB");
  CHECK_TEXT(units_memory(1023, text), "1023 bytes");
  CHECK_TEXT(units_memory((int64_t)3 << 29, text), "1.50 GiB");
  CHECK_TEXT(units_time(0.05319, text), "53.2 ms");
  CHECK_TEXT(units_time(1.29e-7, text), "129 ns");
  CHECK_TEXT(units_time(59.99, text), "1.00 min");
  CHECK_TEXT(units_time(5400, text), "1.50 h");
  CHECK_TEXT(units_time(86400 * 12.5, text), "12.5 days");
  CHECK_TEXT(units_time(0, text), "0 ns");
}

static void test_rows(void) {
  const eidx row_ptr[] = {0, 9, 9, 9, 10, 12};
  gidx first[8];
  rows_split(5, row_ptr, NULL, 0, 2, first);
  CHECK_EQ(first[0], 0);
  CHECK_EQ(first[1], 1);
  CHECK_EQ(first[2], 5);
  for (gidx i = 0; i < 5; i++) CHECK_EQ(rows_owner(first, 2, i), i >= 1);
  rows_split(5, row_ptr, NULL, 0, 7, first);
  for (int p = 0; p < 7; p++) CHECK(first[p] <= first[p + 1]);
  CHECK_EQ(first[7], 5);
  for (gidx i = 0; i < 5; i++) {
    const int p = rows_owner(first, 7, i);
    CHECK(first[p] <= i && i < first[p + 1]);
  }
  const eidx uneven[] = {
      0, 0, 8, 8, 8}; /* edges and rows before each row: 0, 1, 10, 11, 12; half of all is 6 */
  rows_split(4, uneven, NULL, 0, 2, first);
  CHECK_EQ(first[1], 2);
  const gidx block[] = {0, 2, 3, 4, 5};
  rows_split(5, row_ptr, block, 4, 2, first);
  CHECK_EQ(first[1], 3);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  test_philox();
  test_numbers();
  test_digest();
  test_agree();
  test_gather();
  test_swap();
  test_json();
  test_set();
  test_words();
  test_units();
  test_rows();
  return test_end();
}
