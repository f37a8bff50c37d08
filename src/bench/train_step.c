/* Times the whole training step, as `train` makes it, on random text. */
#include "train_step.h"
#include "core/log.h"
#include "core/mem.h"
#include "train/step.h"
#include "core/rng.h"
#include "train/config.h"
#include "core/watchdog.h"

#include <math.h>

enum { TOKENS = 65, EMBEDDING = 32, ROW = 4, MOST_ROWS = 50 };

/* A network that stands on a graph in memory, with no file behind it. */
static struct network network_of(const struct grid *grid, const struct recur_net *net) {
  return (struct network){.grid = grid,
                          .facts = {.n_nodes = net->graph->n_global},
                          .graph = *net->graph,
                          .input = {.n_own = net->n_in, .own = (lidx *)net->in},
                          .output = {.n_own = net->n_out, .own = (lidx *)net->out}};
}

/* Small random parameters, so that states and gradients are lively. */
static void fill_parameters(struct rnn *rnn) {
  const int64_t n = rnn->at.at[MODEL_BLOCKS];
  float *w = NEW(float, n);
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) {
    const struct rng_block b = rng_draw(1, (uint32_t)i, (uint32_t)(i >> 32), 0, 0);
    w[i] = (float)(0.2 * rng_unit(b.v[0], b.v[1]) - 0.1);
  }
  rnn->backend->put(rnn->backend->model->array(rnn->model, MODEL_PARAMETERS), w,
                    (size_t)n * sizeof *w);
  mem_free(w);
  rnn_refresh(rnn);
}

/* As a training goes: the result of a step is waited for when the next one is under way. */
static void one_step(struct rnn *rnn, const int32_t *token, int64_t step) {
  const struct optim_config optim = train_config_defaults().optimizer;
  pulse("bench recurrence");
  const struct train_step one = {.token = token,
                                 .target = token,
                                 .batch = rnn->shape.batch,
                                 .step = step,
                                 .last_step = 1,
                                 .optimizer = &optim};
  train_step_queue(rnn, &one);
  if (step > 0) rnn->backend->model->figures(rnn->model);
}

/* Seconds a step of `n` in a row, to the end of the last. */
static double steps_in_a_row(const struct comm *comm, struct rnn *rnn, const int32_t *token,
                             int n) {
  comm_barrier(comm);
  const double start = seconds_now();
  for (int i = 0; i < n; i++) one_step(rnn, token, i);
  rnn->backend->model->figures(rnn->model);
  return bench_slowest(comm, seconds_now() - start) / n;
}

/* `wanted` seconds of steps after two that are not counted: rows of 4, but 3 to 50 of those. */
static void time_steps(const struct comm *comm, struct rnn *rnn, double wanted,
                       struct bench_train_step *found) {
  const int64_t places = (int64_t)rnn->shape.steps * rnn->shape.batch;
  int32_t *token = NEW(int32_t, places);
  for (int64_t i = 0; i < places; i++) token[i] = (int32_t)(i * 7 % TOKENS);
  double seconds[MOST_ROWS];
  steps_in_a_row(comm, rnn, token, 2);
  const int n = (int)fmin(MOST_ROWS, fmax(3, wanted / (ROW * steps_in_a_row(comm, rnn, token, 1))));
  for (int i = 0; i < n; i++) seconds[i] = steps_in_a_row(comm, rnn, token, ROW);
  found->median = bench_median(seconds, n);
  found->best = seconds[0];
  mem_free(token);
}

struct status bench_train_step(const struct comm *world, const struct grid *grid,
                               const struct bench_job *bench, const struct recur_net *net,
                               struct bench_train_step *found) {
  const struct backend *backend = bench->job.backend;
  const struct network network = network_of(grid, net);
  const struct rnn_shape shape = {.batch = net->shape.batch,
                                  .steps = net->shape.steps,
                                  .microsteps = net->shape.microsteps,
                                  .vocabulary = TOKENS,
                                  .embedding = EMBEDDING,
                                  .mixed = net->mixed,
                                  .want_gradient = true};
  struct rnn rnn;
  const struct status s = rnn_open(backend, &network, &shape, bench->job.n_threads, &rnn);
  if (!s.code) {
    fill_parameters(&rnn);
    found->bytes = rnn_bytes(backend, &network, &shape);
    time_steps(world, &rnn, bench->seconds, found);
  }
  rnn_close(&rnn);
  return s;
}
