/* ranks: 1 */
/* Spike files: what is written is read; segments of any number of ranks, in any order of files,
 * merge to one content; gaps are found; ragged ends are cut. */
#include "check.h"
#include "io/files/files.h"
#include "core/mem.h"
#include "io/spikes/spikes.h"

enum { NODES = 50, STEPS = 40, EVERY = 4 };
static char base[] = "/tmp/test_spikes_XXXXXX";

/* Does a node fire at a step? Any fixed rule will do. */
static bool fires(int64_t step, nodeid node) {
  return (step * 7 + node * 11) % 13 < 2;
}

static int32_t potential(int64_t step, nodeid node) {
  return (int32_t)(step * 1000003 - node * 40009);
}

static void file_name(char *path, const char *name, int64_t rank, int64_t number) {
  snprintf(path, 200, "%s/%s.r%d.s%d.h5", base, name, (int)rank, (int)number);
}

/* The segment of one of `ranks` ranks (nodes rank, rank + ranks, ...) over steps [first, last];
 * nodes below 10 are recorded at every 4th step. */
static void write_segment(const char *name, int64_t rank, int64_t ranks, int64_t number,
                          int64_t first, int64_t last) {
  int64_t step[NODES * STEPS], count[STEPS] = {0}, record_step[STEPS], n = 0, n_records = 0,
                               n_recorded = 0;
  nodeid node[NODES * STEPS], recorded[NODES];
  int32_t value[NODES * STEPS];
  for (nodeid i = rank; i < 10; i += ranks) recorded[n_recorded++] = i;
  for (int64_t t = first; t <= last; t++) {
    for (nodeid i = rank; i < NODES; i += ranks)
      if (fires(t, i)) step[n] = t, node[n++] = i, count[t - first]++;
    if (t % EVERY) continue;
    for (int64_t j = 0; j < n_recorded; j++)
      value[n_records * n_recorded + j] = potential(t, recorded[j]);
    record_step[n_records++] = t;
  }
  const struct spikes_facts facts = {"cells", 0.5,   first,  last,  NODES,
                                     rank,    ranks, number, "abc", ""};
  const struct spikes_segment segment = {.n = n,
                                         .step = step,
                                         .node = node,
                                         .count = count,
                                         .n_records = n_records,
                                         .n_recorded = n_recorded,
                                         .record_step = record_step,
                                         .recorded = recorded,
                                         .potential = value};
  char path[200];
  file_name(path, name, rank, number);
  CHECK_FINE(spikes_write(path, &facts, &segment, "{}"));
}

static int open_all(const char *name, int ranks, int numbers, struct spikes_file **file) {
  char path[200];
  int n = 0;
  for (int s = numbers - 1; s >= 0; s--) /* not in order */
    for (int r = 0; r < ranks; r++) {
      file_name(path, name, r, s);
      if (file_exists(path)) CHECK_FINE(spikes_open(path, &file[n++]));
    }
  spikes_sort(file, n);
  return n;
}

static void close_all(struct spikes_file **file, int n) {
  for (int i = 0; i < n; i++) spikes_close(file[i]);
}

/* Merge, and hold the result against the rule. */
static void check_merge(struct spikes_file **file, int n, int64_t last, char digest[DIGEST_TEXT]) {
  char path[200];
  int64_t n_records, n_recorded, step[NODES * STEPS], count[STEPS], at = 0;
  nodeid node[NODES * STEPS];
  int32_t value[NODES * STEPS];
  struct spikes_file *merged;
  struct spikes_totals totals;
  snprintf(path, sizeof path, "%s/merged.h5", base);
  CHECK_FINE(spikes_merge(file, n, NULL, NULL, n % 2, path, &totals));
  CHECK_FINE(spikes_open(path, &merged));
  CHECK_FINE(spikes_verify(merged));
  CHECK_EQ(spikes_facts(merged)->last_step, last);
  CHECK_EQ(spikes_number(merged), totals.recorded);
  CHECK_EQ(totals.all, totals.recorded);
  spikes_read(merged, 0, totals.recorded, step, node);
  spikes_counts(merged, 0, last + 1, count);
  spikes_potential_shape(merged, &n_records, &n_recorded);
  CHECK_EQ(n_records, last / EVERY + 1);
  CHECK_EQ(n_recorded, 10);
  spikes_potential_rows(merged, 0, n_records, value);
  for (int64_t t = 0; t <= last; t++) {
    int64_t fired = 0;
    for (nodeid i = 0; i < NODES; i++) {
      if (!fires(t, i)) continue;
      CHECK(step[at] == t && node[at] == i);
      at++, fired++;
    }
    CHECK_EQ(count[t], fired);
    for (nodeid i = 0; t % EVERY == 0 && i < 10; i++)
      CHECK_EQ(value[t / EVERY * 10 + i], potential(t, i));
  }
  CHECK_EQ(at, totals.recorded);
  memcpy(digest, spikes_facts(merged)->spikes_digest, DIGEST_TEXT);
  spikes_close(merged);
}

static void test_any_ranks(void) {
  struct spikes_file *file[16];
  char one[DIGEST_TEXT], other[DIGEST_TEXT];
  int64_t last;
  write_segment("one", 0, 1, 0, 0, 39);
  int n = open_all("one", 1, 1, file);
  CHECK_FINE(spikes_complete(file, n, &last));
  CHECK_EQ(last, 39);
  check_merge(file, n, 39, one);
  close_all(file, n);
  /* 3 ranks, one of which closed a segment early; then a resume on 2. */
  for (int r = 0; r < 3; r++) write_segment("three", r, 3, 0, 0, r == 1 ? 4 : 18);
  write_segment("three", 1, 3, 1, 5, 18);
  for (int r = 0; r < 2; r++) write_segment("three", r, 2, 2, 19, 39);
  n = open_all("three", 3, 3, file);
  CHECK_EQ(n, 6);
  CHECK_FINE(spikes_complete(file, n, &last));
  check_merge(file, n, 39, other);
  close_all(file, n);
  CHECK_TEXT(one, other);
}

static void test_ragged(void) {
  struct spikes_file *file[16];
  char digest[DIGEST_TEXT];
  int64_t last;
  for (int r = 0; r < 2; r++) write_segment("ragged", r, 2, 0, 0, r ? 17 : 30);
  const int n = open_all("ragged", 2, 1, file);
  CHECK_FINE(spikes_complete(file, n, &last));
  CHECK_EQ(last, 17);
  for (int i = 0; i < n; i++) spikes_cut(file[i], last);
  check_merge(file, n, 17, digest);
  close_all(file, n);
}

static void test_gap(void) {
  struct spikes_file *file[16];
  int64_t last;
  write_segment("gap", 0, 2, 0, 0, 9), write_segment("gap", 1, 2, 0, 0, 9);
  write_segment("gap", 0, 2, 2, 20, 29), write_segment("gap", 1, 2, 1, 10, 29);
  int n = open_all("gap", 2, 3, file);
  CHECK_EQ(spikes_complete(file, n, &last).code, EXIT_INPUT);
  close_all(file, n);
}

static void test_names(void) {
  char path[200], *type[] = {"", "A"};
  uint64_t ids[3] = {5, 6, 18446744073709551615u};
  uint32_t code[3] = {1, 0, 1};
  nodeid recorded[3] = {0, 2, 3};
  struct spikes_names names = {3, ids, NULL, 2, type, code, false, 0, NULL};
  struct spikes_names back;
  snprintf(path, sizeof path, "%s/names.h5", base);
  CHECK_FINE(spikes_names_write(path, &names));
  CHECK_FINE(spikes_names_read(path, &back));
  CHECK(back.n == 3 && back.body_id[2] == ids[2] && back.n_types == 2 && !back.name &&
        back.type_code[2] == 1);
  CHECK_TEXT(back.type[1], "A");
  CHECK(!back.only_some);
  spikes_names_free(&back);
  names.only_some = true, names.recorded = recorded;
  for (names.n_recorded = 0; names.n_recorded < 3; names.n_recorded++) { /* none is not all */
    CHECK_FINE(spikes_names_write(path, &names));
    CHECK_FINE(spikes_names_read(path, &back));
    CHECK(back.only_some && back.n_recorded == names.n_recorded);
    for (int i = 0; i < back.n_recorded; i++) CHECK_EQ(back.recorded[i], recorded[i]);
    spikes_names_free(&back);
  }
  CHECK_FINE(spikes_names_write(path, &names)); /* node 3 of 3 */
  CHECK_EQ(spikes_names_read(path, &back).code, EXIT_INPUT);
  struct spikes_file *none;
  CHECK_EQ(spikes_open(path, &none).code, EXIT_INPUT); /* not spikes */
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  CHECK(mkdtemp(base) != NULL);
  test_any_ranks();
  test_ragged();
  test_gap();
  test_names();
  char command[200];
  snprintf(command, sizeof command, "rm -r %s", base);
  CHECK_EQ(system(command), 0);
  return test_end();
}
