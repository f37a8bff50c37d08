/* Keys of the `neuron` object that several models have; used in this folder alone. */
#ifndef FASCICLE_LIF_MODEL_KEYS_H
#define FASCICLE_LIF_MODEL_KEYS_H

#include "models.h"

#define NEURON_KEY(key, text, ...)                                                                 \
  { .name = #key, .help = text, .offset = offsetof(struct lif_neuron, key), __VA_ARGS__ }

#define KEYS_OF_VOLTAGE                                                                            \
  NEURON_KEY(v_rest_mv, "resting potential", .any_sign = true, .needed = true),                    \
      NEURON_KEY(v_threshold_mv, "threshold", .any_sign = true, .needed = true),                   \
      NEURON_KEY(v_reset_mv, "potential after a spike", .any_sign = true, .needed = true),         \
      NEURON_KEY(tau_m_ms, "time constant of the membrane", .positive = true, .needed = true),     \
      NEURON_KEY(refractory_ms, "refractory time (0)"),                                            \
      NEURON_KEY(i_e_pa, "constant current (0)", .any_sign = true)

/* (expm1(x) / x, and (expm1(x) - x) / x^2): propagators of cascades stay exact where two time
 * constants are equal. */
double lif_phi1(double x);
double lif_phi2(double x);

static inline void lif_couple(struct lif_linear *l, int to, int from, double p, bool from_current) {
  l->coupling[l->n_couplings++] = (struct lif_coupling){to, from, p, from_current};
}

#endif
