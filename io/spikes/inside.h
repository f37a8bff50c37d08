/* What spikes.c and io/spikes/merge.c share; nobody else includes it. */
#ifndef FASCICLE_SPIKES_INSIDE_H
#define FASCICLE_SPIKES_INSIDE_H

#include "io/hdf5/h5.h"
#include "spikes.h"

enum { SPIKES_PATH = 512 };

/* The HDF5 file is open only while something is read from it: each open one costs a descriptor and
 * about a megabyte, and a run may have thousands of segments. */
struct spikes_file {
  char *path;
  struct h5_file h5;
  struct spikes_facts facts;
  int64_t n, n_records, n_recorded;
  char node_ids[SPIKES_PATH], steps[SPIKES_PATH]; /* paths of the datasets */
};

/* Open file->h5 again; a file that has become unreadable is fatal. Close it. */
void spikes_visit(struct spikes_file *file);
void spikes_leave(struct spikes_file *file);

/* Root attributes of every SONATA file, and the program's provenance. */
void spikes_put_root(struct h5_file *file, const char *provenance);
/* The population's group with its attributes; spikes_digest too. */
void spikes_put_facts(struct h5_file *file, const struct spikes_facts *facts);
/* "/spikes/POPULATION/NAME" */
void spikes_dataset(const struct spikes_facts *facts, const char *name, char path[SPIKES_PATH]);
void spikes_put_names(struct h5_file *file, const struct spikes_names *names);
/* Attributes of /potential, after its datasets. */
void spikes_put_potential_about(struct h5_file *file);
/* Add spikes to a digest. */
void spikes_hash(struct sha256 *hash, int64_t n, const int64_t *step, const nodeid *node);

#endif
