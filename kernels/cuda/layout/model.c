/* The list of the character model's arrays on a GPU. */
#include "model.h"

void model_list(struct arrays *list, struct model_arrays *a, const struct model_shape *s,
                bool want_gradient) {
  const int64_t V = s->vocabulary, TB = (int64_t)s->steps * s->batch,
                parameters = model_layout_of(s).at[MODEL_BLOCKS];
  for (int i = 0; i < (want_gradient ? MODEL_ARRAYS : MODEL_GRADIENT); i++)
    ARRAY_ZERO(list, a->array[i], parameters);
  ARRAY_ZERO(list, a->scale, s->n_edges), ARRAY_ZERO(list, a->leak, s->n_own);
  ARRAY_ZERO(list, a->token, TB), ARRAY_ZERO(list, a->target, TB);
  ARRAY_ZERO(list, a->table, s->n_in * V), ARRAY_ZERO(list, a->logit, TB * V);
  ARRAY_ZERO(list, a->nats, TB), ARRAY_ZERO(list, a->parts, MODEL_PARTS);
  ARRAY_ZERO(list, a->sum, 2), ARRAY_ZERO(list, a->count, 1);
  ARRAY_ZERO(list, a->logit_rows, TB * V), ARRAY_ZERO(list, a->out_rows, s->n_out * TB);
  if (!want_gradient) return;
  ARRAY_ZERO(list, a->position, TB), ARRAY_ZERO(list, a->first, V + 1);
  ARRAY_ZERO(list, a->d_table, s->n_in * V);
}
