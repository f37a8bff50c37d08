/* A linear model's classes, components and stimuli, to the device. */
#include "state.h"
#include "core/mem.h"

#include <string.h>

static struct lif_model_stimulus stimulus_to_device(const struct lif_model *model,
                                                    const struct lif_stimulus *s) {
  const bool by_class = s->kind == LIF_CURRENT || s->kind == LIF_NOISE;
  struct lif_model_stimulus there = {.into = s->into, .amount = s->amount};
  if (s->kind == LIF_POISSON) {
    there.n_tails = s->n_tails;
    there.tail = GPU_COPY_OF(uint64_t, s->tail, s->n_tails);
  }
  if (by_class) there.amount_of = GPU_COPY_OF(int64_t, s->amount_of, model->n_classes);
  if (s->kind == LIF_NOISE) there.quantile = GPU_COPY_OF(int64_t, s->quantile, LIF_QUANTILES);
  if (s->kind == LIF_REPLAY)
    there.replayed = GPU_COPY_OF(struct lif_replayed, s->replayed, s->n_steps);
  return there;
}

static void find_factors(const struct lif_shape *shape, int8_t *factor_at) {
  memset(factor_at, -1, LIF_MOST_COMPONENTS * LIF_MOST_COMPONENTS);
  for (int e = 0; e < shape->n_entries; e++)
    factor_at[shape->entry[e].to * LIF_MOST_COMPONENTS + shape->entry[e].from] = (int8_t)e;
}

void lif_gpu_model_open(struct lif_engine *s, const struct lif_model *model,
                        const struct lif_stimulus *stimulus, int n_stimuli) {
  s->has_model = true;
  s->model = (struct lif_device_model){
      .shape = model->shape,
      .n_rings = lif_model_rings(model),
      .classes = GPU_COPY_OF(struct lif_class, model->classes, model->n_classes),
      .class_of = GPU_COPY_OF(uint16_t, model->class_of, s->d.n),
      .component = GPU_ZERO(int64_t, (int64_t)model->shape.n_components * s->d.width),
      .lock = GPU_ZERO(int, 1)};
  find_factors(&model->shape, s->model.factor_at);
  if (n_stimuli == 0) return;
  s->model_stimulus = NEW(struct lif_model_stimulus, n_stimuli);
  for (int k = 0; k < n_stimuli; k++)
    s->model_stimulus[k] = stimulus_to_device(model, &stimulus[k]);
  s->model.stimulus = GPU_COPY_OF(struct lif_model_stimulus, s->model_stimulus, n_stimuli);
}

void lif_gpu_model_close(struct lif_engine *s) {
  const struct lif_device_model *m = &s->model;
  for (int k = 0; k < s->n_stimuli && s->model_stimulus; k++) {
    const struct lif_model_stimulus *there = &s->model_stimulus[k];
    gpu_free((void *)there->tail), gpu_free((void *)there->amount_of);
    gpu_free((void *)there->quantile), gpu_free((void *)there->replayed);
  }
  mem_free(s->model_stimulus);
  gpu_free((void *)m->classes), gpu_free((void *)m->class_of), gpu_free(m->component);
  gpu_free((void *)m->stimulus), gpu_free(m->lock);
}
