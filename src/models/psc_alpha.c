/* psc_alpha: as psc_exp with currents of the form t/tau e^(1 - t/tau), two components a sign: a
 * takes arrivals and feeds i, whose maximum is the weight (NEST's iaf_psc_alpha). */
#include "keys.h"

#include <math.h>

static void add_current(struct lif_linear *l, int a, double tau, const struct lif_neuron *neuron,
                        double h) {
  const double x = h / tau - h / neuron->tau_m_ms, decay = exp(-h / tau), rise = M_E / tau;
  const double c_m = neuron->c_m_pf;
  l->decay[a] = l->decay[a + 1] = h / tau;
  lif_couple(l, 0, a, h * h / c_m * rise * decay * lif_phi2(x), true);
  lif_couple(l, 0, a + 1, h / c_m * decay * lif_phi1(x), true);
  lif_couple(l, a + 1, a, h * rise * decay, false);
}

static void build(const struct lif_neuron *neuron, double dt_ms, int64_t refractory,
                  struct lif_linear *l) {
  l->n = 5, l->frozen = 1, l->rest = refractory;
  l->plus = 1, l->minus = 3;
  add_current(l, 1, neuron->tau_syn_ex_ms, neuron, dt_ms);
  add_current(l, 3, neuron->tau_syn_in_ms, neuron, dt_ms);
}

static const struct config_key rows[] = {
    KEYS_OF_ALL, NEURON_TAU(tau_syn_ex_ms, "time constant of excitatory currents"),
    NEURON_TAU(tau_syn_in_ms, "time constant of inhibitory currents"),
    NEURON_CAPACITY(NULL, "capacity of the membrane")};
static const struct config_table keys = CONFIG_TABLE("Neurons of model psc_alpha", rows);

const struct lif_model_kind lif_model_psc_alpha = {
    .name = "psc_alpha",
    .about = "alpha-shaped currents, as NEST's iaf_psc_alpha",
    .weight_key = "weight_pa",
    .n_components = 5,
    .component = {{"v", "mV"}, {"a_ex", "pA"}, {"i_ex", "pA"}, {"a_in", "pA"}, {"i_in", "pA"}},
    .keys = &keys,
    .build = build};
