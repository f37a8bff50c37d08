/* Lists of the recurrence's arrays on a GPU, and what they take. */
#include "recur.h"

static bool is_narrow(int64_t rows) {
  return rows <= RECUR_NARROW;
}

void recur_set_counts(struct recur_device *d, struct recur_sizes *s, const struct recur_net *net) {
  const struct graph *g = net->graph;
  const bool narrow = is_narrow((int64_t)g->n_own + g->n_halo);
  *d = (struct recur_device){.batch = net->shape.batch,
                             .microsteps = net->shape.microsteps,
                             .steps = net->shape.steps,
                             .n_own = g->n_own,
                             .n_halo = g->n_halo,
                             .n_in = net->n_in,
                             .n_out = net->n_out,
                             .n_near = g->near.n_edges,
                             .n_far = g->far.n_edges,
                             .lines = recur_stands_in_lines(net->shape.batch, net->mixed, narrow),
                             .all_states = net->want_gradient,
                             .small = narrow && g->near.n_edges + g->far.n_edges <= RECUR_SMALL};
  d->near_in.narrow = d->far_in.narrow = d->near_out.narrow = d->far_out.narrow = narrow;
  *s = (struct recur_sizes){.want_gradient = net->want_gradient, .mixed = net->mixed};
}

bool recur_stands_in_lines(int batch, bool mixed, bool narrow) {
  return !narrow && batch == (mixed ? 32 : 16);
}

/* ---- lists ---- */

static size_t index_bytes(const struct recur_walk *w) {
  return w->narrow ? sizeof(uint16_t) : sizeof(int32_t);
}

static int64_t items_of(const struct recur_walk *w, const struct recur_sizes *s) {
  return (int64_t)w->n_blocks * s->groups;
}

static void list_rows(struct arrays *list, struct recur_rows *rows, int64_t n) {
  ARRAY_ZERO(list, rows->ptr, n + 1), ARRAY_ZERO(list, rows->padded, n);
}

/* far_in walks the same columns as near_in. */
static void list_by_target(struct arrays *list, struct recur_device *d,
                           const struct recur_sizes *s) {
  ARRAY_ZERO(list, d->in_slot, d->n_own), ARRAY_ZERO(list, d->out_slot, d->n_own);
  arrays_add(list, &d->near_in.col, d->n_in_edges, index_bytes(&d->near_in), true);
  ARRAY_ZERO(list, d->near_in.item, items_of(&d->near_in, s));
  list_rows(list, &d->near_rows, d->n_own);
  if (d->n_halo == 0) return;
  ARRAY_ZERO(list, d->far_in.item, items_of(&d->far_in, s));
  list_rows(list, &d->far_rows, d->n_own);
}

/* far_out walks the same columns as near_out. */
static void list_by_source(struct arrays *list, struct recur_device *d,
                           const struct recur_sizes *s) {
  arrays_add(list, &d->near_out.col, d->n_out_edges, index_bytes(&d->near_out), true);
  ARRAY_ZERO(list, d->near_out.item, items_of(&d->near_out, s));
  ARRAY_ZERO(list, d->far_out.item, items_of(&d->far_out, s));
  ARRAY_ZERO(list, d->out_edge, d->n_out_edges);
  ARRAY_ZERO(list, d->out_place, d->n_near + d->n_far);
}

void recur_list_tables(struct arrays *list, struct recur_device *d, const struct recur_sizes *s,
                       enum recur_direction direction) {
  if (direction == RECUR_FORWARD)
    list_by_target(list, d, s);
  else
    list_by_source(list, d, s);
}

static void list_gradient(struct arrays *list, struct recur_device *d,
                          const struct recur_sizes *s) {
  const int64_t B = d->batch, T = d->steps, own = d->n_own, words = d->lines ? 2 : 1;
  ARRAY_ZERO(list, d->d_value, d->n_near + d->n_far);
  ARRAY_ZERO(list, d->d_leak, own), ARRAY_ZERO(list, d->d_bias, own);
  ARRAY_ZERO(list, d->d_pair, 2 * own);
  ARRAY_ZERO(list, d->d_drive, T * d->n_in * B), ARRAY_ZERO(list, d->d_output, T * d->n_out * B);
  ARRAY_ZERO(list, d->d_state, (own + d->n_halo) * B);
  if (s->persistent) return;
  ARRAY_ZERO(list, d->out_value, words * d->n_out_edges);
  ARRAY_ZERO(list, d->out_gradient, d->n_out_edges);
  arrays_add(list, &d->q, 2 * own * B, s->mixed ? sizeof(uint16_t) : sizeof(float), true);
}

void recur_list_window(struct arrays *list, struct recur_device *d, const struct recur_sizes *s) {
  const int64_t B = d->batch, T = d->steps, K = T * d->microsteps, own = d->n_own,
                rows = own + d->n_halo, words = d->lines ? 2 : 1;
  ARRAY_ZERO(list, d->value, d->n_near + d->n_far);
  ARRAY_ZERO(list, d->in_value, words * d->n_in_edges);
  ARRAY_ZERO(list, d->leak, own), ARRAY_ZERO(list, d->bias, own);
  ARRAY_ZERO(list, d->pair, 2 * own);
  ARRAY_ZERO(list, d->drive, T * d->n_in * B), ARRAY_ZERO(list, d->output, T * d->n_out * B);
  ARRAY_ZERO(list, d->states, s->persistent ? own * B : (d->all_states ? K + 1 : 2) * rows * B);
  if (d->n_halo > 0) ARRAY_ZERO(list, d->near_sum, own * B);
  if (s->mixed) arrays_add(list, &d->rounded, 2 * rows * B, sizeof(uint16_t), true);
  if (s->want_gradient) list_gradient(list, d, s);
}
