/* What the files of the verb export share. */
#ifndef FASCICLE_EXPORT_H
#define FASCICLE_EXPORT_H

#include "run/job.h"

struct sonata_request {
  const char *graph, *output;
  double dt_ms, weight; /* NAN: not given */
};

/* sonata.c: the graph as a folder that bmtk's PointNet runs, with the neurons of job->config where
 * one is given. Local; `alone` is this rank. */
struct status export_sonata(const struct comm *alone, const struct job *job,
                            const struct sonata_request *request);

#endif
