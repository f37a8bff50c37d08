/* What a network starts from. Every value is drawn by what it belongs to - an edge's pre
 * and post id, a neuron's id, a token - never by rank or row, so that all grids and
 * orderings start alike. */
#ifndef FASCICLE_START_VALUES_H
#define FASCICLE_START_VALUES_H

#include "rnn.h"
#include "config.h"

/* Fill the parameters: theta ~ N(0,1) init_scale; leak = leak_init; bias 0; embedding
 * N(0,1); projection and readout uniform in +-1/sqrt(fan in). With frozen edges theta is a
 * random sign, scaled to spectral radius 0.95. Returns the spectral radius of V.
 * Collective over each replica. */
double start_values(struct rnn *rnn, const struct train_config *config);

#endif
