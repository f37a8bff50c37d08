/* Factors of an AdamW step, the same on every backend. */
#include "adamw.h"

#include <math.h>

struct adamw_factors adamw_factors_of(const struct adamw *how) {
  const double correct1 = 1 - pow(how->beta1, (double)how->step);
  const double correct2 = 1 - pow(how->beta2, (double)how->step);
  return (struct adamw_factors){.clip = how->clip,
                                .beta1 = (float)how->beta1,
                                .rest1 = (float)(1 - how->beta1),
                                .beta2 = (float)how->beta2,
                                .rest2 = (float)(1 - how->beta2),
                                .keep = (float)(1 - how->rate * how->decay),
                                .rate = (float)(how->rate / correct1),
                                .root = (float)(1 / sqrt(correct2)),
                                .eps = (float)how->eps};
}

double adamw_clip(double clip, double norm) {
  return clip > 0 && norm > clip ? clip / norm : 1;
}
