/* The folder DIR/trace: spike segments spikes.rRRRR.sSSSSSS.h5 (rank, running number) and what is made of
 * them. All functions are local: one rank. */
#ifndef FASCICLE_TRACE_DIR_H
#define FASCICLE_TRACE_DIR_H

#include "files.h"
#include "json.h"
#include "spikes.h"

void trace_segment_path(const char *dir, int64_t rank, int64_t number, char path[FILE_PATH]);

/* Remove segments numbered `first` and above, and unfinished files: what a run wrote after the checkpoint
 * that it goes on from. */
struct status trace_drop(const char *dir, int64_t first);

/* Open all segments of DIR/trace, sorted by (rank, first step); *n may be 0. */
struct status trace_open(const char *dir, struct spikes_file ***segment, int *n);
void trace_close(struct spikes_file **segment, int n);

struct trace_merged {
  int64_t n_spikes, first_step, last_step;
  char spikes_digest[DIGEST_TEXT];
};

/* All segments -> DIR/spikes.h5. Names come from DIR/neurons.h5, or for a trial from the folder above.
 * Provenance NULL: that of the first segment. `packed` as in spikes_merge.
 * EXIT_INPUT when segments are missing. */
struct status trace_merge(const char *dir, const char *provenance, bool packed, struct trace_merged *merged);

#endif
