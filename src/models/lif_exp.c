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

static const struct lif_neuron_key keys[] = {
    KEYS_OF_VOLTAGE,
    NEURON_KEY(tau_syn_ms, "time constant of the synapse", .positive = true, .needed = true),
    NEURON_KEY(c_m_pf, "capacity of the membrane; needed where something is given in pA",
               .positive = true)};

const struct lif_model_kind lif_model_exp = {
    .name = "lif_exp",
    .about = "the fly model of Shiu et al. 2024: exponential synapses in mV, as Brian2 computes it",
    .weight_key = "weight_mv",
    .n_components = 2,
    .component = {{"v", "mV"}, {"g", "mV"}},
    .n_keys = sizeof keys / sizeof *keys,
    .keys = keys,
    .build = build};
