/* Keys of the `neuron` object that several models have; used in this folder alone. */
#ifndef FASCICLE_LIF_MODEL_KEYS_H
#define FASCICLE_LIF_MODEL_KEYS_H

#include "models.h"

#define NEURON_AT(member) .offset = offsetof(struct lif_neuron, member)

/* A voltage, a time constant above 0. */
#define NEURON_MV(key, text)                                                                       \
  { #key, CONFIG_REAL, NEURON_AT(key), .low = -1e6, .high = 1e6, .unit = "mV", .help = text }
#define NEURON_TAU(key, text)                                                                      \
  {                                                                                                \
#key, CONFIG_REAL, NEURON_AT(key), .low = 1e-6, .high = 1e9, .unit = "ms", .range = "above 0", \
                                       .help = text                                                \
  }
#define NEURON_CAPACITY(absent, text)                                                              \
  {                                                                                                \
    "c_m_pf", CONFIG_REAL, NEURON_AT(c_m_pf), .low = 1e-6, .high = 1e9, .unit = "pF",              \
                                              .range = "above 0", .initially = absent,             \
                                              .help = text                                         \
  }

#define KEYS_OF_ALL                                                                                \
  NEURON_MV(v_rest_mv, "resting potential"), NEURON_MV(v_threshold_mv, "threshold"),               \
      NEURON_MV(v_reset_mv, "potential after a spike, below the threshold"),                       \
      NEURON_TAU(tau_m_ms, "time constant of the membrane"),                                       \
      {"refractory_ms",                                                                            \
       CONFIG_REAL,                                                                                \
       NEURON_AT(refractory_ms),                                                                   \
       .high = 1e6,                                                                                \
       .unit = "ms",                                                                               \
       .range = "0 or more",                                                                       \
       .initially = "0",                                                                           \
       .help = "refractory time, a multiple of `dt_ms`"},                                          \
      {"i_e_pa",       CONFIG_REAL,      NEURON_AT(i_e_pa),                                        \
       .low = -1e9,    .high = 1e9,      .unit = "pA",                                             \
       .range = "any", .initially = "0", .help = "constant current"},                              \
  {                                                                                                \
    "adaptation", CONFIG_OTHER,                                                                    \
        .initially = "",                                                                           \
        .help =                                                                                    \
            "`{\"tau_ms\", \"jump_mv\", \"into\"}`: each spike adds `jump_mv`, which decays with " \
            "`tau_ms` and is subtracted from the drive of v (`\"drive\"`, if `into` is not "       \
            "given) or added to the threshold (`\"threshold\"`); `null`: none"                     \
  }

#define CAPACITY_FOR_CURRENTS                                                                      \
  NEURON_CAPACITY("", "capacity of the membrane; needed where something is given in pA")

/* (expm1(x) / x, and (expm1(x) - x) / x^2): propagators of cascades stay exact where two time
 * constants are equal. */
double lif_phi1(double x);
double lif_phi2(double x);

static inline void lif_couple(struct lif_linear *l, int to, int from, double p, bool from_current) {
  l->coupling[l->n_couplings++] = (struct lif_coupling){to, from, p, from_current};
}

#endif
