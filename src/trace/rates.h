/* Firing rates from a merged spikes file. Local: one rank. */
#ifndef FASCICLE_TRACE_RATES_H
#define FASCICLE_TRACE_RATES_H

#include "core/fail.h"
#include "core/types.h"

struct trace_rates {
  int64_t n_neurons, n_recorded, n_active, n_spikes, n_types;
  double seconds, mean_hz, highest_hz; /* mean_hz: over the recorded neurons */
};

/* DIR/spikes.h5 -> DIR/rates.csv (node_id, body_id, type, spikes, rate_hz: every neuron whose
 * spikes were recorded) and DIR/type_rates.csv (type, neurons, active, spikes, rate_hz: number of
 * recorded neurons of the type, and mean over them; a type without any is left out). */
struct status trace_rates(const char *dir, struct trace_rates *rates);

#endif
