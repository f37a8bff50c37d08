/* The recurrence in the memory of one GPU: its arrays, each listed once. The lists allocate,
 * release and count, for the cuda backend, for libfascicle and for `plan`, which must predict
 * without a GPU: nothing here needs CUDA. All pointers are device pointers, but in a copy whose
 * tables are still on the host (tables.h).
 *
 * A state row of B columns is held by a *group* of lanes: 8 lanes of 4 columns for B = 32, so that
 * one load of a warp fetches four rows of 128 bytes. A matrix row is walked by one group or by a
 * power of two of groups that take rounds of edges in turn and add up in a fixed order. An edge's
 * gradient has one owner, who adds to it once a microstep. So the bits repeat. */
#ifndef FASCICLE_LAYOUT_RECUR_H
#define FASCICLE_LAYOUT_RECUR_H

#include "contract/recurrence.h"
#include "core/arrays.h"

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

/* Places of edges are counted in 32 bits on a device, and groups look ahead past the end of their
 * rows by less than this margin. */
#define RECUR_MOST_EDGES (UINT32_MAX - 65536u)

enum { RECUR_THREADS = 256 };   /* of a block */
enum { RECUR_NARROW = 65536 };  /* up to so many rows have 16-bit indices */
enum { RECUR_SMALL = 2500000 }; /* edges: up to so many leave multiprocessors waiting for work */

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
  float *leak, *bias, *d_leak, *d_bias; /* [n_own] */
  float *pair,
      *d_pair; /* [n_own][2] leak and bias of a row side by side, and their gradients, in a pass */
  float *drive, *d_drive;   /* [T][n_in][B] */
  float *output, *d_output; /* [T][n_out][B] */
  float *states;            /* [K + 1, or 2][n_own + n_halo][B] */
  float *near_sum;          /* [n_own][B] */
  float *d_state;           /* [n_own + n_halo][B] */
  void *rounded; /* NULL in fp32; mixed: two of [n_own + n_halo][B] __half, alternating: what is
                    gathered of s */
  void *q;       /* two of [n_own][B], alternating; float, mixed: __nv_bfloat16 */
  bool lines;    /* columns stand between the values, in lines of RECUR_PAD edges */
  bool all_states, small; /* small: too few edges to keep the device busy */
};

/* What sizes follow from beside the counts of struct recur_device. */
struct recur_sizes {
  bool want_gradient, mixed;
  bool persistent; /* whole windows by persist.h, whose arrays stand in place of some */
  int groups;      /* of lanes in a block */
};

/* Counts of a net: what does not depend on where its edges lead. */
void recur_set_counts(struct recur_device *d, struct recur_sizes *s, const struct recur_net *net);

/* Whether edges stand in lines of columns and values: where groups of four lanes load four edges
 * each of 32-bit columns (kernels/cuda/recur/launch.cuh chooses; its `in_lines` must agree). */
bool recur_stands_in_lines(int batch, bool mixed, bool narrow);

/* Tables of the graph for one direction: for the forward pass edges by target, for the backward
 * pass edges by source. */
void recur_list_tables(struct arrays *list, struct recur_device *d, const struct recur_sizes *s,
                       enum recur_direction direction);
/* Parameters, states and gradients of a window. */
void recur_list_window(struct arrays *list, struct recur_device *d, const struct recur_sizes *s);

/* What the lists will take, from the counts of the net alone: padding and items of rows as they are
 * on average. persistent: of struct recur_sizes. */
int64_t recur_expected_bytes(const struct recur_net *net, bool persistent);
/* The most host memory that making the tables takes. */
int64_t recur_expected_host_bytes(const struct recur_net *net);

#ifdef __cplusplus
}
#endif
#endif
