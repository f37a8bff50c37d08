/* One case of the recurrence on the GPU: a random network, run on the device and in
 * float64, and compared. */
#ifndef FASCICLE_RECUR_CASE_H
#define FASCICLE_RECUR_CASE_H

#include "synthetic.h"

struct recur_case {
  lidx n;
  eidx edges;
  double sigma;
  int batch, steps, microsteps;
  float small_leak; /* share of rows whose leak is under RECUR_SMALL_LEAK */
};

/* The network's arrays on the host. */
struct recur_data {
  struct graph graph;
  struct recur_net net;
  lidx *in, *out;
  float *value, *leak, *bias, *drive, *d_output, *state0;
};
struct recur_data recur_data(const struct recur_case *c);
void recur_data_free(struct recur_data *d);

/* Parameters to a backend's state. */
void recur_data_put(const struct recur_data *d, struct recur *r);

/* Worst relative L2 error of outputs and gradients after a window, against
 * float64; prints a line. */
double recur_errors(const char *name, const struct recur_data *d, struct recur *r);

/* Outputs and all gradients in one array that the caller frees with
 * mem_free, for bit comparisons. */
float *recur_results(const struct recur_data *d, struct recur *r, int64_t *n);

#endif
