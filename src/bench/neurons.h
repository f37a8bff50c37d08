/* bench lif with a neuron model. */
#ifndef FASCICLE_BENCH_NEURONS_H
#define FASCICLE_BENCH_NEURONS_H

#include "lif_net.h"

/* bench->model is the name of a graph, or of a neuron model: then bench->neurons becomes it, and
 * what else was not asked for is set for it. EXIT_USAGE for other names, EXIT_DEVICE where the
 * backend does not compute models. */
struct status neurons_choose(struct bench_job *bench);

/* All cases of bench->neurons. Agreed. */
struct status neurons_bench(const struct lif_fixture *fixture);

#endif
