/* ranks: 1 2 */
/* src/text: UTF-8, vocabulary, unknown characters, windows keyed by (seed, step, sample). */
#include "check.h"
#include "train/corpus.h"
#include "core/mem.h"
#include "train/purpose.h"
#include "train/text.h"

#include <unistd.h>

static struct text decoded(const char *bytes) {
  struct text text;
  CHECK_FINE(text_decode("t", bytes, (int64_t)strlen(bytes), &text));
  return text;
}

static void test_decode(void) {
  struct text t = decoded("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA7\xA0\n"); /* a, e acute, euro, brain */
  const uint32_t wanted[] = {'a', 0xE9, 0x20AC, 0x1F9E0, '\n'};
  CHECK_EQ(t.n, 5);
  for (int i = 0; i < 5; i++) {
    char again[5], expect[8] = "a\xC3\xA9";
    CHECK_EQ(t.code[i], wanted[i]);
    const int n = text_encode(t.code[i], again);
    CHECK_EQ(n, strlen(again));
    if (i == 1) CHECK_TEXT(again, expect + 1);
    struct text back = decoded(again);
    CHECK(back.n == 1 && back.code[0] == t.code[i]);
    text_free(&back);
  }
  text_free(&t);
  struct text marked = decoded("\xEF\xBB\xBFx");
  CHECK(marked.n == 1 && marked.code[0] == 'x');
  text_free(&marked);
}

static void test_not_utf8(void) {
  /* stray continuation, cut short, overlong, surrogate, beyond the last code point */
  static const char *const bad[] = {"ab\n\x80",         "a\xC3",       "\xC0\x80", "\xED\xA0\x80",
                                    "\xF4\x90\x80\x80", "\xE0\x80\x80"};
  struct text t;
  for (int i = 0; i < 6; i++) {
    const struct status s = text_decode("f.txt", bad[i], (int64_t)strlen(bad[i]), &t);
    CHECK_EQ(s.code, EXIT_INPUT);
    CHECK(strstr(s.text, "f.txt"));
  }
  const struct status s = text_decode("f.txt", bad[0], 4, &t);
  CHECK(strstr(s.text, "line 2, byte 3"));
}

static void test_tokens(void) {
  struct text t = decoded("banana\nb\xC3\xA9"), other = decoded("an\nna\xE2\x82\xAC");
  struct vocabulary v;
  CHECK_FINE(vocabulary_of("t", &t, &v));
  CHECK_EQ(v.n, 5);
  for (int i = 1; i < v.n; i++) CHECK(v.code[i] > v.code[i - 1]);
  int32_t token[9];
  CHECK_FINE(text_tokens("t", &t, &v, token));
  const int wanted[] = {2, 1, 3, 1, 3, 1, 0, 2, 4};
  for (int i = 0; i < 9; i++) CHECK_EQ(token[i], wanted[i]);
  const struct status s = text_tokens("o.txt", &other, &v, token);
  CHECK_EQ(s.code, EXIT_INPUT);
  CHECK(strstr(s.text, "o.txt: line 2, column 3") && strstr(s.text, "U+20AC"));
  vocabulary_free(&v), text_free(&t), text_free(&other);
}

static void test_windows(void) {
  enum { N = 50, T = 8, DRAWS = 4000 };
  int count[N] = {0};
  for (int i = 0; i < DRAWS; i++) {
    const int64_t start = text_window(7, PURPOSE_WINDOW, i / 4, i % 4, N, T);
    CHECK(start >= 0 && start < N - T - 1);
    CHECK_EQ(start, text_window(7, PURPOSE_WINDOW, i / 4, i % 4, N, T));
    count[start]++;
  }
  /* 41 starts, about 98 each: 5 standard deviations are 49 */
  for (int i = 0; i < N - T - 1; i++) CHECK(abs(count[i] - DRAWS / (N - T - 1)) < 50);
  int same = 0;
  for (int i = 0; i < 100; i++)
    same += text_window(7, PURPOSE_WINDOW, i, 0, N, T) ==
            text_window(7, PURPOSE_EVALUATION, i, 0, N, T);
  CHECK(same < 20);
  CHECK_EQ(text_window(7, PURPOSE_WINDOW, 3, 1, text_shortest(T), T), 0);
}

/* With carried states sample s of 3 starts at s n / 3 and goes on where it
 * stopped, round and round. */
static void test_carried_windows(void) {
  enum { N = 100, T = 8, BATCH = 3, STARTS = N - T - 1 };
  int32_t text[N], token[2 * T], target[2 * T];
  for (int i = 0; i < N; i++) text[i] = i;
  const struct corpus corpus = {.n_train = N, .token = text};
  const struct train_config config = {.batch = BATCH, .steps_per_window = T, .carry_state = true};
  for (int step = 0; step < 30; step++) {
    corpus_windows(&corpus, &config, step, 1, 2, token, target);
    for (int t = 0; t < T; t++)
      for (int b = 0; b < 2; b++) {
        CHECK_EQ(token[2 * t + b], ((b ? 66 : 33) + step * T) % STARTS + t);
        CHECK_EQ(target[2 * t + b], token[2 * t + b] + 1);
      }
  }
}

static void test_read(void) {
  struct text t;
  CHECK_EQ(text_read(&world, "/nonexistent/text.txt", &t).code, EXIT_INPUT);
  CHECK_EQ(text_read(&world, "/dev/null", &t).code, EXIT_INPUT);
  CHECK_EQ(text_read(&world, "/", &t).code, EXIT_INPUT);
  char path[] = "/tmp/fascicle_text_XXXXXX";
  int file = world.rank == 0 ? mkstemp(path) : -1;
  comm_share(&world, path, sizeof path, 0);
  if (world.rank == 0) CHECK_EQ(write(file, "one\ntwo", 7), 7);
  CHECK_FINE(text_read(&world, path, &t));
  CHECK_EQ(t.n, 7);
  CHECK(comm_equal(&world, t.sha256, DIGEST_TEXT));
  comm_barrier(&world);
  if (world.rank == 0) close(file), unlink(path);
  text_free(&t);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  test_decode();
  test_not_utf8();
  test_tokens();
  test_windows();
  test_carried_windows();
  test_read();
  return test_end();
}
