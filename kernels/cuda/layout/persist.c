/* Which networks the persistent window is for, and what it takes. */
#include "persist.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BATCH = 32 };

/* Fewer edges are not measured; the launches of single microsteps are then short as well. */
static const eidx LEAST_EDGES = 400000;

bool persist_knows_mode(const char *mode) {
  return !strcmp(mode, "persistent") || !strcmp(mode, "microsteps");
}

static bool is_wanted(eidx edges) {
  const char *mode = getenv(PERSIST_MODE);
  return mode ? !strcmp(mode, "persistent") : edges >= LEAST_EDGES;
}

int persist_blocks(const struct recur_net *net, int processors) {
  return processors / (net->shape.batch / PERSIST_COLUMNS) / PERSIST_CLUSTER * PERSIST_CLUSTER;
}

bool persist_may_fit(const struct recur_net *net, int processors) {
  const struct graph *g = net->graph;
  const int batch = net->shape.batch;
  if (!is_wanted(g->near.n_edges) || net->mixed || g->n_halo > 0 || g->n_own != g->n_global ||
      g->n_own == 0)
    return false;
  if (batch % PERSIST_COLUMNS != 0 || batch == 0 || batch > MOST_BATCH) return false;
  if (net->shape.steps * net->shape.microsteps < 2) return false;
  const int blocks = persist_blocks(net, processors);
  const eidx lanes = (eidx)blocks * PERSIST_WALKERS * PERSIST_LANES;
  return lanes > 0 && g->near.n_edges <= lanes * PERSIST_SLOTS &&
         persist_rows(g->n_own, blocks) > 0;
}

void persist_list_window(struct arrays *list, struct persist_device *p,
                         const struct recur_device *d) {
  const int64_t B = d->batch, K = (int64_t)d->steps * d->microsteps;
  const struct persist_tables *f = &p->forward, *b = &p->backward; /* b: none without gradients */
  const int64_t places = (int64_t)b->blocks * b->rows;
  ARRAY_ZERO(list, p->window, (d->all_states ? K - 1 : 2) * f->blocks * f->rows * B);
  ARRAY_ZERO(list, p->last, d->n_own * B);
  arrays_add(list, &p->arrivals, (int64_t)p->slices * PERSIST_HALVES, PERSIST_ARRIVAL_BYTES, true);
  ARRAY_ZERO(list, p->q, 2 * places * B);
  ARRAY_ZERO(list, p->gradient,
             (int64_t)p->slices * b->blocks * PERSIST_WALKERS * PERSIST_SLOTS * PERSIST_LANES);
  ARRAY_ZERO(list, p->row_sums, 2 * places * p->slices);
}

/* Counts as they mostly are: one segment of each class a row, and a second round of sums for as
 * many rows as need only one. */
static struct persist_tables expected_tables(const struct recur_net *net, int blocks) {
  const int rows = persist_rows(net->graph->n_own, blocks);
  return (struct persist_tables){.blocks = blocks,
                                 .rows = rows,
                                 .stretches =
                                     rows * PERSIST_CLASSES / PERSIST_LANES + PERSIST_WALKERS,
                                 .rounds = 2 * rows};
}

int64_t persist_expected_bytes(const struct recur_net *net, int processors) {
  const int blocks = persist_blocks(net, processors);
  struct persist_device p = {.slices = net->shape.batch / PERSIST_COLUMNS,
                             .forward = expected_tables(net, blocks)};
  struct recur_device d;
  struct recur_sizes s;
  struct arrays list = {0};
  recur_set_counts(&d, &s, net);
  if (net->want_gradient) p.backward = p.forward;
  persist_list_tables(&list, &p.forward, net->graph->n_own);
  if (net->want_gradient) persist_list_tables(&list, &p.backward, net->graph->n_own);
  persist_list_window(&list, &p, &d);
  return arrays_bytes(&list);
}
