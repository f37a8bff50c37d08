/* Values of contract/lif.h that CUDA C++ needs too; kernels/cuda/lif/lif.c
 * checks that they agree. */
#ifndef FASCICLE_LIF_FIELDS_H
#define FASCICLE_LIF_FIELDS_H

enum {
  LIF_SHIFTS_ON_DEVICE = 256,
  LIF_CURRENT_ON_DEVICE = 0,
  LIF_POISSON_ON_DEVICE = 1,
  LIF_SPIKES_ON_DEVICE = 2,
  LIF_MUTED_ON_DEVICE = 1,
  LIF_REMOVED_ON_DEVICE = 2
};

#endif
