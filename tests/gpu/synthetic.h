/* Random graphs with heavy-tailed degrees for the GPU tests and benches, and the
 * recurrence in float64. */
#ifndef FASCICLE_SYNTHETIC_H
#define FASCICLE_SYNTHETIC_H

#include "contract/graph.h"
#include "contract/recurrence.h"

/* One rank's graph of n rows and about `edges` edges; in- and out-degree lognormal with this sigma.
 * Sources ascend within a row; parallel edges may occur. */
struct graph synthetic_graph(lidx n, eidx edges, double sigma, uint64_t seed);
void synthetic_free(struct graph *g);

/* Standard normal number i of stream `stream`. */
float synthetic_normal(uint64_t seed, uint32_t stream, int64_t i);

/* One window of the recurrence, forward and backward, in double, with the
 * parameters of the fields below. */
struct reference {
  const struct recur_net *net;
  const float *value, *leak, *bias, *drive, *d_output, *state0;    /* in */
  double *output, *d_value, *d_leak, *d_bias, *d_drive, *d_state0; /* out, by reference_run */
};
void reference_run(struct reference *r);
void reference_free(struct reference *r);

/* ||x - y|| / ||y||; 0 when both are all zeros. NaN never passes a comparison. */
double relative_error(const float *x, const double *y, int64_t n);

#endif
