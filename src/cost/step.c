/* Bytes that travel and time of a step. First-order: work at measured rates, an exchange beside the
 * work on own edges, both at the machine's measured cost of sharing. */
#include "cost.h"

#include <math.h>

/* Rows of a share from its own host and from others at once, `row` bytes each. */
static double exchange_seconds(const struct plan_layout *l, const struct plan_share *s,
                               double row) {
  const double host = link_seconds(l->host, (double)s->n_halo_host * row, s->peers_host);
  const double others = link_seconds(l->network, (double)(s->n_halo - s->n_halo_host) * row,
                                     s->peers - s->peers_host);
  return fmax(host, others);
}

/* Work and an exchange side by side: the longer of them, and a part of the shorter. */
static double together(const struct plan_layout *l, const struct plan_share *s, double work,
                       double exchange) {
  const bool far = s->n_halo > s->n_halo_host;
  const double beside = far ? l->network->beside_work : l->host->beside_work;
  return fmax(work, exchange) + beside * fmin(work, exchange);
}

/* ---- LIF ---- */

static double lif_work(const struct machine *m, double neurons, int components, bool active,
                       double events) {
  const double beyond = fmax(neurons - m->lif_on_chip, 0), within = neurons - beyond;
  const double idle = components ? neurons * components * m->lif_component
                                 : within * m->lif_neuron + beyond * m->lif_neuron_beyond;
  if (!active) return idle;
  const double stretch = neurons > 0 ? 1 + beyond / neurons : 1;
  return idle + m->lif_active + within * m->lif_active_neuron + beyond * m->lif_active_beyond +
         events * m->lif_event * stretch;
}

static struct plan_step simulate_share(const struct plan_graph *g, const struct plan_layout *l,
                                       const struct plan_share *s, double active) {
  const struct machine *m = l->machine;
  const double spikes = active * (double)g->n_nodes, edges = (double)(s->near + s->far);
  const double events = spikes * edges / (double)(g->n_nodes ? g->n_nodes : 1);
  const double host = g->parts > g->per_host ? g->per_host : g->parts;
  struct plan_step step = {0};
  const double bus = events * l->host_edges * m->lif_host_event; /* beside the work on events */
  step.compute =
      m->lif_step +
      fmax(lif_work(m, (double)s->n_own, g->components, spikes >= 1, events), bus) / l->threads;
  /* From every rank once per minimum delay: words for all of its neurons, or a list of 4-byte
   * rows, which may be empty. */
  const double sent = g->min_delay / (double)g->parts *
                      (m->lif_word > 0 ? m->lif_word * (double)g->n_nodes : 4 * spikes);
  const double near = (host - 1) * fmax(sent, 4), far = (g->parts - host) * fmax(sent, 4);
  step.bytes_host = (int64_t)(near / g->min_delay),
  step.bytes_network = (int64_t)(far / g->min_delay);
  const double lists = link_seconds(l->spikes, near + far, g->parts - 1) +
                       link_seconds(l->network, far, g->parts - (int64_t)host);
  step.exchange = lists / g->min_delay + l->spikes->per_row * (double)(g->n_nodes - s->n_own);
  step.total = step.compute + step.exchange;
  return step;
}

struct plan_step plan_simulate_step(const struct plan_graph *g, const struct plan_layout *l,
                                    double active) {
  struct plan_step slowest = {0};
  for (int p = 0; p < g->n_shares; p++) {
    const struct plan_step step = simulate_share(g, l, &g->share[p], active);
    if (step.total > slowest.total) slowest = step;
  }
  return slowest;
}

/* ---- training ---- */

/* Seconds of one microstep, by direction; alone: what nothing else runs beside. */
struct passes {
  double near[RECUR_DIRECTIONS], far[RECUR_DIRECTIONS], exchange[RECUR_DIRECTIONS],
      alone[RECUR_DIRECTIONS];
};

/* A pass over `edges` edges into `rows` rows. */
static double pass(const struct plan_layout *l, enum recur_direction direction, double edges,
                   double rows, const struct plan_training *t) {
  const struct machine *m = l->machine;
  const bool back = direction == RECUR_BACKWARD;
  const double edge = back ? m->backward_edge : m->forward_edge,
               column = back ? m->backward_column : m->forward_column,
               row = back ? m->backward_row : m->forward_row;
  const double share = !t->mixed ? 1 : back ? m->mixed_backward : m->mixed_forward;
  const double columns = fmax(t->shape.batch * (t->mixed ? m->mixed_columns : 1), m->least_columns);
  return (back ? m->backward_step : m->forward_step) +
         (share * edges * (edge + column * columns) + rows * row * t->shape.batch) / l->threads;
}

/* What splitting adds to a microstep: forward the sums of own edges go out and come back, and rows
 * are packed unless all go; backward the cell is a kernel of its own (it reads state, next state
 * and gradient and writes two), and what has arrived is added (two read, one written). */
static struct passes passes_of(const struct plan_graph *g, const struct plan_layout *l,
                               const struct plan_share *s, const struct plan_training *t) {
  const struct machine *m = l->machine;
  const double row = 4.0 * t->shape.batch, own = (double)s->n_own * row,
               halo = (double)s->n_halo * row;
  const double travel = exchange_seconds(l, s, row);
  struct passes p;
  for (int d = 0; d < RECUR_DIRECTIONS; d++)
    p.near[d] = pass(l, d, (double)s->near, 0, t),
    p.far[d] = pass(l, d, (double)s->far, (double)s->n_own, t);
  p.alone[RECUR_FORWARD] = 2 * own / m->row_rate,
  p.alone[RECUR_BACKWARD] = m->launch + 5 * own / m->row_rate;
  p.exchange[RECUR_FORWARD] = travel + (g->all ? 0 : m->launch + 2 * halo / m->row_rate),
  p.exchange[RECUR_BACKWARD] = travel;
  p.alone[RECUR_BACKWARD] += m->launch + 3 * halo / m->row_rate;
  return p;
}

static void add_window(const struct plan_graph *g, const struct plan_layout *l,
                       const struct plan_share *s, const struct plan_training *training,
                       struct plan_step *step) {
  struct plan_training as = *training, *t = &as;
  const struct recur_shape *shape = &t->shape;
  const double k = (double)shape->steps * shape->microsteps, row = 4.0 * shape->batch;
  t->mixed = t->mixed && (double)(s->near + s->far) > l->machine->mixed_edges; /* else no faster */
  if (g->parts == 1) {
    const double own = (double)s->n_own;
    const bool whole =
        (double)s->near <= l->machine->window_edges && shape->batch <= 32 && !training->mixed;
    step->compute = k / (whole ? l->machine->window_gain : 1) *
                    (pass(l, RECUR_FORWARD, (double)s->near, own, t) +
                     pass(l, RECUR_BACKWARD, (double)s->near, own, t));
    step->window = step->compute;
    return;
  }
  const struct passes p = passes_of(g, l, s, t);
  for (int d = 0; d < RECUR_DIRECTIONS; d++) {
    step->compute += k * (p.near[d] + p.far[d] + p.alone[d]);
    step->exchange += k * p.exchange[d];
    step->window += k * (together(l, s, p.near[d], p.exchange[d]) + p.far[d] + p.alone[d]);
  }
  step->bytes_host = (int64_t)(2 * k * (double)s->n_halo_host * row);
  step->bytes_network = (int64_t)(2 * k * (double)(s->n_halo - s->n_halo_host) * row);
}

/* Every rank sends each other replica its segment and gets that one's sum: twice (R
 * - 1) / R of the bytes. */
static void add_gradients(const struct plan_graph *g, const struct plan_layout *l,
                          const struct plan_share *s, int replicas, struct plan_step *step) {
  const int fit = l->ranks_per_host / g->parts > 1 ? l->ranks_per_host / g->parts : 1;
  const int on_host = replicas < fit ? replicas : fit;
  const double segment = 4.0 * (double)(s->near + s->far) / replicas;
  const double near = segment * (on_host - 1), far = segment * (replicas - on_host);
  step->gradients = 2 * fmax(link_seconds(l->sums, near, on_host - 1),
                             link_seconds(l->network, far, replicas - on_host));
  step->bytes_host += (int64_t)(2 * near), step->bytes_network += (int64_t)(2 * far);
  step->exchange += step->gradients;
}

static struct plan_step train_share(const struct plan_graph *g, const struct plan_layout *l,
                                    const struct plan_share *s, const struct plan_training *t) {
  const double places = (double)t->shape.batch * t->shape.steps;
  /* logits, their gradient, and the readout's own: two operations each */
  const double readout = 6 * (double)t->n_output / g->parts * places * t->vocabulary;
  struct plan_step step = {0};
  add_window(g, l, s, t, &step);
  if (t->replicas > 1) add_gradients(g, l, s, t->replicas, &step);
  const double around = l->machine->train_step + readout / l->machine->readout / l->threads;
  step.compute += around;
  step.total = step.window + step.gradients + around;
  return step;
}

struct plan_step plan_train_step(const struct plan_graph *g, const struct plan_layout *l,
                                 const struct plan_training *t) {
  struct plan_step slowest = {0};
  for (int p = 0; p < g->n_shares; p++) {
    const struct plan_step step = train_share(g, l, &g->share[p], t);
    if (step.total > slowest.total) slowest = step;
  }
  return slowest;
}
