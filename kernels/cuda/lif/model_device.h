/* Linear models (contract/lif_model.h) on the device: what the host code hands to the kernels
 * beside struct lif_device. All pointers are device pointers. */
#ifndef FASCICLE_LIF_MODEL_DEVICE_H
#define FASCICLE_LIF_MODEL_DEVICE_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a stimulus does to a model's neurons, beside its steps in struct lif_device_stimulus;
 * contract/lif.h says what the fields mean. */
struct lif_model_stimulus {
  enum lif_into into;
  int64_t amount;
  int32_t n_tails;
  const uint64_t *tail;
  const int64_t *amount_of; /* [n_classes] */
  const int64_t *quantile;  /* [LIF_QUANTILES] */
  const struct lif_replayed *replayed;
};

struct lif_device_model {
  struct lif_shape shape;
  int n_rings;
  /* [to * LIF_MOST_COMPONENTS + from] which of a class's factors, or -1: none. */
  int8_t factor_at[LIF_MOST_COMPONENTS * LIF_MOST_COMPONENTS];
  const struct lif_class *classes;
  const uint16_t *class_of; /* [n] */
  int64_t *component;       /* [n_components][width] */
  const struct lif_model_stimulus *stimulus;
  int *lock; /* of who writes down a fault */
};

/* As lif_device_run and lif_device_deliver, but two launches for each batch of min_delay steps, and
 * after a fault the rest of this run alone is left out. Rows in host memory are read there each
 * time. The ring is [n_rings][slots][width], positive sums first. */
void lif_gpu_model_run(const struct lif_device *d, const struct lif_device_model *m, int64_t t,
                       int n, bool delivers, uint32_t *mask);
void lif_gpu_model_deliver(const struct lif_device *d, const struct lif_device_model *m, int64_t t,
                           int64_t n_spikes, const uint32_t *row);

#ifdef __cplusplus
}
#endif
#endif
