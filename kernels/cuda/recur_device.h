/* The recurrence on the device: what the host code hands to the kernels. All pointers are device pointers.
 *
 * A state row of B columns is held by a *group* of lanes: 8 lanes of 4 columns for B = 32, so that one load
 * of a warp fetches four rows of 128 bytes. A matrix row is walked by one group or by a power of two of
 * groups that take turns (8 edges each) and add up in a fixed order: no atomics, so the bits repeat. */
#ifndef FASCICLE_RECUR_DEVICE_H
#define FASCICLE_RECUR_DEVICE_H

#include "gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The work of one group: `edges` edges of a row, shared with 2^share groups in a row. Row -1: nothing. */
struct recur_item {
  int32_t row;
  uint32_t first, edges;
  int32_t share;
};

/* One pass over rows of edges. */
struct recur_walk {
  const struct recur_item *item; /* [n_blocks][groups per block] */
  int n_blocks;
  const void *col; /* uint16_t where narrow, else int32_t */
  bool narrow;
};

struct recur_device {
  int batch, microsteps, steps;
  int n_own, n_halo, n_in, n_out;
  int64_t n_near, n_far; /* edges */
  struct recur_walk near_in, far_in, near_out, far_out;
  /* the rows again for whoever must form z_k once more: in-edges by target, near then far */
  const uint32_t *near_ptr, *far_ptr; /* [n_own + 1]; far_ptr counts from 0 */
  const int32_t *in_slot, *out_slot;  /* [n_own] or -1 */
  float *value, *out_value, *d_value; /* [n_near + n_far]; out_*: by source */
  float *out_gradient;
  const uint32_t *out_edge; /* [n_near + n_far] by source: position in `value` */
  float *leak, *bias, *d_leak, *d_bias;
  float *drive, *d_drive, *output, *d_output;
  float *states, *near_sum, *d_state, *q; /* q: two of [n_own][B] */
  bool all_states;
};

/* How rows of `batch` columns are laid over lanes. */
struct recur_shape_on_device {
  int lanes; /* of a group */
  int turn;  /* edges that a group takes at a time */
};
struct recur_shape_on_device recur_device_shape(int batch);
enum { RECUR_THREADS = 256 };
/* Edges are counted in 32 bits on a device, and groups look ahead past the end of their rows by less than
 * this margin. */
#define RECUR_MOST_EDGES (UINT32_MAX - 65536u)

enum recur_part { RECUR_ALL, RECUR_NEAR_ONLY, RECUR_FAR_LAST };

void recur_device_forward(const struct recur_device *d, int k, enum recur_part part);

/* Values into the order by source, gradients zeroed / handed back in the caller's order. */
void recur_device_take(const struct recur_device *d);
void recur_device_give(const struct recur_device *d);

/* q_k from g; then g (1 - a). */
void recur_device_elementwise(const struct recur_device *d, int k);

/* V^T q_k into own rows (and with `next`, q_{k-1} of the row at once), or into the halo rows. */
void recur_device_transposed(const struct recur_device *d, int k, bool next);
void recur_device_transposed_halo(const struct recur_device *d, int k);

#ifdef __cplusplus
}
#endif
#endif
