/* What a simulation records, on one rank: spikes (of all neurons or a set), potentials or variables
 * of a set at chosen steps, spikes in each step. Kept in memory until a segment is closed: before
 * each checkpoint, at the end, and when RECORD_BYTES are full, so memory is bounded and what a
 * checkpoint counted is on disk. */
#ifndef FASCICLE_LIF_RECORD_H
#define FASCICLE_LIF_RECORD_H

#include "lif/run.h"
#include "config.h"
#include "io/spikes/spikes.h"

enum { RECORD_BYTES = 64 << 20 };

struct lif_recorder {
  /* Set by recorder_open. */
  const struct lif_run *run;
  const struct lif_model_config *linear; /* what values of a model mean */
  const char *dir, *provenance;
  struct spikes_facts facts; /* first_step: of the open segment; segment: its number */
  uint8_t *wanted;           /* [n_global] spikes of this node id are recorded; NULL: of all */
  int64_t every;             /* records at steps n * every; 0: none */
  int n_variables;           /* of a model: these components; else potentials */
  const int *variable;
  lidx n_rows;
  lidx *row;    /* [n_rows] own rows that are recorded ... */
  nodeid *node; /* ... in the order of these ids, ascending */

  /* The open segment: steps facts.first_step .. run->step - 1. */
  int64_t n, room, *step;
  nodeid *spike;
  int64_t n_counts, count_room, *count;
  int64_t n_records, record_room, *record_step;
  int32_t *potential;                /* [n_records][n_rows] */
  float *value[LIF_MOST_COMPONENTS]; /* [n_records][n_rows] of each variable, in mV or pA */
};

/* Local. `facts` gives population, dt, digest, nodes, rank, ranks, first step and first segment
 * number; the texts must outlive the recorder. */
void recorder_open(const struct lif_run *run, const struct lif_config *config, const char *dir,
                   const char *provenance, const struct spikes_facts *facts,
                   struct lif_recorder *r);
void recorder_free(struct lif_recorder *r);

/* How many steps from run->step on may be made until a record is due:
 * taken after the batch. */
int64_t recorder_steps_left(const struct lif_recorder *r);

/* After each batch; closes a full segment. Returns the number of own spikes, recorded or not.
 * Local; a segment that cannot be written is fatal with EXIT_OUTPUT. */
int64_t recorder_take(struct lif_recorder *r, const struct lif_batch *batch);

/* Close the open segment. One without steps is written only as the very first.
 * Local, fatal as above. */
void recorder_close_segment(struct lif_recorder *r);

/* The number that the next segment of any rank will have. */
int64_t recorder_align(struct lif_recorder *r, const struct comm *comm);

#endif
