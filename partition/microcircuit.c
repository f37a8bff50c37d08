/* The cortical microcircuit: its published numbers, and the drawing of its synapses. */
#include "microcircuit.h"
#include "core/mem.h"
#include "core/numbers.h"
#include "core/rng.h"

#include <math.h>
#include <string.h>

enum { P = MICROCIRCUIT_POPULATIONS };

/* ---- what was published ---- */

const char *const microcircuit_name[P] = {"L23E", "L23I", "L4E", "L4I", "L5E", "L5I", "L6E", "L6I"};
static const double full_neurons[P] = {20683, 5834, 21915, 5479, 4850, 1065, 14395, 2948};
static const double full_rate_hz[P] = {0.971, 2.868, 4.746, 5.396, 8.142, 9.078, 0.991, 7.523};
static const double external_degree[P] = {1600, 1500, 2100, 1900, 2000, 1900, 2900, 2100};
/* chance that a pair of neurons is linked at all [target][source] */
static const double chance[P][P] = {
    {0.1009, 0.1689, 0.0437, 0.0818, 0.0323, 0, 0.0076, 0},
    {0.1346, 0.1371, 0.0316, 0.0515, 0.0755, 0, 0.0042, 0},
    {0.0077, 0.0059, 0.0497, 0.135, 0.0067, 0.0003, 0.0453, 0},
    {0.0691, 0.0029, 0.0794, 0.1597, 0.0033, 0, 0.1057, 0},
    {0.1004, 0.0622, 0.0505, 0.0057, 0.0831, 0.3726, 0.0204, 0},
    {0.0548, 0.0269, 0.0257, 0.0022, 0.06, 0.3158, 0.0086, 0},
    {0.0156, 0.0066, 0.0211, 0.0166, 0.0572, 0.0197, 0.0396, 0.2252},
    {0.0364, 0.001, 0.0034, 0.0005, 0.0277, 0.008, 0.0658, 0.1443}};
static const double psp_mv = 0.15, inhibition = -4, relative_sd = 0.1, external_hz = 8;
static const double c_m_pf = 250, tau_m_ms = 10, tau_syn_ms = 0.5;
static const double delay_ms[2] = {1.5, 0.75}, delay_sd = 0.5,
                    step_ms = 0.1; /* excitatory, inhib. */

/* At most 8.6 standard deviations can be drawn: 0.02 pA a count holds them all in 16 bits. */
static const double full_weight_pa = 0.02;

/* The current whose exponential decay lifts v by 1 mV at its highest. */
static double pa_of_mv(void) {
  const double ratio = tau_m_ms / tau_syn_ms, gap = tau_m_ms - tau_syn_ms;
  return c_m_pf * gap / (tau_m_ms * tau_syn_ms) /
         (pow(ratio, -tau_syn_ms / gap) - pow(ratio, -tau_m_ms / gap));
}

bool microcircuit_inhibitory(int population) {
  return population % 2 == 1;
}

/* pA at full in-degrees; L4E reaches L23E twice as strongly. */
static double mean_weight_pa(int target, int source) {
  const double weight = psp_mv * pa_of_mv();
  if (microcircuit_inhibitory(source)) return inhibition * weight;
  return target == 0 && source == 2 ? 2 * weight : weight;
}

/* So many draws of a pair that each pair is met at least once with its chance. */
static double full_synapses(int target, int source) {
  return log1p(-chance[target][source]) / log1p(-1 / (full_neurons[target] * full_neurons[source]));
}

/* ---- scales ---- */

struct status microcircuit_init(double scale, double k_scale, uint64_t seed,
                                struct microcircuit *m) {
  *m = (struct microcircuit){scale, k_scale, seed, .weight_pa = full_weight_pa / sqrt(k_scale)};
  for (int p = 0; p < P; p++) {
    const double n = nearbyint(full_neurons[p] * scale);
    if (!(n >= 1 && n < 1e8))
      return failure(EXIT_USAGE, "--scale %g: it makes %g neurons of %s; 1 to 1e8 are possible",
                     scale, n, microcircuit_name[p]);
    m->first[p + 1] = m->first[p] + (int64_t)n;
  }
  for (int t = 0; t < P; t++)
    for (int s = 0; s < P; s++) {
      m->synapses[t][s] = llrint(full_synapses(t, s) * scale * k_scale);
      m->n_edges += m->synapses[t][s];
    }
  return fine();
}

int microcircuit_population(const struct microcircuit *m, nodeid node) {
  int p = 0;
  while (node >= m->first[p + 1]) p++;
  return p;
}

/* ---- one synapse ---- */

/* The last counter word; the pair of populations is added to it. */
enum purpose { FOR_ENDS = 0x23000000, FOR_WEIGHT = 0x23000100, FOR_DELAY = 0x23000200 };

struct projection {
  const struct microcircuit *m;
  int target, source;
  double counts; /* mean weight */
};

static struct rng_block draw(const struct projection *p, eidx k, uint32_t attempt,
                             enum purpose purpose) {
  return rng_draw(p->m->seed, (uint32_t)k, (uint32_t)(k >> 32), attempt,
                  (uint32_t)purpose + (uint32_t)(p->target * P + p->source));
}

static uint32_t draw_member(const struct microcircuit *m, int population, uint32_t high,
                            uint32_t low) {
  const uint64_t n = (uint64_t)(m->first[population + 1] - m->first[population]);
  return (uint32_t)((uint64_t)m->first[population] + rng_below(high, low, n));
}

static uint32_t draw_target(const struct projection *p, eidx k) {
  const struct rng_block b = draw(p, k, 0, FOR_ENDS);
  return draw_member(p->m, p->target, b.v[0], b.v[1]);
}

static uint32_t draw_source(const struct projection *p, eidx k) {
  const struct rng_block b = draw(p, k, 0, FOR_ENDS);
  return draw_member(p->m, p->source, b.v[2], b.v[3]);
}

/* A normal number of mean 1, drawn until it is at least `least`. */
static double draw_factor(const struct projection *p, eidx k, enum purpose purpose, double sd,
                          double least) {
  for (uint32_t attempt = 0;; attempt++) {
    const double factor = 1 + sd * rng_normal(draw(p, k, attempt, purpose));
    if (factor >= least) return factor;
  }
}

static int16_t draw_impulse(const struct projection *p, eidx k) {
  return (int16_t)llrint(p->counts * draw_factor(p, k, FOR_WEIGHT, relative_sd, 0));
}

static uint16_t draw_delay(const struct projection *p, eidx k) {
  const double mean = delay_ms[microcircuit_inhibitory(p->source)] / step_ms;
  const double steps = mean * draw_factor(p, k, FOR_DELAY, delay_sd, 0.5 / mean);
  return (uint16_t)(steps < 1 ? 1 : lrint(steps));
}

/* ---- all synapses, by target ---- */

static struct projection projection_of(const struct microcircuit *m, int index) {
  const int target = index / P, source = index % P;
  return (struct projection){m, target, source, mean_weight_pa(target, source) / full_weight_pa};
}

/* first [n + 1]: where each target's edges begin. */
static void count_rows(const struct microcircuit *m, int n_threads, eidx *first) {
  const int64_t n = m->first[P];
  memset(first, 0, (size_t)(n + 1) * sizeof *first);
  for (int i = 0; i < P * P; i++) {
    const struct projection p = projection_of(m, i);
#pragma omp parallel for num_threads(n_threads)
    for (eidx k = 0; k < m->synapses[p.target][p.source]; k++) {
      eidx *row = &first[draw_target(&p, k) + 1];
#pragma omp atomic
      ++*row;
    }
  }
  for (int64_t v = 0; v < n; v++) first[v + 1] += first[v];
}

struct synapses {
  uint32_t *source;
  int16_t *impulse;
  uint16_t *delay;
};

/* Each synapse into its row; afterwards next[v] is where the row of v ends. Threads take places
 * in any order: sort_row makes it one. */
static void fill_rows(const struct microcircuit *m, int n_threads, eidx *next,
                      const struct synapses *to) {
  for (int i = 0; i < P * P; i++) {
    const struct projection p = projection_of(m, i);
#pragma omp parallel for num_threads(n_threads)
    for (eidx k = 0; k < m->synapses[p.target][p.source]; k++) {
      eidx *row = &next[draw_target(&p, k)], at;
#pragma omp atomic capture
      at = (*row)++;
      to->source[at] = draw_source(&p, k);
      to->impulse[at] = draw_impulse(&p, k), to->delay[at] = draw_delay(&p, k);
    }
  }
}

/* source (31 bits), delay, impulse in one number that ascends as they do */
static int64_t pack(uint32_t source, uint16_t delay, int16_t impulse) {
  return (int64_t)source << 32 | (int64_t)delay << 16 | (uint16_t)(impulse ^ INT16_MIN);
}

static void sort_row(const struct synapses *to, eidx first, eidx end, int64_t *room) {
  for (eidx e = first; e < end; e++)
    room[e - first] = pack(to->source[e], to->delay[e], to->impulse[e]);
  sort_i64(room, end - first);
  for (eidx e = first; e < end; e++) {
    const int64_t x = room[e - first];
    to->source[e] = (uint32_t)(x >> 32), to->delay[e] = (uint16_t)(x >> 16);
    to->impulse[e] = (int16_t)((uint16_t)x ^ INT16_MIN);
  }
}

static eidx longest_row(const eidx *end, int64_t n) {
  eidx longest = n ? end[0] : 0;
  for (int64_t v = 1; v < n; v++) longest = most_i64(longest, end[v] - end[v - 1]);
  return longest;
}

void microcircuit_edges(const struct microcircuit *m, int n_threads, uint32_t *source,
                        uint32_t *target, int16_t *impulse, uint16_t *delay) {
  const int64_t n = m->first[P];
  const struct synapses to = {source, impulse, delay};
  eidx *end = NEW(eidx, n + 1);
  count_rows(m, n_threads, end);
  fill_rows(m, n_threads, end, &to);
  const eidx longest = longest_row(end, n);
#pragma omp parallel num_threads(n_threads)
  {
    int64_t *room = NEW(int64_t, longest);
#pragma omp for schedule(dynamic, 64)
    for (int64_t v = 0; v < n; v++) {
      const eidx first = v ? end[v - 1] : 0;
      sort_row(&to, first, end[v], room);
      for (eidx e = first; e < end[v]; e++) target[e] = (uint32_t)v;
    }
    mem_free(room);
  }
  mem_free(end);
}

/* ---- what drives it ---- */

/* pA, by the recurrent synapses of the full network at its mean rates. */
static double full_recurrent_pa(int target) {
  double sum = 0;
  for (int s = 0; s < P; s++)
    sum += mean_weight_pa(target, s) * full_synapses(target, s) / full_neurons[target] *
           full_rate_hz[s];
  return sum * tau_syn_ms / 1000;
}

struct microcircuit_input microcircuit_input(const struct microcircuit *m, int p, bool poisson) {
  const double root = sqrt(m->k_scale), weight = psp_mv * pa_of_mv();
  const double external_pa = weight * external_degree[p] * external_hz * tau_syn_ms / 1000;
  struct microcircuit_input in = {.weight_pa = weight / root};
  in.current_pa = (1 - root) * full_recurrent_pa(p);
  in.current_pa += poisson ? (1 - root) * external_pa : external_pa;
  if (poisson) in.rate_hz = external_hz * nearbyint(external_degree[p] * m->k_scale);
  return in;
}
