/* The values that a training starts from, drawn by ids and never by rank or row. */
#include "initial.h"
#include "core/mem.h"
#include "purpose.h"
#include "core/rng.h"

#include <math.h>

/* ---- spectral radius ---- */

/* y = V x for own rows, x [n_nodes] by row of the graph */
static void multiply(const struct network *n, const float *value, const double *x, double *y) {
  const struct graph *g = &n->graph;
  const float *far_value = value + g->near.n_edges;
#pragma omp parallel for schedule(dynamic, 256)
  for (lidx i = 0; i < g->n_own; i++) {
    double sum = 0;
    for (eidx e = g->near.row_ptr[i]; e < g->near.row_ptr[i + 1]; e++)
      sum += (double)value[e] * x[g->first + g->near.col[e]];
    for (eidx e = g->far.row_ptr[i]; e < g->far.row_ptr[i + 1]; e++)
      sum += (double)far_value[e] * x[g->halo_gid[g->far.col[e] - g->n_own]];
    y[i] = sum;
  }
}

/* x <- V x / |V x| over all parts; returns |V x|, 0 when nothing is left. */
static double iterate(const struct network *n, const float *value, double *x, double *y) {
  multiply(n, value, x, y);
  double *all = comm_gather_varied(&n->grid->replica_comm, y, n->graph.n_own, sizeof *all, NULL),
         squares = 0;
  for (gidx row = 0; row < n->graph.n_global; row++) squares += all[row] * all[row];
  const double norm = sqrt(squares);
  for (gidx row = 0; row < n->graph.n_global; row++) x[row] = norm > 0 ? all[row] / norm : 0;
  mem_free(all);
  return norm;
}

/* The largest growth of V x over many products, V from `value` (host, near then far): an estimate
 * of the spectral radius by power iteration, also where the dominant eigenvalues are a complex
 * pair. Collective over the ranks of one replica. */
static double spectral_radius(const struct network *network, const float *value) {
  enum { WARM = 30, MEASURED = 30 };
  const int64_t N = network->facts.n_nodes;
  double *x = NEW(double, N), *y = NEW(double, network->graph.n_own), growth = 0;
  for (int64_t row = 0; row < N; row++)
    x[row] = rng_normal(rng_draw(0, network->node_of_row[row], 0, 0, PURPOSE_RADIUS));
  for (int i = 0; i < WARM; i++) iterate(network, value, x, y);
  for (int i = 0; i < MEASURED; i++) {
    const double norm = iterate(network, value, x, y);
    growth += norm > 0 ? log(norm) / MEASURED : -INFINITY;
  }
  mem_free(x), mem_free(y);
  return exp(growth);
}

/* ---- values ---- */

struct filling {
  struct rnn *rnn;
  const struct train_config *config;
  uint64_t seed;
  float *w; /* all parameters of this part, host */
};

static float *block(const struct filling *f, enum model_block b) {
  return f->w + f->rnn->at.at[b];
}

static void fill_edge(void *self, eidx at, lidx source, lidx target, eidx in_file) {
  const struct filling *f = self;
  const struct network *n = f->rnn->network;
  (void)in_file;
  const struct rng_block draw = rng_draw(f->seed, (uint32_t)network_node(n, source),
                                         (uint32_t)network_node(n, target), 0, PURPOSE_EDGE);
  block(f, MODEL_EDGES)[at] = f->config->frozen_edges
                                  ? (draw.v[0] & 1 ? 1.0f : -1.0f)
                                  : (float)(rng_normal(draw) * f->config->init_scale);
}

/* Uniform in +-1/sqrt(fan_in), by (a, b, purpose). */
static float uniform(const struct filling *f, uint32_t a, uint32_t b, uint32_t purpose,
                     double fan_in) {
  const struct rng_block draw = rng_draw(f->seed, a, b, 0, purpose);
  return (float)((2 * rng_unit(draw.v[0], draw.v[1]) - 1) / sqrt(fan_in));
}

static void fill_nodes(const struct filling *f) {
  const double a = f->config->leak_init;
  for (lidx i = 0; i < f->rnn->network->graph.n_own; i++) {
    block(f, MODEL_LEAK)[i] = (float)log(a / (1 - a));
    block(f, MODEL_BIAS)[i] = 0;
  }
}

static void fill_adapters(const struct filling *f) {
  const struct network *n = f->rnn->network;
  const int V = f->rnn->shape.vocabulary, W = f->rnn->shape.embedding;
  for (int v = 0; v < V; v++) {
    for (int w = 0; w < W; w++)
      block(f, MODEL_EMBEDDING)[(int64_t)v * W + w] =
          (float)rng_normal(rng_draw(f->seed, (uint32_t)v, (uint32_t)w, 0, PURPOSE_EMBEDDING));
    block(f, MODEL_READOUT_BIAS)[v] =
        uniform(f, (uint32_t)v, 0, PURPOSE_READOUT_BIAS, (double)n->output.n);
  }
  for (lidx i = 0; i < n->input.n_own; i++)
    for (int w = 0; w <= W; w++)
      block(f, MODEL_PROJECTION)[(int64_t)i * (W + 1) + w] = uniform(
          f, (uint32_t)network_node(n, n->input.own[i]), (uint32_t)w, PURPOSE_PROJECTION, W);
  for (lidx o = 0; o < n->output.n_own; o++)
    for (int v = 0; v < V; v++)
      block(f, MODEL_READOUT)[(int64_t)o * V + v] =
          uniform(f, (uint32_t)network_node(n, n->output.own[o]), (uint32_t)v, PURPOSE_READOUT,
                  (double)n->output.n);
}

/* v = c theta, as the recurrence holds it. */
static double radius_now(struct rnn *rnn) {
  const eidx n = network_n_edges(rnn->network);
  float *value = NEW(float, n);
  rnn_refresh(rnn);
  rnn->backend->get(value, rnn->backend->recur->value(rnn->recur), (size_t)n * sizeof *value);
  const double radius = spectral_radius(rnn->network, value);
  mem_free(value);
  return radius;
}

double start_values(struct rnn *rnn, const struct train_config *config) {
  const double frozen_radius = 0.95;
  struct filling f = {rnn, config, (uint64_t)config->seed, NEW(float, rnn->at.at[MODEL_BLOCKS])};
  network_edges(rnn->network, fill_edge, &f);
  fill_nodes(&f);
  fill_adapters(&f);
  float *there = rnn->backend->model->array(rnn->model, MODEL_PARAMETERS);
  const size_t bytes = (size_t)rnn->at.at[MODEL_BLOCKS] * sizeof(float);
  rnn->backend->put(there, f.w, bytes);
  double radius = radius_now(rnn);
  if (config->frozen_edges && radius > 0) {
    for (eidx e = 0; e < network_n_edges(rnn->network); e++)
      block(&f, MODEL_EDGES)[e] *= (float)(frozen_radius / radius);
    rnn->backend->put(there, f.w, bytes);
    radius = radius_now(rnn);
  }
  mem_free(f.w);
  return radius;
}
