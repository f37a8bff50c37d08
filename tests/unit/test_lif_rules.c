/* ranks: 1 2 3 4 */
/* The rules of a step (jobs/conf/README.md) by numbers worked out by hand: when a refractory
 * period ends, what is lost in it, what a recorded value means, intervals, listed and
 * Poisson spikes, silence, which of several faults is reported. Most networks here have
 * fewer neurons than there are ranks. */
#include "lif_case.h"
#include "core/rng.h"

enum { MOST = 4096 }; /* spikes or steps that a test looks at */

/* A few neurons and what came out. */
struct scene {
  gidx n;
  int n_edges;
  uint32_t source[16], target[16];
  int16_t weight[16];
  uint16_t delay[16];
  int64_t potential[16], counter[16];
  struct lif_params params;
};

struct outcome {
  int64_t fired[MOST];     /* [step][n] */
  int64_t potential[MOST]; /* [step][n] after the step */
  int64_t counter[MOST];
  struct lif_fault fault;
};

static void edge(struct scene *s, uint32_t source, uint32_t target, int weight, int delay) {
  s->source[s->n_edges] = source, s->target[s->n_edges] = target;
  s->weight[s->n_edges] = (int16_t)weight, s->delay[s->n_edges++] = (uint16_t)delay;
}

/* k = 31: positive potentials never leak. */
static struct scene scene(gidx n, int32_t threshold, uint16_t refractory) {
  return (struct scene){
      .n = n,
      .params = {.threshold = threshold, .refractory = refractory, .n_shifts = 1, .shift = {31}}};
}

static struct lif_edges edges_of(const struct scene *s) {
  return (struct lif_edges){.n_nodes = s->n,
                            .n_edges = s->n_edges,
                            .source = s->source,
                            .target = s->target,
                            .weight = s->weight,
                            .delay = s->delay};
}

/* What a test adds to a scene once the net stands. */
typedef int (*adding)(struct lif_net *net, struct lif_stimulus *stimulus);

/* One step at a time, so that every state is seen; `batch` steps at a time
 * when it is more than 1. */
static void play_steps(const struct scene *s, const struct variant *variant, adding add,
                       int64_t n_steps, int64_t batch_steps, struct outcome *out) {
  struct test_net p;
  struct whole_state w;
  struct lif_stimulus stimulus[4];
  const struct lif_edges edges = edges_of(s);
  CHECK(n_steps * s->n <= MOST);
  test_net_init(&p, &world, &edges, variant);
  whole_init(&p.net, &w);
  const int n_stimuli = add(&p.net, stimulus);
  struct lif_run *run = open_run(&p, &world, variant, &s->params, stimulus, n_stimuli, 42);
  start_from(run, &world, s->potential, s->counter, 0);
  memset(out, 0, sizeof *out);
  out->fault.step = LIF_NO_FAULT;
  while (run->step < n_steps && out->fault.step == LIF_NO_FAULT) {
    struct lif_batch batch;
    lif_batch(run, &world, batch_steps, REQUEST_NONE, &batch);
    whole_spikes(run, &batch, out->fired + batch.step * s->n);
    out->fault = batch.fault;
    whole_read(run, false, &w);
    for (gidx i = 0; i < s->n && run->step > 0; i++) {
      out->potential[(run->step - 1) * s->n + i] = w.potential[i];
      out->counter[(run->step - 1) * s->n + i] = w.counter[i];
    }
  }
  for (int k = 0; k < n_stimuli; k++) lif_stimulus_free(&stimulus[k]);
  lif_close(run), test_net_free(&p), whole_free(&w);
}

static const struct variant *the_variant;
static void play(const struct scene *s, adding add, int64_t n_steps, struct outcome *out) {
  play_steps(s, the_variant, add, n_steps, 1, out);
}

/* ---- refractory period ---- */

static int strong_current(struct lif_net *net, struct lif_stimulus *stimulus) {
  stimulus[0] = lif_current(net, 0, 1, (nodeid[]){0}, 0, 1000, 1000);
  return 1;
}

/* R = 10 under constant strong drive: t, t + 11, t + 22 ... */
static void test_refractory_period(void) {
  const struct scene s = scene(1, 500, 10);
  static struct outcome out;
  play(&s, strong_current, 100, &out);
  for (int t = 0; t < 100; t++) {
    CHECK_EQ(out.fired[t], t % 11 == 0);
    CHECK_EQ(out.counter[t], 10 - t % 11);
    CHECK_EQ(out.potential[t], 0);
  }
}

/* 0 fires at step 0 (arrival at 1, its target fired at 0: lost) and its second spike, at
 * 2, arrives at 3: kept. */
static void test_input_while_refractory(void) {
  struct scene s = scene(2, 500, 1);
  edge(&s, 0, 1, 300, 1);
  s.potential[0] = s.potential[1] = 500;
  static struct outcome out;
  play(&s, strong_current, 4, &out);
  const int64_t fired[] = {1, 1, 0, 0, 1, 0, 0, 0}, potential_of_1[] = {0, 0, 0, 300};
  for (int t = 0; t < 4; t++) {
    CHECK_EQ(out.fired[2 * t], fired[2 * t]);
    CHECK_EQ(out.fired[2 * t + 1], fired[2 * t + 1]);
    CHECK_EQ(out.potential[2 * t + 1], potential_of_1[t]);
  }
}

static int hundred_a_step(struct lif_net *net, struct lif_stimulus *stimulus) {
  stimulus[0] = lif_current(net, 0, 1, (nodeid[]){0}, 0, 5, 100);
  return 1;
}

/* A recorded value is the state after its step: 100 a step, threshold 600: fires at step 5,
 * which shows the reset. */
static void test_time_of_values(void) {
  struct scene s = scene(2, 600, 0);
  s.params.reset = 7;
  edge(&s, 0, 1, 50, 3);
  static struct outcome out;
  play(&s, hundred_a_step, 10, &out);
  for (int t = 0; t < 10; t++) {
    CHECK_EQ(out.fired[2 * t], t == 5);
    CHECK_EQ(out.potential[2 * t], t < 5 ? 100 * (t + 1) : 7);
    CHECK_EQ(out.potential[2 * t + 1], t < 8 ? 0 : 50);
  }
}

static int nothing(struct lif_net *net, struct lif_stimulus *stimulus) {
  (void)net, (void)stimulus;
  return 0;
}

/* A shift of 31 takes 1 from the size of a negative potential in each step, as it rounds down; no
 * shift at all leaves every potential alone. */
static void test_no_leak(void) {
  struct scene s = scene(2, 600, 0);
  static struct outcome out;
  s.potential[0] = -10, s.potential[1] = 10;
  play(&s, nothing, 6, &out);
  for (int t = 0; t < 6; t++) CHECK_EQ(out.potential[2 * t], -9 + t);
  s.params.n_shifts = 0;
  play(&s, hundred_a_step, 12, &out);
  for (int t = 0; t < 12; t++) {
    CHECK_EQ(out.potential[2 * t], -10 + 100 * (t < 5 ? t + 1 : 6));
    CHECK_EQ(out.potential[2 * t + 1], 10);
  }
}

static int one_pulse(struct lif_net *net, struct lif_stimulus *stimulus) {
  stimulus[0] = lif_current(net, 0, 1, (nodeid[]){1}, 5, 5, 1000);
  return 1;
}

/* A network long at rest wakes up: V = 1000 at step 5, and from then on V = V - (V >> 2) without
 * any input.
 */
static void test_wakes_up(void) {
  struct scene s = scene(2, 5000, 0);
  s.params.shift[0] = 2;
  static struct outcome out;
  play(&s, one_pulse, 30, &out);
  int64_t v = 0;
  for (int t = 0; t < 30; t++) {
    v += t == 5 ? 1000 : 0;
    v -= v / 4;
    CHECK_EQ(out.potential[2 * t + 1], v);
    CHECK_EQ(out.potential[2 * t], 0);
  }
}

/* ---- stimuli ---- */

static int some_current(struct lif_net *net, struct lif_stimulus *stimulus) {
  stimulus[0] = lif_current(net, 0, 2, (nodeid[]){2, 0}, 2, 4, 5);
  stimulus[1] = lif_current(net, 1, 1, (nodeid[]){2}, 4, 4, -3);
  return 2;
}

static void test_current(void) {
  const struct scene s = scene(3, 1000, 0);
  static struct outcome out;
  play(&s, some_current, 6, &out);
  const int64_t v0[] = {0, 0, 5, 10, 15, 15}, v2[] = {0, 0, 5, 10, 12, 12};
  for (int t = 0; t < 6; t++) {
    CHECK_EQ(out.potential[3 * t], v0[t]);
    CHECK_EQ(out.potential[3 * t + 1], 0);
    CHECK_EQ(out.potential[3 * t + 2], v2[t]);
  }
}

static int listed_spikes(struct lif_net *net, struct lif_stimulus *stimulus) {
  stimulus[0] = lif_listed(net, 0, 1, (nodeid[]){0}, 4, (int64_t[]){7, 3, 4, 3});
  stimulus[1] = lif_current(net, 1, 1, (nodeid[]){0}, 3, 3, 1 << 30);
  return 2;
}

/* Whatever V (INT32_MAX - 5, to which 2^30 would be added) and the counter (at 4) say. */
static void test_listed_spikes(void) {
  struct scene s = scene(2, INT32_MAX, 5);
  s.potential[0] = INT32_MAX - 5;
  s.params.reset = 11;
  edge(&s, 0, 1, 9, 1);
  static struct outcome out;
  play(&s, listed_spikes, 10, &out);
  const int64_t counter[] = {0, 0, 0, 5, 5, 4, 3, 5, 4, 3},
                arrived[] = {0, 0, 0, 0, 9, 18, 18, 18, 27, 27};
  for (int t = 0; t < 10; t++) {
    CHECK_EQ(out.fired[2 * t], t == 3 || t == 4 || t == 7);
    CHECK_EQ(out.potential[2 * t], t < 3 ? INT32_MAX - 5 : 11);
    CHECK_EQ(out.counter[2 * t], counter[t]);
    CHECK_EQ(out.potential[2 * t + 1], arrived[t]);
  }
  CHECK(out.fault.step == LIF_NO_FAULT);
}

/* ---- Poisson: spikes are exactly the draws below the probability ---- */

enum { CROWD = 1500, WHILE = 40 };
static const double chance = 0.03;

static bool drawn(nodeid id, int64_t t, uint32_t index, uint32_t trial) {
  const struct rng_block r = rng_draw(42, (uint32_t)id, (uint32_t)t, index, trial);
  return rng_unit(r.v[0], r.v[1]) < chance;
}

static void play_poisson(uint32_t trial) {
  const struct lif_edges none = {.n_nodes = CROWD};
  const struct lif_params params = {.threshold = 1, .n_shifts = 1, .shift = {31}};
  nodeid *all = NEW(nodeid, CROWD);
  int64_t *fired = NEW(int64_t, CROWD), total = 0;
  for (int i = 0; i < CROWD; i++) all[i] = CROWD - 1 - i;
  struct test_net p;
  test_net_init(&p, &world, &none, the_variant);
  struct lif_stimulus stimulus = lif_poisson(&p.net, 3, CROWD, all, 1, WHILE, chance, 77);
  struct lif_run *run = open_run(&p, &world, the_variant, &params, &stimulus, 1, 42);
  start_from(run, &world, NULL, NULL, trial);
  for (int64_t t = 0; t < WHILE + 2; t++) {
    struct lif_batch batch;
    lif_batch(run, &world, 1, REQUEST_NONE, &batch);
    whole_spikes(run, &batch, fired);
    for (int i = 0; i < CROWD; i++) {
      CHECK_EQ(fired[i], t >= 1 && t <= WHILE && drawn(i, t, 3, trial));
      total += fired[i];
    }
  }
  /* Binomial: mean 1,800, standard deviation 42; five of them is one chance in 2 million. */
  CHECK(total > 1800 - 5 * 42 && total < 1800 + 5 * 42);
  lif_close(run), lif_stimulus_free(&stimulus), test_net_free(&p), mem_free(all), mem_free(fired);
}

static void test_poisson(void) {
  play_poisson(0), play_poisson(7);
  int64_t differ = 0;
  for (int i = 0; i < CROWD; i++) differ += drawn(i, 1, 3, 0) != drawn(i, 1, 3, 7);
  CHECK(differ > 0);
}

/* ---- silence ---- */

static int mute_1(struct lif_net *net, struct lif_stimulus *stimulus) {
  lidx *row;
  const lidx n = lif_own_rows(net, 1, (nodeid[]){1}, &row);
  lif_net_silence(net, n, row, LIF_MUTED), mem_free(row);
  stimulus[0] = lif_listed(net, 0, 1, (nodeid[]){0}, 3, (int64_t[]){3, 4, 7});
  return 1;
}

static int remove_only(struct lif_net *net, struct lif_stimulus *stimulus) {
  (void)stimulus;
  lidx *row;
  const lidx n = lif_own_rows(net, 1, (nodeid[]){1}, &row);
  lif_net_silence(net, n, row, LIF_REMOVED), mem_free(row);
  return 0;
}

static int remove_1(struct lif_net *net, struct lif_stimulus *stimulus) {
  remove_only(net, stimulus);
  stimulus[0] = lif_listed(net, 0, 2, (nodeid[]){0, 1}, 1, (int64_t[]){3});
  stimulus[1] = lif_current(net, 1, 1, (nodeid[]){1}, 0, 9, 400);
  return 2;
}

/* 0 -> 1 -> 2. Muted, 1 fires and is recorded, but 2 hears nothing. Removed,
 * 1 does not fire either. */
static void test_silence(void) {
  struct scene s = scene(3, 100, 0);
  edge(&s, 0, 1, 150, 1), edge(&s, 1, 2, 30, 1);
  static struct outcome out;
  play(&s, mute_1, 10, &out);
  int64_t of_1 = 0;
  for (int t = 0; t < 10; t++) of_1 += out.fired[3 * t + 1];
  CHECK_EQ(of_1, 3);
  CHECK_EQ(out.potential[9 * 3 + 2], 0);
  s.potential[1] = 100000; /* above the threshold: it only leaks, and 31 leaks nothing */
  play(&s, remove_1, 10, &out);
  for (int t = 0; t < 10; t++) {
    CHECK_EQ(out.fired[3 * t], t == 3);
    CHECK_EQ(out.fired[3 * t + 1], 0);
    CHECK_EQ(out.potential[3 * t + 1], 100000);
    CHECK_EQ(out.potential[3 * t + 2], 0);
  }
  /* Nobody receives anything: 2 fires by itself, 1 would. */
  s.potential[2] = 100000;
  play(&s, remove_only, 10, &out);
  for (int t = 0; t < 10; t++) {
    CHECK_EQ(out.fired[3 * t + 1], 0);
    CHECK_EQ(out.fired[3 * t + 2], t == 0);
    CHECK_EQ(out.potential[3 * t + 1], 100000);
  }
}

/* ---- faults ---- */

static int faults_later_and_sooner(struct lif_net *net, struct lif_stimulus *stimulus) {
  stimulus[0] = lif_current(net, 0, 1, (nodeid[]){1}, 5, 5, INT32_MAX);
  stimulus[1] = lif_current(net, 1, 2, (nodeid[]){3, 4}, 4, 4, INT32_MAX);
  stimulus[2] = lif_current(net, 2, 3, (nodeid[]){1, 3, 4}, 4, 5, 1);
  stimulus[3] = lif_listed(net, 3, 1, (nodeid[]){2}, 3, (int64_t[]){3, 4, 5});
  return 4;
}

static int faults_of_both_phases(struct lif_net *net, struct lif_stimulus *stimulus) {
  stimulus[0] = lif_current(net, 0, 1, (nodeid[]){0}, 4, 4, INT32_MAX);
  stimulus[1] = lif_current(net, 1, 1, (nodeid[]){4}, 4, 4, INT32_MIN);
  stimulus[2] = lif_current(net, 2, 1, (nodeid[]){4}, 4, 4, -1);
  return 3;
}

static void check_fault(const struct lif_fault *fault, int64_t step, int phase, nodeid node,
                        int64_t value) {
  CHECK_EQ(fault->step, step);
  CHECK_EQ(fault->phase, phase);
  CHECK_EQ(fault->node, node);
  CHECK_EQ(fault->value, value);
}

/* All within one batch of 3 steps (3, 4, 5): the smallest (step, phase, node), and no spike from
 * its step on.
 */
static void test_which_fault(void) {
  struct scene s = scene(5, 1000, 0);
  edge(&s, 2, 2, 1, 3);
  s.potential[0] = 10;
  static struct outcome out;
  play_steps(&s, the_variant, faults_later_and_sooner, 9, 3, &out);
  check_fault(&out.fault, 4, LIF_INPUT, 3, (int64_t)INT32_MAX + 1);
  for (int t = 0; t < 9; t++) CHECK_EQ(out.fired[5 * t + 2], t == 3);
  play_steps(&s, the_variant, faults_of_both_phases, 9, 3, &out);
  check_fault(&out.fault, 4, LIF_INPUT, 4, (int64_t)INT32_MIN - 1);
  const struct status line = lif_fault_status(&out.fault, "10089");
  CHECK(strstr(line.text, "step 4, neuron 4, body id 10089: the sum of its inputs is -2147483649"));
}

/* A thousand strong synapses at once: 3,000 spikes of 2,591 are 7,773,000, beside a weight of 1. */
static void test_many_spikes_at_once(void) {
  enum { N = 3001 };
  uint32_t *source = NEW(uint32_t, N), *target = NEW(uint32_t, N);
  int16_t *weight = NEW(int16_t, N);
  int64_t *start = NEW_ZERO(int64_t, N + 1);
  for (uint32_t i = 0; i < N; i++)
    source[i] = i % (N - 1), target[i] = N - 1, weight[i] = i == N - 1 ? 1 : 2591;
  for (int i = 0; i < N - 1; i++) start[i] = 10;
  const struct lif_edges edges = {
      .n_nodes = N, .n_edges = N, .source = source, .target = target, .weight = weight};
  const struct lif_params params = {.threshold = 10, .refractory = 3, .n_shifts = 1, .shift = {31}};
  struct test_net p;
  struct whole_state w;
  test_net_init(&p, &world, &edges, the_variant);
  whole_init(&p.net, &w);
  struct lif_run *run = open_run(&p, &world, the_variant, &params, NULL, 0, 0);
  start_from(run, &world, start, NULL, 0);
  struct lif_batch batch;
  lif_batch(run, &world, 1, REQUEST_NONE, &batch);
  CHECK_EQ(batch.sent, 3000);
  whole_read(run, true, &w);
  CHECK_EQ(w.ring[N - 1], 3000 * 2591 + 1);
  lif_close(run), test_net_free(&p), whole_free(&w);
  mem_free(source), mem_free(target), mem_free(weight), mem_free(start);
}

/* Neurons of several blocks, hence of several threads and ranks, in either
 * order: the smallest node id. */
static void test_fault_of_many_blocks(void) {
  enum { N = 3001 };
  const struct lif_edges none = {.n_nodes = N};
  const struct lif_params params = {.threshold = INT32_MAX, .n_shifts = 1, .shift = {31}};
  int64_t *start = NEW_ZERO(int64_t, N);
  start[1] = start[2] = start[2500] = INT32_MAX - 1;
  struct test_net p;
  test_net_init(&p, &world, &none, the_variant);
  struct lif_stimulus current = lif_current(&p.net, 0, 3, (nodeid[]){1, 2, 2500}, 0, 0, 2);
  struct lif_run *run = open_run(&p, &world, the_variant, &params, &current, 1, 0);
  start_from(run, &world, start, NULL, 0);
  struct lif_batch batch;
  lif_batch(run, &world, 1, REQUEST_NONE, &batch);
  check_fault(&batch.fault, 0, LIF_INTEGRATE, 1, (int64_t)INT32_MAX + 1);
  lif_stimulus_free(&current);
  lif_close(run), test_net_free(&p);
  mem_free(start);
}

static int request_of(int from_rank) {
  const struct lif_edges none = {.n_nodes = 2};
  const struct lif_params params = {.threshold = 10, .n_shifts = 1};
  struct test_net p;
  test_net_init(&p, &world, &none, the_variant);
  struct lif_run *run = open_run(&p, &world, the_variant, &params, NULL, 0, 0);
  struct lif_batch batch;
  lif_batch(run, &world, 1, world.rank == from_rank ? REQUEST_STOP : REQUEST_NONE, &batch);
  lif_close(run), test_net_free(&p);
  return (int)batch.request;
}

/* A request that one rank alone saw reaches all, at the same step. */
static void test_requests(void) {
  CHECK_EQ(request_of(world.size - 1), REQUEST_STOP);
  CHECK_EQ(request_of(-1), REQUEST_NONE);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  CHECK_FINE(transport_mpi.open(&world));
  struct variant variants[8];
  const int n = all_variants(variants);
  for (int i = 0; i < n; i++) {
    the_variant = &variants[i];
    test_refractory_period(), test_input_while_refractory(), test_time_of_values();
    test_wakes_up(), test_no_leak();
    test_current(), test_listed_spikes(), test_poisson();
    test_silence(), test_which_fault(), test_fault_of_many_blocks();
    test_many_spikes_at_once(), test_requests();
  }
  transport_mpi.close(&world);
  return test_end();
}
