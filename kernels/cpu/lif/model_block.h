/* The loops of linear models (contract/lif_model.h) over one block of neurons, for compilers to
 * vectorise. Arrays are [n], n at most LIF_BLOCK, unless said. kernels/cpu/lif/plain.c is what they
 * must equal. */
#ifndef FASCICLE_LIF_MODEL_BLOCK_H
#define FASCICLE_LIF_MODEL_BLOCK_H

#include "contract/lif_model.h"

/* to += times(from, p), one factor for all. */
void model_accumulate(int64_t *to, const int64_t *from, lidx n, struct lif_factor p);

/* The same by vector instructions written out (x86/products.c), where this machine has them. */
bool model_products_here(void);
void model_products(int64_t *to, const int64_t *from, lidx n, struct lif_factor p);

/* The same with a factor for each neuron: that of entry e in its class. */
void model_accumulate_by_class(int64_t *to, const int64_t *from, lidx n, int e,
                               const struct lif_class *classes, const uint16_t *class_of);

/* to += counts x 2^32, to += amounts, where wanted. lost [n]: 1 where they are not
 * added, or NULL. */
void model_add_counts32(int64_t *to, const int32_t *counts, const uint8_t *lost, lidx n);
void model_add(int64_t *to, const int64_t *amounts, const uint8_t *lost, lidx n);

/* Where kept [n] is 1: to = from. */
void model_keep(int64_t *to, const int64_t *from, const uint8_t *kept, lidx n);

/* rests [n] = counter > 0, and the counters go down; whether some did. */
bool model_count_down(uint16_t *counter, uint8_t *rests, lidx n);

/* fired [n] = v reaches threshold and does not rest; bar [n] is added to the threshold, or NULL.
 * Whether some did. */
bool model_fires(const int64_t *v, int64_t threshold, bool strict, const int64_t *bar,
                 const uint8_t *rests, lidx n, uint8_t *fired);

/* Whether a value reaches `bound` in size. */
bool model_exceeds(const int64_t *x, int64_t bound, lidx n);
bool model_exceeds32(const int32_t *x, int32_t bound, lidx n);

/* Which of the 16 counts of a line differ from 0, as bits (x86/line.c, portable/line.c). */
unsigned model_line(const int32_t *line);

#endif
