/* The verb bench: its options, and the line of JSON that every benchmark prints. */
#include "bench.h"
#include "build.h"
#include "core/log.h"
#include "core/mem.h"
#include "run/options.h"
#include "run/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct bench *const benches[] = {&bench_recurrence, &bench_lif, &bench_halo,
                                              &bench_io};
enum { N_BENCHES = sizeof benches / sizeof *benches };

static const struct usage usage = {
    .verb = "bench",
    .operands = "lif|recurrence|halo|io",
    .fewest = 1,
    .most = 1,
    .about =
        "Measured time, its floor (what the hardware of this very run allows), and their ratio. "
        "Synthetic graphs of the size asked for; without a size, of a whole fly (lif, halo, "
        "io) or the 5,000-neuron core (recurrence).",
    .example = "  fascicle bench lif --threads 1\n"
               "  mpirun -n 2 fascicle bench lif --nodes 20000 --edges 2000000 --json"};

static struct status take_delays(const char *text, struct bench_job *bench) {
  long long low, high;
  char rest;
  if (!text) return fine();
  if (sscanf(text, "%lld:%lld%c", &low, &high, &rest) != 2 || low < 1 || high < low ||
      high > UINT16_MAX)
    return failure(EXIT_USAGE,
                   "--delays %s: two steps A:B with 1 <= A <= B <= 65535 are wanted, such as 1:8",
                   text);
  bench->low_delay = low, bench->high_delay = high;
  return fine();
}

static struct status parse(int argc, char **argv, struct bench_job *bench, const char **name) {
  const char *delays = NULL;
  struct job *job = &bench->job;
  const struct option options[] = {
      {"nodes", OPTION_INT, "N", "neurons", &bench->nodes, 1, UINT32_MAX - 1},
      {"edges", OPTION_INT, "E", "edges", &bench->edges, 1, INT64_MAX},
      {"model", OPTION_TEXT, "NAME",
       "kind of graph, lognormal or modular (lognormal; recurrence: both, as drawn and ordered); "
       "lif: or of neurons, lif_delta, lif_exp, psc_exp or psc_alpha, with a graph of FlyWire's "
       "size "
       "and delays of 18 steps if nothing else is said",
       &bench->model, 0, 0},
      {"spikes", OPTION_REAL, "N",
       "lif with a neuron model: spikes a second of driven neurons (17000)", &bench->spikes, 0, 0},
      {"rate", OPTION_REAL, "HZ", "lif with a neuron model: rate of a driven neuron (100)",
       &bench->rate, 0, 0},
      {"trials", OPTION_INT, "K", "lif with a neuron model: also K trials together", &bench->trials,
       1, 1 << 20},
      {"ordered", OPTION_FLAG, NULL,
       "recurrence with --model, halo: neurons in the partitioner's order", &bench->ordered, 0, 0},
      {"delays", OPTION_TEXT, "A:B", "lif: delays in steps (1:8)", &delays, 0, 0},
      {"graph", OPTION_TEXT, "FILE",
       "this graph; lif: streamed cases too if it has edges by source", &bench->graph, 0, 0},
      {"plain", OPTION_FLAG, NULL, "lif: no more cases on one GPU than on several", &bench->plain,
       0, 0},
      {"batch", OPTION_INT, "B", "recurrence: columns, of all replicas", &bench->batch, 1, 1 << 20},
      {"replicas", OPTION_INT, "D",
       "recurrence: ranks / D share one copy of the graph, B / D columns each", &bench->replicas, 1,
       1 << 20},
      {"steps", OPTION_INT, "T", "steps measured (lif), steps of a window (recurrence)",
       &bench->steps, 1, 1 << 20},
      {"seconds", OPTION_REAL, "S", "recurrence: how long windows, and steps, are measured (4)",
       &bench->seconds, 0, 0},
      {"microsteps", OPTION_INT, "M", "recurrence: microsteps a step", &bench->microsteps, 1,
       1 << 20},
      {"precision", OPTION_TEXT, "fp32|mixed", "recurrence: as in train (fp32)", &bench->precision,
       0, 0},
      {"seed", OPTION_INT, "S", "seed of graph and draws (1)", &bench->seed, 0, INT64_MAX},
      {"device", OPTION_TEXT, "auto|cpu|cuda", "where to compute", &job->device, 0, 0},
      {"transport", OPTION_TEXT, "auto|mpi|nccl|peer", "how ranks talk", &job->transport, 0, 0},
      job_exchange_option(job),
      {"threads", OPTION_INT, "N", "threads of each rank", &job->threads, 1, 4096},
      {"json", OPTION_FLAG, NULL, "one JSON object per case on stdout", &job->json, 0, 0}};
  TRY(options_parse(&usage, options, sizeof options / sizeof *options, argc, argv, name));
  return take_delays(delays, bench);
}

static const struct bench *find(const char *name) {
  for (int i = 0; i < N_BENCHES; i++)
    if (!strcmp(name, benches[i]->name)) return benches[i];
  return NULL;
}

static struct status unknown(const char *name) {
  char list[256] = "";
  for (int i = 0; i < N_BENCHES; i++) {
    const size_t at = strlen(list);
    snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", benches[i]->name);
  }
  return failure(EXIT_USAGE, "bench %s: no such bench; there are %s", name, list);
}

static struct status run(struct comm *world, int argc, char **argv) {
  struct bench_job bench = {
      .job = job_defaults(), .seed = 1, .seconds = 4, .spikes = 17000, .rate = 100};
  const char *name = NULL;
  TRY(parse(argc, argv, &bench, &name));
  const struct bench *chosen = find(name);
  if (!chosen) return unknown(name);
  TRY(job_start(world, &bench.job));
  const struct status s = chosen->run(world, &bench);
  job_stop(&bench.job);
  return s;
}

const struct verb verb_bench = {"bench", "measured time beside its floor", run};

/* ---- what sub-benches share ---- */

static json_t *as_json(const struct comm *world, const struct bench_job *bench,
                       const struct bench_line *line) {
  json_t *json =
      json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:i}", "bench", line->bench, "case",
                line->name, "device", bench->job.backend->name, "nodes", (json_int_t)line->nodes,
                "edges", (json_int_t)line->edges, "batch", (json_int_t)line->batch, "ranks",
                world->size, "threads", bench->job.n_threads);
  json_object_set_new(json, "seconds", json_real(line->seconds));
  json_object_set_new(json, "floor_seconds", json_real(line->floor_seconds));
  json_object_set_new(json, "over_floor", json_real(line->seconds / line->floor_seconds));
  json_object_set_new(json, "bytes", json_integer(line->bytes));
  json_object_set_new(json, "peak_bytes", json_integer(line->peak_bytes));
  json_object_set_new(json, "commit", json_string(BUILD_COMMIT));
  if (line->more) json_object_update(json, line->more);
  return json;
}

void bench_print(const struct comm *world, const struct bench_job *bench,
                 const struct bench_line *line) {
  static bool headed = false;
  if (world->rank == 0 && bench->job.json) {
    json_t *json = as_json(world, bench, line);
    json_print(json);
    json_decref(json);
  } else if (world->rank == 0) {
    if (!headed)
      printf("%-12s %-12s %14s %14s %8s %12s\n", "bench", "case", "measured us", "floor us",
             "ratio", "MB moved");
    headed = true;
    printf("%-12s %-12s %14.1f %14.1f %8.2f %12.2f\n", line->bench, line->name, line->seconds * 1e6,
           line->floor_seconds * 1e6, line->seconds / line->floor_seconds,
           (double)line->bytes / 1e6);
  }
  if (line->more) json_decref(line->more);
  fflush(stdout);
}

/* a = b + s c */
static double sweep(int n_threads, int64_t n, float *restrict a, const float *restrict b,
                    const float *restrict c) {
  const double before = seconds_now();
#pragma omp parallel for num_threads(n_threads)
  for (int64_t i = 0; i < n; i++) a[i] = b[i] + 3.0f * c[i];
  return seconds_now() - before;
}

double bench_memory_rate(const struct comm *world, int n_threads) {
  enum {
    SWEEPS = 8,
    BYTES = 256 << 20
  }; /* each array of one rank, or its part of what all ranks sweep */
  const int64_t n = BYTES / (int64_t)sizeof(float) / world->size + 1;
  float *x = NEW_ZERO(float, 3 * n);
  double best = 0;
  for (int k = 0; k < SWEEPS; k++) {
    comm_barrier(world);
    const double seconds = bench_slowest(world, sweep(n_threads, n, x, x + n, x + 2 * n));
    const double rate = 12.0 * (double)n * world->size / seconds;
    if (k > 0 && rate > best) best = rate;
  }
  mem_free(x);
  mem_peak_restart(); /* these arrays are no part of what is measured */
  return best;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median(double *x, int64_t n) {
  qsort(x, (size_t)n, sizeof *x, ascending);
  return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

double bench_slowest(const struct comm *world, double seconds) {
  double *all = NEW(double, world->size), most = 0;
  comm_gather(world, &seconds, sizeof seconds, all);
  for (int r = 0; r < world->size; r++) most = all[r] > most ? all[r] : most;
  mem_free(all);
  return most;
}
