/* Verbs of the program in this very process, again and again: an end by DIE comes back here, and
 * what it left open is taken down. A verb that ends with a status must have given back all memory
 * and every HDF5 handle.
 */
#ifndef FASCICLE_FUZZ_RUN_H
#define FASCICLE_FUZZ_RUN_H

#include "fuzz.h"
#include "run/verbs.h"

/* Start MPI and enter the scratch folder; once, from LLVMFuzzerInitialize. */
void fuzz_start(void);

/* First of all in each run: the input is kept in FUZZ_TMP/input, whatever
 * ends the process after it. */
void fuzz_begin(const uint8_t *data, size_t size);

/* Run a verb with these words (the last is NULL). Returns its exit code. Aborts, which is a
 * finding, when it DIEs of anything but a bad input, a wrong word or an output that cannot be
 * written; when there is no message; when something leaked; or when a file appeared that
 * fuzz_seal did not name. */
int fuzz_verb(const struct verb *verb, ...) __attribute__((sentinel));

/* The same, and it must succeed: for files that the targets begin with. */
void fuzz_must(const struct verb *verb, ...) __attribute__((sentinel));

/* Remove a file or folder of the scratch folder. */
void fuzz_remove(const char *path);
void fuzz_copy(const char *from, const char *to);

/* From here on, nothing but what is there and these names (" run  out.h5 ") may appear in the
 * scratch folder.
 */
void fuzz_seal(const char *allowed);

/* The next byte of an input, 0 at its end. */
struct input {
  const uint8_t *at;
  size_t left;
};
uint8_t take8(struct input *in);
uint32_t take32(struct input *in);
uint64_t take64(struct input *in);

#endif
