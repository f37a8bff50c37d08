/* ranks: 1 */
/* Steps of linear models in one pass, by AVX-512 (also with products of 52 bits) and AVX2, against
 * the passes of model_pass.c: any values, counters and inputs. */
#include "check.h"
#include "core/mem.h"
#include "core/rng.h"
#include "kernels/cpu/lif/model_work.h"

#include <stdlib.h>
#include <string.h>

static uint32_t shifts; /* s of factors is below that */
static int largest;     /* bits of components */

enum { N = 150, ROUNDS = 300 }; /* no multiple of a vector's width */

static uint64_t draw(uint32_t round, uint32_t i, uint32_t what) {
  const struct rng_block r = rng_draw(9, round, i, what, 0);
  return (uint64_t)r.v[0] << 32 | r.v[1];
}

/* Of all sizes below 2^bits, some 0, some powers of two. */
static int64_t value(uint32_t round, uint32_t i, uint32_t what, int bits) {
  const uint64_t r = draw(round, i, what), kind = draw(round, i, what + 100);
  int64_t x = (int64_t)(r >> (64 - bits) >> kind % (uint64_t)bits);
  if (kind >> 8 & 1) x = (int64_t)1 << (kind >> 16) % (uint64_t)bits;
  if ((kind >> 24) % 5 == 0) x = 0;
  return kind >> 63 ? -x : x;
}

static struct lif_factor factor(uint32_t round, uint32_t e, bool whole) {
  const uint64_t r = draw(round, e, 1);
  return (struct lif_factor){(uint32_t)(r >> 32),
                             (uint8_t)(whole || r % 3 == 0 ? 0 : (r >> 8) % shifts),
                             r & 1 << 20 ? 1 : -1};
}

/* A model of the form, with a factor of 0 here and there, which its shape may leave out. */
static void make_model(const struct model_form *form, uint32_t round, struct lif_shape *shape,
                       struct lif_class *class) {
  *shape = (struct lif_shape){.n_components = form->n,
                              .plus = form->plus,
                              .minus = form->minus,
                              .arrivals_early = form->early,
                              .strict = round & 1,
                              .keeps = form->keeps,
                              .frozen = form->frozen,
                              .adaptation = form->adaptation};
  *class = (struct lif_class){.threshold = value(round, 0, 2, 40),
                              .drive = value(round, 0, 3, 40),
                              .raises = form->adaptation >= 0 && round & 2};
  for (int to = 0; to < form->n; to++)
    for (int from = 0; from < form->n; from++) {
      if (!(form->from[to] >> from & 1) || (to == 0 && from == form->n - 1 && round & 4)) continue;
      const int e = shape->n_entries++;
      shape->entry[e] = (struct lif_entry){(uint8_t)to, (uint8_t)from};
      class->factor[e] = factor(round, (uint32_t)e, form->whole);
    }
}

static void fill(struct lif_model_work *w, uint32_t round) {
  struct model_dense *d = &w->d;
  for (uint32_t i = 0; i < N; i++) {
    for (int c = 0; c < d->shape->n_components; c++)
      w->x[c][i] = value(round, i, 10 + (uint32_t)c, round % 7 ? 45 : largest);
    w->counter[i] = (uint16_t)(draw(round, i, 20) % 3 ? 0 : draw(round, i, 21) >> 40 % 60);
    w->current[i] = value(round, i, 22, 40), w->direct[i] = value(round, i, 23, 40);
    for (int k = 0; k < 2; k++) w->synapse[k][i] = value(round, i, 24 + (uint32_t)k, 40);
  }
  for (int c = 0; c < d->shape->n_components; c++) d->x[c] = w->x[c];
  d->counter = w->counter, d->class_of = w->class_of, d->n = N, d->rests = round % 5 > 0;
  for (int i = 0; i < N && !d->rests; i++) w->counter[i] = 0;
}

static void give(struct lif_model_work *w, uint32_t round, const int32_t *counts) {
  const uint64_t given = draw(round, 0, 30);
  w->in = (struct model_inputs){
      .current = given & 1 ? w->current : NULL,
      .direct = given & 2 ? w->direct : NULL,
      .arrived = {given & 4 ? counts : NULL, given & 8 ? counts : NULL},
      .synapse = {given & 16 ? w->synapse[0] : NULL, given & 32 ? w->synapse[1] : NULL}};
  w->found.settling = true;
}

static void set_factors(struct model_dense *d) {
  for (int e = 0; e < d->shape->n_entries; e++)
    d->factor[d->shape->entry[e].to][d->shape->entry[e].from] = d->class->factor[e];
}

static bool bit(const uint8_t *bits, int i) {
  return bits[i / 8] >> i % 8 & 1;
}

static void compare(const struct lif_model_work *a, const struct lif_model_work *b) {
  for (int i = 0; i < N; i++) {
    for (int c = 0; c < a->d.shape->n_components; c++) CHECK_EQ(a->x[c][i], b->x[c][i]);
    CHECK_EQ(a->counter[i], b->counter[i]);
    CHECK_EQ(bit(a->found.fired, i), bit(b->found.fired, i));
    CHECK_EQ(bit(a->found.changed, i), bit(b->found.changed, i));
    CHECK_EQ(bit(a->found.lost, i), bit(b->found.lost, i));
  }
  CHECK_EQ(a->found.rests, b->found.rests);
  CHECK(a->found.exceeds || !b->found.exceeds); /* neurons behind the last may exceed too */
}

static void check_loop(const struct model_loop *loop, uint32_t round) {
  struct lif_shape shape;
  struct lif_class class;
  make_model(&loop->form, round, &shape, &class);
  const struct lif_model model = {.shape = shape, .n_classes = 1, .classes = &class};
  struct lif_model_work *fused = NEW_ZERO(struct lif_model_work, 1),
                        *passes = NEW_ZERO(struct lif_model_work, 1);
  int32_t counts[N + 8] = {0};
  for (uint32_t i = 0; i < N; i++) counts[i] = (int32_t)value(round, i, 40, 28);
  for (int k = 0; k < 2; k++) {
    struct lif_model_work *w = k ? passes : fused;
    w->d = (struct model_dense){.shape = &model.shape, .model = &model, .class = &class};
    set_factors(&w->d);
    fill(w, round), give(w, round, counts);
  }
  CHECK(model_fused_step(&model) != NULL);
  loop->step(&fused->d, &fused->in, &fused->found);
  lif_model_passes(passes, 0, NULL);
  compare(fused, passes);
  mem_free(fused), mem_free(passes);
}

static int check_loops(const struct model_loop *loops, int n) {
  for (int i = 0; i < n; i++)
    for (uint32_t round = 0; round < ROUNDS; round++) check_loop(&loops[i], round);
  return n;
}

int main(int argc, char **argv) {
  test_start(&argc, &argv);
  int wide, narrow, small;
  shifts = 32, largest = 60;
  const struct model_loop *loops = model_loops512(&wide);
  check_loops(loops, wide);
  loops = model_loops256(&narrow);
  check_loops(loops, narrow);
  loops = model_loops_small(&small);
  shifts = LIF_SMALL_SHIFT + 1, largest = 51;
  check_loops(loops, small);
  printf("%d forms by AVX-512, %d by AVX2, %d by 52 bits\n", wide, narrow, small);
  return test_end();
}
