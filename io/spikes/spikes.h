/* Spike files: segments written while a run goes on, and the merged file. Both are SONATA spikes
 * files:
 *
 *   /spikes/<population>/node_ids    u64 canonical node ids
 *                        timestamps  f64 ms = step x dt_ms, attribute units
 *                        step        u64, the exact time (ours)
 *     attributes: sorting (enum none/by_id/by_time) = by_time, dt_ms, first_step, last_step
 *                 (inclusive), graph_digest, n_nodes, spikes_digest (SHA-256 over (step, node) of
 *                 every spike, u64 little-endian, in order), rank, ranks, segment
 *   /step_counts  u64 [steps] spikes of all neurons in each step, recorded or not (ours)
 *   /potential/{step, node_ids, value}
 *                 i64 [records], u64 [neurons], i32 [records][neurons] (ours; one-dimensional for
 *                 one neuron): the exact state after update `step`
 *   /variables/{step, node_ids, value/NAME}
 *                 segments: the same of variables of models, f32, attribute units; attribute every:
 *                 steps between records (ours)
 *   /body_id, /name, /type, /type_label  merged file: what node ids mean (ours)
 *   /recorded     u64 ascending node ids whose spikes were recorded; absent: all (ours)
 *
 * Spikes stand in one order: by step, then node id. Segments are deflated; in the merged file ids
 * and times are plain, for libsonata. Files are written as PATH.tmp, synced and renamed. All
 * functions are local: one rank. A failed HDF5 transfer is fatal. */
#ifndef FASCICLE_SPIKES_H
#define FASCICLE_SPIKES_H

#include "core/digest.h"
#include "core/fail.h"
#include "core/types.h"

struct spikes_facts {
  char population[128];
  double dt_ms;
  int64_t first_step, last_step; /* inclusive; last = first - 1: no step */
  int64_t n_nodes;
  int64_t rank, ranks, segment; /* who wrote it; a merged file: 0, 1, 0 */
  char graph_digest[DIGEST_TEXT];
  char spikes_digest[DIGEST_TEXT]; /* filled in by writing and reading */
};

/* A recorded variable of a model. */
enum { SPIKES_MOST_VARIABLES = 8 };
struct spikes_variable {
  char name[32], unit[16];
  const float *value; /* of a segment that is written: [n_records][n_recorded] */
};

/* One rank's recordings over some steps: potentials, or variables of a model. */
struct spikes_segment {
  int64_t n;
  const int64_t *step;  /* [n] */
  const nodeid *node;   /* [n] by step, then ascending */
  const int64_t *count; /* [last_step - first_step + 1] spikes in each step, recorded or not */
  int64_t n_records, n_recorded;
  const int64_t *record_step; /* [n_records] ascending */
  const nodeid *recorded;     /* [n_recorded] ascending */
  const int32_t *potential;   /* [n_records][n_recorded] */
  int n_variables;
  const struct spikes_variable *variable;
  int64_t every; /* steps between records of variables */
};

/* What node ids mean, and which of them were recorded. Pointers belong to the caller, or to
 * spikes_names_read. */
struct spikes_names {
  int64_t n;
  uint64_t *body_id; /* [n] */
  char **name;       /* [n] or NULL */
  int n_types;
  char **type;         /* [n_types] labels, or NULL */
  uint32_t *type_code; /* [n] or NULL */
  bool only_some;      /* spikes were recorded of `recorded` only; else of all neurons */
  int64_t n_recorded;
  nodeid *recorded; /* [n_recorded] ascending, where only_some */
};

/* Write a segment. `provenance` is JSON text. EXIT_OUTPUT when it cannot. */
struct status spikes_write(const char *path, const struct spikes_facts *facts,
                           const struct spikes_segment *segment, const char *provenance);

/* A file with nothing but names, and back: from such a file or a merged one. Free
 * with spikes_names_free. */
struct status spikes_names_write(const char *path, const struct spikes_names *names);
struct status spikes_names_read(const char *path, struct spikes_names *names);
void spikes_names_free(struct spikes_names *names);

/* ---- reading ---- */

struct spikes_file;

/* EXIT_INPUT names the file and what is missing. */
struct status spikes_open(const char *path, struct spikes_file **file);
void spikes_close(struct spikes_file *file); /* accepts NULL */
const struct spikes_facts *spikes_facts(const struct spikes_file *file);
int64_t spikes_number(const struct spikes_file *file);
/* Spikes [first, first + n). */
void spikes_read(struct spikes_file *file, int64_t first, int64_t n, int64_t *step, nodeid *node);
/* Steps first_step + [first, first + n). */
void spikes_counts(struct spikes_file *file, int64_t first, int64_t n, int64_t *count);
/* Recorded potentials: their shape, 0 x 0 without any; steps [n_records]; neurons [n_recorded];
 * rows. */
void spikes_potential_shape(struct spikes_file *file, int64_t *n_records, int64_t *n_recorded);
void spikes_potential_steps(struct spikes_file *file, int64_t *step);
void spikes_potential_neurons(struct spikes_file *file, nodeid *neuron);
void spikes_potential_rows(struct spikes_file *file, int64_t first, int64_t n, int32_t *value);

/* Recorded variables of a segment; steps and neurons as above. */
int spikes_variables(const struct spikes_file *file, const struct spikes_variable **variable);

/* Read all spikes of a file: in order, inside its steps and nodes, of the stated digest? EXIT_INPUT
 * names the file and the first wrong one. */
struct status spikes_verify(struct spikes_file *file);

/* ---- merging ---- */

/* Segments of one run (n >= 1): do they agree on graph, dt and population, and hold every step from
 * the first to *last once for each rank? EXIT_INPUT says what is missing. A run that goes on, or
 * was killed, leaves ragged ends: then *last is the last step that all ranks hold. */
struct status spikes_complete(struct spikes_file *const *segment, int n, int64_t *last);

struct spikes_totals {
  int64_t recorded; /* spikes in the file */
  int64_t all;      /* of all neurons, by the counts of each step */
};

/* Make a file look as if it ended with step `last`; one that ends before stays as it is. */
void spikes_cut(struct spikes_file *file, int64_t last);

/* Order segments by (rank, first step). */
void spikes_sort(struct spikes_file **segment, int n);

/* Merge sorted, complete segments (n >= 1) into PATH. The datasets do not depend on how many ranks
 * wrote them. Memory: up to 4 MB for each rank that wrote, whatever the number of spikes. `names`
 * may be NULL, and so may `provenance`: then it is the first segment's. `packed`: node_ids and
 * timestamps are deflated too (about a tenth of the size), which h5py reads and libsonata's wheel
 * does not. */
struct status spikes_merge(struct spikes_file **segment, int n, const struct spikes_names *names,
                           const char *provenance, bool packed, const char *path,
                           struct spikes_totals *totals);

/* What spikes_reports wrote: `n` files, each of so many steps and neurons. */
struct spikes_reported {
  int n;
  struct spikes_variable variable[SPIKES_MOST_VARIABLES];
  int64_t n_records, n_recorded;
};

/* The variables of sorted, complete segments as SONATA reports FOLDER/NAME.h5, one a variable, the
 * folder made where there is one. As with spikes_merge, nothing in them depends on the ranks that
 * wrote. EXIT_INPUT when segments do not agree. */
struct status spikes_reports(struct spikes_file **segment, int n, const char *provenance,
                             const char *folder, struct spikes_reported *reported);

#endif
