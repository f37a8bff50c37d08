/* LIF on the device: what the host code hands to the kernels. All pointers are device pointers
 * unless said.
 */
#ifndef FASCICLE_LIF_DEVICE_H
#define FASCICLE_LIF_DEVICE_H

#include "contract/lif.h"
#include "kernels/cuda/gpu/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lif_device_stimulus {
  int32_t kind, index;
  int64_t first_step, last_step;
  int32_t value;
  uint64_t limit; /* LIF_POISSON: a 53-bit draw below this hits */
  int64_t n_steps;
  const int64_t *step;
};

/* A spike on its way: its edges, and the number of its first piece among its block's. */
struct lif_spike {
  const uint2 *edge;
  int32_t n_edges;
  uint32_t first_piece;
};

/* What else is to be known of it where edges stay in host memory, or trials run together. */
struct lif_route {
  uint2 *keep;    /* a copy of the edges goes there; NULL: nowhere */
  uint32_t shift; /* of the targets: where the trial's neurons begin */
};

struct lif_touch {
  int64_t first_step;
  uint32_t more_steps; /* last step = first + more; all ones: for ever */
  uint32_t stimulus;   /* or LIF_FIRES: makes the neuron fire at each of these steps */
};

enum { LIF_FIRES = INT32_MAX };

enum { LIF_TRIALS = 64 }; /* at once, at most */

enum {
  LIF_SENT,
  LIF_EVENTS,
  LIF_HOST_EVENTS,
  LIF_TALLIES
}; /* spikes sent, edges that carried them, of these
      read from host memory */

/* Edges in host memory, read from there row by row; rows that have been read are kept on the
 * device while there is room. */
enum { LIF_NOT_KEPT = -1, LIF_NEVER_KEPT = -2 };
struct lif_host_edges {
  const uint2 *edge; /* mapped; NULL: all edges are on the device */
  int64_t
      *kept; /* [n_global] where in lif_device.out a row's copy begins, or LIF_NOT_KEPT: not yet */
  int64_t room; /* edges that lif_device.out holds */
  unsigned long long *used;
};

/* Trials that run together share the edges and all that never changes. Neuron i of trial k stands
 * at k * n_words * 32 + i in arrays [width]. */
struct lif_device {
  int32_t n;        /* own rows */
  int32_t n_words;  /* of a bit mask of own rows */
  int32_t n_trials; /* that still run */
  int32_t width;    /* one trial: n; else 32 * n_words * trials */
  int32_t slots;    /* of the ring: max_delay + min_delay, so that a batch may deliver while others
                       still    integrate */
  int32_t min_delay;
  bool wide;
  bool two_lists; /* of spikes on their way; set by each launch, where shared memory has room for
                     them */
  int64_t first;  /* global row of own row 0 */
  int64_t seed;
  const uint32_t *trial; /* [n_trials] keys of random numbers */

  int32_t threshold, reset, n_shifts;
  uint16_t refractory;
  uint8_t shift[LIF_SHIFTS];

  int32_t *potential; /* [width] */
  uint16_t *counter;  /* [width] */
  void *ring; /* [slots][width] int32 (wide: int64): the sum due at t stands in slot t % slots */
  const int64_t *out_ptr, *id;
  const uint2 *out; /* target; weight | delay << 16; all edges, or the kept ones */
  struct lif_host_edges host;
  const uint8_t *mute; /* or NULL */

  /* Which stimuli reach a neuron, by first step; NULL without stimuli. touch_now: the first that is
   * not over.
   */
  const uint32_t *touch_ptr; /* [n + 1] */
  uint32_t *touch_now;       /* [width] */
  const struct lif_touch *touch;
  const struct lif_device_stimulus *stimulus;

  unsigned long long *arrived; /* [3] the barrier's words */
  unsigned long long *fault; /* the smallest (trial, step - first step of the launch, phase, node),
                                packed by the shifts below; all ones: none */
  int64_t *fault_value;
  unsigned long long *tally; /* [n_trials][LIF_TALLIES] */
};

/* In `fault`: no fault of ours, but another rank's, at which all end. */
#define LIF_FAULT_ELSEWHERE (~1ull)

enum { LIF_PHASE_BIT = 40, LIF_STEP_BIT = 43, LIF_TRIAL_BIT = 58 };

/* Trials of n neurons whose neurons all stay in registers, and LIF_TRIALS at most. Beyond that
 * passes over memory cost more than launch and barrier did. */
int lif_device_trials(int32_t n);

/* Blocks of the persistent kernel, all of which fit the device at once. */
int lif_device_blocks(const struct lif_device *d);

/* Steps t .. t + n - 1, n < 2^15, bit masks of who fired to mask [n][n_trials][n_words]. With
 * `delivers` also the spikes of all neurons (then this rank has the whole net), else n <=
 * min_delay. After a fault later launches do nothing. */
void lif_device_run(const struct lif_device *d, int n_blocks, int64_t t, int n, bool delivers,
                    uint32_t *mask);

/* count [n_trials][n][chunks] and row [sum of counts], by trial, step, and ascending, from masks. A
 * chunk is LIF_CHUNK words of a step's mask. */
enum { LIF_CHUNK = 1024 };
int lif_device_chunks(const struct lif_device *d);
void lif_device_list(const struct lif_device *d, int n, const uint32_t *mask, int32_t *count,
                     uint32_t *row);

/* The spikes row [n_spikes] of step t along their out-edges into own rows. One trial only. */
void lif_device_deliver(const struct lif_device *d, int64_t t, int64_t n_spikes,
                        const uint32_t *row);

#ifdef __cplusplus
}
#endif
#endif
