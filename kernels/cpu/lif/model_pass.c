/* A step of any linear model, by one pass for each entry of its propagator. */
#include "model_work.h"
#include "model_block.h"

#include <string.h>

static void accumulate(struct lif_model_work *w, int e) {
  const struct model_dense *d = &w->d;
  const struct lif_entry at = d->shape->entry[e];
  if (d->class)
    model_accumulate(w->next[at.to], d->x[at.from], d->n, d->class->factor[e]);
  else
    model_accumulate_by_class(w->next[at.to], d->x[at.from], d->n, e, d->model->classes,
                              d->class_of);
}

static const struct lif_class *class_at(const struct model_dense *d, lidx i) {
  return d->class ? d->class : &d->model->classes[d->class_of[i]];
}

/* w->next = the components after a step without arrivals. */
static void propagate(struct lif_model_work *w) {
  const struct model_dense *d = &w->d;
  const size_t bytes = (size_t)d->n * sizeof(int64_t);
  for (int c = 0; c < d->shape->n_components; c++)
    if (d->shape->keeps >> c & 1)
      memcpy(w->next[c], d->x[c], bytes);
    else
      memset(w->next[c], 0, bytes);
  for (int e = 0; e < d->shape->n_entries; e++) accumulate(w, e);
  for (lidx i = 0; i < d->n; i++) w->next[0][i] += class_at(d, i)->drive;
  if (w->in.current) model_add(w->next[0], w->in.current, NULL, d->n);
}

static void add_arrivals(struct lif_model_work *w, const uint8_t *lost) {
  const struct lif_shape *shape = w->d.shape;
  const int into[2] = {shape->plus, shape->minus};
  for (int sign = 0; sign < 2; sign++) {
    const uint8_t *l = shape->frozen >> into[sign] & 1 ? lost : NULL;
    int64_t *to = w->next[into[sign]];
    if (w->in.arrived[sign]) model_add_counts32(to, w->in.arrived[sign], l, w->d.n);
    if (w->in.synapse[sign]) model_add(to, w->in.synapse[sign], l, w->d.n);
  }
}

/* Whom the update moves, as if nothing arrived. */
static void mark_changed(struct lif_model_work *w) {
  memset(w->found.changed, 0, sizeof w->found.changed);
  for (int c = 0; c < w->d.shape->n_components; c++)
    for (lidx i = 0; i < w->d.n; i++)
      w->found.changed[i / 8] |= (uint8_t)((w->next[c][i] != w->d.x[c][i]) << i % 8);
  for (lidx i = 0; i < w->d.n && w->found.rests; i++)
    w->found.changed[i / 8] |= (uint8_t)(w->rests[i] << i % 8);
}

static void keep_frozen(struct lif_model_work *w) {
  for (int c = 0; c < w->d.shape->n_components; c++)
    if (w->d.shape->frozen >> c & 1) model_keep(w->next[c], w->d.x[c], w->rests, w->d.n);
}

/* w->fired, by threshold or force. */
static void find_fired(struct lif_model_work *w, lidx n_forced, const uint16_t *forced) {
  const struct model_dense *d = &w->d;
  for (lidx i = 0; i < d->n; i++) {
    const struct lif_class *class = class_at(d, i);
    w->bar[i] = class->threshold + (class->raises ? w->next[d->shape->adaptation][i] : 0);
  }
  w->found.any = model_fires(w->next[0], 0, d->shape->strict, w->bar,
                             w->found.rests ? w->rests : NULL, d->n, w->fired);
  for (lidx k = 0; k < n_forced; k++) w->fired[forced[k]] = 1;
  w->found.any |= n_forced > 0;
}

/* Who loses what arrives late: neurons that rest or fired. */
static const uint8_t *losers(struct lif_model_work *w) {
  memset(w->found.lost, 0, sizeof w->found.lost);
  for (lidx i = 0; i < w->d.n; i++) {
    w->lost[i] = (w->found.rests && w->rests[i]) || w->fired[i];
    w->found.lost[i / 8] |= (uint8_t)(w->lost[i] << i % 8);
  }
  return w->lost;
}

static void store(struct lif_model_work *w) {
  w->found.exceeds = false, w->found.large = true; /* not looked at */
  for (int c = 0; c < w->d.shape->n_components; c++) {
    w->found.exceeds |= model_exceeds(w->next[c], LIF_MOST_VALUE, w->d.n);
    memcpy(w->d.x[c], w->next[c], (size_t)w->d.n * sizeof(int64_t));
  }
  memset(w->found.fired, 0, sizeof w->found.fired);
  for (lidx i = 0; i < w->d.n && w->found.any; i++)
    w->found.fired[i / 8] |= (uint8_t)(w->fired[i] << i % 8);
}

void lif_model_passes(struct lif_model_work *w, lidx n_forced, const uint16_t *forced) {
  const struct lif_shape *shape = w->d.shape;
  w->found.rests = w->d.rests && model_count_down(w->d.counter, w->rests, w->d.n);
  propagate(w);
  if (shape->arrivals_early) add_arrivals(w, w->found.rests ? w->rests : NULL);
  if (w->found.settling) mark_changed(w);
  if (w->found.rests) keep_frozen(w);
  find_fired(w, n_forced, forced);
  const uint8_t *lost = losers(w);
  if (!shape->arrivals_early) add_arrivals(w, lost);
  if (w->in.direct) model_add(w->next[0], w->in.direct, lost, w->d.n);
  store(w);
}
