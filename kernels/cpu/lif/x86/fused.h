/* A step of a linear model in one pass over a block, for vectors of any width: the including file
 * says what a vector V of 64-bit lanes and a mask M of its lanes are, and what a product is:
 * struct lanes of a factor, lanes_of, product. */
#ifndef FASCICLE_LIF_FUSED_BODY_H
#define FASCICLE_LIF_FUSED_BODY_H

/* Sums of one sign into their component: v + counts 2^32 + amounts. */
OP V arrivals(V to, const struct model_inputs *in, int sign, lidx i, bool loses, M lost) {
  if (in->arrived[sign]) {
    const V sum = v_counts(in->arrived[sign] + i);
    to = loses ? v_add_unless(to, sum, lost) : v_add(to, sum);
  }
  if (in->synapse[sign]) {
    const V sum = v_load(in->synapse[sign] + i);
    to = loses ? v_add_unless(to, sum, lost) : v_add(to, sum);
  }
  return to;
}

/* One step of n neurons, rounded up to whole vectors. */
OP void step(const struct model_form form, const struct model_dense *d,
             const struct model_inputs *in, struct model_found *found) {
  struct lanes p[LIF_MOST_COMPONENTS][LIF_MOST_COMPONENTS];
  for (int to = 0; to < form.n; to++)
    for (int from = 0; from < form.n; from++)
      if (form.from[to] >> from & 1) p[to][from] = lanes_of(d->factor[to][from]);
  const V drive = v_all(d->class->drive), least = v_all(d->class->threshold + d->shape->strict);
  const V raised = v_all(d->class->raises ? -1 : 0);
  const bool any_rest = d->rests, settling = found->settling;
  V largest = v_all(0);
  unsigned fired = 0, resting = 0;
  for (lidx i = 0; i < d->n; i += LANES) {
    V x[LIF_MOST_COMPONENTS], next[LIF_MOST_COMPONENTS];
#pragma GCC unroll 8
    for (int c = 0; c < form.n; c++) {
      x[c] = v_load(d->x[c] + i);
      next[c] = form.keeps >> c & 1 ? x[c] : v_all(0);
    }
#pragma GCC unroll 8
    for (int from = 0; from < form.n; from++) {
      const V size = v_size(x[from]), high = v_shift_right(size, v_all(32));
      const M negative = v_negative(x[from]);
#pragma GCC unroll 8
      for (int to = 0; to < form.n; to++)
        if (form.from[to] >> from & 1)
          next[to] = v_add_signed(next[to], product(size, high, &p[to][from], form.whole),
                                  m_xor(negative, p[to][from].negative));
    }
    next[0] = v_add(next[0], drive);
    if (in->current) next[0] = v_add(next[0], v_load(in->current + i));
    M rests = m_all(false);
    if (any_rest) rests = m_count_down(d->counter + i);
    if (form.early) {
      next[form.plus] = arrivals(next[form.plus], in, 0, i, false, rests);
      next[form.minus] = arrivals(next[form.minus], in, 1, i, false, rests);
    }
    if (settling) {
      M changed = m_all(false);
#pragma GCC unroll 8
      for (int c = 0; c < form.n; c++) changed = m_or(changed, v_differ(x[c], next[c]));
      m_store(found->changed, i, m_or(changed, rests));
    }
    if (any_rest) {
#pragma GCC unroll 8
      for (int c = 0; c < form.n; c++)
        if (form.frozen >> c & 1) next[c] = v_choose(rests, x[c], next[c]);
    }
    V bar = least;
    if (form.adaptation >= 0) bar = v_add(bar, v_and(raised, next[form.adaptation]));
    const M fires = m_unless(v_reaches(next[0], bar), rests), lost = m_or(fires, rests);
    if (!form.early) {
      next[form.plus] = arrivals(next[form.plus], in, 0, i, form.frozen >> form.plus & 1, lost);
      next[form.minus] = arrivals(next[form.minus], in, 1, i, form.frozen >> form.minus & 1, lost);
    }
    if (in->direct) next[0] = v_add_unless(next[0], v_load(in->direct + i), lost);
#pragma GCC unroll 8
    for (int c = 0; c < form.n; c++) {
      largest = v_or(largest, v_size(next[c]));
      v_store(d->x[c] + i, next[c]);
    }
    fired |= m_store(found->fired, i, fires), resting |= m_bits(rests);
    m_store(found->lost, i, lost);
  }
  found->any = fired, found->rests = resting;
  found->exceeds = m_bits(v_reaches_unsigned(largest, v_all(LIF_MOST_VALUE)));
  found->large = m_bits(v_reaches_unsigned(largest, v_all(LIF_LARGE)));
}

/* n, from, keeps, frozen, plus, minus, adaptation, early, whole */
#define FORMS                                                                                      \
  FORM(delta, {1, {1}, 1, 1, 0, 0, -1, true, false})                                               \
  FORM(delta_adapts, {2, {3, 2}, 3, 1, 0, 0, 1, true, false})                                      \
  FORM(exponential_whole, {2, {3, 2}, 0, 3, 1, 1, -1, false, true})                                \
  FORM(exponential, {2, {3, 2}, 0, 3, 1, 1, -1, false, false})                                     \
  FORM(exponential_adapts, {3, {7, 2, 4}, 4, 3, 1, 1, 2, false, false})                            \
  FORM(currents, {3, {7, 2, 4}, 7, 1, 1, 2, -1, false, false})                                     \
  FORM(currents_adapt, {4, {15, 2, 4, 8}, 15, 1, 1, 2, 3, false, false})                           \
  FORM(alpha, {5, {31, 2, 6, 8, 24}, 31, 1, 1, 3, -1, false, false})                               \
  FORM(alpha_adapts, {6, {63, 2, 6, 8, 24, 32}, 63, 1, 1, 3, 5, false, false})

#define FORM(name, ...)                                                                            \
  static void name(const struct model_dense *d, const struct model_inputs *in,                     \
                   struct model_found *found) {                                                    \
    step((struct model_form)__VA_ARGS__, d, in, found);                                            \
  }
FORMS
#undef FORM

#define FORM(name, ...) {__VA_ARGS__, name},
static const struct model_loop loops[] = {FORMS};

#endif
