/* lif_exp: tau_m v' = -(v - v_rest) + g, tau_syn g' = -g, arrivals jump g (Shiu et al. 2024, by
 * Brian2's order of a step: input to a resting neuron is lost, a spike clears g). */
#include "keys.h"

#include <math.h>

static void build(const struct lif_neuron *neuron, double dt_ms, int64_t refractory,
                  struct lif_linear *l) {
  const double h = dt_ms, tau = neuron->tau_syn_ms, tau_m = neuron->tau_m_ms;
  l->n = 2, l->coarse = l->frozen = 3, l->cleared = 2, l->strict = true;
  l->rest = (refractory > 1 ? refractory : 1) - 1;
  l->plus = l->minus = 1;
  l->decay[1] = h / tau;
  lif_couple(l, 0, 1, h / tau_m * exp(-h / tau) * lif_phi1(h / tau - h / tau_m), false);
}

static const struct config_key rows[] = {
    KEYS_OF_ALL, NEURON_TAU(tau_syn_ms, "time constant of the synapse"), CAPACITY_FOR_CURRENTS};
static const struct config_table keys = CONFIG_TABLE("Neurons of model lif_exp", rows);

const struct lif_model_kind lif_model_exp = {
    .name = "lif_exp",
    .about = "the fly model of Shiu et al. 2024: exponential synapses in mV, as Brian2 computes it",
    .weight_key = "weight_mv",
    .n_components = 2,
    .component = {{"v", "mV"}, {"g", "mV"}},
    .keys = &keys,
    .build = build};
