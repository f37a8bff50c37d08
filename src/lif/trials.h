/* Trials of one net that go step by step together: one copy of the edges, one launch, one barrier
 * for all. Only where the backend offers it (lif_backend.together) and one rank has the whole net.
 * The same spikes as one trial after another.
 *
 *   TRY(lif_group_open(&setup, n, &group));
 *   for k: TRY(lif_write(group.run[k], comm, &state, trial number));     // all at the same step
 *   lif_group_start(&group, n);
 *   while (group.alive > 0 && group.step < n_steps)
 *     lif_group_batch(&group, n_steps - group.step, batch); */
#ifndef FASCICLE_LIF_GROUP_H
#define FASCICLE_LIF_GROUP_H

#include "run.h"

struct lif_group {
  struct lif_setup setup;
  struct lif_engine *engine;
  int n;               /* room for so many trials */
  int alive;           /* trials 0 .. alive - 1 go on */
  int64_t step;        /* of those */
  struct lif_run *run; /* [n] for lif_write, lif_read, lif_values, lif_own_nodes */
  struct lif_spikes *own;
  struct lif_tally *tally;
};

/* How many trials of a net are quicker together on this backend; 1 where none
 * are, or can be. Local. */
int lif_group_worthwhile(const struct lif_backend *backend, lidx n_own);

/* Local. `setup` must outlive the group. */
struct status lif_group_open(const struct lif_setup *setup, int n, struct lif_group *group);
void lif_group_close(struct lif_group *group); /* accepts a zeroed one */

/* The first `alive` trials, which have been written at one step, are to go on. */
void lif_group_start(struct lif_group *group, int alive);

/* At most n >= 1 steps of all that are alive; batch [alive]. A fault ends its trial and
 * those above it, whose numbers are then no longer alive: batch[group->alive] has the
 * fault of the first of them. */
void lif_group_batch(struct lif_group *group, int64_t n, struct lif_batch *batch);

#endif
