/* Opens the checkpoint of a training again, for evaluate, sample and export. */
#include "saved_model.h"
#include "io/hdf5/fields.h"
#include "io/files/files.h"
#include "core/log.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int trained_options(struct trained_request *request, struct job *job, struct option *rows) {
  static const char *const shared[] = {"device", "transport", "parts", "threads",
                                       "memory", "watchdog",  "json"};
  struct option all[JOB_OPTIONS];
  const int n_all = job_options(job, all);
  const struct option own[] = {
      {"which", OPTION_TEXT, "best|latest", "the checkpoint of a run's folder (best)",
       &request->which, 0, 0},
      {"graph", OPTION_TEXT, "FILE", "the graph, if it is no longer where it was", &request->graph,
       0, 0},
  };
  const int n = options_append(rows, 0, own, sizeof own / sizeof *own);
  return n + options_named(all, n_all, shared, sizeof shared / sizeof *shared, rows + n);
}

struct status trained_can(const struct job *job) {
  if (job->backend->is_built) return fine();
  return failure(EXIT_DEVICE,
                 "the device %s has no character model in this build; use --device cpu",
                 job->backend->name);
}

/* ---- which checkpoint ---- */

/* The file name in FOLDER/checkpoints/POINTER, or false. */
static bool follow(const char *folder, const char *pointer, char path[FILE_PATH]) {
  char name[256] = "", file[FILE_PATH];
  if (snprintf(file, sizeof file, "%.3500s/checkpoints/%s", folder, pointer) >= FILE_PATH)
    return false;
  FILE *f = fopen(file, "re");
  if (!f) return false;
  const bool got = fgets(name, sizeof name, f) != NULL;
  fclose(f);
  name[strcspn(name, "\n")] = 0;
  return got && name[0] &&
         snprintf(path, FILE_PATH, "%.3500s/checkpoints/%s", folder, name) < FILE_PATH;
}

static struct status find_checkpoint(const struct trained_request *r, char path[FILE_PATH]) {
  struct stat about;
  memset(path, 0, FILE_PATH);
  if (stat(r->source, &about))
    return failure(EXIT_INPUT, "%s: no such run or checkpoint", r->source);
  if (!S_ISDIR(about.st_mode)) {
    snprintf(path, FILE_PATH, "%s", r->source);
    return fine();
  }
  if (follow(r->source, r->which, path) || follow(r->source, "latest", path)) return fine();
  return failure(EXIT_INPUT, "%s: the folder holds no checkpoint; give a run of `fascicle train`",
                 r->source);
}

/* ---- opening ---- */

static struct status open_checkpoint(struct trained *t, const struct trained_request *request) {
  TRY(agree(t->world, t->world->rank == 0 ? find_checkpoint(request, t->path) : fine()));
  comm_share(t->world, t->path, sizeof t->path, 0);
  TRY(train_checkpoint_open(t->world, t->path, &t->file, &t->meta));
  TRY(fields_verify(t->world, t->file, t->path));
  TRY(train_config_read(t->meta.config, t->path, &t->config));
  return train_checkpoint_vocabulary(t->world, t->file, &t->meta, &t->vocabulary);
}

struct status trained_open(const struct comm *world, const struct job *job,
                           const struct trained_request *request, int parts, struct trained *t) {
  *t = (struct trained){.world = world, .job = job};
  TRY(trained_can(job));
  TRY(open_checkpoint(t, request));
  TRY(job_grid(world, job, parts, &t->grid));
  const char *graph = request->graph ? request->graph : t->meta.graph;
  if (!request->graph && !file_exists(graph))
    return failure(EXIT_INPUT, "%s: its graph %.700s is no longer there; say where with --graph",
                   t->path, graph);
  return network_open(world, &t->grid, graph, t->config.n_input, t->config.n_output, &t->network);
}

void trained_close(struct trained *t) {
  network_close(&t->network);
  vocabulary_free(&t->vocabulary);
  train_checkpoint_close(t->file, &t->meta);
  job_grid_close(&t->grid);
  *t = (struct trained){0};
}

struct status trained_rnn(struct trained *t, int64_t batch, int64_t steps, struct rnn *rnn) {
  if (batch < t->grid.replicas)
    return failure(EXIT_USAGE, "%d replicas for %lld sequences: use fewer ranks or more --parts",
                   t->grid.replicas, (long long)batch);
  int64_t first, share;
  rnn_share(batch, &t->grid, &first, &share);
  const struct rnn_shape shape = {.batch = (int)share,
                                  .steps = (int)steps,
                                  .microsteps = (int)t->config.microsteps,
                                  .vocabulary = t->vocabulary.n,
                                  .embedding = (int)t->config.embedding,
                                  .mixed = t->config.precision == PRECISION_MIXED};
  TRY(rnn_open(t->job->backend, &t->network, &shape, t->job->n_threads, rnn));
  rnn_set_scale(rnn, t->config.normalize);
  return train_checkpoint_load(t->world, t->path, t->file, &t->meta, rnn, batch, NULL);
}
