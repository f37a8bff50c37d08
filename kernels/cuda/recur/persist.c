/* Host side of the persistent window: whether a network is one for it, and
 * its arrays on the device. */
#include "persist.h"
#include "core/mem.h"
#include "persist_open.h"
#include "tables.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BATCH = 32, MEASURED_MAJOR = 9 };

/* Fewer edges are not measured; the launches of single microsteps are then short as well. */
static const eidx LEAST_EDGES = 400000;

bool persist_knows_mode(const char *mode) {
  return !strcmp(mode, "persistent") || !strcmp(mode, "microsteps");
}

static bool is_wanted(eidx edges) {
  const char *mode = getenv(PERSIST_MODE);
  return mode ? !strcmp(mode, "persistent") : edges >= LEAST_EDGES;
}

static int blocks_of(int batch) {
  return gpu_processors() / (batch / PERSIST_COLUMNS) / PERSIST_CLUSTER * PERSIST_CLUSTER;
}

/* Bulk copies to a cluster need it, and so it is the only one measured. */
static bool is_measured_gpu(void) {
  int device, major;
  CHECK_CUDA(cudaGetDevice(&device));
  CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return major == MEASURED_MAJOR;
}

/* By counts alone; the plan may still find that the edges do not fit. */
static bool may_fit(const struct recur_net *net) {
  const struct graph *g = net->graph;
  const int batch = net->shape.batch;
  if (!is_wanted(g->near.n_edges) || net->mixed || g->n_halo > 0 || g->n_own != g->n_global ||
      g->n_own == 0)
    return false;
  if (batch % PERSIST_COLUMNS != 0 || batch == 0 || batch > MOST_BATCH) return false;
  if (net->shape.steps * net->shape.microsteps < 2) return false;
  const eidx lanes = (eidx)blocks_of(batch) * PERSIST_WALKERS * PERSIST_LANES;
  return lanes > 0 && g->near.n_edges <= lanes * PERSIST_SLOTS &&
         persist_rows(g->n_own, blocks_of(batch)) > 0 && is_measured_gpu();
}

int64_t persist_bytes(const struct recur_net *net) {
  if (!may_fit(net)) return 0;
  const int64_t B = net->shape.batch, K = (int64_t)net->shape.steps * net->shape.microsteps,
                word = sizeof(float);
  const int64_t blocks = blocks_of(net->shape.batch),
                lanes = blocks * PERSIST_WALKERS * PERSIST_LANES;
  const int64_t places = blocks * persist_rows(net->graph->n_own, (int)blocks);
  const int64_t tables =
      lanes * (PERSIST_SLOTS + PERSIST_WORDS) * word + (places + net->graph->n_own) * 2 * word;
  const int64_t own = net->graph->n_own * B;
  if (!net->want_gradient) return tables + (2 * places * B + own) * word;
  return 2 * tables +
         ((K + 1) * places * B + own + lanes * PERSIST_SLOTS * (B / PERSIST_COLUMNS)) * word;
}

static struct persist_tables tables_to_device(const struct persist_plan *p, lidx n) {
  const int64_t places = (int64_t)p->blocks * p->rows, warps = (int64_t)p->blocks * PERSIST_WALKERS;
  const int64_t slots = warps * PERSIST_SLOTS * PERSIST_LANES,
                sums = (int64_t)p->blocks * p->stretches * PERSIST_LANES;
  return (struct persist_tables){
      .blocks = p->blocks,
      .rows = p->rows,
      .stretches = p->stretches,
      .rounds = p->rounds,
      .row_at = GPU_COPY_OF(int32_t, p->row_at, places),
      .place = GPU_COPY_OF(int32_t, p->place, n),
      .three = GPU_COPY_OF(uint32_t, p->three, warps * PERSIST_WORDS * PERSIST_LANES),
      .edge = GPU_COPY_OF(uint32_t, p->edge, slots),
      .ends = gpu_copy_of(p->ends, warps, sizeof(uint4)),
      .lane_row = GPU_COPY_OF(uint8_t, p->lane_row, sums),
      .first = GPU_COPY_OF(uint16_t, p->first, places + p->blocks),
      .piece = GPU_COPY_OF(uint16_t, p->piece, (int64_t)p->blocks * p->rounds * PERSIST_ROUND)};
}

static void tables_free(struct persist_tables *t) {
  gpu_free((void *)t->row_at), gpu_free((void *)t->place), gpu_free((void *)t->three),
      gpu_free((void *)t->edge);
  gpu_free((void *)t->ends), gpu_free((void *)t->lane_row), gpu_free((void *)t->first),
      gpu_free((void *)t->piece);
}

static bool plan_to_device(lidx n, const struct persist_edges *walk,
                           const struct persist_edges *readers, int blocks,
                           struct persist_tables *t) {
  struct persist_plan plan;
  if (!persist_plan(n, walk, readers, blocks, &plan)) return false;
  *t = tables_to_device(&plan, n);
  persist_plan_free(&plan);
  return true;
}

static void windows_to_device(struct persist_device *p, const struct recur_net *net) {
  const int64_t B = net->shape.batch, K = (int64_t)net->shape.steps * net->shape.microsteps;
  p->window =
      GPU_ZERO(float, (net->want_gradient ? K - 1 : 2) * p->there.blocks * p->there.rows * B);
  p->last = GPU_ZERO(float, net->graph->n_own *B);
  p->arrivals = gpu_zero((int64_t)p->slices * PERSIST_HALVES, PERSIST_ARRIVAL_BYTES);
  if (!net->want_gradient) return;
  const int64_t places = (int64_t)p->back.blocks * p->back.rows;
  p->q = GPU_ZERO(float, 2 * places * B);
  p->gradient = GPU_ZERO(float, (int64_t)p->slices * p->back.blocks * PERSIST_WALKERS *
                                    PERSIST_SLOTS * PERSIST_LANES);
  p->row_sums = GPU_ZERO(float, 2 * places * p->slices);
}

static bool plans_to_device(const struct recur_net *net, struct persist_device *p) {
  const struct graph *g = net->graph;
  struct recur_by_source s = recur_by_source(g);
  const struct persist_edges in = {g->near.row_ptr, g->near.col, NULL},
                             out = {s.ptr, s.target, s.edge};
  const int blocks = blocks_of(net->shape.batch);
  const bool good = plan_to_device(g->n_own, &in, &out, blocks, &p->there) &&
                    (!net->want_gradient || plan_to_device(g->n_own, &out, &in, blocks, &p->back));
  recur_by_source_free(&s);
  return good;
}

bool persist_open(const struct recur_net *net, struct persist_device *p) {
  *p = (struct persist_device){.slices = net->shape.batch / PERSIST_COLUMNS};
  if (!may_fit(net)) return false;
  if (plans_to_device(net, p) && persist_resident(p)) {
    windows_to_device(p, net);
    return true;
  }
  persist_close(p);
  return false;
}

void persist_close(struct persist_device *p) {
  tables_free(&p->there), tables_free(&p->back);
  gpu_free(p->window), gpu_free(p->q), gpu_free(p->gradient), gpu_free(p->row_sums);
  gpu_free(p->arrivals), gpu_free(p->last);
  *p = (struct persist_device){0};
}
