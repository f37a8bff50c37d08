/* Synthetic connectomes in memory: heavy-tailed degrees like a fly's, with or without modules.
 * Every draw is a pure function of the seed and of node ids (core/rng.h), so the same graph comes
 * out for any number of ranks and threads.
 *
 * In-degrees are fixed first and sum to exactly E: a lognormal's quantiles, cut at the top so that
 * median, mean and largest follow what is known of real and reference graphs (nodes / edges:
 * median, mean, max):
 *
 *   1,000 / 74 k: -, 74, 241      5,000 / 524,324: 86, 105, 778      10,000 / 1.1 M: 84, 110, 1,009
 *   160,514 / 10.4 M: 28, 65, 7,776                       211,577 / 24.7 M: -, 117, about 9,000
 *
 * and between them by interpolation in log N. Each target then draws that many different
 * sources, itself excluded, with chances proportional to a second heavy-tailed weight, which
 * gives the out-degrees. */
#ifndef FASCICLE_GENERATE_H
#define FASCICLE_GENERATE_H

#include "core/fail.h"
#include "core/types.h"

struct generate_model {
  int64_t n_nodes; /* 1 .. 2^32 - 2 */
  eidx n_edges;    /* 0 .. n_nodes (n_nodes - 1) */
  uint64_t seed;
  bool modular; /* neurons fall into modules with scattered ids: 80 % of the draws go to the own
                   module, 15 % to the four beside it on a ring, 5 % anywhere; hubs exhaust their
                   module, so that 77 % of the edges stay inside at the sizes above */
};

/* EXIT_USAGE when no such graph exists, otherwise fine. */
struct status generate_check(const struct generate_model *model);

/* source, target [n_edges], sorted by (target, source); no pair twice, no self-loop. Local;
 * uses `n_threads` threads; about 20 bytes a node besides the arrays. The model must have
 * passed generate_check. */
void generate_edges(const struct generate_model *model, int n_threads, uint32_t *source,
                    uint32_t *target);

/* Number of modules (1 unless modular), and the module of a node. */
int generate_n_modules(const struct generate_model *model);
int generate_module(const struct generate_model *model, nodeid node);

/* Synapses of one edge, 1 .. 2591: 1 + floor of a lognormal, fitted to MaleCNS' published counts
 * (41 % of the edges have at least 3, 24 % at least 5, mean 4.8). */
uint32_t generate_count(uint64_t seed, nodeid source, nodeid target);

/* Delay of one edge, uniform in low .. high. */
uint16_t generate_delay(uint64_t seed, nodeid source, nodeid target, uint16_t low, uint16_t high);

/* Smallest, median and largest of `n` degrees; mean too. For reports and tests. */
struct degree_facts {
  int64_t least, median, most;
  double mean;
};
/* end [n_edges] is the source or the target array. */
struct degree_facts generate_degrees(int64_t n_nodes, eidx n_edges, const uint32_t *end);

#endif
