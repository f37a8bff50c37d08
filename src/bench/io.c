/* bench io: the graph artifact and a training checkpoint, written and read in the current folder,
 * which should lie on the file system that matters.
 *
 *   write        one process: sort, digest, checksums, file, fsync
 *   read_cold    every rank its share of rows: offsets, sources, weights, delays; not in the page
 *                cache
 *   read_warm    the same from the page cache
 *   load         read_warm and the graph built from it: halo found, edges split into near and far
 *   checkpoint   all ranks: three floats an edge (value, two moments), checksums, fsync
 *   restore      the same read back and verified
 *
 * Floors: bytes over the rate at which this run writes (with fsync) or reads a plain file there;
 * warm reads: every byte in and out of memory once over the memory rate. */
#include "bench.h"
#include "io/graph/connectome.h"
#include "io/hdf5/fields.h"
#include "io/files/files.h"
#include "partition/generate.h"
#include "partition/halo.h"
#include "graph/load.h"
#include "core/log.h"
#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODES = 211577, EDGES = 24678466, REPEATS = 5, BLOCK = 8 << 20 };
#define GRAPH      "fascicle_bench_io.h5"
#define CHECKPOINT "fascicle_bench_io.checkpoint.h5"
#define PLAIN      "fascicle_bench_io.plain"
#define KIND       "fascicle bench"

struct fixture {
  const struct comm *comm;
  const struct bench_job *bench;
  struct generate_model model;
  double memory_rate, write_rate, read_rate; /* bytes per second, all ranks together */
};

/* ---- what the file system can do ---- */

static int64_t size_of(const char *path) {
  struct stat info;
  return stat(path, &info) ? 0 : (int64_t)info.st_size;
}

static void forget_pages(const char *path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

/* Seconds to write `bytes` bytes plainly and sync them. */
static double write_plainly(int64_t bytes) {
  char *block = NEW(char, BLOCK);
  memset(block, 7, BLOCK);
  const double before = seconds_now();
  const int file = open(PLAIN, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  for (int64_t done = 0; done < bytes; done += BLOCK)
    if (file < 0 || write(file, block, BLOCK) != BLOCK)
      DIE(EXIT_OUTPUT, "%s: cannot write: %s", PLAIN, strerror(errno));
  if (fsync(file)) DIE(EXIT_OUTPUT, "%s: cannot sync: %s", PLAIN, strerror(errno));
  close(file);
  mem_free(block);
  return seconds_now() - before;
}

/* Seconds until every rank has read its part of the plain file, which is not in the page cache. */
static double read_plainly(const struct comm *comm) {
  const int64_t blocks = size_of(PLAIN) / BLOCK;
  char *block = NEW(char, BLOCK);
  const int file = open(PLAIN, O_RDONLY | O_CLOEXEC);
  if (file < 0) DIE(EXIT_INPUT, "%s: cannot open: %s", PLAIN, strerror(errno));
  comm_barrier(comm);
  const double before = seconds_now();
  for (int64_t i = blocks * comm->rank / comm->size; i < blocks * (comm->rank + 1) / comm->size;
       i++)
    if (pread(file, block, BLOCK, i * BLOCK) != BLOCK)
      DIE(EXIT_INPUT, "%s: cannot read: %s", PLAIN, strerror(errno));
  const double seconds = bench_slowest(comm, seconds_now() - before);
  close(file);
  mem_free(block);
  return seconds;
}

static void measure_disk(struct fixture *fixture, int64_t bytes) {
  double seconds = fixture->comm->rank == 0 ? write_plainly(bytes) : 0;
  seconds = bench_slowest(fixture->comm, seconds);
  fixture->write_rate = (double)bytes / seconds;
  if (fixture->comm->rank == 0) forget_pages(PLAIN);
  comm_barrier(fixture->comm);
  fixture->read_rate = (double)bytes / read_plainly(fixture->comm);
  if (fixture->comm->rank == 0) file_remove(PLAIN);
  log_line("this folder takes %.0f MB/s with fsync, gives %.0f MB/s; memory moves %.1f GB/s",
           fixture->write_rate / 1e6, fixture->read_rate / 1e6, fixture->memory_rate / 1e9);
}

/* ---- graph ---- */

static struct connectome make_graph(const struct fixture *fixture) {
  const struct generate_model *model = &fixture->model;
  const uint64_t seed = model->seed;
  struct connectome g = {.n_nodes = model->n_nodes, .n_edges = model->n_edges};
  g.body_id = NEW(uint64_t, g.n_nodes);
  for (int64_t i = 0; i < g.n_nodes; i++) g.body_id[i] = (uint64_t)(10001 + 7 * i);
  g.source = NEW(uint32_t, g.n_edges), g.target = NEW(uint32_t, g.n_edges);
  g.count = NEW(uint32_t, g.n_edges), g.impulse = NEW(int16_t, g.n_edges),
  g.delay = NEW(uint16_t, g.n_edges);
  generate_edges(model, fixture->bench->job.n_threads, g.source, g.target);
#pragma omp parallel for num_threads(fixture->bench->job.n_threads)
  for (eidx e = 0; e < g.n_edges; e++) {
    g.count[e] = generate_count(seed, g.source[e], g.target[e]);
    g.impulse[e] = (int16_t)(g.source[e] % 5 ? (int)g.count[e] : -(int)g.count[e]);
    g.delay[e] = generate_delay(seed, g.source[e], g.target[e], 1, 8);
  }
  return g;
}

/* Edges in an order that has nothing to do with the file's: e -> e x stride mod E. */
static void scatter_edges(struct connectome *g) {
  const eidx n = g->n_edges;
  uint32_t *source = NEW(uint32_t, n), *target = NEW(uint32_t, n);
  eidx stride = 2654435761 % (n > 1 ? n : 2), a = n, b = stride;
  while (b) { /* coprime: every edge once */
    const eidx rest = a % b;
    a = b, b = rest;
  }
  if (a != 1) stride = 1;
  for (eidx e = 0, at = 0; e < n; e++, at = (at + stride) % n)
    source[e] = g->source[at], target[e] = g->target[at];
  mem_free(g->source), mem_free(g->target);
  g->source = source, g->target = target;
}

static void report(const struct fixture *fixture, const char *name, double seconds, double floor,
                   int64_t bytes) {
  int64_t peak = mem_peak();
  comm_max_i64(fixture->comm, &peak, 1);
  const struct bench_line line = {.bench = "io",
                                  .name = name,
                                  .nodes = fixture->model.n_nodes,
                                  .edges = fixture->model.n_edges,
                                  .seconds = seconds,
                                  .floor_seconds = floor,
                                  .bytes = bytes,
                                  .peak_bytes = peak};
  bench_print(fixture->comm, fixture->bench, &line);
}

static struct status bench_write(struct fixture *fixture) {
  struct status s = fine();
  double seconds = 0;
  if (fixture->comm->rank == 0) {
    struct connectome g = make_graph(fixture);
    scatter_edges(&g);
    const double before = seconds_now();
    s = connectome_write(&g, GRAPH, false, true);
    seconds = seconds_now() - before;
    connectome_free(&g);
  }
  TRY(agree(fixture->comm, s));
  int64_t bytes = fixture->comm->rank == 0 ? size_of(GRAPH) : 0;
  comm_max_i64(fixture->comm, &bytes, 1);
  measure_disk(fixture, bytes);
  report(fixture, "write", bench_slowest(fixture->comm, seconds),
         (double)bytes / fixture->write_rate, bytes);
  return fine();
}

/* ---- reading ---- */

/* Bytes of a share in the file: an edge's source, weight and delay, a row's offset. */
static int64_t share_bytes(const struct fixture *fixture) {
  return 8 * (fixture->model.n_edges + fixture->model.n_nodes);
}

static void read_share(const struct fixture *fixture, struct connectome_file *file,
                       const gidx *first) {
  const int rank = fixture->comm->rank;
  const int64_t rows = first[rank + 1] - first[rank];
  eidx *row_ptr = NEW(eidx, rows + 1);
  connectome_row_ptr(file, first[rank], rows + 1, row_ptr);
  const eidx n = row_ptr[rows] - row_ptr[0];
  uint32_t *source = NEW(uint32_t, n);
  int16_t *impulse = NEW(int16_t, n);
  uint16_t *delay = NEW(uint16_t, n);
  connectome_sources(file, row_ptr[0], n, source);
  connectome_impulses(file, row_ptr[0], n, impulse);
  connectome_delays(file, row_ptr[0], n, delay);
  mem_free(source), mem_free(impulse), mem_free(delay), mem_free(row_ptr);
}

static struct status build_graph(const struct fixture *fixture, struct connectome_file *file,
                                 const gidx *first) {
  struct graph graph;
  TRY(load_graph(fixture->comm, file, first, HALO_AUTO, &graph));
  graph_free(&graph);
  return fine();
}

/* Open, split and read the whole graph over all ranks; with `build` also make the local graphs. */
static struct status time_reading(const struct fixture *fixture, bool cold, bool build,
                                  double *seconds) {
  struct connectome_file *file;
  gidx *first = NEW(gidx, fixture->comm->size + 1);
  if (cold) forget_pages(GRAPH);
  comm_barrier(fixture->comm);
  const double before = seconds_now();
  struct status s = connectome_open(fixture->comm, GRAPH, &file);
  if (!s.code) {
    load_split(fixture->comm, file, fixture->comm->size, first);
    if (build)
      s = build_graph(fixture, file, first);
    else
      read_share(fixture, file, first);
    connectome_close(file);
  }
  *seconds = bench_slowest(fixture->comm, seconds_now() - before);
  mem_free(first);
  return s;
}

static struct status bench_reading(const struct fixture *fixture, const char *name, bool cold,
                                   bool build) {
  double seconds[REPEATS];
  const int64_t bytes = share_bytes(fixture);
  for (int i = 0; i < REPEATS; i++) TRY(time_reading(fixture, cold, build, &seconds[i]));
  const double floor =
      cold ? (double)bytes / fixture->read_rate : 2.0 * (double)bytes / fixture->memory_rate;
  report(fixture, name, bench_median(seconds, REPEATS), floor, bytes);
  return fine();
}

/* ---- checkpoint ---- */

static struct field field_of(const struct fixture *fixture, float *data) {
  const eidx n = fixture->model.n_edges, first = n * fixture->comm->rank / fixture->comm->size;
  return (struct field){.name = "edges",
                        .type = F_F32,
                        .n_global = n,
                        .first = first,
                        .n_local = n * (fixture->comm->rank + 1) / fixture->comm->size - first,
                        .width = 3,
                        .data = data};
}

static struct status restore(const struct fixture *fixture, const struct field *field) {
  struct fields_file *file;
  char *meta;
  TRY(fields_open(fixture->comm, CHECKPOINT, KIND, &file, &meta));
  struct status s = fields_read(fixture->comm, file, field);
  if (!s.code) s = fields_verify(fixture->comm, file, CHECKPOINT);
  fields_close(file);
  mem_free(meta);
  return s;
}

static struct status bench_checkpoint(const struct fixture *fixture) {
  struct field field = field_of(fixture, NULL);
  float *data = NEW_ZERO(float, 3 * field.n_local);
  const int64_t bytes = 12 * fixture->model.n_edges;
  double write[REPEATS], read[REPEATS];
  struct status s = fine();
  field.data = data;
  for (int64_t i = 0; i < 3 * field.n_local; i++) data[i] = (float)i;
  for (int i = 0; i < REPEATS && !s.code; i++) {
    comm_barrier(fixture->comm);
    double before = seconds_now();
    s = fields_write(fixture->comm, CHECKPOINT, KIND, "{}", &field, 1);
    write[i] = bench_slowest(fixture->comm, seconds_now() - before);
    before = seconds_now();
    if (!s.code) s = restore(fixture, &field);
    read[i] = bench_slowest(fixture->comm, seconds_now() - before);
  }
  mem_free(data);
  TRY(s);
  report(fixture, "checkpoint", bench_median(write, REPEATS), (double)bytes / fixture->write_rate,
         bytes);
  report(fixture, "restore", bench_median(read, REPEATS),
         4.0 * (double)bytes / fixture->memory_rate, bytes);
  return fine();
}

/* ---- all of it ---- */

static struct status run_cases(struct fixture *fixture) {
  TRY(bench_write(fixture));
  TRY(bench_reading(fixture, "read_cold", true, false));
  TRY(bench_reading(fixture, "read_warm", false, false));
  TRY(bench_reading(fixture, "load", false, true));
  return bench_checkpoint(fixture);
}

static struct status run(const struct comm *world, const struct bench_job *bench) {
  struct fixture fixture = {.comm = world,
                            .bench = bench,
                            .model = {.n_nodes = bench->nodes ? bench->nodes : NODES,
                                      .n_edges = bench->edges ? bench->edges : EDGES,
                                      .seed = (uint64_t)bench->seed,
                                      .modular = bench->model && !strcmp(bench->model, "modular")}};
  TRY(generate_check(&fixture.model));
  if (world->rank == 0) file_unfinished(PLAIN), file_unfinished(GRAPH), file_unfinished(CHECKPOINT);
  fixture.memory_rate = bench_memory_rate(world, bench->job.n_threads);
  struct status s = run_cases(&fixture);
  comm_barrier(world);
  if (world->rank == 0) file_remove(GRAPH), file_remove(CHECKPOINT);
  return s;
}

const struct bench bench_io = {
    "io", "the artifact and a checkpoint: written and read in the current folder", run};
