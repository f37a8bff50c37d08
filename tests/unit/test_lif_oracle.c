/* ranks: 1 2 3 4 7 */
/* The reference's simulations (tests/data/lif), step by step, by the plain and the fast
 * loop, with 1 and 3 threads, in two row orders; runs at the edge of int32, where exact sums
 * that leave it are refused. */
#include "lif_case.h"

struct vector {
  char name[64];
  int64_t n, n_edges, n_steps;
  struct lif_params params;
  struct lif_edges edges;
  int64_t *potential, *counter;             /* [n] at the start */
  int64_t *fired;                           /* [n_fired][n] 0 or 1 */
  int64_t n_fired;                          /* steps for which spikes are known */
  int64_t *final_potential, *final_counter; /* [n] */
  int64_t *pending;                         /* [n_pending][3] steps ahead, target, sum */
  int64_t n_pending;
  char digest[3][DIGEST_TEXT]; /* spikes, potentials, counters */
  int64_t n_kept;
  int64_t **kept; /* [3 n_kept] potentials, counters, pending of every step */
  int64_t *kept_n;
  bool refused;
  struct lif_fault fault; /* step -1: none */
};

static FILE *open_data(const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/lif/%s", getenv("TEST_DATA"), name);
  FILE *file = fopen(path, "r");
  if (!file) DIE(1, "cannot open %s", path);
  return file;
}

static int64_t number(FILE *file) {
  long long x;
  if (fscanf(file, "%lld", &x) != 1) DIE(1, "a number is missing");
  return x;
}

static void word(FILE *file, const char *wanted) {
  char got[64];
  if (fscanf(file, "%63s", got) != 1 || strcmp(got, wanted))
    DIE(1, "'%s' where '%s' was expected", got, wanted);
}

/* "word n x x x"; word NULL for a bare list. */
static int64_t *list(FILE *file, const char *name, int64_t *n) {
  if (name) word(file, name);
  *n = number(file);
  int64_t *x = NEW(int64_t, *n + 1);
  for (int64_t i = 0; i < *n; i++) x[i] = number(file);
  return x;
}

static void read_edges(FILE *file, struct vector *v) {
  int64_t n, at = 0;
  int64_t *x = list(file, "edges", &n);
  uint32_t *source = NEW(uint32_t, v->n_edges), *target = NEW(uint32_t, v->n_edges);
  int16_t *weight = NEW(int16_t, v->n_edges);
  uint16_t *delay = NEW(uint16_t, v->n_edges);
  for (int64_t i = 0; i < n; i += 5)
    for (int64_t copy = 0; copy < x[i + 4]; copy++, at++) {
      source[at] = (uint32_t)x[i], target[at] = (uint32_t)x[i + 1];
      weight[at] = (int16_t)x[i + 2], delay[at] = (uint16_t)x[i + 3];
    }
  CHECK_EQ(at, v->n_edges);
  v->edges = (struct lif_edges){.n_nodes = v->n,
                                .n_edges = at,
                                .source = source,
                                .target = target,
                                .weight = weight,
                                .delay = delay};
  mem_free(x);
}

static void read_spikes(FILE *file, struct vector *v) {
  v->fired = NEW_ZERO(int64_t, v->n_fired * v->n + 1);
  for (int64_t t = 0; t < v->n_fired; t++) {
    int64_t n;
    int64_t *who = list(file, NULL, &n);
    for (int64_t i = 0; i < n; i++) v->fired[t * v->n + who[i]] = 1;
    mem_free(who);
  }
}

/* The part that both files share; false at the end of the file. */
static bool read_head(FILE *file, struct vector *v) {
  char first[16];
  *v = (struct vector){.fault.step = -1};
  CHECK(fscanf(file, "%15s", first) == 1);
  if (!strcmp(first, "end")) return false;
  CHECK(fscanf(file, "%63s", v->name) == 1);
  v->n = number(file), v->n_edges = number(file), v->n_steps = number(file);
  word(file, "params");
  struct lif_numbers p = {
      .threshold = number(file), .reset = number(file), .refractory_steps = number(file)};
  int64_t n, *shifts = list(file, "shifts", &p.n_shifts);
  p.decay_shifts = shifts;
  CHECK_FINE(lif_params_from(v->name, &p, &v->params));
  mem_free(shifts);
  v->potential = list(file, "potential", &n);
  v->counter = list(file, "refractory", &n);
  read_edges(file, v);
  return true;
}

static bool read_vector(FILE *file, struct vector *v) {
  int64_t n;
  if (!read_head(file, v)) return false;
  word(file, "spikes");
  v->n_fired = v->n_steps;
  read_spikes(file, v);
  v->final_potential = list(file, "final_potential", &n);
  v->final_counter = list(file, "final_refractory", &n);
  v->pending = list(file, "final_pending", &v->n_pending);
  word(file, "digests");
  for (int i = 0; i < 3; i++) CHECK(fscanf(file, "%64s", v->digest[i]) == 1);
  word(file, "steps");
  v->n_kept = number(file);
  v->kept = NEW(int64_t *, 3 * v->n_kept), v->kept_n = NEW(int64_t, 3 * v->n_kept);
  static const char *const names[] = {"v", "c", "p"};
  for (int64_t i = 0; i < 3 * v->n_kept; i++) v->kept[i] = list(file, names[i % 3], &v->kept_n[i]);
  return true;
}

static bool read_overflow(FILE *file, struct vector *v) {
  if (!read_head(file, v)) return false;
  word(file, "refused");
  v->refused = number(file);
  word(file, "spikes");
  v->n_fired = number(file);
  read_spikes(file, v);
  word(file, "fault");
  v->fault.step = number(file), v->fault.phase = (int)number(file);
  v->fault.node = number(file), v->fault.value = number(file);
  int64_t n;
  v->final_potential = list(file, "final_potential", &n);
  v->final_counter = list(file, "final_refractory", &n);
  return true;
}

static void vector_free(struct vector *v) {
  mem_free((void *)v->edges.source), mem_free((void *)v->edges.target);
  mem_free((void *)v->edges.weight), mem_free((void *)v->edges.delay);
  mem_free(v->potential), mem_free(v->counter), mem_free(v->fired);
  mem_free(v->final_potential), mem_free(v->final_counter), mem_free(v->pending);
  for (int64_t i = 0; i < 3 * v->n_kept; i++) mem_free(v->kept[i]);
  mem_free(v->kept), mem_free(v->kept_n);
}

/* ---- comparing ---- */

static void add_int32(struct sha256 *s, const int64_t *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const uint32_t word32 = (uint32_t)x[i];
    const uint8_t bytes[] = {(uint8_t)word32, (uint8_t)(word32 >> 8), (uint8_t)(word32 >> 16),
                             (uint8_t)(word32 >> 24)};
    sha256_add(s, bytes, sizeof bytes);
  }
}

static void add_bits(struct sha256 *s, const int64_t *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) sha256_add(s, &(uint8_t){(uint8_t)x[i]}, 1);
}

static void check_same(const int64_t *got, const int64_t *wanted, int64_t n) {
  for (int64_t i = 0; i < n; i++) CHECK_EQ(got[i], wanted[i]);
}

/* pending [n][3] against a ring: all other sums are 0. */
static void check_pending(const int64_t *ring, int64_t n, int max_delay, const int64_t *pending,
                          int64_t n_numbers) {
  int64_t *wanted = NEW_ZERO(int64_t, n * max_delay + 1);
  for (int64_t i = 0; i < n_numbers; i += 3)
    wanted[pending[i + 1] * max_delay + pending[i]] = pending[i + 2];
  check_same(ring, wanted, n * max_delay);
  mem_free(wanted);
}

static int64_t out_degrees(const struct vector *v, const int64_t *fired) {
  int64_t sum = 0;
  for (eidx e = 0; e < v->n_edges; e++) sum += fired[v->edges.source[e]];
  return sum;
}

static void check_vector(const struct vector *v, const struct variant *variant) {
  struct test_net p;
  struct whole_state w;
  struct sha256 digest[3];
  test_net_init(&p, &world, &v->edges, variant);
  whole_init(&p.net, &w);
  struct lif_run *run = open_run(&p, &world, variant, &v->params, NULL, 0, 0);
  start_from(run, &world, v->potential, v->counter, 0);
  int64_t *fired = NEW(int64_t, v->n + 1), events = 0, wanted_events = 0;
  for (int i = 0; i < 3; i++) sha256_init(&digest[i]);
  for (int64_t t = 0; t < v->n_steps; t++) {
    struct lif_batch batch;
    lif_batch(run, &world, 1, REQUEST_NONE, &batch);
    CHECK(batch.fault.step == LIF_NO_FAULT && batch.step == t && batch.n_steps == 1);
    whole_spikes(run, &batch, fired);
    check_same(fired, v->fired + t * v->n, v->n);
    events += batch.events, wanted_events += out_degrees(v, fired);
    whole_read(run, t < v->n_kept, &w);
    if (t < v->n_kept) {
      check_same(w.potential, v->kept[3 * t], v->n),
          check_same(w.counter, v->kept[3 * t + 1], v->n);
      check_pending(w.ring, v->n, p.net.max_delay, v->kept[3 * t + 2], v->kept_n[3 * t + 2]);
    }
    add_bits(&digest[0], fired, v->n), add_int32(&digest[1], w.potential, v->n),
        add_int32(&digest[2], w.counter, v->n);
  }
  for (int i = 0; i < 3; i++) {
    char text[DIGEST_TEXT];
    sha256_end(&digest[i], text);
    CHECK_TEXT(text, v->digest[i]);
  }
  comm_sum_i64(&world, &events, 1);
  CHECK_EQ(events, wanted_events);
  whole_read(run, true, &w);
  check_same(w.potential, v->final_potential, v->n), check_same(w.counter, v->final_counter, v->n);
  check_pending(w.ring, v->n, p.net.max_delay, v->pending, v->n_pending);
  struct lif_fault fault;
  lif_final_check(run, &world, &fault);
  CHECK(fault.step == LIF_NO_FAULT);
  lif_close(run), test_net_free(&p), whole_free(&w), mem_free(fired);
}

static void check_overflow(const struct vector *v, const struct variant *variant) {
  bool refused = false;
  for (int64_t i = 0; i < v->n; i++)
    refused |= lif_initial_check("start", v->potential[i], v->counter[i]).code != 0;
  CHECK_EQ(refused, v->refused);
  if (refused) return;
  struct test_net p;
  test_net_init(&p, &world, &v->edges, variant);
  struct lif_run *run = open_run(&p, &world, variant, &v->params, NULL, 0, 0);
  start_from(run, &world, v->potential, v->counter, 0);
  int64_t *fired = NEW(int64_t, v->n * v->n_steps + 1);
  struct lif_batch batch = {.fault.step = LIF_NO_FAULT};
  for (int64_t t = 0; t < v->n_steps && batch.fault.step == LIF_NO_FAULT; t += batch.n_steps) {
    lif_batch(run, &world, v->n_steps - t, REQUEST_NONE, &batch);
    whole_spikes(run, &batch, fired);
    check_same(fired, v->fired + t * v->n, v->n * batch.n_steps);
  }
  CHECK_EQ(run->step, v->n_fired);
  if (batch.fault.step == LIF_NO_FAULT) lif_final_check(run, &world, &batch.fault);
  if (v->fault.step < 0) {
    CHECK(batch.fault.step == LIF_NO_FAULT);
    struct whole_state w;
    whole_init(&p.net, &w);
    whole_read(run, false, &w);
    check_same(w.potential, v->final_potential, v->n),
        check_same(w.counter, v->final_counter, v->n);
    whole_free(&w);
  } else {
    CHECK_EQ(batch.fault.step, v->fault.step);
    CHECK_EQ(batch.fault.phase, v->fault.phase);
    CHECK_EQ(batch.fault.node, v->fault.node);
    CHECK_EQ(batch.fault.value, v->fault.value);
    CHECK_EQ(lif_fault_status(&batch.fault, "7").code, EXIT_RUNTIME);
  }
  lif_close(run), test_net_free(&p), mem_free(fired);
}

static void test_params(void) {
  FILE *file = open_data("params.txt");
  for (int64_t left = number(file); left > 0; left--) {
    const int64_t accepted = number(file);
    struct lif_numbers p = {
        .threshold = number(file), .reset = number(file), .refractory_steps = number(file)};
    int64_t *shifts = list(file, NULL, &p.n_shifts);
    struct lif_params params;
    p.decay_shifts = shifts;
    const bool ours = accepted || p.n_shifts == 0; /* no leak; the reference has no such thing */
    CHECK_EQ(lif_params_from("lif.json", &p, &params).code, ours ? EXIT_FINE : EXIT_USAGE);
    mem_free(shifts);
  }
  fclose(file);
}

static void each(const char *name, bool (*read)(FILE *, struct vector *),
                 void (*check)(const struct vector *, const struct variant *)) {
  struct variant variants[8];
  const int n_variants = all_variants(variants);
  FILE *file = open_data(name);
  struct vector v;
  int n = 0;
  for (; read(file, &v); n++) {
    for (int i = 0; i < n_variants; i++) check(&v, &variants[i]);
    vector_free(&v);
  }
  CHECK(n >= 15);
  fclose(file);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  CHECK_FINE(transport_mpi.open(&world));
  test_params();
  each("vectors.txt", read_vector, check_vector);
  each("overflow.txt", read_overflow, check_overflow);
  transport_mpi.close(&world);
  return test_end();
}
