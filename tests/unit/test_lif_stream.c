/* ranks: 1 2 4 7 */
/* Edges that stay in the file give the bits of resident ones: spikes and the whole state, step by
 * step, for any threads, with and without some that read ahead, with room for all of them, for some
 * and for one row at a time, with pages that are thrown out of the page cache under the run, narrow
 * and wide sums, rows in another order, a hub, no edges, a silent network; state carried from one
 * residency to the other and back. And the process holds none of them. */
#include "lif_case.h"
#include "graph/load.h"
#include "core/rng.h"

#include <fcntl.h>
#include <unistd.h>

enum { N = 3000, DEGREE = 60, STEPS = 60 };
static char path[300];

/* Node 7 has a tenth of all edges; in the ordered graph the rows stand backwards. */
static void make_graph(struct connectome *g, eidx n_edges, bool ordered) {
  *g = (struct connectome){.population = mem_string("test"),
                           .n_nodes = N,
                           .n_edges = n_edges,
                           .body_id = NEW(uint64_t, N),
                           .source = NEW(uint32_t, n_edges),
                           .target = NEW(uint32_t, n_edges),
                           .impulse = NEW(int16_t, n_edges),
                           .delay = NEW(uint16_t, n_edges),
                           .provenance = mem_string("{}")};
  for (int64_t i = 0; i < N; i++) g->body_id[i] = 10 * (uint64_t)i;
  for (eidx e = 0; e < n_edges; e++) {
    const struct rng_block r = rng_draw(3, (uint32_t)e, 0, 0, 0);
    g->source[e] = e % 10 ? (uint32_t)(r.v[0] % N) : 7;
    g->target[e] = r.v[1] % N;
    g->impulse[e] = (int16_t)(g->source[e] % 5 ? (int)(r.v[2] % 1000) : -(int)(r.v[2] % 3000));
    g->delay[e] = (uint16_t)(2 + r.v[3] % 7);
  }
  if (!ordered) return;
  g->row_of_node = NEW(uint32_t, N), g->node_of_row = NEW(uint32_t, N);
  for (int64_t i = 0; i < N; i++)
    g->row_of_node[i] = (uint32_t)(N - 1 - i), g->node_of_row[N - 1 - i] = (uint32_t)i;
}

static void write_graph(eidx n_edges, bool ordered) {
  struct connectome graph;
  make_graph(&graph, n_edges, ordered);
  if (world.rank == 0) CHECK_FINE(connectome_write(&graph, path, true, true));
  connectome_free(&graph);
  comm_barrier(&world);
}

/* The file on this rank, running. */
struct fixture {
  struct test_net place; /* the net and who owns what */
  struct lif_stimulus stimulus;
  struct lif_run *run;
};

enum { RESIDENT = -1, ALL_HELD = 8 * N * DEGREE * 2, SOME_HELD = ALL_HELD / 8, ONE_ROW_HELD = 0 };

static void bed_open(struct fixture *b, int64_t held, int threads, int readers, bool driven,
                     bool wide) {
  static const struct lif_params params = {
      .threshold = 9000, .reset = -300, .refractory = 2, .n_shifts = 1, .shift = {4}};
  struct connectome_file *file;
  nodeid *all = NEW(nodeid, N);
  for (int64_t i = 0; i < N; i++) all[i] = i;
  b->place = (struct test_net){.first_of_rank = NEW(gidx, world.size + 1)};
  CHECK_FINE(connectome_open(&world, path, &file));
  load_split(&world, file, world.size, b->place.first_of_rank);
  const gidx first = b->place.first_of_rank[world.rank],
             last = b->place.first_of_rank[world.rank + 1];
  if (held != RESIDENT)
    lif_net_stream(file, first, last, held, readers, &b->place.net);
  else
    lif_net_load(file, first, last, &b->place.net);
  connectome_close(file);
  b->place.net.wide |= wide;
  b->stimulus = lif_poisson(&b->place.net, 0, driven ? N : 0, all, 0, INT64_MAX, 0.05, 9500);
  const struct variant variant = {.backend = backend_cpu.lif, .threads = threads};
  b->run = open_run(&b->place, &world, &variant, &params, &b->stimulus, 1, 5);
  mem_free(all);
}

static void bed_close(struct fixture *b) {
  lif_close(b->run), lif_stimulus_free(&b->stimulus), test_net_free(&b->place);
}

/* A hash of one batch's spikes of all ranks, whatever their rows. */
static void step(struct fixture *b, int64_t *sum, int64_t *events) {
  struct lif_batch batch;
  lif_batch(b->run, &world, 1, REQUEST_NONE, &batch);
  CHECK(batch.fault.step == LIF_NO_FAULT);
  nodeid *id = NEW(nodeid, batch.own->n);
  lif_own_nodes(b->run, &batch, id);
  for (int64_t i = 0; i < batch.own->n; i++)
    *sum = (int64_t)((uint64_t)*sum + edge_hash(id[i], batch.step, 1, 1).low);
  *events += batch.events;
  mem_free(id);
}

/* The same on every rank: V, counters and ring hashed by node id. */
static int64_t state_hash(const struct fixture *b) {
  const struct lif_net *net = &b->place.net;
  struct lif_state state;
  uint64_t sum = 0;
  lif_state_init(net, NULL, &state);
  lif_read(b->run, &state);
  for (lidx i = 0; i < net->n_own; i++) {
    sum += edge_hash(net->id[i], state.step, state.potential[i], state.counter[i]).low;
    for (int d = 0; d < net->max_delay; d++)
      sum += edge_hash(net->id[i], d, state.ring[(int64_t)i * net->max_delay + d], 7).low;
  }
  lif_state_free(&state);
  int64_t all = (int64_t)sum;
  comm_sum_i64(&world, &all, 1);
  return all;
}

/* What memory that runs short does, where that is possible. */
static void throw_out(void) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  CHECK_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
  close(file);
}

static void compare(int64_t held, int threads, int readers, bool driven, bool wide, bool lively) {
  struct fixture a, b;
  int64_t sums[4] = {0};
  bed_open(&a, RESIDENT, 1, 0, driven, wide), bed_open(&b, held, threads, readers, driven, wide);
  CHECK(b.place.net.out == NULL && b.place.net.n_edges == a.place.net.n_edges);
  for (int k = 0; k < STEPS; k++) {
    step(&a, &sums[0], &sums[1]), step(&b, &sums[2], &sums[3]);
    CHECK_EQ(sums[2], sums[0]);
    if (held == ONE_ROW_HELD || readers == 1) throw_out();
  }
  CHECK_EQ(state_hash(&b), state_hash(&a));
  comm_sum_i64(&world, sums, 4);
  CHECK_EQ(sums[3], sums[1]); /* events: over all ranks */
  CHECK((sums[1] > 1000) == lively);
  bed_close(&a), bed_close(&b);
}

static void check_graph(eidx n_edges, bool ordered) {
  write_graph(n_edges, ordered);
  const int64_t held[] = {ALL_HELD, SOME_HELD, ONE_ROW_HELD};
  for (int i = 0; i < 3; i++)
    for (int threads = 1; threads <= 3; threads += 2)
      compare(held[i], threads, i + threads == 2 ? 0 : 3 - i, true, i == 1, n_edges > 0);
  compare(SOME_HELD, 1, 1, true, false, n_edges > 0);
  compare(ONE_ROW_HELD, 3, 1, false, false, false);
}

/* Into the run of another fixture with the same rows. */
static void carry(const struct fixture *from, struct fixture *to) {
  struct lif_state state;
  lif_state_init(&from->place.net, NULL, &state);
  lif_read(from->run, &state);
  CHECK_FINE(lif_write(to->run, &world, &state, 0));
  lif_state_free(&state);
}

/* Resident, streamed, resident again: as if nothing had happened. */
static void test_carry(void) {
  struct fixture whole, part[3];
  int64_t sums[4] = {0};
  write_graph((eidx)N * DEGREE, true);
  bed_open(&whole, RESIDENT, 1, 0, true, false);
  for (int k = 0; k < STEPS; k++) step(&whole, &sums[0], &sums[1]);
  for (int i = 0; i < 3; i++) {
    bed_open(&part[i], i % 2 ? SOME_HELD : RESIDENT, i + 1, i, true, false);
    if (i) carry(&part[i - 1], &part[i]);
    for (int k = 0; k < STEPS / 3; k++) step(&part[i], &sums[2], &sums[3]);
  }
  CHECK_EQ(sums[2], sums[0]);
  CHECK_EQ(state_hash(&part[2]), state_hash(&whole));
  bed_close(&whole);
  for (int i = 0; i < 3; i++) bed_close(&part[i]);
}

/* A run holds what it was given, however much it reads; the longest row at least. */
static void test_memory(void) {
  struct fixture b;
  int64_t sums[2] = {0};
  const gidx own = N / world.size + 1;
  const int64_t before = mem_held(), rows = 8 * N + 16 * own + 16 * N;
  bed_open(&b, SOME_HELD, 1, 1, true, false);
  const int64_t longest = b.place.net.out_ptr[8] - b.place.net.out_ptr[7];
  CHECK(8 * longest < SOME_HELD);
  for (int k = 0; k < STEPS; k++) step(&b, &sums[0], &sums[1]);
  const int64_t state =
      own * (6 + 4 * (int64_t)b.place.net.max_delay) + 64 * N; /* and the batch's spikes */
  CHECK(sums[1] > 1000 && mem_held() - before < SOME_HELD + rows + state);
  CHECK(SOME_HELD < 8 * N * DEGREE / 3);
  bed_close(&b);
  CHECK_EQ(mem_held(), before);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  CHECK_FINE(transport_mpi.open(&world));
  int pid = (int)getpid();
  comm_share(&world, &pid, sizeof pid, 0);
  snprintf(path, sizeof path, "/tmp/fascicle_lif_stream_%d.h5", pid);
  check_graph((eidx)N * DEGREE, false);
  check_graph((eidx)N * DEGREE, true);
  check_graph(0, true);
  test_carry();
  test_memory();
  comm_barrier(&world);
  if (world.rank == 0) unlink(path);
  transport_mpi.close(&world);
  return test_end();
}
