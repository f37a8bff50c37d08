/* The distribution of the events of a Poisson source in a step, in integers. */
#include "models.h"

#include <math.h>

static const double MANY_EVENTS = 0.05;

int lif_poisson_tails(double mean, uint64_t tail[LIF_MOST_EVENTS]) {
  if (mean <= MANY_EVENTS) {
    tail[0] = (uint64_t)ceil(mean * 0x1p53);
    return 1;
  }
  double p[2 * LIF_MOST_EVENTS], sum = 0;
  p[0] = exp(-mean);
  for (int k = 1; k < 2 * LIF_MOST_EVENTS; k++) p[k] = p[k - 1] * mean / k;
  for (int k = 2 * LIF_MOST_EVENTS - 1; k > 0; k--) {
    sum += p[k];
    if (k <= LIF_MOST_EVENTS) tail[k - 1] = (uint64_t)ceil(sum * 0x1p53);
  }
  int n = LIF_MOST_EVENTS;
  while (n > 1 && tail[n - 1] <= 1) n--;
  return n;
}
