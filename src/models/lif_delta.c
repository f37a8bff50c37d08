/* lif_delta: tau_m v' = -(v - v_rest), arrivals jump v (NEST's iaf_psc_delta). */
#include "keys.h"

static void build(const struct lif_neuron *neuron, double dt_ms, int64_t refractory,
                  struct lif_linear *l) {
  (void)neuron, (void)dt_ms;
  l->n = 1, l->frozen = 1, l->rest = refractory;
  l->plus = l->minus = 0, l->arrivals_early = true;
}

static const struct config_key rows[] = {KEYS_OF_ALL, CAPACITY_FOR_CURRENTS};
static const struct config_table keys = CONFIG_TABLE("Neurons of model lif_delta", rows);

const struct lif_model_kind lif_model_delta = {
    .name = "lif_delta",
    .about = "leaky integrate-and-fire, a spike jumps the potential of its targets",
    .weight_key = "weight_mv",
    .n_components = 1,
    .component = {{"v", "mV"}},
    .keys = &keys,
    .build = build};
