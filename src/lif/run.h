/* The LIF engine of one replica: ranks integrate up to min_delay steps, exchange who fired, and
 * deliver; faults and requests are agreed on the way. The same bits for every rank count, thread
 * count, order and backend.
 *
 *   lif_net_load(file, first_of_rank[comm->rank], first_of_rank[comm->rank + 1], &net);
 *   TRY(lif_open(comm, &setup, &run));
 *   lif_state_init(&net, NULL, &state);              // zeros at step 0; fill in the initial values
 *   TRY(lif_write(run, comm, &state, trial));
 *   while (run->step < n_steps) {
 *     lif_batch(run, comm, n_steps - run->step, job_request(&job), &batch);
 *     record(batch.own ...);                   // steps before a fault only
 *     if (batch.fault.step != LIF_NO_FAULT) return lif_fault_status(&batch.fault, its body id);
 *     if (batch.request ...) lif_read(run, &state), write a checkpoint ...
 *   }
 *   lif_final_check(run, comm, &fault);                 // once, at the end of the whole run */
#ifndef FASCICLE_LIF_H
#define FASCICLE_LIF_H

#include "contract/backend.h"
#include "core/comm.h"
#include "contract/lif.h"
#include "net.h"
#include "core/signals.h"

struct lif_setup {
  const struct lif_backend *backend;
  const struct lif_net *net; /* outlives the run, as do the next two */
  const gidx *first_of_rank; /* [size + 1] */
  const struct lif_stimulus *stimulus;
  int n_stimuli;
  struct lif_params params;
  uint64_t seed;
  int n_threads;
  bool unrecorded; /* a backend that makes many steps by itself need not hand out the spikes */
};

struct lif_run {
  struct lif_setup setup;
  struct lif_engine *engine; /* of the backend */
  int lane;     /* which trial of the engine this is, where trials run together (lif/trials.h) */
  bool shared;  /* the engine belongs to a group */
  int64_t step; /* the next step to integrate */
  struct lif_buffers *buffers;
};

/* What one batch did: steps step .. step + n_steps - 1. */
struct lif_batch {
  int64_t step;
  int n_steps; /* steps that count: less than were made when there is a fault */
  /* own spikes of those steps, muted ones too, as rows; valid until the next batch */
  const struct lif_spikes *own;
  int64_t sent;         /* spikes of all ranks that went along their out-edges */
  int64_t events;       /* edges that carried them; the sum over ranks counts */
  int64_t host_events;  /* of these, edges that a device read from host memory */
  enum request request; /* the strongest of all ranks */
  struct lif_fault
      fault; /* the smallest (step, phase, node) of all ranks; step = LIF_NO_FAULT: none */
};

/* Agreed. Takes the memory of a run; `comm` needs a transport (comm->via)
 * unless it is one rank alone. */
struct status lif_open(const struct comm *comm, const struct lif_setup *setup,
                       struct lif_run **run);
void lif_close(struct lif_run *run); /* collective; accepts NULL */

/* Zeros at step 0, freed by lif_state_free. model NULL: lif_shift. */
void lif_state_init(const struct lif_net *net, const struct lif_model *model,
                    struct lif_state *state);
void lif_state_free(struct lif_state *state);

/* State in: `trial` keys the random numbers. Agreed; EXIT_INPUT when a sum
 * cannot be this graph's. */
struct status lif_write(struct lif_run *run, const struct comm *comm, const struct lif_state *state,
                        uint32_t trial);

/* State out, between batches. Local. */
void lif_read(const struct lif_run *run, struct lif_state *state);

/* At most `n` >= 1 steps; at most min_delay, unless the backends make many by themselves. `request`
 * is this rank's own. After a fault the run must end. */
void lif_batch(struct lif_run *run, const struct comm *comm, int64_t n, enum request request,
               struct lif_batch *batch);

/* Node ids of a batch's own spikes: id [own->n], by step as in own->step_ptr, in
 * each ascending. Local. */
void lif_own_nodes(const struct lif_run *run, const struct lif_batch *batch, nodeid *id);

/* A component (0: the potential) of n own rows, after the last step made. Local. */
void lif_values(const struct lif_run *run, int component, lidx n, const lidx *row, int64_t *value);

/* After the last step of the whole run: sums that are due later must fit int32 too, or be below
 * LIF_MOST_ARRIVALS with a model, where they are held in 64 bits. The smallest (step due, node) of
 * all ranks, or step = LIF_NO_FAULT. */
void lif_final_check(const struct lif_run *run, const struct comm *comm, struct lif_fault *fault);

/* The error line of a fault: EXIT_RUNTIME with step, phase, neuron (`body` names it as the user
 * knows it, NULL for none) and the value. Pure: the same on all ranks. */
struct status lif_fault_status(const struct lif_fault *fault, const char *body);

/* The same of a run with a model; component: the name of number fault->phase - LIF_INTEGRATE. */
struct status lif_model_fault_status(const struct lif_fault *fault, const char *component,
                                     const char *body);

#endif
