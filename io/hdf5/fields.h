/* Described arrays in one HDF5 file, written by all ranks together:
 * checkpoints are made of these. */
#ifndef FASCICLE_FIELDS_H
#define FASCICLE_FIELDS_H

#include "core/comm.h"
#include "core/types.h"

#include "ftype.h"

struct field {
  const char *name; /* path in the file: "lif/potential" */
  enum ftype type;
  gidx n_global, first; /* global rows, and the first of ours */
  int64_t n_local; /* our rows [first, first + n_local); ranks do not overlap and cover all rows.
                      Several ranks that hold the same data (replicas): all but one pass n_local = 0
                      when writing */
  int width;       /* elements per row */
  void *data;      /* [n_local][width] */
  const char *unit, *about;
};

/* Write all fields and the text attribute `meta` (JSON, the same on every rank) to PATH: PATH.tmp,
 * collective contiguous writes in pieces under 1 GiB, a checksum per field (order-free sum over
 * rows, so that it does not depend on the rank count), close, fsync, rename, fsync of the folder. A
 * failed transfer is fatal; what can be seen before (no such folder, no permission, disk full by
 * statvfs) is an agreed EXIT_OUTPUT. */
struct status fields_write(const struct comm *comm, const char *path, const char *kind,
                           const char *meta, const struct field *fields, int n);

/* Open, check that the root attribute `format` is `kind`, else EXIT_INPUT;
 * return `meta` (mem_free it). */
struct fields_file;
struct status fields_open(const struct comm *comm, const char *path, const char *kind,
                          struct fields_file **file, char **meta);
/* Read the rows [first, first + n_local) of one field, which must have the type, n_global and width
 * given, else EXIT_INPUT that names file and field. Ranges of ranks may overlap here. */
struct status fields_read(const struct comm *comm, struct fields_file *file,
                          const struct field *field);
/* Verify every checksum by reading all (each rank a share): a mismatch is EXIT_INPUT
 * that names file and field. */
struct status fields_verify(const struct comm *comm, struct fields_file *file, const char *path);
void fields_close(struct fields_file *file);

#endif
