/* The folder DIR/trace: spike segments spikes.rRRRR.sSSSSSS.h5 (rank, running number) and what is
 * made of them. All functions are local: one rank. */
#ifndef FASCICLE_TRACE_DIR_H
#define FASCICLE_TRACE_DIR_H

#include "io/files/files.h"
#include "core/json.h"
#include "io/spikes/spikes.h"

void trace_segment_path(const char *dir, int64_t rank, int64_t number, char path[FILE_PATH]);

/* Remove segments numbered `first` and above, and unfinished files: what a run wrote after the
 * checkpoint that it goes on from. The rest must end where that run goes on, at `step`: EXIT_USAGE
 * when the checkpoint is another run's, and nothing is removed. */
struct status trace_go_on(const char *dir, int64_t first, int64_t step);

/* Open all segments of DIR/trace, sorted by (rank, first step); at least one, else EXIT_INPUT. */
struct status trace_open(const char *dir, struct spikes_file ***segment, int *n);
void trace_close(struct spikes_file **segment, int n);

/* Are the segments one whole, and do they hold all that the newest checkpoint counted? *last as in
 * spikes_complete. EXIT_INPUT says what is missing. */
struct status trace_complete(const char *dir, struct spikes_file *const *segment, int n,
                             int64_t *last);

struct trace_merged {
  int64_t n_spikes; /* recorded */
  int64_t n_fired;  /* of all neurons */
  int64_t first_step, last_step;
  char spikes_digest[DIGEST_TEXT];
};

/* All segments -> DIR/spikes.h5, and DIR/reports/NAME.h5 for variables. Names come from
 * DIR/neurons.h5, or for a trial from the folder above. Provenance NULL: that of the first segment.
 * `packed` as in spikes_merge. EXIT_INPUT when segments are missing; ragged ends (a run that goes
 * on, or was killed) are cut off with a warning. */
struct status trace_merge(const char *dir, const char *provenance, bool packed,
                          struct trace_merged *merged);

#endif
