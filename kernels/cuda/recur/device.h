/* The recurrence on the device: what the host code hands to the kernels. All pointers are device
 * pointers.
 *
 * A state row of B columns is held by a *group* of lanes: 8 lanes of 4 columns for B = 32, so that
 * one load of a warp fetches four rows of 128 bytes. A matrix row is walked by one group or by a
 * power of two of groups that take rounds of edges by turns and add up in a fixed order. An edge's
 * gradient has one owner, who adds to it once a microstep. So the bits repeat. */
#ifndef FASCICLE_RECUR_DEVICE_H
#define FASCICLE_RECUR_DEVICE_H

#include "contract/recurrence.h"
#include "kernels/cuda/gpu/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The work of one group: `edges` edges of a row, shared with 2^share groups in a row.
 * Row -1: nothing. Most rows have no slot of an input or output, and what is known here
 * need not be looked up. */
struct recur_item {
  int32_t row;
  uint32_t first, edges;
  uint16_t share, slots;
};
enum { RECUR_HAS_IN = 1, RECUR_HAS_OUT = 2 }; /* bits of `slots` */

/* Rows of edges stand padded to multiples of so many, so that a lane loads several at once and a
 * round of 64 bytes lies in one cache line. */
enum { RECUR_PAD = 16 };
#define RECUR_NO_EDGE 0xffffffffu /* in place of an edge: padding */

/* At most so many places take `edges` edges in so many padded rows. */
static inline int64_t recur_places(int64_t edges, int64_t rows) {
  return edges + (RECUR_PAD - 1) * rows;
}

/* In-edges by target. */
struct recur_rows {
  const uint32_t *ptr;    /* [n_own + 1] first edge of a row in `value`; NULL: none */
  const uint32_t *padded; /* [n_own] the same in in_value */
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
  struct recur_rows near_rows, far_rows;
  const int32_t *in_slot, *out_slot; /* [n_own] or -1 */
  int64_t n_in_edges, n_out_edges;   /* with padding; near then far, own sources then the halo */
  float *value, *d_value;            /* [n_near + n_far] */
  float *in_value, *out_value;       /* [n_in_edges], [n_out_edges]; twice as many where `lines` */
  float *out_gradient;               /* [n_out_edges] */
  const uint32_t *out_edge;          /* [n_out_edges] position in `value` or RECUR_NO_EDGE */
  const uint32_t *out_place; /* [n_near + n_far] where an edge of `value` stands among these */
  float *leak, *bias, *d_leak, *d_bias;
  float *pair,
      *d_pair; /* [n_own][2] leak and bias of a row side by side, and their gradients, in a pass */
  float *drive, *d_drive, *output, *d_output;
  float *states, *near_sum, *d_state;
  void *rounded; /* NULL in fp32; mixed: two of [n_own + n_halo][B] __half by turns, what is
                    gathered of s */
  void *q;       /* two of [n_own][B] by turns; float, mixed: __nv_bfloat16 */
  bool lines;    /* columns stand between the values, in lines of RECUR_PAD edges */
  bool all_states, small; /* small: too few edges to keep the device busy */
};

/* How rows of `batch` columns are laid over lanes. */
struct recur_shape_on_device {
  int lanes;  /* of a group */
  int round;  /* edges that a group takes at a time */
  bool lines; /* of struct recur_device */
};
/* small: of struct recur_device; narrow: of struct recur_walk. */
struct recur_shape_on_device recur_device_shape(int batch, bool mixed, bool small, bool narrow);
enum { RECUR_THREADS = 256 };
/* Places of edges are counted in 32 bits on a device, and groups look ahead past the end of their
 * rows by less than this margin. */
#define RECUR_MOST_EDGES (UINT32_MAX - 65536u)

void recur_device_forward(const struct recur_device *d, int k, enum recur_edge_set edges);

/* Before a forward pass: values into padded rows, leaks and biases into pairs. */
void recur_device_take_values(const struct recur_device *d);

/* Rows of s_k that others wrote, into the rounded copy; nothing in fp32. */
void recur_device_round(const struct recur_device *d, int k, int first_row, int n_rows);

/* Values into the order by source, gradients zeroed / handed back in the caller's order, and those
 * of pairs.
 */
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
