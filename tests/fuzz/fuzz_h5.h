/* HDF5 files that are wrong in a chosen way: a valid file, changed by a list of commands.
 * Each command is a byte and its arguments, so that any input is a list of commands, and
 * small inputs stay small. */
#ifndef FASCICLE_FUZZ_H5_H
#define FASCICLE_FUZZ_H5_H

#include "fuzz_run.h"

/* Change the file by commands until the input ends or says so. Objects are chosen among those that
 * `path` holds in the beginning. */
void fuzz_change(const char *path, struct input *in);

#endif
