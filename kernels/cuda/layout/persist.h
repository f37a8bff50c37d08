/* The persistent window in the memory of a GPU, of a small graph in one launch for each direction:
 * every multiprocessor keeps a slice of 8 samples of the whole state in shared memory and its share
 * of the edges in registers (persist_plan.h). Needs sm_90, B a multiple of 8 and at most 32, and a
 * graph that fits. From 400,000 edges on it is taken wherever it fits; FASCICLE_WINDOW=persistent
 * in the environment takes it for fewer too, FASCICLE_WINDOW=microsteps never. */
#ifndef FASCICLE_LAYOUT_PERSIST_H
#define FASCICLE_LAYOUT_PERSIST_H

#include "contract/recurrence.h"
#include "persist_plan.h"
#include "recur.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PERSIST_COLUMNS = 8,
  PERSIST_HALVES = 2,
  PERSIST_ARRIVAL_BYTES = 128,
  /* Blocks that fetch states together: each line leaves the L2 cache once for all of them. */
  PERSIST_CLUSTER = 2
};

/* Device pointers. Rows of 4 floats, one *half* of a slice, stand by place: [B / 4][places][4]. */
struct persist_device {
  struct persist_tables forward, backward; /* own rows are targets; sources */
  int slices;
  float *window; /* [K - 1, or 2][B / 4][places of forward][4]: states 1 .. K - 1, or alternating */
  float *q;      /* [2][B / 4][places of backward][4], alternating */
  float *gradient;    /* [slices][blocks][walkers][slots][lanes] of edges, one sum a slice */
  float *row_sums;    /* [slices][places of backward][2] gradients of bias and leak */
  uint32_t *arrivals; /* [slices][halves] of 128 bytes: blocks that have come to the barrier of
                         their slice, counted up */
  float *last;        /* [n_own][B] the state after the window, in the caller's order */
};

/* The arrays beside the tables, by the counts in these and in d. */
void persist_list_window(struct arrays *list, struct persist_device *p,
                         const struct recur_device *d);

/* The environment variable that asks for windows in one launch or by microsteps, and whether it may
 * have this value. */
#define PERSIST_MODE "FASCICLE_WINDOW"
bool persist_knows_mode(const char *mode);

/* Whether a net may be one for it on a GPU of sm_90 with so many multiprocessors, by counts alone:
 * a graph whose rows are very unequal may still not fit. */
bool persist_may_fit(const struct recur_net *net, int processors);
/* Blocks of a slice. */
int persist_blocks(const struct recur_net *net, int processors);
/* What its lists will then take. */
int64_t persist_expected_bytes(const struct recur_net *net, int processors);

#ifdef __cplusplus
}
#endif
#endif
