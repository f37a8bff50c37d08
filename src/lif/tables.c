/* What users give, as tables for the backend: stimuli of own rows, parameters, initial values. */
#include "net.h"
#include "core/mem.h"
#include "core/numbers.h"

#include <stdlib.h>
#include <string.h>

/* A sorted copy; mem_free it. */
static int64_t *sorted(int64_t n, const int64_t *x) {
  int64_t *copy = NEW(int64_t, n);
  if (n) memcpy(copy, x, (size_t)n * sizeof *x);
  sort_i64(copy, n);
  return copy;
}

lidx lif_own_rows(const struct lif_net *net, int64_t n, const nodeid *node, lidx **row) {
  nodeid *wanted = sorted(n, node);
  lidx found = 0;
  *row = NEW(lidx, n < net->n_own ? n : net->n_own);
  for (lidx i = 0; i < net->n_own; i++) {
    const int64_t at = find_i64(wanted, n, net->id[i]);
    if (at < n && wanted[at] == net->id[i]) (*row)[found++] = i;
  }
  mem_free(wanted);
  return found;
}

static struct lif_stimulus common(const struct lif_net *net, int index, int64_t n,
                                  const nodeid *node) {
  lidx *row;
  struct lif_stimulus s = {.index = index, .n = lif_own_rows(net, n, node, &row)};
  s.neuron = row;
  return s;
}

struct lif_stimulus lif_current(const struct lif_net *net, int index, int64_t n, const nodeid *node,
                                int64_t first_step, int64_t last_step, int32_t value) {
  struct lif_stimulus s = common(net, index, n, node);
  s.kind = LIF_CURRENT, s.first_step = first_step, s.last_step = last_step, s.value = value;
  return s;
}

struct lif_stimulus lif_poisson(const struct lif_net *net, int index, int64_t n, const nodeid *node,
                                int64_t first_step, int64_t last_step, double probability,
                                int32_t weight) {
  struct lif_stimulus s = common(net, index, n, node);
  s.kind = LIF_POISSON, s.first_step = first_step, s.last_step = last_step, s.value = weight;
  s.probability = probability;
  return s;
}

struct lif_stimulus lif_listed(const struct lif_net *net, int index, int64_t n, const nodeid *node,
                               int64_t n_steps, const int64_t *step) {
  struct lif_stimulus s = common(net, index, n, node);
  int64_t *when = sorted(n_steps, step);
  s.kind = LIF_SPIKES, s.n_steps = n_steps, s.step = when;
  s.first_step = n_steps ? when[0] : 0;
  s.last_step = n_steps ? when[n_steps - 1] : -1;
  return s;
}

/* Events of own rows, by step, then row: `node` at `step`. */
static int by_step_and_row(const void *a, const void *b) {
  const struct lif_replayed *x = a, *y = b;
  if (x->step != y->step) return x->step < y->step ? -1 : 1;
  return (x->neuron > y->neuron) - (x->neuron < y->neuron);
}

/* Own row of a node, -1 without one. id_row: own rows by ascending id, as row_by_id gives them. */
struct row_of_id {
  nodeid id;
  lidx row;
};

static int by_id(const void *a, const void *b) {
  const nodeid x = ((const struct row_of_id *)a)->id, y = ((const struct row_of_id *)b)->id;
  return (x > y) - (x < y);
}

static lidx row_of(const struct row_of_id *table, lidx n, nodeid id) {
  const struct row_of_id wanted = {id, 0},
                         *found =
                             n ? bsearch(&wanted, table, (size_t)n, sizeof *table, by_id) : NULL;
  return found ? found->row : -1;
}

struct lif_stimulus lif_replay(const struct lif_net *net, int index, int64_t n, const nodeid *node,
                               int64_t n_events, const int64_t *step, const nodeid *who) {
  struct lif_stimulus s = common(net, index, n, node);
  struct row_of_id *table = NEW(struct row_of_id, net->n_own);
  struct lif_replayed *event = NEW(struct lif_replayed, n_events);
  for (lidx i = 0; i < net->n_own; i++) table[i] = (struct row_of_id){net->id[i], i};
  if (net->n_own) qsort(table, (size_t)net->n_own, sizeof *table, by_id);
  for (int64_t i = 0; i < n_events; i++) {
    const lidx row = row_of(table, net->n_own, who[i]);
    if (row >= 0) event[s.n_steps++] = (struct lif_replayed){step[i], row};
  }
  if (s.n_steps) qsort(event, (size_t)s.n_steps, sizeof *event, by_step_and_row);
  mem_free(table);
  s.kind = LIF_REPLAY, s.replayed = event;
  s.first_step = s.n_steps ? event[0].step : 0;
  s.last_step = s.n_steps ? event[s.n_steps - 1].step : -1;
  return s;
}

void lif_stimulus_free(struct lif_stimulus *stimulus) {
  mem_free((void *)stimulus->neuron), mem_free((void *)stimulus->step);
  mem_free((void *)stimulus->replayed);
  *stimulus = (struct lif_stimulus){0};
}

static struct status in_range(const char *where, const char *key, int64_t x, int64_t low,
                              int64_t high) {
  if (x >= low && x <= high) return fine();
  return failure(EXIT_USAGE, "%s: \"%s\" is %lld; it must lie in %lld..%lld", where, key,
                 (long long)x, (long long)low, (long long)high);
}

struct status lif_params_from(const char *where, const struct lif_numbers *numbers,
                              struct lif_params *params) {
  TRY(in_range(where, "threshold", numbers->threshold, INT32_MIN, INT32_MAX));
  TRY(in_range(where, "reset", numbers->reset, INT32_MIN, INT32_MAX));
  TRY(in_range(where, "refractory_steps", numbers->refractory_steps, 0, UINT16_MAX));
  if (numbers->n_shifts < 0 || numbers->n_shifts > LIF_SHIFTS)
    return failure(EXIT_USAGE, "%s: \"decay_shifts\" has %lld entries; give 0 to %d, such as [2]",
                   where, (long long)numbers->n_shifts, LIF_SHIFTS);
  *params = (struct lif_params){.threshold = (int32_t)numbers->threshold,
                                .reset = (int32_t)numbers->reset,
                                .refractory = (uint16_t)numbers->refractory_steps,
                                .n_shifts = (int)numbers->n_shifts};
  for (int k = 0; k < params->n_shifts; k++) {
    TRY(in_range(where, "decay_shifts", numbers->decay_shifts[k], 0, 31));
    params->shift[k] = (uint8_t)numbers->decay_shifts[k];
  }
  return fine();
}

struct status lif_initial_check(const char *where, int64_t potential, int64_t refractory) {
  TRY(in_range(where, "potential", potential, INT32_MIN, INT32_MAX));
  return in_range(where, "refractory", refractory, 0, UINT16_MAX);
}
