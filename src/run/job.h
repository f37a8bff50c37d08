/* What simulate and train have in common: their shared options, and what follows from them for this
 * run: which backend computes, how ranks talk, how many threads and how much memory a rank may use,
 * when to stop.
 *
 *   struct job job = job_defaults();
 *   struct option options[JOB_OPTIONS + 3];
 *   int n = job_options(&job, options);           // then append the verb's own rows
 *   TRY(options_parse(&usage, options, n, ...));
 *   TRY(job_start(world, &job));
 *   TRY(job_grid(world, &job, parts, &grid));  // job.parts, or the verb's choice when that is 0
 *   ...
 *   job_grid_close(&grid);
 *   job_stop(&job); */
#ifndef FASCICLE_JOB_H
#define FASCICLE_JOB_H

#include "contract/backend.h"
#include "core/comm.h"
#include "core/digest.h"
#include "partition/grid.h"
#include "core/json.h"
#include "options.h"
#include "core/signals.h"
#include "contract/transport.h"

struct job {
  /* As given; texts belong to the command line. */
  const char *config, *output; /* files, NULL when absent */
  const char *device;          /* "auto", "cpu", "cuda" */
  const char *transport;       /* "auto", "mpi", "nccl", "peer" */
  const char *exchange;        /* "auto", "halo", "all-gather" */
  const char *resume;          /* "auto", "none" or a checkpoint file */
  struct texts set;            /* --set key=value */
  int n_reads;
  const char **reads; /* [n_reads] files that the verb reads beside `config`: --force spares them */
  bool force, json;
  int64_t parts, threads;         /* 0: chosen */
  int64_t checkpoint_every, keep; /* steps (0: only at a request; -1: not given), files */
  double memory_gib;         /* per rank; 0: its share of its GPU's free memory, or of the host's */
  double watchdog, max_time; /* seconds; 0: never; WATCHDOG_CHOSEN */

  /* By job_start. */
  const struct backend *backend;
  const struct transport *via;
  int local_rank, local_size; /* among the ranks of this host */
  bool threads_chosen;        /* by the user: --threads or OMP_NUM_THREADS */
  int n_threads; /* OpenMP threads of this rank; also set as the default of parallel regions */
  int n_readers; /* cores left to this rank, at most one a thread: for threads that read ahead */
  int64_t memory_bytes; /* what a rank may use where it computes, the same on all ranks */
  double started;       /* seconds_now() at the start */
  char started_utc[32];
};

/* Defaults: auto, no resume, keep 3, the rule of watchdog.h. */
struct job job_defaults(void);

/* Write the rows of the shared options to rows[0 ..]; returns their number, JOB_OPTIONS. */
enum { JOB_OPTIONS = 15 };
int job_options(struct job *job, struct option *rows);

/* The verb reads this file, too; the text must last until rundir_open. */
void job_reads(struct job *job, const char *path);

/* The row of --exchange, for verbs that split the recurrence over parts; what it asks for. */
struct option job_exchange_option(struct job *job);
enum halo_kind job_exchange(const struct job *job);

/* Choose the device (the same on every rank; an order is never replaced by another device:
 * EXIT_DEVICE), the transport, threads and memory; start the watchdog and the clock of --max-time;
 * say on the log what was chosen. Agreed. */
struct status job_start(const struct comm *world, struct job *job);
void job_stop(struct job *job);

/* The grid, with the job's transport opened on both of its groups; the log says
 * which was taken. Agreed. */
struct status job_grid(const struct comm *world, const struct job *job, int parts,
                       struct grid *grid);
void job_grid_close(struct grid *grid);

/* The configuration: the file --config (an empty object without one), then every --set. Read
 * by rank 0, the same on all ranks; the caller owns *config. Agreed: EXIT_USAGE names file,
 * line and what is wrong. */
struct status job_config(const struct comm *world, const struct job *job, json_t **config);

/* What errors call it, cut to `size` bytes: "lif.json", "lif.json with --set",
 * "--set", "configuration". */
void job_config_name(const struct job *job, char *text, size_t size);

/* What this rank has been asked for so far: by a signal, or because --max-time is over. Local: take
 * the maximum over ranks. */
enum request job_request(const struct job *job);

/* Where the results of this run come from: program, version, commit, build, ranks, parts, threads,
 * hosts, device, transport, start, Slurm job and restart. A new object, the same on every rank;
 * callers add the digests of graph and configuration, and the seed. */
json_t *job_provenance(const struct comm *world, const struct job *job, const struct grid *grid);

/* SHA-256 of a JSON value written with sorted keys: the same for the same content. */
void job_json_digest(const json_t *json, char text[DIGEST_TEXT]);

#endif
