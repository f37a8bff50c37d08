/* The table of models, what their values may be, and the way from doubles to integers. */
#include "models.h"
#include "keys.h"
#include "core/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct lif_model_kind *const lif_models[LIF_MODELS] = {
    &lif_model_delta, &lif_model_exp, &lif_model_psc_exp, &lif_model_psc_alpha};

static const double ONE = 0x1p32; /* integers in a unit */
enum { LEAST_EXPONENT = -16 };    /* of the unit of v in mV, where weights are currents */

const struct lif_model_kind *lif_model_find(const char *name) {
  for (int i = 0; i < LIF_MODELS; i++)
    if (!strcmp(name, lif_models[i]->name)) return lif_models[i];
  return NULL;
}

int lif_model_kind_rings(const struct lif_model_kind *kind) {
  const struct lif_neuron neuron = {
      .tau_m_ms = 1, .tau_syn_ms = 1, .tau_syn_ex_ms = 1, .tau_syn_in_ms = 1, .c_m_pf = 1};
  struct lif_linear l = {.n = 0};
  kind->build(&neuron, 1, 1, &l);
  return l.plus != l.minus ? 2 : 1;
}

void lif_model_names(char *text, size_t size) {
  size_t at = 0;
  for (int i = 0; i < LIF_MODELS && at < size; i++)
    at += (size_t)snprintf(text + at, size - at, "%s\"%s\"", i ? ", " : "", lif_models[i]->name);
}

struct lif_component lif_model_component(const struct lif_model_kind *kind, int c) {
  return c < kind->n_components ? kind->component[c] : (struct lif_component){"w", "mV"};
}

/* ---- what values may be ---- */

struct status lif_steps_of(double ms, double dt_ms, const char *where, const char *key,
                           int64_t most, int64_t *steps) {
  const double exact = ms / dt_ms;
  if (!(exact >= 0 && exact <= (double)most))
    return failure(EXIT_USAGE, "%s: \"%s\" is %g ms, %g steps of dt_ms %g; 0 to %lld are possible",
                   where, key, ms, exact, dt_ms, (long long)most);
  *steps = llround(exact);
  if (fabs(exact - (double)*steps) > 1e-6)
    return failure(EXIT_USAGE,
                   "%s: \"%s\" is %g ms, no multiple of dt_ms %g; the nearest that is one is %g ms",
                   where, key, ms, dt_ms, (double)*steps * dt_ms);
  return fine();
}

static const struct config_key adaptation_rows[] = {
    NEURON_TAU(adaptation_tau_ms, "time constant"),
    NEURON_MV(adaptation_jump_mv, "what a spike adds"),
    {"into", CONFIG_WORD, NEURON_AT(adaptation_into), .words = "drive|threshold",
     .initially = "\"drive\"", .help = "what it acts on"}};

static struct status read_adaptation(const json_t *json, const char *where,
                                     struct lif_neuron *neuron) {
  struct config_key rows[sizeof adaptation_rows / sizeof *adaptation_rows];
  const struct config_table keys = CONFIG_TABLE("Adaptation", rows);
  char place[320];
  neuron->adapts = json && !json_is_null(json);
  if (!neuron->adapts) return fine();
  memcpy(rows, adaptation_rows, sizeof rows);
  rows[0].name = "tau_ms", rows[1].name = "jump_mv";
  snprintf(place, sizeof place, "%s.adaptation", where);
  neuron->adaptation_into = ADAPTATION_DRIVE;
  return config_read(&keys, json, place, neuron);
}

static struct lif_neuron absent(void) {
  return (struct lif_neuron){
      .tau_syn_ms = NAN, .tau_syn_ex_ms = NAN, .tau_syn_in_ms = NAN, .c_m_pf = NAN};
}

struct status lif_neuron_read(const struct lif_model_kind *kind, const json_t *json,
                              const char *where, double dt_ms, struct lif_neuron *neuron) {
  int64_t steps;
  *neuron = absent();
  TRY(config_read(kind->keys, json, where, neuron));
  TRY(read_adaptation(json_object_get(json, "adaptation"), where, neuron));
  if (neuron->v_reset_mv >= neuron->v_threshold_mv)
    return failure(
        EXIT_USAGE,
        "%s: \"v_reset_mv\" is %g, not below \"v_threshold_mv\" %g: the neuron would fire "
        "for ever",
        where, neuron->v_reset_mv, neuron->v_threshold_mv);
  if (neuron->i_e_pa != 0 && isnan(neuron->c_m_pf))
    return failure(EXIT_USAGE, "%s: \"i_e_pa\" wants \"c_m_pf\", the membrane's capacity", where);
  return lif_steps_of(neuron->refractory_ms, dt_ms, where, "refractory_ms", UINT16_MAX, &steps);
}

/* ---- one class in double ---- */

static void add_adaptation(const struct lif_neuron *neuron, double h, int w, struct lif_linear *l) {
  const double tau = neuron->adaptation_tau_ms, x = h / tau - h / neuron->tau_m_ms;
  l->decay[w] = h / tau;
  if (neuron->adaptation_into == ADAPTATION_DRIVE)
    lif_couple(l, 0, w, -(h / neuron->tau_m_ms * exp(-h / tau) * lif_phi1(x)), false);
}

static struct lif_linear linear_of(const struct lif_model_kind *kind,
                                   const struct lif_neuron *neuron, double dt_ms) {
  struct lif_linear l = {.n = 0};
  l.decay[0] = dt_ms / neuron->tau_m_ms;
  kind->build(neuron, dt_ms, llround(neuron->refractory_ms / dt_ms), &l);
  if (neuron->adapts) add_adaptation(neuron, dt_ms, kind->n_components, &l);
  return l;
}

/* ---- integers ---- */

/* p, |p| <= 1, by the smallest s that gives f at least `bits` bits. */
static struct lif_factor factor_of(double p, int bits) {
  const double size = fabs(p);
  int s = 0;
  while (s < 31 && llround(ldexp(size, 32 + s)) < 1ll << (bits - 1)) s++;
  const int64_t f = llround(ldexp(size, 32 + s));
  return (struct lif_factor){
      .f = f > UINT32_MAX ? UINT32_MAX : (uint32_t)f, .s = (uint8_t)s, .sign = p < 0 ? -1 : 1};
}

static int bits_of(const struct lif_linear *l, int from) {
  return l->coarse >> from & 1 ? 25 : 32;
}

/* mV of one unit of v: a count, or the power of two that leaves the largest coupling below 1. */
static double voltage_unit(const struct lif_linear *l, int n_classes, double weight) {
  double largest = 0;
  bool currents = false;
  int exponent;
  for (int k = 0; k < n_classes; k++)
    for (int i = 0; i < l[k].n_couplings; i++) {
      if (!l[k].coupling[i].from_current) continue;
      currents = true, largest = fmax(largest, l[k].coupling[i].p * weight);
    }
  if (!currents) return weight;
  frexp(largest, &exponent);
  return ldexp(1.0, exponent < LEAST_EXPONENT ? LEAST_EXPONENT : exponent);
}

/* All entries that some class has, ascending. */
static void add_entry(struct lif_shape *shape, int to, int from) {
  int at = 0;
  while (at < shape->n_entries &&
         (shape->entry[at].to < to || (shape->entry[at].to == to && shape->entry[at].from < from)))
    at++;
  if (at < shape->n_entries && shape->entry[at].to == to && shape->entry[at].from == from) return;
  ASSERT(shape->n_entries < LIF_MOST_ENTRIES);
  memmove(&shape->entry[at + 1], &shape->entry[at],
          (size_t)(shape->n_entries - at) * sizeof *shape->entry);
  shape->entry[at] = (struct lif_entry){(uint8_t)to, (uint8_t)from};
  shape->n_entries++;
}

static struct lif_shape shape_of(const struct lif_model_kind *kind, const struct lif_linear *l,
                                 const struct lif_neuron *neuron, int n_classes) {
  struct lif_shape shape = {.n_components = kind->n_components,
                            .plus = l[0].plus,
                            .minus = l[0].minus,
                            .arrivals_early = l[0].arrivals_early,
                            .strict = l[0].strict,
                            .frozen = l[0].frozen,
                            .cleared = l[0].cleared,
                            .adaptation = -1};
  for (int k = 0; k < n_classes; k++) {
    if (neuron[k].adapts) shape.adaptation = kind->n_components;
    shape.raises |= neuron[k].adapts && neuron[k].adaptation_into == ADAPTATION_THRESHOLD;
    for (int i = 0; i < l[k].n_couplings; i++)
      add_entry(&shape, l[k].coupling[i].to, l[k].coupling[i].from);
  }
  shape.n_components += shape.adaptation >= 0;
  for (int c = 0; c < shape.n_components; c++) {
    add_entry(&shape, c, c);
    if (!(l[0].coarse >> c & 1)) shape.keeps |= (uint8_t)(1 << c);
  }
  return shape;
}

static struct lif_factor decay_factor(const struct lif_linear *l, int c) {
  const double decay = l->decay[c];
  if (decay == 0) return (struct lif_factor){.sign = 1}; /* no adaptation in this class */
  return l->coarse >> c & 1 ? factor_of(exp(-decay), 25) : factor_of(expm1(-decay), 32);
}

static void set_factors(const struct lif_shape *shape, const struct lif_linear *l,
                        const struct lif_units *units, struct lif_class *class) {
  for (int e = 0; e < shape->n_entries; e++) {
    const struct lif_entry at = shape->entry[e];
    class->factor[e] = (struct lif_factor){.sign = 1};
    if (at.to == at.from) class->factor[e] = decay_factor(l, at.to);
    for (int i = 0; i < l->n_couplings; i++) {
      const struct lif_coupling *c = &l->coupling[i];
      if (c->to != at.to || c->from != at.from) continue;
      const double p = c->from_current ? c->p * units->weight / units->v_mv : c->p;
      class->factor[e] = factor_of(p, bits_of(l, c->from));
    }
  }
}

static struct status fits(double exact, double mv, const char *where, const char *key) {
  if (fabs(exact) < (double)LIF_MOST_VALUE) return fine();
  return failure(EXIT_USAGE,
                 "%s: \"%s\" %g mV is too large for weights of this size: raise what one count is "
                 "worth, or lower it",
                 where, key, mv);
}

int64_t lif_units_integer(const struct lif_units *units, double mv) {
  const double most = (double)LIF_MOST_VALUE;
  return llround(fmax(-most, fmin(most, mv / units->v_mv * ONE)));
}

struct status lif_units_checked(const struct lif_units *units, double mv, const char *where,
                                const char *key, int64_t *value) {
  const double exact = mv / units->v_mv * ONE;
  TRY(fits(exact, mv, where, key));
  *value = llround(exact);
  return fine();
}

double lif_units_real(const struct lif_model_kind *kind, const struct lif_units *units, int c,
                      int64_t value) {
  const bool current = !strcmp(lif_model_component(kind, c).unit, "pA");
  return (double)value / ONE * (current ? units->weight : units->v_mv);
}

struct status lif_current_drive(const struct lif_model_kind *kind, const struct lif_neuron *neuron,
                                const struct lif_units *units, double pa, const char *where,
                                int64_t *drive) {
  *drive = 0;
  if (pa == 0) return fine();
  if (isnan(neuron->c_m_pf))
    return failure(
        EXIT_USAGE,
        "%s: a current in pA wants \"c_m_pf\", the membrane's capacity, in \"neuron\" of "
        "model %s",
        where, kind->name);
  const double tau_m = neuron->tau_m_ms;
  const double per_pa = -tau_m / neuron->c_m_pf * expm1(-units->dt_ms / tau_m);
  return lif_units_checked(units, per_pa * pa, where, "current", drive);
}

static struct status set_class(const struct lif_model_kind *kind, const struct lif_neuron *neuron,
                               const struct lif_linear *l, const struct lif_shape *shape,
                               const struct lif_units *units, bool bare, const char *where,
                               struct lif_class *class) {
  const double threshold = neuron->v_threshold_mv - neuron->v_rest_mv,
               exact = threshold / units->v_mv * ONE;
  TRY(fits(exact, threshold, where, "v_threshold_mv"));
  class->threshold = (int64_t)(shape->strict ? floor(exact) : ceil(exact));
  TRY(lif_units_checked(units, neuron->v_reset_mv - neuron->v_rest_mv, where, "v_reset_mv",
                        &class->reset));
  TRY(lif_current_drive(kind, neuron, units, neuron->i_e_pa, where, &class->drive));
  if (neuron->adapts)
    TRY(lif_units_checked(units, neuron->adaptation_jump_mv, where, "jump_mv", &class->jump));
  class->raises = neuron->adapts && neuron->adaptation_into == ADAPTATION_THRESHOLD;
  class->rest = (uint16_t)(bare ? 0 : l->rest);
  set_factors(shape, l, units, class);
  return fine();
}

struct status lif_model_build(const struct lif_model_kind *kind, const struct lif_neuron *neuron,
                              const bool *bare, int n_classes, double dt_ms, double weight,
                              const char *where, struct lif_model *model, struct lif_units *units) {
  ASSERT(n_classes >= 1 && n_classes <= LIF_MOST_CLASSES);
  struct lif_linear *l = NEW(struct lif_linear, n_classes);
  for (int k = 0; k < n_classes; k++) l[k] = linear_of(kind, &neuron[k], dt_ms);
  *units = (struct lif_units){dt_ms, weight, voltage_unit(l, n_classes, weight)};
  struct lif_class *classes = NEW_ZERO(struct lif_class, n_classes);
  *model = (struct lif_model){
      .shape = shape_of(kind, l, neuron, n_classes), .n_classes = n_classes, .classes = classes};
  struct status s = fine();
  for (int k = 0; k < n_classes && !s.code; k++)
    s = set_class(kind, &neuron[k], &l[k], &model->shape, units, bare[k],
                  neuron[k].where ? neuron[k].where : where, &classes[k]);
  mem_free(l);
  return s;
}

void lif_model_free(struct lif_model *model) {
  mem_free((void *)model->classes), mem_free((void *)model->class_of);
  *model = (struct lif_model){0};
}
