/* One window of the recurrence over ranks: halo rows travel while own rows are worked on. */
#include "recurrence.h"
#include "core/log.h"
#include "contract/transport.h"
#include "core/watchdog.h"

/* Whether passes are recorded: where neither the backend nor the messages need the host. */
static bool records(const struct recurrence *r, const struct comm *comm) {
  return comm->via->queues && r->backend->records;
}

static bool replayed(const struct recurrence *r, const struct comm *comm,
                     enum recur_direction direction) {
  return records(r, comm) && r->backend->replay(r->state, direction);
}

static void recorded(const struct recurrence *r, const struct comm *comm,
                     enum recur_direction direction) {
  if (records(r, comm)) r->backend->recorded(r->state, direction);
}

void recurrence_say_exchange(const struct graph *graph, const struct comm *comm) {
  int64_t needed = graph->halo.needed;
  const int64_t all = (comm->size - 1) * graph->n_global;
  comm_sum_i64(comm, &needed, 1);
  if (comm->size > 1 && all > 0)
    log_line("exchange: %s; edges need %lld rows of other parts, %.1f %% of an all-gather",
             graph->halo.all ? "all-gather of the states" : "halo", (long long)needed,
             100 * (double)needed / (double)all);
}

void recurrence_forward(const struct recurrence *r, const struct comm *comm) {
  const struct recur_backend *be = r->backend;
  const size_t row_bytes = (size_t)r->shape.batch * sizeof(float);
  pulse("the forward pass");
  if (comm->size == 1) {
    be->window_forward(r->state);
    return;
  }
  if (replayed(r, comm, RECUR_FORWARD)) return;
  be->forward_begin(r->state);
  for (int k = 0; k < r->shape.steps * r->shape.microsteps; k++) {
    comm->via->exchange_begin(comm, &r->graph->halo, be->state(r->state, k), r->graph->n_own,
                              row_bytes);
    be->forward_near(r->state, k); /* while rows travel */
    comm->via->exchange_end(comm, &r->graph->halo);
    be->forward_far(r->state, k); /* adds the rest, then drive, tanh, leak */
    pulse("the forward pass");
  }
  recorded(r, comm, RECUR_FORWARD);
}

void recurrence_backward(const struct recurrence *r, const struct comm *comm) {
  const struct recur_backend *be = r->backend;
  pulse("the backward pass");
  if (comm->size == 1) {
    be->window_backward(r->state);
    return;
  }
  if (replayed(r, comm, RECUR_BACKWARD)) return;
  be->backward_begin(r->state);
  for (int k = r->shape.steps * r->shape.microsteps - 1; k >= 0; k--) {
    float *gradient = be->d_state(r->state);
    be->backward_far(r->state, k);
    comm->via->reduce_begin(comm, &r->graph->halo, gradient, r->graph->n_own, r->shape.batch);
    be->backward_near(r->state, k); /* while gradients travel home */
    comm->via->reduce_end(comm, &r->graph->halo, gradient, r->shape.batch);
    pulse("the backward pass");
  }
  be->backward_end(r->state);
  recorded(r, comm, RECUR_BACKWARD);
}
