/* Functions of the exponential that propagators of cascades are made of. */
#include "keys.h"

#include <math.h>

double lif_phi1(double x) {
  return x != 0 ? expm1(x) / x : 1.0;
}

double lif_phi2(double x) {
  if (fabs(x) >= 0.125) return (expm1(x) - x) / (x * x);
  double sum = 1.0;
  for (int n = 10; n > 2; n--) sum = 1.0 + sum * x / n;
  return sum / 2.0;
}
