/* Reads the options that jobs share, and chooses device, transport, threads and memory. */
#include "job.h"
#include "kernels/interface/backends.h"
#include "build.h"
#include "core/digest.h"
#include "core/log.h"
#include "core/mem.h"
#include "watchdog_option.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 4096 };

struct job job_defaults(void) {
  return (struct job){.device = "auto",
                      .transport = "auto",
                      .exchange = "auto",
                      .resume = "none",
                      .checkpoint_every = -1,
                      .keep = 3,
                      .watchdog = WATCHDOG_CHOSEN};
}

int job_options(struct job *job, struct option *rows) {
  const struct option shared[JOB_OPTIONS] = {
      {"config", OPTION_TEXT, "FILE", "JSON configuration", &job->config, 0, 0},
      {"set", OPTION_LIST, "KEY=VALUE",
       "change one key of the configuration, such as a.b=3; may be repeated", &job->set, 0, 0},
      {"output", OPTION_TEXT, "DIR", "the run's folder", &job->output, 0, 0},
      {"force", OPTION_FLAG, NULL,
       "start anew in a folder that holds a run: its results are removed", &job->force, 0, 0},
      {"resume", OPTION_TEXT, "FROM",
       "auto: go on from the folder's latest checkpoint, or start; a file: from that checkpoint; "
       "none (the "
       "default): start",
       &job->resume, 0, 0},
      {"checkpoint-every", OPTION_INT, "N",
       "steps between checkpoints; 0: none but at the end, when asked, and at a better evaluation. "
       "Without "
       "it train goes by its configuration, and simulate makes none on the way",
       &job->checkpoint_every, 0, INT64_MAX},
      {"keep", OPTION_INT, "K", "checkpoints kept (3)", &job->keep, 1, 1000000},
      {"max-time", OPTION_REAL, "SECONDS", "then write a checkpoint and leave with code 75",
       &job->max_time, 0, 0},
      {"device", OPTION_TEXT, "auto|cpu|cuda",
       "where to compute (auto: on GPUs, where there are any)", &job->device, 0, 0},
      {"transport", OPTION_TEXT, "auto|mpi|nccl|peer",
       "how ranks talk; peer: straight into the memory of GPUs of one host; auto: peer where that "
       "is "
       "possible, else nccl between GPUs, mpi between CPUs",
       &job->transport, 0, 0},
      {"parts", OPTION_INT, "P", "ranks that share one copy of the graph; ranks / P copies",
       &job->parts, 1, 1 << 24},
      {"threads", OPTION_INT, "N",
       "threads of each rank (OMP_NUM_THREADS, else its share of the cores)", &job->threads, 1,
       MOST_THREADS},
      {"memory", OPTION_REAL, "GIB",
       "memory that a rank may use: its share of the host's; on a GPU of what is free there",
       &job->memory_gib, 0, 0},
      watchdog_option(&job->watchdog),
      {"json", OPTION_FLAG, NULL, "the result as one JSON object on stdout", &job->json, 0, 0},
  };
  return options_append(rows, 0, shared, JOB_OPTIONS);
}

static struct status check_ranges(const struct job *job) {
  if (job->max_time < 0)
    return failure(EXIT_USAGE, "--max-time %g: it must not be negative", job->max_time);
  TRY(watchdog_check(job->watchdog));
  if (job->memory_gib < 0)
    return failure(EXIT_USAGE, "--memory %g: it must not be negative", job->memory_gib);
  return fine();
}

/* ---- the device ---- */

/* Start the GPU of every rank, or of none. */
static struct status start_everywhere(const struct comm *world, const struct job *job,
                                      const struct backend *backend) {
  const struct status mine = backend->start(job->local_rank);
  const struct status all = agree(world, mine);
  if (all.code && !mine.code) backend->stop();
  return all;
}

static struct status choose_device(const struct comm *world, struct job *job) {
  if (strcmp(job->device, "cpu")) {
    const struct status s = start_everywhere(world, job, &backend_cuda);
    if (!s.code) {
      job->backend = &backend_cuda;
      return fine();
    }
    if (!strcmp(job->device, "cuda") || s.code != EXIT_DEVICE) return s;
  }
  job->backend = &backend_cpu;
  return start_everywhere(world, job, &backend_cpu);
}

/* A rank's device, and where it is. */
struct card {
  char id[16];
  struct host host;
};

/* nccl and peer need a GPU for each rank, whatever each rank's list of visible
 * GPUs says; mpi does not. */
static struct status one_rank_a_gpu(const struct comm *world, const struct job *job,
                                    const char *transport) {
  struct card mine = {.host = host_here()}, *all = mem_alloc(world->size, sizeof mine);
  job->backend->identity(mine.id);
  comm_gather(world, &mine, sizeof mine, all);
  struct status s = fine();
  for (int a = 0; a < world->size && !s.code; a++)
    for (int b = a + 1; b < world->size && !s.code; b++)
      if (!memcmp(all[a].id, all[b].id, sizeof mine.id))
        s = failure(EXIT_DEVICE,
                    "--transport %s: ranks %d and %d would share one GPU of %s; start one rank a "
                    "GPU, or use "
                    "--transport mpi",
                    transport, a, b, all[a].host.name);
  mem_free(all);
  if (strcmp(transport, "mpi") || !s.code) return s;
  log_warning(
      "ranks share GPUs: rows travel through the host, and work of one waits for the other's");
  return fine();
}

static struct status choose_transport(const struct comm *world, struct job *job) {
  const bool on_gpu = job->backend == &backend_cuda, several = world->size > 1;
  const char *asked = job->transport;
  if (!on_gpu && (!strcmp(asked, "nccl") || !strcmp(asked, "peer")))
    return failure(EXIT_USAGE, "--transport %s: it joins GPUs, but the device is %s", asked,
                   job->backend->name);
  if (several && job->backend->own_memory) TRY(one_rank_a_gpu(world, job, asked));
  if (!strcmp(asked, "peer"))
    job->via = &transport_peer;
  else if (!strcmp(asked, "nccl"))
    job->via = &transport_nccl;
  else if (!strcmp(asked, "auto") && on_gpu && several)
    job->via = &transport_near;
  else if (!strcmp(asked, "auto") || !strcmp(asked, "mpi"))
    job->via = on_gpu ? &transport_staged : &transport_mpi;
  else
    return failure(EXIT_USAGE, "--transport %s: auto, mpi, nccl or peer is wanted", asked);
  return fine();
}

/* ---- threads and memory ---- */

static void find_neighbours(const struct comm *world, struct job *job, struct comm *host) {
  *host = comm_split_host(world);
  job->local_rank = host->rank, job->local_size = host->size;
}

/* Cores that this rank may run on, divided by the ranks of the host with the same cores: right
 * with and without binding. */
static int share_of_cores(const struct comm *host) {
  cpu_set_t mine, *all = NEW(cpu_set_t, host->size);
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine)) CPU_SET(0, &mine);
  comm_gather(host, &mine, sizeof mine, all);
  int sharers = 0;
  for (int r = 0; r < host->size; r++) sharers += CPU_EQUAL(&mine, &all[r]);
  mem_free(all);
  const int n = CPU_COUNT(&mine) / sharers;
  return n > 0 ? n : 1;
}

static void choose_threads(const struct comm *host, struct job *job) {
  const char *wanted = getenv("OMP_NUM_THREADS");
  const int share = share_of_cores(host), from_user = wanted ? atoi(wanted) : 0;
  const bool usable = from_user > 0 && from_user <= MOST_THREADS;
  if (wanted && !usable && !job->threads)
    log_warning("OMP_NUM_THREADS=%s: not a number from 1 to %d, so it is not used", wanted,
                MOST_THREADS);
  job->threads_chosen = job->threads || usable;
  job->n_threads = job->threads ? (int)job->threads : usable ? from_user : share;
  omp_set_num_threads(job->n_threads);
  const int spare = share > job->n_threads ? share - job->n_threads : 0;
  job->n_readers = spare < job->n_threads ? spare : job->n_threads;
}

/* Ranks that compute where this one does. */
static int sharers(const struct comm *world, const struct job *job) {
  char mine[16], *all = NEW(char, sizeof mine *(int64_t)world->size);
  int n = 0;
  job->backend->identity(mine);
  comm_gather(world, mine, sizeof mine, all);
  for (int r = 0; r < world->size; r++)
    n += !memcmp(all + sizeof mine * (size_t)r, mine, sizeof mine);
  mem_free(all);
  return n;
}

enum { SPARE = 64 }; /* of a GPU one byte in so many is left to the driver and to small arrays */

static int64_t memory_of_rank(const struct comm *world, const struct job *job) {
  if (!job->backend->own_memory) return mem_of_host() / job->local_size;
  const int64_t bytes = job->backend->free_bytes();
  return (bytes - bytes / SPARE) / sharers(world, job);
}

/* The least of all ranks: what follows from it is decided alike on each. */
static void choose_memory(const struct comm *world, struct job *job) {
  const int64_t found = memory_of_rank(world, job);
  job->memory_bytes = job->memory_gib > 0 ? (int64_t)(job->memory_gib * 0x1p30) : found;
  comm_min_i64(world, &job->memory_bytes, 1);
}

/* ---- start and end ---- */

static void say_choices(const struct comm *world, const struct job *job) {
  char device[512];
  job->backend->describe(device, sizeof device);
  log_line("%d rank%s, %d thread%s%s, %s, transport %s", world->size, world->size == 1 ? "" : "s",
           job->n_threads, job->n_threads == 1 ? "" : "s", world->size == 1 ? "" : " each", device,
           job->via->name);
}

/* As backend.h says. */
static void check_backend(const struct backend *b) {
  ASSERT(b->start && b->stop && b->describe && b->put && b->get && b->peak);
  ASSERT(b->lif && b->recur && b->model);
  ASSERT(!b->own_memory == !b->identity && !b->own_memory == !b->free_bytes);
  ASSERT(!b->own_memory == !b->copy_rate && !b->own_memory == !b->gather_rate);
  ASSERT(!b->own_memory == !b->upload_rate);
  (void)b;
}

struct status job_start(const struct comm *world, struct job *job) {
  job->started = seconds_now();
  time_utc(job->started_utc);
  TRY(check_ranges(job));
  struct comm host;
  find_neighbours(world, job, &host);
  choose_threads(&host, job);
  comm_free(&host);
  TRY(choose_device(world, job));
  check_backend(job->backend);
  choose_memory(world, job);
  TRY(choose_transport(world, job));
  say_choices(world, job);
  watchdog_start(watchdog_rule(job->watchdog));
  return fine();
}

void job_stop(struct job *job) {
  if (job->backend) job->backend->stop();
  job->backend = NULL;
  mem_free(job->reads);
  job->reads = NULL, job->n_reads = 0;
}

enum halo_kind job_exchange(const struct job *job) {
  if (!strcmp(job->exchange, "halo")) return HALO_NEEDED;
  return strcmp(job->exchange, "all-gather") ? HALO_AUTO : HALO_ALL;
}

void job_reads(struct job *job, const char *path) {
  job->reads = mem_grow(job->reads, job->n_reads + 1, sizeof *job->reads);
  job->reads[job->n_reads++] = path;
}

struct option job_exchange_option(struct job *job) {
  return (struct option){
      .name = "exchange",
      .kind = OPTION_TEXT,
      .value = "auto|halo|all-gather",
      .help = "which states travel between parts: those that edges need, or all; auto "
              "(the default): all where that is as fast",
      .to = &job->exchange};
}

/* What was taken where the job leaves the choice: between parts, else between replicas. */
static const char *taken(const struct job *job, const struct grid *grid) {
  return grid->parts > 1      ? grid->replica_comm.via->name
         : grid->replicas > 1 ? grid->part_comm.via->name
                              : job->via->name;
}

struct status job_grid(const struct comm *world, const struct job *job, int parts,
                       struct grid *grid) {
  TRY(grid_init(world, parts, grid));
  grid->exchange = job_exchange(job);
  TRY(agree(world, job->via->open(&grid->replica_comm)));
  TRY(agree(world, job->via->open(&grid->part_comm)));
  if (strcmp(taken(job, grid), job->via->name)) log_line("transport %s", taken(job, grid));
  return fine();
}

void job_grid_close(struct grid *grid) {
  if (grid->replica_comm.via) grid->replica_comm.via->close(&grid->replica_comm);
  if (grid->part_comm.via) grid->part_comm.via->close(&grid->part_comm);
  grid_free(grid);
}

enum request job_request(const struct job *job) {
  if (job->max_time > 0 && seconds_now() - job->started >= job->max_time) return REQUEST_STOP;
  return signals_pending();
}

/* ---- configuration and provenance ---- */

static struct status read_config(const struct job *job, json_t **config) {
  *config = NULL;
  if (!job->config)
    *config = json_object();
  else
    TRY(json_from_file(job->config, config));
  if (!json_is_object(*config))
    return failure(EXIT_USAGE, "%s: an object { } is wanted", job->config);
  for (int i = 0; i < job->set.n; i++) TRY(json_set_path(*config, job->set.item[i]));
  return fine();
}

struct status job_config(const struct comm *world, const struct job *job, json_t **config) {
  char *text = NULL;
  int64_t size = 0;
  *config = NULL;
  struct status s = fine();
  if (world->rank == 0) {
    s = read_config(job, config);
    text = s.code ? NULL : json_line(*config);
    size = text ? (int64_t)strlen(text) + 1 : 0;
    json_decref(*config);
    *config = NULL;
  }
  s = agree(world, s);
  if (!s.code) {
    comm_share(world, &size, sizeof size, 0);
    char *shared = NEW(char, size);
    if (text) memcpy(shared, text, (size_t)size);
    comm_share(world, shared, size, 0);
    s = json_from_text(shared, "configuration", config);
    mem_free(shared);
  }
  free(text);
  return s;
}

void job_config_name(const struct job *job, char *text, size_t size) {
  const char *file = job->config ? job->config : job->set.n ? "--set" : "configuration";
  snprintf(text, size, "%s%s", file, job->config && job->set.n ? " with --set" : "");
}

static json_t *hosts_of(const struct comm *world) {
  struct host *all = comm_hosts(world);
  json_t *hosts = json_object();
  for (int r = 0; r < world->size; r++) {
    const json_int_t n = json_integer_value(json_object_get(hosts, all[r].name));
    json_object_set_new(hosts, all[r].name, json_integer(n + 1));
  }
  mem_free(all);
  return hosts;
}

static void add_slurm(json_t *facts) {
  static const char *const variable[] = {"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID",
                                         "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT"};
  static const char *const key[] = {"slurm_job", "slurm_array_job", "slurm_array_task",
                                    "slurm_restarts"};
  for (int i = 0; i < 4; i++)
    if (getenv(variable[i])) json_object_set_new(facts, key[i], json_string(getenv(variable[i])));
}

json_t *job_provenance(const struct comm *world, const struct job *job, const struct grid *grid) {
  char device[512], transport[32] = "";
  snprintf(transport, sizeof transport, "%s", taken(job, grid));
  comm_share(world, transport, sizeof transport, 0); /* replicas may differ */
  job->backend->describe(device, sizeof device);
  json_t *facts =
      json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:s}", "program",
                "fascicle", "version", BUILD_VERSION, "commit", BUILD_COMMIT, "build", BUILD_TYPE,
                "compiler", BUILD_COMPILER, "ranks", world->size, "parts", grid->parts, "threads",
                job->n_threads, "device", job->backend->name, "device_text", device, "transport",
                transport, "started_utc", job->started_utc);
  json_object_set_new(facts, "ranks_of_host", hosts_of(world));
  add_slurm(facts);
  return facts;
}

void job_json_digest(const json_t *json, char text[DIGEST_TEXT]) {
  char *canonical = json_pretty(json);
  struct sha256 s;
  sha256_init(&s);
  sha256_add(&s, canonical, strlen(canonical));
  sha256_end(&s, text);
  free(canonical);
}
