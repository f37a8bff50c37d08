/* ranks: 1 2 3 4 7 */
/* The recurrence on a split graph: outputs and gradients equal a float64 model's and one rank's,
 * and repeat bit for bit; empty ranks take part. */
#include "kernels/interface/backends.h"
#include "check.h"
#include "partition/halo.h"
#include "recur_model.h"
#include "train/recurrence.h"
#include "partition/rows.h"

static const struct recur_backend *be;

/* One rank's share of a model. */
struct share {
  gidx *first_of_rank;
  struct graph graph;
  lidx *in, *out;          /* own rows */
  int first_in, first_out; /* their place among all */
  struct recur_net net;
  struct recurrence window;
};

/* The nodes of `all` [n] that are own rows, as own rows; returns how many and where they start. */
static lidx own_nodes(const struct graph *g, const int *all, int n, lidx **rows, int *start) {
  lidx count = 0;
  *rows = NEW(lidx, n);
  *start = 0;
  for (int i = 0; i < n; i++) {
    if (all[i] < g->first) *start = i + 1;
    if (all[i] >= g->first && all[i] < g->first + g->n_own)
      (*rows)[count++] = (lidx)(all[i] - g->first);
  }
  return count;
}

static void build_graph(const struct comm *comm, const struct model *m, enum halo_kind kind,
                        struct share *s) {
  s->first_of_rank = NEW(gidx, comm->size + 1);
  rows_split(m->N, m->row_ptr, NULL, 0, comm->size, s->first_of_rank);
  const gidx first = s->first_of_rank[comm->rank], last = s->first_of_rank[comm->rank + 1];
  const eidx from = m->row_ptr[first], n = m->row_ptr[last] - from;
  eidx *row_ptr = NEW(eidx, last - first + 1);
  gidx *source = NEW(gidx, n);
  for (gidx i = first; i <= last; i++) row_ptr[i - first] = m->row_ptr[i] - from;
  for (eidx e = 0; e < n; e++) source[e] = m->source[from + e];
  graph_build(comm, s->first_of_rank, row_ptr, source, kind, &s->graph);
  mem_free(row_ptr), mem_free(source);
}

/* The edge of the model that stands at position e of near, then far. */
static eidx model_edge(const struct share *s, const struct model *m, eidx e) {
  const struct graph *g = &s->graph;
  const eidx near = g->near.n_edges;
  return m->row_ptr[g->first] + (e < near ? g->near_edge[e] : g->far_edge[e - near]);
}

/* [T][n_own][B] of this rank from, or into, [T][n][B] of all */
static void take_rows(float *own, lidx n_own, const double *all, int n, int start,
                      const struct model *m) {
  for (int t = 0; t < m->T; t++)
    for (int64_t x = 0; x < (int64_t)n_own * m->B; x++)
      own[(int64_t)t * n_own * m->B + x] = (float)all[((int64_t)t * n + start) * m->B + x];
}

static void put_inputs(const struct share *s, const struct model *m) {
  const struct graph *g = &s->graph;
  struct recur *r = s->window.state;
  for (eidx e = 0; e < g->near.n_edges + g->far.n_edges; e++)
    be->value(r)[e] = (float)m->value[model_edge(s, m, e)];
  for (lidx i = 0; i < g->n_own; i++) {
    be->leak(r)[i] = (float)m->leak[g->first + i], be->bias(r)[i] = (float)m->bias[g->first + i];
    for (int b = 0; b < m->B; b++)
      be->state(r, 0)[(int64_t)i * m->B + b] = (float)m->start[(g->first + i) * m->B + b];
  }
  take_rows(be->drive(r), s->net.n_in, m->drive, m->n_in, s->first_in, m);
  take_rows(be->d_output(r), s->net.n_out, m->d_output, m->n_out, s->first_out, m);
}

static void share_open(const struct comm *comm, const struct model *m, enum halo_kind kind,
                       int n_threads, struct share *s) {
  memset(s, 0, sizeof *s);
  build_graph(comm, m, kind, s);
  s->net =
      (struct recur_net){.graph = &s->graph, .shape = {m->B, m->T, m->M}, .want_gradient = true};
  s->net.n_in = own_nodes(&s->graph, m->in, m->n_in, &s->in, &s->first_in);
  s->net.n_out = own_nodes(&s->graph, m->out, m->n_out, &s->out, &s->first_out);
  s->net.in = s->in, s->net.out = s->out;
  s->window = (struct recurrence){.backend = be, .graph = &s->graph, .shape = s->net.shape};
  CHECK_FINE(be->open(&s->net, n_threads, &s->window.state));
  put_inputs(s, m);
}

static void share_close(struct share *s) {
  be->close(s->window.state);
  graph_free(&s->graph);
  mem_free(s->first_of_rank), mem_free(s->in), mem_free(s->out);
}

/* ---- results of all ranks, in the model's order ---- */

enum { OUTPUT, D_VALUE, D_LEAK, D_BIAS, D_DRIVE, D_START, RESULTS };
static const char *const result_name[] = {"output", "d_value", "d_leak",
                                          "d_bias", "d_drive", "d_start"};

struct results {
  float *x[RESULTS];
  int64_t n[RESULTS];
};

static void give_rows(float *all, int n, int start, const float *own, lidx n_own,
                      const struct model *m) {
  for (int t = 0; t < m->T; t++)
    for (int64_t x = 0; x < (int64_t)n_own * m->B; x++)
      all[((int64_t)t * n + start) * m->B + x] = own[(int64_t)t * n_own * m->B + x];
}

/* Each rank writes its own into zeros; the sum over ranks is then exact. */
static struct results collect(const struct comm *comm, const struct share *s,
                              const struct model *m) {
  struct recur *r = s->window.state;
  const struct graph *g = &s->graph;
  struct results all = {.n = {(int64_t)m->T * m->n_out * m->B, m->E, m->N, m->N,
                              (int64_t)m->T * m->n_in * m->B, (int64_t)m->N * m->B}};
  for (int i = 0; i < RESULTS; i++) all.x[i] = NEW_ZERO(float, all.n[i]);
  give_rows(all.x[OUTPUT], m->n_out, s->first_out, be->output(r), s->net.n_out, m);
  give_rows(all.x[D_DRIVE], m->n_in, s->first_in, be->d_drive(r), s->net.n_in, m);
  for (eidx e = 0; e < g->near.n_edges + g->far.n_edges; e++)
    all.x[D_VALUE][model_edge(s, m, e)] = be->d_value(r)[e];
  for (lidx i = 0; i < g->n_own; i++) {
    all.x[D_LEAK][g->first + i] = be->d_leak(r)[i], all.x[D_BIAS][g->first + i] = be->d_bias(r)[i];
    for (int b = 0; b < m->B; b++)
      all.x[D_START][(g->first + i) * m->B + b] = be->d_state(r)[(int64_t)i * m->B + b];
  }
  if (comm->size > 1)
    for (int i = 0; i < RESULTS; i++) comm->via->sum(comm, all.x[i], all.n[i]);
  return all;
}

static void results_free(struct results *r) {
  for (int i = 0; i < RESULTS; i++) mem_free(r->x[i]);
}

static struct results run(const struct comm *comm, const struct model *m, enum halo_kind kind,
                          int n_threads) {
  struct share s;
  share_open(comm, m, kind, n_threads, &s);
  recurrence_forward(&s.window, comm);
  recurrence_backward(&s.window, comm);
  struct results r = collect(comm, &s, m);
  share_close(&s);
  return r;
}

static double distance(const float *x, const float *y, int64_t n) {
  double *wide = NEW(double, n);
  for (int64_t i = 0; i < n; i++) wide[i] = y[i];
  const double d = model_error(x, wide, n);
  mem_free(wide);
  return d;
}

static void check_result(int which, double error, double limit, const char *against) {
  checks_run++;
  if (!(error <= limit))
    DIE(1, "%s: relative error %.3g against %s on %d ranks", result_name[which], error, against,
        world.size);
}

static void test_split(struct comm *comm, struct comm *alone, const struct model *m) {
  struct model_result w = model_run(m);
  const double *const want[] = {w.output, w.d_value, w.d_leak, w.d_bias, w.d_drive, w.d_start};
  struct results split = run(comm, m, HALO_NEEDED, 1), again = run(comm, m, HALO_NEEDED, 3),
                 one = run(alone, m, HALO_AUTO, 1), all = run(comm, m, HALO_ALL, 2);
  for (int i = 0; i < RESULTS; i++) {
    check_result(i, model_error(split.x[i], want[i], split.n[i]), 1e-6, "float64");
    check_result(i, distance(split.x[i], one.x[i], split.n[i]), 1e-6, "one rank");
    CHECK(split.n[i] == 0 || !memcmp(split.x[i], again.x[i], (size_t)split.n[i] * sizeof(float)));
    check_result(i, distance(all.x[i], split.x[i], split.n[i]), 1e-7, "the exchange of halos");
  }
  results_free(&split), results_free(&again), results_free(&one), results_free(&all);
  model_result_free(&w);
}

static void test_network(struct comm *comm, struct comm *alone, int N, double degree, int B, int T,
                         int M) {
  struct model m = model_init(N, degree, B, T, M);
  m.leak[N / 2] = (float)0.01; /* its proposals are formed again, from halo states too */
  test_split(comm, alone, &m);
  model_free(&m);
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  be = backend_cpu.recur;
  struct comm comm = comm_split(&world, 0, world.rank), alone = comm_split(&world, world.rank, 0);
  CHECK_FINE(transport_mpi.open(&comm));
  test_network(&comm, &alone, 300, 25, 32, 5, 2);
  test_network(&comm, &alone, 101, 10, 5, 3, 1);
  test_network(&comm, &alone, 10, 2, 40, 2, 3);
  test_network(&comm, &alone, 5, 2, 1, 1, 1); /* more ranks than rows at 7 */
  comm.via->close(&comm);
  comm_free(&comm), comm_free(&alone);
  CHECK_EQ(mem_held(), 0);
  return test_end();
}
