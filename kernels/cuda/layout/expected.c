/* What the recurrence will take on a GPU, from counts: its lists with padding and items as they are
 * on average. */
#include "recur.h"
#include "tables.h"

/* Places of `edges` edges in so many padded rows, on average. */
static int64_t expected_places(int64_t edges, int64_t rows) {
  return edges + rows * (RECUR_PAD - 1) / 2;
}

/* Items of rows: one each, and more for long rows. */
static int expected_items(int64_t rows, int64_t edges) {
  return (int)(2 * rows + edges / 64);
}

static void expect(struct recur_device *d, struct recur_sizes *s, const struct recur_net *net) {
  recur_set_counts(d, s, net);
  const int64_t own = d->n_own, halo = d->n_halo, split = halo > 0;
  d->n_in_edges = expected_places(d->n_near + d->n_far, own * (1 + split));
  d->n_out_edges = expected_places(d->n_near + d->n_far, own + halo);
  s->groups = 1; /* blocks are items then */
  d->near_in.n_blocks = d->near_out.n_blocks = expected_items(own, d->n_near);
  d->far_in.n_blocks = split ? expected_items(own, d->n_far) : 0;
  d->far_out.n_blocks = expected_items(halo, d->n_far);
}

int64_t recur_expected_bytes(const struct recur_net *net, bool persistent) {
  struct recur_device d;
  struct recur_sizes s;
  struct arrays list = {0};
  expect(&d, &s, net);
  s.persistent = persistent;
  recur_list_tables(&list, &d, &s, RECUR_FORWARD);
  if (s.want_gradient) recur_list_tables(&list, &d, &s, RECUR_BACKWARD);
  recur_list_window(&list, &d, &s);
  return arrays_bytes(&list);
}

int64_t recur_expected_host_bytes(const struct recur_net *net) {
  struct recur_device d;
  struct recur_sizes s;
  struct arrays forward = {0}, backward = {0};
  struct recur_by_source by_source;
  expect(&d, &s, net);
  recur_list_tables(&forward, &d, &s, RECUR_FORWARD);
  recur_list_tables(&backward, &d, &s, RECUR_BACKWARD);
  recur_list_by_source(&backward, &by_source, (int64_t)d.n_own + d.n_halo, d.n_near + d.n_far);
  const int64_t a = arrays_bytes(&forward), b = net->want_gradient ? arrays_bytes(&backward) : 0;
  return a > b ? a : b;
}
