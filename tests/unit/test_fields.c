/* ranks: 1 2 4 7 */
/* Checkpoint files: rows of any split go in and come out of any other; damage is named. */
#include "check.h"
#include "io/hdf5/fields.h"
#include "io/files/files.h"
#include "core/mem.h"

#include <unistd.h>

enum { ROWS = 1003, WIDTH = 5 };
#define KIND "fascicle test"

static char folder[256], path[512];

/* Rank r's share when the ranks hold very unequal parts; rank 0 of several holds nothing. */
static void share_of(gidx n, gidx *first, int64_t *count) {
  const int size = world.size, rank = world.rank;
  const gidx a = size == 1 ? 0 : n * rank * rank / (size * size),
             b = n * (rank + 1) * (rank + 1) / (size * size);
  *first = rank == 1 ? 0 : a, *count = b - *first;
  if (size > 1 && rank == 0) *first = 0, *count = 0;
}

static int32_t potential(gidx row, int k) {
  return (int32_t)(row * 7919 - k * 104729);
}

struct contents {
  int32_t *v;
  float *w;
  uint64_t *id;
  struct field field[4];
};

static struct contents make(void) {
  gidx first;
  int64_t n;
  share_of(ROWS, &first, &n);
  struct contents c = {.v = NEW(int32_t, n * WIDTH), .w = NEW(float, n), .id = NEW(uint64_t, n)};
  for (int64_t i = 0; i < n; i++) {
    for (int k = 0; k < WIDTH; k++) c.v[i * WIDTH + k] = potential(first + i, k);
    c.w[i] = 0.25f * (float)(first + i), c.id[i] = ~0ull - (uint64_t)(first + i);
  }
  c.field[0] = (struct field){"lif/potential",     F_I32, ROWS, first, n, WIDTH, c.v, "steps",
                              "membrane potential"};
  c.field[1] = (struct field){"weights", F_F32, ROWS, first, n, 1, c.w, NULL, NULL};
  c.field[2] = (struct field){"lif/id", F_U64, ROWS, first, n, 1, c.id, NULL, "an id per row"};
  c.field[3] = (struct field){"empty", F_U16, 0, 0, 0, 1, NULL, NULL, "no rows at all"};
  return c;
}

static void contents_free(struct contents *c) {
  mem_free(c->v), mem_free(c->w), mem_free(c->id);
}

static struct fields_file *open_file(void) {
  struct fields_file *file;
  char *meta;
  CHECK_FINE(fields_open(&world, path, KIND, &file, &meta));
  CHECK_TEXT(meta, "{\"step\": 12}");
  mem_free(meta);
  return file;
}

static void test_round_trip(void) {
  struct contents c = make();
  CHECK_FINE(fields_write(&world, path, KIND, "{\"step\": 12}", c.field, 4));
  contents_free(&c);
  struct fields_file *file = open_file();
  /* Another split: overlapping thirds. */
  const gidx first = ROWS / 3 * (world.rank % 3), n = ROWS / 3 + 1;
  int32_t *v = NEW(int32_t, n * WIDTH);
  struct field f = {"lif/potential", F_I32, ROWS, first, n, WIDTH, v, NULL, NULL};
  CHECK_FINE(fields_read(&world, file, &f));
  bool right = true;
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < WIDTH; k++) right = right && v[i * WIDTH + k] == potential(first + i, k);
  CHECK(right);
  struct field none = {"empty", F_U16, 0, 0, 0, 1, NULL, NULL, NULL};
  CHECK_FINE(fields_read(&world, file, &none));
  CHECK_FINE(fields_verify(&world, file, path));
  fields_close(file);
  mem_free(v);
}

static void expect(struct status s, int code, const char *word) {
  CHECK_EQ(s.code, code);
  if (!strstr(s.text, word)) DIE(1, "'%s' does not say '%s'", s.text, word);
}

static void test_wrong_requests(void) {
  struct fields_file *file = open_file();
  struct field f = {"lif/potential", F_I32, ROWS, 0, 0, WIDTH, NULL, NULL, NULL};
  f.type = F_F32;
  expect(fields_read(&world, file, &f), EXIT_INPUT, "f32");
  f.type = F_I32, f.width = 4;
  expect(fields_read(&world, file, &f), EXIT_INPUT, "lif/potential");
  f.width = WIDTH, f.n_global = ROWS + 1;
  expect(fields_read(&world, file, &f), EXIT_INPUT, "1003");
  f.name = "lif/none";
  expect(fields_read(&world, file, &f), EXIT_INPUT, "lif/none");
  fields_close(file);
  char *meta;
  expect(fields_open(&world, path, "fascicle checkpoint", &file, &meta), EXIT_INPUT, KIND);
  expect(fields_open(&world, "/nowhere/at/all", KIND, &file, &meta), EXIT_INPUT, "No such file");
  struct contents c = make();
  expect(fields_write(&world, "/nowhere/at/all", KIND, "{}", c.field, 4), EXIT_OUTPUT,
         "/nowhere/at");
  c.field[1].n_local -= world.rank == world.size - 1;
  expect(fields_write(&world, path, KIND, "{}", c.field, 4), EXIT_RUNTIME, "weights");
  contents_free(&c);
}

/* The file's bytes; rank 0. */
static unsigned char *slurp(long *n) {
  FILE *in = fopen(path, "rb");
  fseek(in, 0, SEEK_END);
  *n = ftell(in);
  rewind(in);
  unsigned char *bytes = NEW(unsigned char, *n);
  CHECK_EQ(fread(bytes, 1, (size_t)*n, in), *n);
  fclose(in);
  return bytes;
}

/* One bit of one stored weight turns; verification names the field. */
static void test_bit_flip(void) {
  if (world.rank == 0) {
    const float wanted[3] = {0.25f * 500, 0.25f * 501, 0.25f * 502};
    long n, at;
    unsigned char *bytes = slurp(&n);
    for (at = 0; at < n - 12 && memcmp(bytes + at, wanted, 12);) at++;
    CHECK(at < n - 12);
    bytes[at] ^= 1;
    CHECK_FINE(file_write_whole(path, bytes, (size_t)n));
    mem_free(bytes);
  }
  comm_barrier(&world);
  struct fields_file *file = open_file();
  expect(fields_verify(&world, file, path), EXIT_INPUT, "'weights' is damaged");
  fields_close(file);
  comm_barrier(&world);
}

static void test_cut(void) {
  const double shares[] = {0, 0.3, 0.6, 0.999};
  long n = 0;
  unsigned char *bytes = world.rank == 0 ? slurp(&n) : NULL;
  for (int i = 0; i < 4; i++) {
    if (world.rank == 0) CHECK_FINE(file_write_whole(path, bytes, (size_t)((double)n * shares[i])));
    comm_barrier(&world);
    struct fields_file *file;
    char *meta;
    expect(fields_open(&world, path, KIND, &file, &meta), EXIT_INPUT, path);
    comm_barrier(&world);
  }
  mem_free(bytes);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  snprintf(folder, sizeof folder, "/tmp/fascicle-test-XXXXXX");
  if (world.rank == 0 && !mkdtemp(folder)) DIE(1, "no temporary folder");
  comm_share(&world, folder, sizeof folder, 0);
  snprintf(path, sizeof path, "%s/fields.h5", folder);
  test_round_trip();
  test_wrong_requests();
  test_round_trip(); /* over an existing file */
  test_bit_flip();
  test_cut();
  if (world.rank == 0) {
    CHECK_FINE(file_remove(path));
    CHECK(!rmdir(folder));
  }
  return test_end();
}
