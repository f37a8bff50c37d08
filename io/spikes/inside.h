/* What the files of this room share; nobody else includes it. spikes.c writes and reads files,
 * records.c merges potentials and variables, merge.c spikes and all of it. */
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
  int n_variables; /* 0: the records are potentials */
  struct spikes_variable variable[SPIKES_MOST_VARIABLES];
  int64_t every;
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
/* Records of either kind: steps [n_records], neurons [n_recorded]. */
void spikes_record_steps(struct spikes_file *file, int64_t *step);
void spikes_record_neurons(struct spikes_file *file, nodeid *neuron);
/* Rows [first, first + n) of variable v, or of the potentials: 4 bytes a value. */
void spikes_record_rows(struct spikes_file *file, int v, int64_t first, int64_t n, uint32_t *value);
/* /potential of a merged file, where segments have some. */
void spikes_merge_potential(struct spikes_file **segment, int n, struct h5_file *out);
/* The provenance that a file holds; mem_free it. */
char *spikes_provenance(struct spikes_file *file);
/* Add spikes to a digest. */
void spikes_hash(struct sha256 *hash, int64_t n, const int64_t *step, const nodeid *node);

#endif
