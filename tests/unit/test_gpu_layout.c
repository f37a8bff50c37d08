/* ranks: 1 */
/* What a GPU holds for the recurrence, without one: tables of every edge, the work of each group of
 * lanes, and that predicted bytes are those of the lists. */
#include "check.h"
#include "core/alloc.h"
#include "core/mem.h"
#include "core/rng.h"
#include "kernels/cuda/layout/persist.h"
#include "kernels/cuda/layout/tables.h"

#include <math.h>
#include <string.h>

enum { PROCESSORS = 132 };

static uint32_t draws;
static int64_t below(int64_t n) {
  const struct rng_block b = rng_draw(3, draws++, 0, 0, 0);
  return (int64_t)rng_below(b.v[0], b.v[1], (uint64_t)n);
}

/* Rows of mostly few edges, some of none, one of many; sources first .. first + n_sources - 1. */
static struct csr random_rows(lidx n_rows, lidx first, lidx n_sources, int mean) {
  struct csr rows = {.n_rows = n_rows, .row_ptr = NEW_ZERO(eidx, n_rows + 1)};
  for (lidx i = 0; i < n_rows; i++)
    rows.row_ptr[i + 1] = rows.row_ptr[i] + (n_sources == 0    ? 0
                                             : i == n_rows / 2 ? 40 * mean
                                                               : below(2 * mean));
  rows.n_edges = rows.row_ptr[n_rows];
  rows.col = NEW(lidx, rows.n_edges);
  for (eidx e = 0; e < rows.n_edges; e++) rows.col[e] = first + (lidx)below(n_sources);
  return rows;
}

static struct graph random_graph(lidx n_own, lidx n_halo, int mean) {
  return (struct graph){.n_global = n_own + n_halo,
                        .n_own = n_own,
                        .n_halo = n_halo,
                        .near = random_rows(n_own, 0, n_own, mean),
                        .far = random_rows(n_own, n_own, n_halo, mean / 2 + 1)};
}

static void free_graph(struct graph *g) {
  mem_free(g->near.row_ptr), mem_free(g->near.col), mem_free(g->far.row_ptr), mem_free(g->far.col);
}

static lidx col_at(const struct recur_walk *w, int64_t at) {
  return w->narrow ? ((const uint16_t *)w->col)[at] : ((const int32_t *)w->col)[at];
}

/* The items of a walk: every row of ptr once, by as many items as share it. */
static void check_items(const struct recur_walk *w, int groups, const eidx *ptr, lidx first,
                        lidx n_rows, const uint32_t *padded, const struct recur_net *net) {
  int *met = NEW_ZERO(int, n_rows);
  for (int64_t i = 0; i < (int64_t)w->n_blocks * groups; i++) {
    const struct recur_item *item = &w->item[i];
    if (item->row < 0) continue;
    const lidx row = item->row - first;
    CHECK(row >= 0 && row < n_rows);
    CHECK(item->edges == ptr[item->row + 1] - ptr[item->row]);
    if (padded) CHECK(item->first == padded[item->row]);
    CHECK(item->first % RECUR_PAD == 0);
    CHECK(met[row]++ < 1 << item->share);
    bool in = false, out = false;
    for (lidx k = 0; k < net->n_in; k++) in |= net->in[k] == item->row;
    for (lidx k = 0; k < net->n_out; k++) out |= net->out[k] == item->row;
    CHECK(item->slots == (in ? RECUR_HAS_IN : 0) + (out ? RECUR_HAS_OUT : 0));
  }
  for (lidx i = 0; i < n_rows; i++) CHECK(met[i] >= 1);
  mem_free(met);
}

static void check_rows(const struct recur_walk *w, const struct recur_rows *rows,
                       const struct csr *csr, eidx offset) {
  for (lidx i = 0; i < csr->n_rows; i++) {
    CHECK(rows->ptr[i] == offset + csr->row_ptr[i]);
    for (eidx e = csr->row_ptr[i]; e < csr->row_ptr[i + 1]; e++)
      CHECK(col_at(w, rows->padded[i] + (e - csr->row_ptr[i])) == csr->col[e]);
  }
  CHECK(rows->ptr[csr->n_rows] == offset + csr->n_edges);
}

/* Every edge once, by its source, with its target. */
static void check_by_source(const struct recur_device *d, const struct graph *g) {
  const struct csr *part[] = {&g->near, &g->far};
  int64_t used = 0;
  for (int p = 0; p < 2; p++)
    for (lidx i = 0; i < part[p]->n_rows; i++)
      for (eidx e = part[p]->row_ptr[i]; e < part[p]->row_ptr[i + 1]; e++) {
        const uint32_t number = (uint32_t)((p ? g->near.n_edges : 0) + e),
                       at = d->out_place[number];
        CHECK(at < d->n_out_edges && d->out_edge[at] == number);
        CHECK(col_at(&d->near_out, at) == i);
      }
  for (int64_t at = 0; at < d->n_out_edges; at++) used += d->out_edge[at] != RECUR_NO_EDGE;
  CHECK(used == d->n_near + d->n_far);
}

/* By source, items say where the rows of sources stand: all their edges have that source. */
static void check_sources(const struct recur_walk *w, int groups, const struct recur_device *d,
                          const struct graph *g) {
  for (int64_t i = 0; i < (int64_t)w->n_blocks * groups; i++)
    for (uint32_t e = 0; w->item[i].row >= 0 && e < w->item[i].edges; e++) {
      const uint32_t number = d->out_edge[w->item[i].first + e];
      CHECK(number < d->n_near + d->n_far);
      const lidx source = number < d->n_near ? g->near.col[number] : g->far.col[number - d->n_near];
      CHECK(source == w->item[i].row);
    }
}

static void check_tables(lidx n_own, lidx n_halo, int mean, int batch, int lanes) {
  struct graph g = random_graph(n_own, n_halo, mean);
  const lidx in[] = {0, 3, 7}, out[] = {3, n_own - 1};
  const struct recur_net net = {.graph = &g,
                                .n_in = 3,
                                .n_out = 2,
                                .in = in,
                                .out = out,
                                .shape = {batch, 4, 2},
                                .want_gradient = true};
  const struct recur_shape_on_device shape = {lanes, 16, false};
  const int64_t held = alloc_held();
  struct recur_device d;
  struct recur_sizes s;
  struct arrays list = {0};
  recur_set_counts(&d, &s, &net);
  CHECK(recur_make_tables(&d, &s, &net, RECUR_FORWARD, shape, PROCESSORS));
  CHECK(recur_make_tables(&d, &s, &net, RECUR_BACKWARD, shape, PROCESSORS));
  check_rows(&d.near_in, &d.near_rows, &g.near, 0);
  check_items(&d.near_in, s.groups, g.near.row_ptr, 0, n_own, d.near_rows.padded, &net);
  if (n_halo > 0) {
    check_rows(&d.far_in, &d.far_rows, &g.far, g.near.n_edges);
    check_items(&d.far_in, s.groups, g.far.row_ptr, 0, n_own, d.far_rows.padded, &net);
  }
  for (lidx i = 0; i < n_own; i++) {
    CHECK(d.in_slot[i] == (i == 0 ? 0 : i == 3 ? 1 : i == 7 ? 2 : -1));
    CHECK(d.out_slot[i] == (i == 3 ? 0 : i == n_own - 1 ? 1 : -1));
  }
  struct recur_by_source by;
  CHECK(recur_by_source(&g, &by));
  check_by_source(&d, &g);
  check_items(&d.near_out, s.groups, by.ptr, 0, n_own, NULL, &net);
  check_items(&d.far_out, s.groups, by.ptr, n_own, n_halo, NULL, &net);
  check_sources(&d.near_out, s.groups, &d, &g), check_sources(&d.far_out, s.groups, &d, &g);
  recur_by_source_free(&by);
  recur_list_tables(&list, &d, &s, RECUR_FORWARD), recur_list_tables(&list, &d, &s, RECUR_BACKWARD);
  CHECK(alloc_held() - held == arrays_bytes(&list));
  recur_list_window(&list, &d, &s);
  const double real = (double)arrays_bytes(&list),
               expected = (double)recur_expected_bytes(&net, false);
  CHECK(fabs(expected / real - 1) < 0.1);
  struct arrays tables = {0};
  recur_list_tables(&tables, &d, &s, RECUR_FORWARD);
  recur_list_tables(&tables, &d, &s, RECUR_BACKWARD);
  arrays_close(&tables);
  CHECK(alloc_held() == held && !d.near_in.col && !d.out_edge);
  free_graph(&g);
}

static void check_persistent(void) {
  const lidx n = 3000;
  struct graph g = random_graph(n, 0, 80);
  setenv(PERSIST_MODE, "persistent", 1);
  const struct recur_net net = {.graph = &g, .shape = {32, 8, 2}, .want_gradient = true};
  struct recur_by_source by;
  struct recur_device d;
  struct recur_sizes s;
  struct arrays list = {0};
  struct persist_device p = {.slices = 4};
  CHECK(persist_may_fit(&net, PROCESSORS) && !persist_may_fit(&net, 0));
  CHECK(recur_by_source(&g, &by));
  const struct persist_edges in = {g.near.row_ptr, g.near.col, NULL},
                             out = {by.ptr, by.target, by.edge};
  const int blocks = persist_blocks(&net, PROCESSORS);
  const int64_t held = alloc_held();
  CHECK(persist_plan(n, &in, &out, blocks, &p.forward));
  CHECK(persist_plan(n, &out, &in, blocks, &p.backward));
  char *met = NEW_ZERO(char, g.near.n_edges);
  for (int64_t i = 0; i < (int64_t)blocks * PERSIST_WALKERS * PERSIST_SLOTS * PERSIST_LANES; i++)
    if (p.forward.edge[i] != PERSIST_NO_EDGE) CHECK(met[p.forward.edge[i]]++ == 0);
  for (eidx e = 0; e < g.near.n_edges; e++) CHECK(met[e] == 1);
  mem_free(met);
  persist_list_tables(&list, &p.forward, n), persist_list_tables(&list, &p.backward, n);
  CHECK(alloc_held() - held == arrays_bytes(&list));
  struct arrays tables = list;
  recur_set_counts(&d, &s, &net);
  persist_list_window(&list, &p, &d);
  CHECK(fabs((double)persist_expected_bytes(&net, PROCESSORS) / (double)arrays_bytes(&list) - 1) <
        0.05);
  arrays_close(&tables);
  CHECK(alloc_held() == held);
  recur_by_source_free(&by);
  free_graph(&g);
}

/* What cannot be had leaves nothing behind. */
static void check_no_memory(void) {
  char *some = NULL;
  double *none = NULL;
  struct arrays list = {0};
  const int64_t held = alloc_held();
  ARRAY(&list, some, 100), ARRAY_ZERO(&list, none, INT64_MAX / 2);
  CHECK(!arrays_try_open(&list) && !some && !none && alloc_held() == held);
  char block[512];
  struct arrays fits = {0};
  int32_t *x, *y;
  ARRAY(&fits, x, 3), ARRAY(&fits, y, 5);
  CHECK(arrays_bytes(&fits) == 32 && arrays_place(&fits, NULL, 64) == 128 && !x && !y);
  CHECK(arrays_place(&fits, block, 64) == 128 && (char *)y - (char *)x == 64);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  check_tables(500, 0, 20, 32, 8);
  check_tables(500, 120, 20, 32, 8);
  check_tables(40, 10, 300, 8, 2);
  check_tables(70000, 0, 6, 16, 4);
  check_persistent();
  check_no_memory();
  return test_end();
}
