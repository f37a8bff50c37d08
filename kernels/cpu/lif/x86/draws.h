/* Philox4x32-10 (core/rng.h) for vectors of 64-bit lanes, of which a word takes the lower half;
 * what stands in the upper half never counts, since products read the lower alone. Included once by
 * each instruction set's file, which first says what a `vec` is and what can be done with it.
 *
 * Neurons differ in the first counter word alone as long as ids are below 2^32, so that half of the
 * first two rounds is the same for all and is made once; of the last round only words 0 and 1 are
 * wanted. */
enum { ROUNDS = 10, FULL_FROM = 3, FULL_TO = 8 }; /* rounds [FULL_FROM, FULL_TO) take no shortcut */

static const uint32_t M0 = 0xD2511F53u, M1 = 0xCD9E8D57u;

/* What all draws of a step share. Words of each lane. */
struct philox {
  vec m0, m1;
  vec first;      /* round 0: c3 ^ k1 */
  vec second_0;   /* round 1: c1 ^ k0 */
  vec second_2;   /* round 1: the upper word of c0's product ^ k1 */
  vec third_2;    /* round 2: c3 ^ k1 */
  vec k0[ROUNDS]; /* from round 2 on */
  vec k1[ROUNDS]; /* from round 3 on */
  vec k0_last,
      last_hit; /* k0 of round 9 in the upper half; the largest u 2^11 + 2^11 - 1 that hits */
};

static inline void philox_init(const struct lif_draw *d, struct philox *p) {
  uint32_t k0[ROUNDS], k1[ROUNDS];
  for (int r = 0; r < ROUNDS; r++) {
    k0[r] = (uint32_t)d->seed + (uint32_t)r * 0x9E3779B9u;
    k1[r] = (uint32_t)(d->seed >> 32) + (uint32_t)r * 0xBB67AE85u;
    p->k0[r] = vec_all(k0[r]), p->k1[r] = vec_all(k1[r]);
  }
  const uint64_t b = (uint64_t)M1 * d->index;
  const uint32_t c0 = (uint32_t)(b >> 32) ^ d->step ^ k0[0], c1 = (uint32_t)b;
  const uint64_t a = (uint64_t)M0 * c0;
  p->m0 = vec_all(M0), p->m1 = vec_all(M1);
  p->first = vec_all(d->trial ^ k1[0]);
  p->second_0 = vec_all(c1 ^ k0[1]);
  p->second_2 = vec_all((uint32_t)(a >> 32) ^ k1[1]);
  p->third_2 = vec_all((uint32_t)a ^ k1[2]);
  p->k0_last = vec_all((uint64_t)k0[ROUNDS - 1] << 32);
  p->last_hit = vec_all((d->limit << 11) - 1); /* limit = 2^53: all ones */
}

/* v[0] 2^32 + v[1] for the ids */
static inline vec philox_draw(const struct philox *p, vec id) {
  vec a = vec_mul(id, p->m0);
  vec c3 = a, c2 = vec_xor(vec_high(a), p->first);
  vec b = vec_mul(c2, p->m1);
  vec c1 = b, c0 = vec_xor(vec_high(b), p->second_0);
  c2 = vec_xor(c3, p->second_2);
  a = vec_mul(c0, p->m0), b = vec_mul(c2, p->m1);
  c0 = vec_xor3(vec_high(b), c1, p->k0[2]), c2 = vec_xor(vec_high(a), p->third_2);
  c1 = b, c3 = a;
#pragma GCC unroll 8
  for (int r = FULL_FROM; r < FULL_TO; r++) {
    a = vec_mul(c0, p->m0), b = vec_mul(c2, p->m1);
    c0 = vec_xor3(vec_high(b), c1, p->k0[r]), c2 = vec_xor3(vec_high(a), c3, p->k1[r]);
    c1 = b, c3 = a;
  }
  a = vec_mul(c0, p->m0), b = vec_mul(c2, p->m1);
  c2 = vec_xor3(vec_high(a), c3, p->k1[FULL_TO]);
  return vec_xor3(vec_mul(c2, p->m1), vec_to_high(b), p->k0_last);
}

/* Neurons from i on, LANES of them. dense: their rows follow each other. */
static inline void draw_lanes(const struct lif_draw *d, const struct philox *p, lidx i, bool dense,
                              const lidx *neuron, const nodeid *id, struct lif_hits *hits) {
  const vec ids = dense ? vec_load(id + neuron[0] + i) : vec_gather(id, neuron + i);
  if (__builtin_expect(vec_beyond_32(ids), 0)) {
    for (lidx k = i; k < i + LANES; k++) lif_draw_one(d, neuron[k], id[neuron[k]], hits);
    return;
  }
  const vec x = philox_draw(p, ids);
  const unsigned hit = vec_at_most(x, p->last_hit);
  if (hit) keep_lanes(x, hit, neuron + i, hits);
}

static void draw(const struct lif_draw *d, lidx n, const lidx *neuron, const nodeid *id,
                 struct lif_hits *hits) {
  lidx i = 0;
  if (n >= LANES) {
    struct philox p;
    philox_init(d, &p);
    if (neuron[n - 1] - neuron[0] == n - 1)
      for (; i + LANES <= n; i += LANES) draw_lanes(d, &p, i, true, neuron, id, hits);
    for (; i + LANES <= n; i += LANES) draw_lanes(d, &p, i, false, neuron, id, hits);
  }
  for (; i < n; i++) lif_draw_one(d, neuron[i], id[neuron[i]], hits);
}
