/* The verbs of the command line, one file each. `run` is collective and returns an agreed status;
 * main prints its line and ends with its code. With --help it is called before MPI is up and must
 * reach options_parse first. */
#ifndef FASCICLE_VERBS_H
#define FASCICLE_VERBS_H

#include "core/comm.h"

struct verb {
  const char *name, *summary;
  struct status (*run)(struct comm *world, int argc, char **argv);
};

extern const struct verb verb_bench;
extern const struct verb verb_convert;
extern const struct verb verb_generate;
extern const struct verb verb_plan;
extern const struct verb verb_info;
extern const struct verb verb_inspect;
extern const struct verb verb_order;
extern const struct verb verb_simulate;
extern const struct verb verb_trace;
extern const struct verb verb_train;
extern const struct verb verb_evaluate;
extern const struct verb verb_sample;
extern const struct verb verb_export;

#endif
