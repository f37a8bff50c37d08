/* fascicle inspect: what a file holds, collected as one JSON object and printed
 * for people or machines. */
#ifndef FASCICLE_INSPECT_H
#define FASCICLE_INSPECT_H

#include "core/comm.h"
#include "io/graph/connectome.h"
#include "core/json.h"
#include "io/table/table.h"

struct inspect_request {
  const char *path;
  bool verify;                /* recompute what checksums and digests the file carries */
  const char *node;           /* a body id or name, or NULL */
  int64_t partners;           /* how many partners of it to list, 0: all */
  int64_t labels;             /* how many labels of a column to list, 0: all */
  struct table_format format; /* how to read a text table */
};

/* Each adds members to `facts`, which only rank 0's caller prints.
 * Collective; the status is agreed. */
struct status inspect_graph(const struct comm *comm, const struct inspect_request *request,
                            json_t *facts);
struct status inspect_fields(const struct comm *comm, const struct inspect_request *request,
                             const char *kind, json_t *facts);
struct status inspect_spikes(const struct comm *comm, const struct inspect_request *request,
                             json_t *facts);
struct status inspect_hdf5(const struct comm *comm, const struct inspect_request *request,
                           json_t *facts);

/* The folder of a simulation or a training, or of one trial: also while the run goes on. */
bool inspect_is_run(const char *path);
struct status inspect_run(const struct comm *comm, const struct inspect_request *request,
                          json_t *facts);

/* One neuron with its partners. Local, on rank 0. */
struct status inspect_node(struct connectome_file *file, const struct inspect_request *request,
                           json_t *facts);

/* Plain lines on stdout: "name   value", groups indented, numbers with thousands separators. */
void inspect_print(const json_t *facts);

/* A parsed JSON text, or the text itself when it is none. */
json_t *json_or_text(const char *text);

#endif
