/* psc_exp: tau_m v' = -(v - v_rest) + tau_m/c_m (i_ex + i_in + I), both currents decay, positive
 * weights jump i_ex and negative ones i_in (NEST's iaf_psc_exp; Rotter and Diesmann 1999). */
#include "keys.h"

#include <math.h>

static void add_current(struct lif_linear *l, int c, double tau, const struct lif_neuron *neuron,
                        double h) {
  l->decay[c] = h / tau;
  lif_couple(l, 0, c, h / neuron->c_m_pf * exp(-h / tau) * lif_phi1(h / tau - h / neuron->tau_m_ms),
             true);
}

static void build(const struct lif_neuron *neuron, double dt_ms, int64_t refractory,
                  struct lif_linear *l) {
  l->n = 3, l->frozen = 1, l->rest = refractory;
  l->plus = 1, l->minus = 2;
  add_current(l, 1, neuron->tau_syn_ex_ms, neuron, dt_ms);
  add_current(l, 2, neuron->tau_syn_in_ms, neuron, dt_ms);
}

static const struct config_key rows[] = {
    KEYS_OF_ALL, NEURON_TAU(tau_syn_ex_ms, "time constant of excitatory currents"),
    NEURON_TAU(tau_syn_in_ms, "time constant of inhibitory currents"),
    NEURON_CAPACITY(NULL, "capacity of the membrane")};
static const struct config_table keys = CONFIG_TABLE("Neurons of model psc_exp", rows);

const struct lif_model_kind lif_model_psc_exp = {
    .name = "psc_exp",
    .about = "exponential currents, as NEST's iaf_psc_exp (Potjans and Diesmann 2014)",
    .weight_key = "weight_pa",
    .n_components = 3,
    .component = {{"v", "mV"}, {"i_ex", "pA"}, {"i_in", "pA"}},
    .keys = &keys,
    .build = build};
