/* lif_delta: tau_m v' = -(v - v_rest), arrivals jump v (NEST's iaf_psc_delta). */
#include "keys.h"

static void build(const struct lif_neuron *neuron, double dt_ms, int64_t refractory,
                  struct lif_linear *l) {
  (void)neuron, (void)dt_ms;
  l->n = 1, l->frozen = 1, l->rest = refractory;
  l->plus = l->minus = 0, l->arrivals_early = true;
}

static const struct lif_neuron_key keys[] = {
    KEYS_OF_VOLTAGE,
    NEURON_KEY(c_m_pf, "capacity of the membrane; needed where something is given in pA",
               .positive = true)};

const struct lif_model_kind lif_model_delta = {
    .name = "lif_delta",
    .about = "leaky integrate-and-fire, a spike jumps the potential of its targets",
    .weight_key = "weight_mv",
    .n_components = 1,
    .component = {{"v", "mV"}},
    .n_keys = sizeof keys / sizeof *keys,
    .keys = keys,
    .build = build};
