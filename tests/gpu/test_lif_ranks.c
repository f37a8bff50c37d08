/* LIF on the GPUs of several ranks against the plain loop on one: the same spikes, the same
 * state, the same faults, whatever road the spikes take. Usage: mpirun -n R
 * gpu_test_lif_ranks peer|nccl|mpi */
#include "../lif_case.h"
#include "core/rng.h"

#include <omp.h>

struct net_case {
  const char *name;
  gidx n;
  int degree, low_delay, high_delay, weight;
  int32_t threshold;
  uint16_t refractory;
  bool wide, mutes, permuted, uneven;
  int64_t steps, most; /* of the run, of one call */
  int64_t lone;        /* > 0: neuron 0 alone overflows, at this step */
};

static const struct net_case cases[] = {
    {"delays 1..8", 3300, 30, 1, 8, 2000, 9000, 4, false, false, false, false, 700, 4096, 0},
    {"delays 3..11, mutes", 3300, 30, 3, 11, 2000, 9000, 4, false, true, true, false, 700, 50, 0},
    {"delay 18, one rank empty", 3300, 30, 18, 18, 2000, 9000, 4, false, true, false, true, 700,
     4096, 0},
    {"delays 290..300", 9000, 12, 290, 300, 2000, 9000, 4, false, false, false, false, 1500, 4096,
     0},
    {"64-bit sums, 7 steps a call", 3300, 30, 4, 9, 2000, 9000, 4, true, false, true, true, 300, 7,
     0},
    {"more ranks than neurons", 3, 2, 1, 2, 2000, 2000, 0, false, false, false, false, 300, 4096,
     0},
    {"everybody fires, mutes", 5000, 60, 1, 2, 9, -5, 0, false, true, false, false, 200, 4096, 0},
    {"200,000 or less a rank", 400000, 6, 2, 8, 4000, 9000, 4, false, true, false, false, 150, 4096,
     0},
    {"not in registers, one rank empty", 400000, 6, 2, 8, 4000, 9000, 4, false, true, false, true,
     60, 4096, 0},
    {"the same, delays 1..8", 400000, 6, 1, 8, 4000, 9000, 4, false, false, false, true, 60, 4096,
     0},
    {"overflow", 900, 20, 1, 3, 30000, 2000000000, 3, true, false, false, false, 400, 4096, 0},
    {"overflow, delays 4..6", 900, 20, 4, 6, 30000, 2000000000, 3, false, true, true, false, 400,
     4096, 0},
    /* the others hear of it before a barrier, or only behind one */
    {"overflow of one neuron, step 40", 900, 20, 4, 6, 200, 2000000000, 3, false, false, false,
     false, 90, 4096, 40},
    {"overflow of one neuron, step 41", 900, 20, 4, 6, 200, 2000000000, 3, false, false, false,
     false, 90, 4096, 41},
    {"overflow of one neuron, step 42", 900, 20, 4, 6, 200, 2000000000, 3, false, false, true,
     false, 90, 4096, 42},
};

static struct lif_edges edges_of(const struct net_case *c) {
  const eidx n = (eidx)c->n * c->degree;
  uint32_t *source = NEW(uint32_t, n), *target = NEW(uint32_t, n);
  int16_t *weight = NEW(int16_t, n);
  uint16_t *delay = NEW(uint16_t, n);
  for (eidx e = 0; e < n; e++) {
    const struct rng_block r = rng_draw(5, (uint32_t)e, 0, 0, 0);
    source[e] = (uint32_t)(e / c->degree);
    target[e] = (uint32_t)rng_below(r.v[0], r.v[1], (uint64_t)c->n);
    weight[e] = (int16_t)((int)(r.v[2] % (uint32_t)(2 * c->weight + 1)) - c->weight);
    delay[e] =
        (uint16_t)(c->low_delay + (int)(r.v[3] % (uint32_t)(c->high_delay - c->low_delay + 1)));
  }
  return (struct lif_edges){.n_nodes = c->n,
                            .n_edges = n,
                            .source = source,
                            .target = target,
                            .weight = weight,
                            .delay = delay};
}

static void edges_free(const struct lif_edges *edges) {
  mem_free((void *)edges->source), mem_free((void *)edges->target);
  mem_free((void *)edges->weight), mem_free((void *)edges->delay);
}

/* Every fifth neuron is silenced, every seventh removed. */
static void silence(struct lif_net *net) {
  for (lidx i = 0; i < net->n_own; i++) {
    if (net->id[i] % 5 == 0) lif_net_silence(net, 1, &i, LIF_MUTED);
    if (net->id[i] % 7 == 0) lif_net_silence(net, 1, &i, LIF_REMOVED);
  }
}

enum { N_STIMULI = 4 };

static void drive(const struct net_case *c, const struct lif_net *net,
                  struct lif_stimulus *stimulus) {
  nodeid *every = NEW(nodeid, c->n);
  for (gidx i = 0; i < c->n; i++) every[i] = i;
  const int32_t kick = c->lone > 0 ? 1000 : c->threshold > 1000 ? c->threshold / 2 : 100;
  stimulus[0] = lif_poisson(net, 0, c->n, every, 0, INT64_MAX, 0.05, kick);
  stimulus[1] = lif_current(net, 1, c->n / 3 + 1, every, 20, 200, kick / 20);
  stimulus[2] = lif_listed(net, 2, c->n / 2 + 1, every, 4, (int64_t[]){0, 1, 77, 78});
  const int64_t lone = c->lone > 0 ? c->lone : INT64_MAX;
  stimulus[3] = lif_current(net, 3, 1, every, lone - 1, lone, 1500000000);
  mem_free(every);
}

struct outcome {
  struct trail trail;
  int64_t fault_step, fault_phase, fault_node, fault_value;
};

static struct outcome run_trial(const struct comm *comm, const struct net_case *c,
                                struct lif_run *run, uint32_t trial) {
  struct outcome found = {.fault_step = LIF_NO_FAULT};
  struct lif_batch batch = {.fault.step = LIF_NO_FAULT};
  start_from(run, comm, NULL, NULL, trial);
  run->step = 0;
  while (run->step < c->steps && batch.fault.step == LIF_NO_FAULT) {
    const int64_t left = c->steps - run->step;
    lif_batch(run, comm, left < c->most ? left : c->most, REQUEST_NONE, &batch);
    trail_spikes(&found.trail, run, &batch);
  }
  if (batch.fault.step == LIF_NO_FAULT)
    trail_state(&found.trail, run);
  else
    found.trail.events = 0; /* of the batch that failed there are none */
  trail_sum(&found.trail, comm);
  found.fault_step = batch.fault.step, found.fault_phase = batch.fault.phase;
  found.fault_node = batch.fault.node, found.fault_value = batch.fault.value;
  return found;
}

/* Two trials, one after the other. */
static void run_once(const struct comm *comm, const struct net_case *c,
                     const struct lif_edges *edges, const struct variant *variant,
                     struct outcome outcome[2]) {
  const struct lif_params params = {.threshold = c->threshold,
                                    .reset = -30,
                                    .refractory = c->refractory,
                                    .n_shifts = 2,
                                    .shift = {4, 7}};
  struct test_net p;
  struct lif_stimulus stimulus[N_STIMULI];
  test_net_init(&p, comm, edges, variant);
  p.net.wide |= c->wide;
  if (c->mutes) silence(&p.net);
  drive(c, &p.net, stimulus);
  struct lif_run *run = open_run(&p, comm, variant, &params, stimulus, N_STIMULI, 99);
  for (uint32_t k = 0; k < 2; k++) outcome[k] = run_trial(comm, c, run, k);
  lif_close(run), test_net_free(&p);
  for (int k = 0; k < N_STIMULI; k++) lif_stimulus_free(&stimulus[k]);
}

static int check_case(const struct net_case *c) {
  const struct lif_edges edges = edges_of(c);
  const struct variant plain = {.backend = backend_cpu.lif, .threads = omp_get_max_threads()};
  const struct variant variants = {
      .backend = backend_cuda.lif, .threads = 1, .permuted = c->permuted, .uneven = c->uneven};
  struct comm alone = comm_split(&world, world.rank, 0);
  struct outcome wanted[2] = {0}, got[2];
  if (world.rank == 0) run_once(&alone, c, &edges, &plain, wanted);
  comm_share(&world, wanted, sizeof wanted, 0);
  run_once(&world, c, &edges, &variants, got);
  bool good = true;
  for (int k = 0; k < 2; k++) good &= !memcmp(&got[k], &wanted[k], sizeof got[k]);
  if (world.rank == 0)
    printf("%-32s %9lld spikes, fault at %lld: %s\n", c->name, (long long)wanted[0].trail.spikes,
           wanted[0].fault_step == LIF_NO_FAULT ? -1 : (long long)wanted[0].fault_step,
           good ? "equal" : "DIFFERENT");
  for (int k = 0; k < 2 && !good && world.rank == 0; k++)
    printf("  trial %d: %lld spikes, wanted %lld; %lld events, wanted %lld; fault %lld %lld %lld "
           "%lld, "
           "wanted %lld %lld %lld %lld\n",
           k, (long long)got[k].trail.spikes, (long long)wanted[k].trail.spikes,
           (long long)got[k].trail.events, (long long)wanted[k].trail.events,
           (long long)got[k].fault_step, (long long)got[k].fault_phase,
           (long long)got[k].fault_node, (long long)got[k].fault_value,
           (long long)wanted[k].fault_step, (long long)wanted[k].fault_phase,
           (long long)wanted[k].fault_node, (long long)wanted[k].fault_value);
  fflush(stdout);
  comm_free(&alone), edges_free(&edges);
  return !good;
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  const char *name = argc > 1 ? argv[1] : "peer";
  const struct transport *via = !strcmp(name, "nccl")   ? &transport_nccl
                                : !strcmp(name, "peer") ? &transport_peer
                                                        : &transport_staged;
  CHECK_FINE(backend_cuda.start(world.rank));
  CHECK_FINE(via->open(&world));
  int failed = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) failed += check_case(&cases[i]);
  via->close(&world);
  backend_cuda.stop();
  if (world.rank == 0)
    printf("LIF on %d ranks, transport %s: %d of %zu cases differ\n", world.size, name, failed,
           sizeof cases / sizeof *cases);
  comm_finish(&world, failed > 0);
}
