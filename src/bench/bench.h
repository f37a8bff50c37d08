/* fascicle bench: measured time beside its floor, what the same run's hardware allows at best. One
 * sub-bench per file, bench_NAME.c, each with one row in the table of bench.c. */
#ifndef FASCICLE_BENCH_H
#define FASCICLE_BENCH_H

#include "core/comm.h"
#include "run/job.h"

/* What the user asked for; 0 or NULL: the sub-bench's own default. */
struct bench_job {
  struct job job; /* device, transport and threads are chosen */
  int64_t nodes, edges, batch, steps, microsteps, seed;
  const char *model;     /* of the graph, "lognormal" or "modular"; lif: or of the neurons */
  int64_t replicas;      /* recurrence: copies of the graph, which share the batch */
  bool ordered;          /* recurrence, halo: neurons in the partitioner's order */
  const char *precision; /* recurrence: "fp32" or "mixed" */
  int64_t low_delay, high_delay;
  const char *graph;                    /* a file instead of a synthetic graph */
  const struct lif_model_kind *neurons; /* lif: NULL for lif_shift */
  double spikes, rate; /* lif with neurons: a second, of driven neurons; Hz of each of them */
  int64_t trials;      /* lif with neurons: so many together too */
  bool plain;          /* lif: only what several ranks measure too */
  double seconds;      /* recurrence: how long each case is measured */
};

struct bench {
  const char *name, *about;
  struct status (*run)(const struct comm *world, const struct bench_job *bench); /* agreed */
};

extern const struct bench bench_recurrence;
extern const struct bench bench_lif;
extern const struct bench bench_halo;
extern const struct bench bench_io;

/* One measured case. */
struct bench_line {
  const char *bench, *name;
  int64_t nodes, edges, batch; /* batch 0: none */
  double seconds;              /* median per step or window, the slowest rank's */
  double floor_seconds;
  int64_t bytes;      /* what the floor counts, over all ranks */
  int64_t peak_bytes; /* largest of all ranks, on the device */
  json_t *more; /* further members of the JSON line (a reference that bench_print takes), or NULL */
};

/* Rank 0 prints the line: a row of the table, or a JSON object with --json. */
void bench_print(const struct comm *world, const struct bench_job *bench,
                 const struct bench_line *line);

/* Bytes per second that all ranks together move between memory and cores with their threads: the
 * best of several sweeps a = b + s c over arrays beyond the caches, 24 bytes an element.
 * Collective, takes about a second. */
double bench_memory_rate(const struct comm *world, int n_threads);

/* The median; sorts x. */
double bench_median(double *x, int64_t n);

/* The largest over ranks. */
double bench_slowest(const struct comm *world, double seconds);

#endif
