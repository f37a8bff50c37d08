/* ranks: 1 2 4 7 */
/* seconds: 240 */
/* One lively network, run in every variant that must not matter: ranks, threads, loops, row
 * order, batch lengths, width of the sums, cut and continued. All against the plain loop on
 * one rank, step by step. */
#include "lif_case.h"
#include "core/rng.h"

enum { N = 3300, DEGREE = 40, LOW_DELAY = 3, HIGH_DELAY = 11, LONG_RUN = 10000, SHORT_RUN = 300 };

static struct lif_edges edges;
static const struct lif_params params = {
    .threshold = 9000, .reset = -300, .refractory = 4, .n_shifts = 2, .shift = {4, 7}};

/* Four in five neurons excite. */
static void make_edges(void) {
  const eidx n = (eidx)N * DEGREE;
  uint32_t *source = NEW(uint32_t, n), *target = NEW(uint32_t, n);
  int16_t *weight = NEW(int16_t, n);
  uint16_t *delay = NEW(uint16_t, n);
  for (eidx e = 0; e < n; e++) {
    const struct rng_block r = rng_draw(5, (uint32_t)e, 0, 0, 0);
    source[e] = (uint32_t)(e / DEGREE);
    target[e] = (uint32_t)rng_below(r.v[0], r.v[1], N);
    weight[e] =
        (int16_t)(source[e] % 5 ? 200 + (int)(r.v[2] % 1800) : -1500 - (int)(r.v[2] % 3500));
    delay[e] = (uint16_t)(LOW_DELAY + r.v[3] % (HIGH_DELAY - LOW_DELAY + 1));
  }
  edges = (struct lif_edges){.n_nodes = N,
                             .n_edges = n,
                             .source = source,
                             .target = target,
                             .weight = weight,
                             .delay = delay};
}

/* Poisson drive of one in four, a current into a few, listed spikes of some: all kinds at once. */
static int drive(const struct lif_net *net, struct lif_stimulus *stimulus) {
  nodeid *quarter = NEW(nodeid, N / 4), some[50];
  for (int i = 0; i < N / 4; i++) quarter[i] = 4 * i;
  for (int i = 0; i < 50; i++) some[i] = 37 * i + 11;
  stimulus[0] = lif_poisson(net, 0, N / 4, quarter, 0, INT64_MAX, 0.15, 6000);
  stimulus[1] = lif_current(net, 1, 50, some, 20, 200, 700);
  stimulus[2] = lif_listed(net, 2, 20, some, 4, (int64_t[]){0, 1, 77, 78});
  mem_free(quarter);
  return 3;
}

/* A run of n_steps from zeros, batches of at most `most` steps; `wide` forces 64-bit sums; driven
 * or left to itself after a pulse. */
static struct trail run_once(const struct comm *comm, const struct variant *variant,
                             int64_t n_steps, int64_t most, bool wide, bool driven) {
  struct test_net p;
  struct lif_stimulus stimulus[3];
  struct trail trail = {0};
  test_net_init(&p, comm, &edges, variant);
  p.net.wide |= wide;
  int n_stimuli = drive(&p.net, stimulus);
  struct lif_run *run =
      open_run(&p, comm, variant, &params, stimulus + (driven ? 0 : 1), driven ? 3 : 2, 99);
  while (run->step < n_steps) {
    struct lif_batch batch;
    const int64_t left = n_steps - run->step;
    lif_batch(run, comm, left < most ? left : most, REQUEST_NONE, &batch);
    CHECK(batch.fault.step == LIF_NO_FAULT);
    trail_spikes(&trail, run, &batch);
  }
  trail_state(&trail, run);
  trail_sum(&trail, comm);
  CHECK_EQ(trail.events, DEGREE * trail.spikes);
  lif_close(run), test_net_free(&p);
  while (n_stimuli--) lif_stimulus_free(&stimulus[n_stimuli]);
  return trail;
}

/* The plain loop on one rank, one step at a time; all ranks learn what came out. */
static struct trail reference(int64_t n_steps, bool driven) {
  struct comm alone = comm_split(&world, world.rank, 0);
  const struct variant plain = {.backend = &lif_plain, .threads = 1};
  struct trail trail = {0};
  if (world.rank == 0) trail = run_once(&alone, &plain, n_steps, 1, false, driven);
  comm_share(&world, &trail, sizeof trail, 0);
  comm_free(&alone);
  return trail;
}

static void check_trail(const struct trail *got, const struct trail *wanted) {
  CHECK_EQ(got->spikes, wanted->spikes);
  CHECK_EQ(got->low, wanted->low);
  CHECK_EQ(got->high, wanted->high);
}

static void test_ways(void) {
  struct variant variants[8];
  const int n = all_variants(variants);
  const struct trail wanted = reference(SHORT_RUN, true);
  CHECK(wanted.spikes > SHORT_RUN * (N / 100) && wanted.spikes < SHORT_RUN * (N / 5));
  for (int i = 0; i < n; i++)
    for (int64_t most = 1; most <= LOW_DELAY; most++) {
      const struct trail got = run_once(&world, &variants[i], SHORT_RUN, most, most == 2, true);
      check_trail(&got, &wanted);
    }
}

static void test_long_run(void) {
  const struct trail wanted = reference(LONG_RUN, true);
  const struct variant variant = {
      .backend = backend_cpu.lif, .threads = world.size > 1 ? 1 : 2, .permuted = true};
  const struct trail got = run_once(&world, &variant, LONG_RUN, LOW_DELAY, false, true);
  check_trail(&got, &wanted);
}

/* The same run again and again: equal each time. */
static void test_repeats(void) {
  const struct variant variant = {.backend = backend_cpu.lif, .threads = 3};
  const struct trail wanted = run_once(&world, &variant, SHORT_RUN / 3, LOW_DELAY, false, false);
  CHECK(wanted.spikes > 0);
  for (int i = 0; i < 20; i++) {
    const struct trail got = run_once(&world, &variant, SHORT_RUN / 3, LOW_DELAY, false, false);
    check_trail(&got, &wanted);
  }
}

/* ---- cut anywhere, go on elsewhere ---- */

static void run_to(struct lif_run *run, int64_t step, struct trail *trail) {
  while (run->step < step) {
    struct lif_batch batch;
    lif_batch(run, &world, step - run->step, REQUEST_NONE, &batch);
    trail_spikes(trail, run, &batch);
  }
}

/* Whole state by node id into a run of another variant. */
static void carry_over(const struct lif_run *from, struct lif_run *to) {
  struct whole_state w;
  struct lif_state state;
  const struct lif_net *net = to->setup.net;
  whole_init(net, &w);
  whole_read(from, true, &w);
  lif_state_init(net, NULL, &state);
  state.step = from->step;
  for (lidx i = 0; i < net->n_own; i++) {
    state.potential[i] = (int32_t)w.potential[net->id[i]],
    state.counter[i] = (uint16_t)w.counter[net->id[i]];
    memcpy(state.ring + (int64_t)i * net->max_delay, w.ring + net->id[i] * net->max_delay,
           (size_t)net->max_delay * sizeof *w.ring);
  }
  CHECK_FINE(lif_write(to, &world, &state, 0));
  lif_state_free(&state), whole_free(&w);
}

static void check_cut(int64_t cut, int64_t n_steps, const struct variant *before,
                      const struct variant *after, const struct trail *wanted) {
  struct test_net p[2];
  struct lif_stimulus stimulus[2][3];
  struct lif_run *run[2];
  struct trail trail = {0};
  const struct variant *variant[] = {before, after};
  for (int i = 0; i < 2; i++) {
    test_net_init(&p[i], &world, &edges, variant[i]);
    const int n_stimuli = drive(&p[i].net, stimulus[i]);
    run[i] = open_run(&p[i], &world, variant[i], &params, stimulus[i], n_stimuli, 99);
  }
  run_to(run[0], cut, &trail);
  carry_over(run[0], run[1]);
  run_to(run[1], n_steps, &trail);
  trail_state(&trail, run[1]);
  trail_sum(&trail, &world);
  check_trail(&trail, wanted);
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < 3; k++) lif_stimulus_free(&stimulus[i][k]);
    lif_close(run[i]), test_net_free(&p[i]);
  }
}

/* For every cut within one delay length. */
static void test_cuts(void) {
  enum { STEPS = 70, FROM = 40 };
  struct variant variants[8];
  const int n = all_variants(variants);
  const struct trail wanted = reference(STEPS, true);
  for (int i = 0; i <= HIGH_DELAY; i++)
    check_cut(FROM + i, STEPS, &variants[i % n], &variants[(i + 1 + i / n) % n], &wanted);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  CHECK_FINE(transport_mpi.open(&world));
  make_edges();
  test_ways();
  test_cuts();
  test_repeats();
  test_long_run();
  transport_mpi.close(&world);
  return test_end();
}
