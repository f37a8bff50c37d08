/* Fixed-point leaky integrate-and-fire on one rank's share of a graph: what every backend promises.
 * contract/lif_model.h has the arithmetic of the linear models; that of lif_shift, in full:
 *
 *   I = sum of arrivals due at t + stimuli (exact)
 *   if counter > 0:  V = reset, counter -= 1, no spike (the input is lost)
 *   else             V = V + I;  for each shift k, in order: V = V - (V >> k);
 *                    if V >= threshold: spike, V = reset, counter = refractory
 *   each spike:      ring[t + delay][target] += weight  along all out-edges
 *
 * A neuron that a stimulus makes fire at t skips all that: I must fit, then spike, V = reset,
 * counter = refractory. A removed neuron has I = 0 and never fires, but leaks and counts down as
 * any other.
 *
 * I and V + I must fit int32: otherwise the run ends and the smallest (step, phase, node id) is
 * reported; the state is then of no further use. All integers, so every backend, thread count and
 * rank count gives the same bits. */
#ifndef FASCICLE_LIF_BACKEND_H
#define FASCICLE_LIF_BACKEND_H

#include "lif_model.h"
#include "core/fail.h"
#include "core/types.h"

struct lif_edge {
  uint32_t target; /* own row, 0 .. n_own - 1 */
  int16_t weight;
  uint16_t delay; /* steps, >= 1 */
};

/* Edges that stay in the file, by source: an array of struct lif_edge in the order of
 * lif_net.out_ptr. Target is the row in the whole graph, ascending within a source; the edges lead
 * into all rows, not ours alone. */
struct lif_stream {
  int file;           /* open for reading */
  int64_t offset;     /* of the array, bytes */
  int64_t held_bytes; /* of edges, at most so many are in memory at a time */
  int n_readers; /* threads beside those that compute, which read rows before they are needed */
  const eidx *in_ptr; /* [n_own + 1] how many edges end at own rows before this one */
  const char *path;   /* of the file, for messages */
};

/* The share of a graph: every source anywhere, with its edges into our own targets. */
struct lif_net {
  gidx n_global, first; /* we own rows [first, first + n_own) */
  lidx n_own;
  eidx n_edges;        /* into our own rows */
  const eidx *out_ptr; /* [n_global + 1] by source row: into `out`, or into the stream's arrays */
  const struct lif_edge *out; /* [n_edges] within a source: ascending target; NULL when streamed */
  const struct lif_stream *stream; /* NULL when the edges are resident */
  /* A device with memory of its own leaves the edges in the host's and reads there the rows that
   * spike; it keeps those that it has read while `device_room` bytes last. */
  bool on_host;
  int64_t device_room;
  const nodeid *id;    /* [n_own] node id of own rows: keys of random numbers, ties */
  const uint8_t *mute; /* [n_own] or NULL: bit 0 = output silenced (fires, is recorded, delivers
                          nothing), bit 1 = removed (receives nothing, never fires) */
  int min_delay, max_delay; /* of the whole graph; 1, 1 without edges */
  int fixed_delay;          /* of every edge, whatever a stream's edges say; 0: theirs */
  bool wide;                /* sums of arrivals may leave int32: accumulate in int64 */
};

enum { LIF_MUTED = 1, LIF_REMOVED = 2 }; /* the bits of lif_net.mute */

enum { LIF_SHIFTS = 256 };
struct lif_params {
  const struct lif_model *model; /* NULL: lif_shift, by what follows */
  int32_t threshold, reset;
  int n_shifts;
  uint8_t shift[LIF_SHIFTS]; /* 0..31 */
  uint16_t refractory;       /* steps */
};

enum lif_kind { LIF_CURRENT, LIF_POISSON, LIF_SPIKES, LIF_REPLAY, LIF_NOISE };

/* Where Poisson events of a model go: to v itself, or as arrivals do. */
enum lif_into { LIF_INTO_SYNAPSE, LIF_INTO_V };

enum { LIF_MOST_EVENTS = 64 }; /* of one Poisson source in a step */
enum { LIF_QUANTILES = 4096 }; /* of the standard normal: noise is drawn from these */

/* A neuron that fires at a step, as another run's file says. */
struct lif_replayed {
  int64_t step;
  lidx neuron; /* own row */
};

/* One stimulus, for own neurons. Random numbers: rng_draw(seed, low half of id, low half
 * of step, index | high half of id << 16, trial); a neuron gets `value` when
 * rng_unit(v[0], v[1]) < probability.
 *
 * With a model: a neuron has as many events as there are entries of `tail` above the 53-bit integer
 * (v[0] 2^32 + v[1]) >> 11, each worth `amount` of 2^-32 units; a current adds amount_of[class] to
 * v in each step; noise adds (quantile[v[0] >> 20] amount_of[class]) >> 32, rounded down. */
struct lif_stimulus {
  enum lif_kind kind;
  int index;                     /* its position in the configuration, 0..65535 */
  int64_t first_step, last_step; /* inclusive; LIF_SPIKES: the first and last of `step` */
  int32_t value;                 /* current, or weight of a Poisson event; added to I */
  double probability;            /* LIF_POISSON, per step */
  lidx n;
  const lidx *neuron; /* [n] own rows, ascending */
  int64_t n_steps;
  const int64_t *step; /* LIF_SPIKES: [n_steps] ascending; the neurons fire then, whatever V is */
  const struct lif_replayed *replayed; /* LIF_REPLAY: [n_steps] by step, then neuron */
  enum lif_into into;                  /* LIF_POISSON with a model, as the next two */
  int64_t amount;                      /* one event */
  int n_tails;                         /* 1 .. LIF_MOST_EVENTS */
  const uint64_t *tail;     /* [n_tails] 2^53 P(more than j events), rounded up; descending */
  const int64_t *amount_of; /* [n_classes] LIF_CURRENT and LIF_NOISE with a model */
  const int64_t *quantile;  /* [LIF_QUANTILES] LIF_NOISE: of the standard normal, 2^-32 units */
};

/* With a model: LIF_INPUT, then LIF_INTEGRATE + c for component c. */
enum lif_phase { LIF_INPUT = 0, LIF_INTEGRATE = 1 };
#define LIF_NO_FAULT INT64_MAX
struct lif_fault {
  int64_t step; /* or LIF_NO_FAULT */
  int phase;
  nodeid node;
  int64_t value; /* the sum that did not fit */
};

/* The order of faults: by step, phase, node. The smallest is the one that is reported. */
static inline bool lif_fault_before(const struct lif_fault *a, const struct lif_fault *b) {
  if (a->step != b->step) return a->step < b->step;
  if (a->phase != b->phase) return a->phase < b->phase;
  return a->node < b->node;
}

/* Spikes of a run of steps. */
struct lif_spikes {
  int64_t n;
  uint32_t *row; /* [n] global row, by step; ascending within a step */
  int n_steps;
  int64_t *step_ptr; /* [n_steps + 1] into row */
};

struct lif_tally {
  int64_t sent, events; /* spikes that went out, and the edges that carried them */
  int64_t host_events;  /* of these, edges that a device read from host memory */
};

/* The network's state between two steps, own rows, host arrays. */
struct lif_state {
  int64_t step;       /* the next step */
  int32_t *potential; /* [n_own] lif_shift; else NULL */
  int64_t *component; /* [n_components][n_own] a model; else NULL */
  uint16_t *counter;  /* [n_own] refractory steps left */
  int64_t *ring;      /* [rings][n_own][max_delay]: entry d is the sum due at step + d; a model with
                         two components that take arrivals has two rings, positive sums first */
};

struct comm;
struct lif_engine; /* a backend's own state: V, counters, ring, its copy of the edges */

/* Trials of one net that share its edges and go step by step together, where this rank alone has
 * the whole net. As the entries of lif_backend, for trial k of n_trials; the first `n_trials` given
 * to run() go on, the others stay where they are. A fault is that of the smallest trial that has
 * one, whose number goes to `faulty`; all trials have then made the steps that run() returns. mine
 * and tally: [n_trials]. */
struct lif_together {
  int most; /* that open() takes */
  int (*worthwhile)(
      lidx n_own); /* how many of a net of so many neurons are quicker together; 1: none */
  struct status (*open)(const struct lif_net *net, const struct lif_params *params,
                        const struct lif_stimulus *stimulus, int n_stimuli, uint64_t seed,
                        int n_trials, struct lif_engine **state);
  void (*write)(struct lif_engine *state, int k, uint32_t trial, const struct lif_state *values);
  void (*read)(struct lif_engine *state, int k, struct lif_state *values);
  int64_t (*run)(struct lif_engine *state, int n_trials, int64_t n, struct lif_spikes *mine,
                 struct lif_tally *tally, struct lif_fault *fault, int *faulty);
  void (*values)(struct lif_engine *state, int k, int component, lidx n, const lidx *neuron,
                 int64_t *value);
};

struct lif_backend {
  /* Local. The net and stimuli must outlive the state. n_threads >= 1. */
  struct status (*open)(const struct lif_net *net, const struct lif_params *params,
                        const struct lif_stimulus *stimulus, int n_stimuli, uint64_t seed,
                        int n_threads, struct lif_engine **state);
  void (*close)(struct lif_engine *state);

  /* Whole state in and out; read leaves the step alone. `trial` keys the random numbers. Without
   * `wide` the sums given must fit int32. */
  void (*write)(struct lif_engine *state, uint32_t trial, const struct lif_state *values);
  void (*read)(struct lif_engine *state, struct lif_state *values);

  /* Steps step .. step + n - 1, n <= min_delay: sums, update, spikes of own neurons into
   * `mine` (its arrays belong to the state and live until the next call). The first fault
   * found goes to `fault`. */
  void (*integrate)(struct lif_engine *state, int n, struct lif_spikes *mine,
                    struct lif_fault *fault);

  /* Spikes of all ranks in those n steps go along their out-edges into our ring, muted ones left
   * out by the caller; rows need not ascend within a step. Then the step number moves on by n. */
  void (*deliver)(struct lif_engine *state, int n, const struct lif_spikes *all);

  /* Where this rank alone has the whole net, or has joined the others: as integrate and deliver
   * would do them, at least one and at most n steps, without a message to the host in between;
   * returns how many. Muted spikes are left out of what is delivered and of the tally. With a
   * fault, `mine` may go on behind the fault's step. Spikes are not handed out where `mine` is
   * NULL. The entry is NULL where integrate and deliver are as good. */
  int64_t (*run)(struct lif_engine *state, int64_t n, struct lif_spikes *mine,
                 struct lif_tally *tally, struct lif_fault *fault);

  /* Collective, once after open: the devices of this group's ranks talk to each other from now on,
   * so that `run` works on several ranks: all call it with the same n, get the same number of steps
   * and the same `sent`, and all end when one has a fault, each with its own. first_of_rank [size +
   * 1]; comm and its transport outlive the state, whose close is then collective. False, on every
   * rank: the devices cannot exchange spikes by themselves. NULL: they never can. */
  bool (*join)(struct lif_engine *state, const struct comm *comm, const gidx *first_of_rank);

  /* A component (0: the potential) of `n` own rows after the last integrated step. */
  void (*values)(struct lif_engine *state, int component, lidx n, const lidx *neuron,
                 int64_t *value);

  const struct lif_together *together; /* NULL: one trial at a time */
};

#endif
