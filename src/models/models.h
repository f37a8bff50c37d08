/* Neuron models by name: from the parameters of a configuration (mV, pA, pF, ms) to the integers of
 * contract/lif_model.h. A model is one entry of lif_models with a file of its own; this folder is
 * all that knows one from another. tests/reference/README.md is the specification.
 *
 *   const struct lif_model_kind *kind = lif_model_find("psc_exp");
 *   for each class: TRY(lif_neuron_read(kind, json, "lif.json: neuron", dt_ms, &neuron[k]));
 *   TRY(lif_model_build(kind, neuron, bare, n_classes, dt_ms, weight, "lif.json", &model, &units));
 *   ... lif_model_free(&model) */
#ifndef FASCICLE_LIF_MODELS_H
#define FASCICLE_LIF_MODELS_H

#include "contract/lif.h"
#include "core/fail.h"
#include "run/config_keys.h"

enum { ADAPTATION_DRIVE, ADAPTATION_THRESHOLD };

/* One class of neurons as a configuration gives it. NAN: not given. */
struct lif_neuron {
  double v_rest_mv, v_threshold_mv, v_reset_mv;
  double tau_m_ms, tau_syn_ms, tau_syn_ex_ms, tau_syn_in_ms;
  double c_m_pf, refractory_ms, i_e_pa;
  bool adapts; /* then the next three count */
  double adaptation_tau_ms, adaptation_jump_mv;
  int adaptation_into; /* ADAPTATION_DRIVE or ADAPTATION_THRESHOLD */
  char *where;         /* what messages call this class; NULL: as all others. The caller's */
};

struct lif_component {
  const char *name, *unit;
};

/* One class in double precision: what a model's own file fills in. All voltages above rest. */
struct lif_coupling {
  int to, from;
  double p;
  bool from_current; /* to v, in mV per pA: still without the unit of v */
};
struct lif_linear {
  int n;                             /* components, adaptation included */
  double decay[LIF_MOST_COMPONENTS]; /* dt / tau of each */
  int n_couplings;
  struct lif_coupling coupling[LIF_MOST_ENTRIES];
  uint8_t coarse; /* components that follow published integers: exp(-dt/tau) itself to 2^-32 */
  uint8_t frozen, cleared;
  int plus, minus;
  bool arrivals_early, strict;
  int64_t rest; /* steps */
};

struct lif_model_kind {
  const char *name, *about, *weight_key; /* "weight_mv" or "weight_pa": what a count is worth */
  int n_components;                      /* without adaptation */
  struct lif_component component[LIF_MOST_COMPONENTS - 1];
  const struct config_table *keys; /* of the `neuron` object, into struct lif_neuron */
  /* refractory: in steps. Fills in all but adaptation and v's decay. */
  void (*build)(const struct lif_neuron *neuron, double dt_ms, int64_t refractory,
                struct lif_linear *linear);
};

extern const struct lif_model_kind lif_model_delta, lif_model_exp, lif_model_psc_exp,
    lif_model_psc_alpha;

enum { LIF_MODELS = 4 };
extern const struct lif_model_kind *const lif_models[LIF_MODELS];

/* NULL when there is none of that name. */
const struct lif_model_kind *lif_model_find(const char *name);

/* Sums that a neuron has for each step of delay: 2 where excitation and inhibition go to components
 * of their own. */
int lif_model_kind_rings(const struct lif_model_kind *kind);

/* "lif_delta", "lif_exp", ... for messages. */
void lif_model_names(char *text, size_t size);

/* The name and unit of component c of a run (adaptation included, if some class adapts). */
struct lif_component lif_model_component(const struct lif_model_kind *kind, int c);

/* One class from its `neuron` object, adaptation included. EXIT_USAGE names `where`, key, value and
 * what is allowed, also for times that are no multiple of dt_ms. Pure. */
struct status lif_neuron_read(const struct lif_model_kind *kind, const json_t *json,
                              const char *where, double dt_ms, struct lif_neuron *neuron);

/* ms as a whole number of steps of dt_ms, 0 .. most; EXIT_USAGE says the nearest that is one. */
struct status lif_steps_of(double ms, double dt_ms, const char *where, const char *key,
                           int64_t most, int64_t *steps);

/* What integers of a run mean. */
struct lif_units {
  double dt_ms, weight; /* weight: mV or pA of one count */
  double v_mv;          /* of one unit of v (and w) */
};

/* Of component c (lif_model_component) in mV or pA; v above the class's rest. */
double lif_units_real(const struct lif_model_kind *kind, const struct lif_units *units, int c,
                      int64_t value);

/* llround(mv / unit 2^32), at most LIF_MOST_VALUE in size. */
int64_t lif_units_integer(const struct lif_units *units, double mv);

/* The same, EXIT_USAGE where it does not stay below LIF_MOST_VALUE. */
struct status lif_units_checked(const struct lif_units *units, double mv, const char *where,
                                const char *key, int64_t *value);

/* The integers. neuron [n_classes], all read by lif_neuron_read; bare [n_classes]: this class has
 * no refractory time. model->classes is then owned by the model, class_of is left NULL. EXIT_USAGE
 * names a value that does not fit. Pure; free with lif_model_free, also after a failure. */
struct status lif_model_build(const struct lif_model_kind *kind, const struct lif_neuron *neuron,
                              const bool *bare, int n_classes, double dt_ms, double weight,
                              const char *where, struct lif_model *model, struct lif_units *units);
void lif_model_free(struct lif_model *model);

/* The number of events of a Poisson source in a step, `mean` of them on average: tail[j] = P(more
 * than j) by 2^53, rounded up. Above 0.05 a step the number has a Poisson distribution; below,
 * there is one or none, as in Brian2. Returns how many tails matter, at least 1. */
int lif_poisson_tails(double mean, uint64_t tail[LIF_MOST_EVENTS]);

/* What a constant current of `pa` adds to v of a class in each step. EXIT_USAGE where the class has
 * no c_m_pf, or it does not fit. */
struct status lif_current_drive(const struct lif_model_kind *kind, const struct lif_neuron *neuron,
                                const struct lif_units *units, double pa, const char *where,
                                int64_t *drive);

#endif
