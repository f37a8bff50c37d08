/* Which compiled loop is a model's. */
#include "model_fused.h"

#include <stdlib.h>

static bool shifts_up_to(const struct lif_model *model, int most) {
  for (int k = 0; k < model->n_classes; k++)
    for (int e = 0; e < model->shape.n_entries; e++)
      if (model->classes[k].factor[e].s > most) return false;
  return true;
}

static bool fits(const struct model_form *form, const struct lif_model *model) {
  const struct lif_shape *shape = &model->shape;
  for (int e = 0; e < shape->n_entries; e++)
    if (shape->entry[e].to >= form->n ||
        !(form->from[shape->entry[e].to] >> shape->entry[e].from & 1))
      return false;
  return form->n == shape->n_components && form->keeps == shape->keeps &&
         form->frozen == shape->frozen && form->plus == shape->plus &&
         form->minus == shape->minus && form->adaptation == shape->adaptation &&
         form->early == shape->arrivals_early && (!form->whole || shifts_up_to(model, 0));
}

static model_step *find(const struct model_loop *loop, int n, const struct lif_model *model) {
  for (int i = 0; i < n; i++)
    if (fits(&loop[i].form, model)) return loop[i].step;
  return NULL;
}

model_step *model_fused_step(const struct lif_model *model) {
  int n;
  const struct model_loop *loops = model_loops512(&n);
  model_step *found = find(loops, n, model);
  if (found) return found;
  loops = model_loops256(&n);
  return find(loops, n, model);
}

model_step *model_small_step(const struct lif_model *model) {
  int n;
  const struct model_loop *loops = model_loops_small(&n);
  return shifts_up_to(model, LIF_SMALL_SHIFT) ? find(loops, n, model) : NULL;
}
