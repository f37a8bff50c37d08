/* Runs batches of steps of a network: integration, exchange of spikes, delivery, faults. */
#include "run.h"
#include "exchange.h"
#include "core/mem.h"
#include "core/numbers.h"
#include "core/watchdog.h"

#include <string.h>

enum { PARALLEL_FROM = 1 << 14 }; /* spikes whose ids are worth several threads */
enum { MOST_ALONE = 4096 }; /* steps between looks at signals where the backend runs by itself */

struct lif_buffers {
  struct lif_exchange *exchange;
  bool joined; /* the backends of all ranks exchange spikes by themselves */
  struct lif_spikes own,
      sent; /* of the last batch; `sent`: without muted neurons, in arrays of its own */
  int64_t sent_room;
};

struct status lif_open(const struct comm *comm, const struct lif_setup *setup,
                       struct lif_run **run) {
  struct lif_run *r = NEW_ZERO(struct lif_run, 1);
  r->setup = *setup;
  r->buffers = NEW_ZERO(struct lif_buffers, 1);
  r->buffers->exchange = lif_exchange_open(comm, setup->first_of_rank, setup->net->min_delay);
  r->buffers->sent.step_ptr = NEW_ZERO(int64_t, setup->net->min_delay + 1);
  struct status s = agree(comm, setup->backend->open(setup->net, &r->setup.params, setup->stimulus,
                                                     setup->n_stimuli, setup->seed,
                                                     setup->n_threads, &r->engine));
  *run = r;
  if (!s.code) {
    if (comm->size > 1 && setup->backend->join)
      r->buffers->joined = setup->backend->join(r->engine, comm, setup->first_of_rank);
    return s;
  }
  *run = NULL;
  lif_close(r);
  return s;
}

void lif_close(struct lif_run *run) {
  if (!run) return;
  if (run->engine && !run->shared) run->setup.backend->close(run->engine);
  lif_exchange_close(run->buffers->exchange);
  mem_free(run->buffers->sent.row), mem_free(run->buffers->sent.step_ptr), mem_free(run->buffers);
  mem_free(run);
}

/* ---- state ---- */

void lif_state_init(const struct lif_net *net, const struct lif_model *model,
                    struct lif_state *state) {
  const int64_t n = net->n_own;
  *state =
      (struct lif_state){.counter = NEW_ZERO(uint16_t, n),
                         .ring = NEW_ZERO(int64_t, lif_model_rings(model) * n * net->max_delay)};
  if (model)
    state->component = NEW_ZERO(int64_t, model->shape.n_components * n);
  else
    state->potential = NEW_ZERO(int32_t, n);
}

void lif_state_free(struct lif_state *state) {
  mem_free(state->potential), mem_free(state->component);
  mem_free(state->counter), mem_free(state->ring);
  *state = (struct lif_state){0};
}

static bool fits(int64_t x) {
  return x >= INT32_MIN && x <= INT32_MAX;
}

/* Where the proof says that no sum can leave int32, a state that has one is
 * another graph's, or damaged. */
static struct status ring_check(const struct lif_net *net, const struct lif_model *model,
                                const struct lif_state *state) {
  if (net->wide) return fine();
  const int64_t n = (int64_t)lif_model_rings(model) * net->n_own * net->max_delay;
  for (int64_t i = 0; i < n; i++)
    if (!fits(state->ring[i]))
      return failure(EXIT_INPUT,
                     "the state given holds a sum of %lld for neuron %lld, which this graph's "
                     "weights cannot reach; "
                     "it belongs to another graph or is damaged",
                     (long long)state->ring[i],
                     (long long)net->id[i / net->max_delay % net->n_own]);
  return fine();
}

struct status lif_write(struct lif_run *run, const struct comm *comm, const struct lif_state *state,
                        uint32_t trial) {
  TRY(agree(comm, ring_check(run->setup.net, run->setup.params.model, state)));
  const struct lif_backend *be = run->setup.backend;
  if (run->shared)
    be->together->write(run->engine, run->lane, trial, state);
  else
    be->write(run->engine, trial, state);
  run->step = state->step;
  return fine();
}

void lif_read(const struct lif_run *run, struct lif_state *state) {
  const struct lif_backend *be = run->setup.backend;
  if (run->shared)
    be->together->read(run->engine, run->lane, state);
  else
    be->read(run->engine, state);
  state->step = run->step;
}

void lif_values(const struct lif_run *run, int component, lidx n, const lidx *row, int64_t *value) {
  const struct lif_backend *be = run->setup.backend;
  if (run->shared)
    be->together->values(run->engine, run->lane, component, n, row, value);
  else
    be->values(run->engine, component, n, row, value);
}

/* ---- batches ---- */

/* Own spikes without those of muted neurons, which are recorded but go nowhere. */
static const struct lif_spikes *audible(struct lif_run *run) {
  struct lif_buffers *b = run->buffers;
  const struct lif_net *net = run->setup.net;
  if (!net->mute) return &b->own;
  if (b->own.n > b->sent_room) {
    mem_free(b->sent.row);
    b->sent_room = b->own.n + b->own.n / 2;
    b->sent.row = NEW(uint32_t, b->sent_room);
  }
  int64_t n = 0;
  for (int k = 0; k < b->own.n_steps; k++) {
    b->sent.step_ptr[k] = n;
    for (int64_t at = b->own.step_ptr[k]; at < b->own.step_ptr[k + 1]; at++)
      if (!(net->mute[b->own.row[at] - net->first] & LIF_MUTED)) b->sent.row[n++] = b->own.row[at];
  }
  b->sent.step_ptr[b->own.n_steps] = b->sent.n = n;
  b->sent.n_steps = b->own.n_steps;
  return &b->sent;
}

/* The steps before a fault count; spikes at it or after it are removed. */
static void cut_at_fault(struct lif_run *run, struct lif_batch *batch) {
  struct lif_spikes *own = &run->buffers->own;
  if (batch->fault.step == LIF_NO_FAULT) return;
  batch->n_steps = (int)(batch->fault.step - batch->step);
  if (run->setup.unrecorded) return;
  own->n_steps = batch->n_steps;
  own->n = own->step_ptr[own->n_steps];
}

/* Own edges that carried spikes. A streamed net does not know how many edges of a source are own
 * edges: there each rank counts all edges of its own spikes, which is the same over all ranks. */
static int64_t count_events(const struct lif_net *net, const struct lif_spikes *own,
                            const struct lif_spikes *all) {
  if (net->stream) all = own;
  int64_t events = 0;
  for (int64_t at = 0; at < all->n; at++)
    events += net->out_ptr[all->row[at] + 1] - net->out_ptr[all->row[at]];
  return events;
}

/* The backends make many steps by themselves; what remains is to cut them at a fault. */
static void batch_alone(struct lif_run *run, const struct comm *comm, int64_t n,
                        enum request request, struct lif_batch *batch) {
  struct lif_tally tally;
  int strongest = (int)request;
  if (comm->size > 1) pulse("simulation step, spikes from the other ranks' GPUs");
  struct lif_spikes *own = run->setup.unrecorded ? NULL : &run->buffers->own;
  batch->n_steps = (int)run->setup.backend->run(run->engine, n, own, &tally, &batch->fault);
  if (comm->size > 1) lif_exchange_agree(run->buffers->exchange, comm, &strongest, &batch->fault);
  batch->request = (enum request)strongest;
  batch->sent = tally.sent, batch->events = tally.events, batch->host_events = tally.host_events;
  cut_at_fault(run, batch);
}

/* n_steps: at most the shortest delay. */
static void batch_together(struct lif_run *run, const struct comm *comm, int n_steps,
                           enum request request, struct lif_batch *batch) {
  const struct lif_net *net = run->setup.net;
  batch->n_steps = n_steps;
  run->setup.backend->integrate(run->engine, n_steps, &run->buffers->own, &batch->fault);
  struct lif_spikes all;
  int strongest = (int)request;
  const struct lif_spikes *own = audible(run);
  lif_exchange_spikes(run->buffers->exchange, comm, own, &strongest, &batch->fault, &all);
  batch->request = (enum request)strongest;
  cut_at_fault(run, batch);
  if (batch->fault.step != LIF_NO_FAULT) return;
  batch->sent = all.n, batch->events = count_events(net, own, &all);
  run->setup.backend->deliver(run->engine, n_steps, &all);
}

/* Whether n steps take seconds at most even if all neurons fire in each: only then do they
 * show how long others may take. Streamed edges may come from a file. */
static bool is_window(const struct lif_net *net, bool alone, int64_t n) {
  /* Millions of edges in 20 s; measured are 57,000 and 280 a second. */
  enum { ON_GPU = 100000, ON_CPU = 4000 };
  const double millions = (double)n * (double)net->n_edges / 1e6;
  return !net->stream && millions < (alone ? ON_GPU : ON_CPU);
}

void lif_batch(struct lif_run *run, const struct comm *comm, int64_t n, enum request request,
               struct lif_batch *batch) {
  *batch = (struct lif_batch){.step = run->step, .own = &run->buffers->own};
  const bool alone = (comm->size == 1 && run->setup.backend->run) || run->buffers->joined;
  if (alone && n > MOST_ALONE) n = MOST_ALONE;
  if (!alone && n > run->setup.net->min_delay) n = run->setup.net->min_delay;
  const bool window = is_window(run->setup.net, alone, n);
  if (window) watchdog_window("simulation step");
  if (alone)
    batch_alone(run, comm, n, request, batch);
  else
    batch_together(run, comm, (int)n, request, batch);
  run->step += batch->n_steps;
  if (window) watchdog_window_over("simulation step");
  pulse("simulation step");
}

/* A sweep over a bit for every id of the graph costs less than sorting so large a share of them. */
enum { SWEEP_SHARE = 4096 };

/* Ids into bits, and back out of them in order; the bits are clear before and after. */
static void sort_by_bits(nodeid *id, int64_t n, uint64_t *bits) {
  nodeid low = id[0], high = id[0];
  for (int64_t i = 0; i < n; i++) {
    bits[id[i] >> 6] |= 1ull << (id[i] & 63);
    low = id[i] < low ? id[i] : low, high = id[i] > high ? id[i] : high;
  }
  for (int64_t w = low >> 6; w <= high >> 6; w++) {
    for (uint64_t left = bits[w]; left; left &= left - 1) *id++ = w << 6 | __builtin_ctzll(left);
    bits[w] = 0;
  }
}

/* The ids of one step's rows, ascending. *bits: taken when they are first needed. */
static void step_nodes(const struct lif_net *net, const uint32_t *row, int64_t n, uint64_t **bits,
                       nodeid *id) {
  bool ascends = true;
  for (int64_t i = 0; i < n; i++) {
    id[i] = net->id[row[i] - net->first];
    ascends &= i == 0 || id[i - 1] < id[i];
  }
  if (ascends) return;
  if (n <= net->n_global / SWEEP_SHARE) {
    sort_i64(id, n);
    return;
  }
  if (!*bits) *bits = NEW_ZERO(uint64_t, net->n_global / 64 + 1);
  sort_by_bits(id, n, *bits);
}

void lif_own_nodes(const struct lif_run *run, const struct lif_batch *batch, nodeid *id) {
  const struct lif_net *net = run->setup.net;
  const struct lif_spikes *own = batch->own;
  const int n_threads = own->n > PARALLEL_FROM ? run->setup.n_threads : 1;
#pragma omp parallel num_threads(n_threads)
  {
    uint64_t *bits = NULL;
#pragma omp for schedule(dynamic, 16)
    for (int k = 0; k < own->n_steps; k++) {
      const int64_t from = own->step_ptr[k];
      step_nodes(net, own->row + from, own->step_ptr[k + 1] - from, &bits, id + from);
    }
    mem_free(bits);
  }
}

/* ---- faults ---- */

/* Whether a pending sum is one that a later step would report. */
static bool is_pending_fault(const struct lif_model *model, int64_t sum) {
  return model ? sum <= -LIF_MOST_ARRIVALS || sum >= LIF_MOST_ARRIVALS : !fits(sum);
}

static struct lif_fault own_pending(const struct lif_run *run) {
  const struct lif_net *net = run->setup.net;
  const struct lif_model *model = run->setup.params.model;
  const int64_t n = lif_model_rings(model) * (int64_t)net->n_own;
  struct lif_fault least = {.step = LIF_NO_FAULT};
  struct lif_state state;
  lif_state_init(net, model, &state);
  lif_read(run, &state);
  for (int64_t i = 0; i < n; i++)
    for (int d = 0; d < net->max_delay; d++) {
      const int64_t sum = state.ring[i * net->max_delay + d];
      if (is_pending_fault(model, sum))
        least = lif_fault_smaller(
            least, (struct lif_fault){run->step + d, LIF_INPUT, net->id[i % net->n_own], sum});
    }
  lif_state_free(&state);
  return least;
}

void lif_final_check(const struct lif_run *run, const struct comm *comm, struct lif_fault *fault) {
  *fault = run->setup.net->wide ? own_pending(run) : (struct lif_fault){.step = LIF_NO_FAULT};
  struct lif_fault *all = NEW(struct lif_fault, comm->size);
  comm_gather(comm, fault, sizeof *fault, all);
  for (int r = 0; r < comm->size; r++) *fault = lif_fault_smaller(*fault, all[r]);
  mem_free(all);
}

struct status lif_model_fault_status(const struct lif_fault *fault, const char *component,
                                     const char *body) {
  const bool arrivals = fault->phase == LIF_INPUT;
  return failure(EXIT_RUNTIME,
                 "step %lld, neuron %lld%s%s: %s reaches %.6g %s, the bound is %.6g; use smaller "
                 "weights (convert --scale) or weaker stimuli",
                 (long long)fault->step, (long long)fault->node, body ? ", body id " : "",
                 body ? body : "", arrivals ? "a sum of arrivals" : component,
                 arrivals ? (double)fault->value : (double)fault->value / 0x1p32,
                 arrivals ? "counts" : "units",
                 arrivals ? (double)LIF_MOST_ARRIVALS : (double)LIF_MOST_VALUE / 0x1p32);
}

struct status lif_fault_status(const struct lif_fault *fault, const char *body) {
  const char *what =
      fault->phase == LIF_INPUT ? "the sum of its inputs" : "its potential plus its input";
  return failure(EXIT_RUNTIME,
                 "step %lld, neuron %lld%s%s: %s is %lld, outside -2147483648..2147483647; use "
                 "smaller weights "
                 "(convert --scale) or weaker stimuli",
                 (long long)fault->step, (long long)fault->node, body ? ", body id " : "",
                 body ? body : "", what, (long long)fault->value);
}
