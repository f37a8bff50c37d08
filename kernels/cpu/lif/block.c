/* Vectorised loops of the shift model over one block of neurons. */
#include "block.h"
#include "core/clones.h"

/* V = V - (V >> k); returns whether some V changed: each shift moves towards
 * 0 and none moves back. */
VECTOR_CLONES static int32_t leak_once(int32_t *restrict v, lidx n, int k) {
  int32_t moved = 0;
  for (lidx i = 0; i < n; i++) {
    const int32_t d = v[i] >> k;
    v[i] -= d;
    moved |= d;
  }
  return moved;
}

/* The last shift, and whether some V reaches the threshold. */
VECTOR_CLONES static int leak_last(int32_t *restrict v, lidx n, int k, int32_t threshold) {
  int32_t moved = 0, fired = 0;
  for (lidx i = 0; i < n; i++) {
    const int32_t d = v[i] >> k, x = v[i] - d;
    v[i] = x;
    moved |= d;
    fired |= -(x >= threshold);
  }
  return (moved ? LIF_MOVED : 0) | (fired ? LIF_FIRED : 0);
}

/* Without a leak nobody moves. */
VECTOR_CLONES static int reach(const int32_t *restrict v, lidx n, int32_t threshold) {
  int32_t fired = 0;
  for (lidx i = 0; i < n; i++) fired |= -(v[i] >= threshold);
  return fired ? LIF_FIRED : 0;
}

int block_leak(int32_t *v, lidx n, const struct lif_params *p) {
  int32_t moved = 0;
  if (p->n_shifts == 0) return reach(v, n, p->threshold);
  for (int k = 0; k < p->n_shifts - 1; k++) moved |= leak_once(v, n, p->shift[k]);
  return leak_last(v, n, p->shift[p->n_shifts - 1], p->threshold) | (moved ? LIF_MOVED : 0);
}

VECTOR_CLONES static int fire(int32_t *restrict v, uint16_t *restrict counter,
                              const uint8_t *restrict mute, lidx n, int32_t threshold,
                              int32_t reset, uint16_t refractory, uint8_t *restrict fired) {
  uint8_t any = 0;
  for (lidx i = 0; i < n; i++) {
    const uint8_t f = (uint8_t)((v[i] >= threshold) & !(mute[i] & LIF_REMOVED));
    fired[i] = f;
    any |= f;
  }
  for (lidx i = 0; i < n; i++) v[i] = fired[i] ? reset : v[i];
  for (lidx i = 0; i < n; i++) counter[i] = fired[i] ? refractory : 0;
  return (any ? LIF_FIRED : 0) | (any && refractory ? LIF_RESTING : 0);
}

int block_fire(int32_t *v, uint16_t *counter, const uint8_t *mute, lidx n,
               const struct lif_params *p, uint8_t *fired) {
  return fire(v, counter, mute, n, p->threshold, p->reset, p->refractory, fired);
}

/* V = V + input, V = V - (V >> k). Neurons at rest take part, and are reset
 * afterwards whatever came out. */
VECTOR_CLONES static void add_and_leak(int32_t *restrict v, const int32_t *restrict input, lidx n,
                                       int k) {
  for (lidx i = 0; i < n; i++) {
    const int32_t x = (int32_t)((uint32_t)v[i] + (uint32_t)input[i]);
    v[i] = x - (x >> k);
  }
}

VECTOR_CLONES static int settle(int32_t *restrict v, uint16_t *restrict counter,
                                const uint8_t *restrict mute, lidx n, int32_t threshold,
                                int32_t reset, uint16_t refractory, uint8_t *restrict fired) {
  uint8_t any = 0;
  uint16_t rest = 0;
  for (lidx i = 0; i < n; i++) {
    const uint8_t f = (uint8_t)((v[i] >= threshold) & (counter[i] == 0) & !(mute[i] & LIF_REMOVED));
    fired[i] = f;
    any |= f;
  }
  for (lidx i = 0; i < n; i++) v[i] = (fired[i] != 0) | (counter[i] != 0) ? reset : v[i];
  for (lidx i = 0; i < n; i++) {
    const uint16_t c = (uint16_t)(counter[i] - (counter[i] != 0)), left = fired[i] ? refractory : c;
    counter[i] = left;
    rest |= left;
  }
  return (any ? LIF_FIRED : 0) | (rest ? LIF_RESTING : 0);
}

VECTOR_CLONES static void add_input(int32_t *restrict v, const int32_t *restrict input, lidx n) {
  for (lidx i = 0; i < n; i++) v[i] = (int32_t)((uint32_t)v[i] + (uint32_t)input[i]);
}

int block_step(int32_t *v, uint16_t *counter, const int32_t *input, const uint8_t *mute, lidx n,
               const struct lif_params *p, uint8_t *fired) {
  if (p->n_shifts == 0)
    add_input(v, input, n);
  else
    add_and_leak(v, input, n, p->shift[0]);
  for (int k = 1; k < p->n_shifts; k++) leak_once(v, n, p->shift[k]);
  return settle(v, counter, mute, n, p->threshold, p->reset, p->refractory, fired);
}

/* A sum overflows where it differs in sign from both of its terms. */
VECTOR_CLONES bool block_overflows(const int32_t *restrict v, const uint16_t *restrict counter,
                                   const int32_t *restrict input, lidx n) {
  int32_t bad = 0;
  for (lidx i = 0; i < n; i++) {
    const int32_t s = (int32_t)((uint32_t)v[i] + (uint32_t)input[i]),
                  o = (v[i] ^ s) & (input[i] ^ s);
    bad |= counter[i] ? 0 : o;
  }
  return bad < 0;
}

VECTOR_CLONES bool block_narrow(const int64_t *restrict sum, lidx n, int32_t *restrict input) {
  uint64_t bad = 0;
  for (lidx i = 0; i < n; i++) {
    input[i] = (int32_t)(uint32_t)sum[i];
    bad |= ((uint64_t)sum[i] + 0x80000000u) >> 32;
  }
  return bad == 0;
}
