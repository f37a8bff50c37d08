/* What the files of the verb plan share: what is asked, and the answer. */
#ifndef FASCICLE_PLAN_VERB_H
#define FASCICLE_PLAN_VERB_H

#include "run/job.h"
#include "run/options.h"
#include "cost/cost.h"
#include "train/config.h"

struct plan_request {
  const char *path, *kind, *config, *device, *machine_file, *residency, *transport;
  struct texts set;
  int64_t ranks, parts, per_host, nodes, edges, min_delay, threads, vocabulary, characters;
  int64_t steps;     /* of the whole run; 0: not said */
  const char *model; /* simulate: of the neurons */
  double memory_gib, active, far_edges;
  double dt_ms;                           /* simulate: of a step */
  double nvlink_rate, network_rate;       /* GB/s; 0: the machine's */
  double nvlink_latency, network_latency; /* microseconds; below 0: the machine's */
  bool as_json;
  struct job job; /* for --exchange */
  struct machine machine;
  struct plan_layout layout;
};

struct plan_answer {
  struct plan_graph graph;
  struct plan_training training;
  struct plan_memory memory,
      host;                  /* of a rank, on its device; what a simulation takes beside a GPU */
  struct plan_layout layout; /* with the links that so many parts take */
  struct plan_step step;
  int64_t limit;
  bool streamed;     /* edges stay in the file, or in host memory beside a GPU */
  bool streamable;   /* they could */
  double host_edges; /* the share of them that a GPU does not keep */
  int64_t steps;     /* of the whole run: asked for, else train_steps, else 1 s of simulated time */
};

struct plan_request plan_request_defaults(void);
/* The command line. EXIT_USAGE where its words do not go together. */
struct status plan_request_parse(int argc, char **argv, struct plan_request *request);
/* The machine that is asked for, its links as the user says where he says
 * anything, and the layout. */
struct status plan_request_machine(struct plan_request *request);
/* The training's configuration: --config and --set over the defaults. */
struct status plan_request_config(const struct plan_request *request, struct train_config *config);

bool plan_trains(const struct plan_request *request); /* else: simulates */
bool plan_on_gpu(const struct plan_request *request);

/* Does a rank have the memory, and can it count its rows and edges? */
bool plan_fits(const struct plan_request *request, const struct plan_answer *answer);

/* On stdout: a table, or one JSON object with --json. `fits`: by plan_fits. */
void plan_answer_print(const struct plan_request *request, const struct plan_answer *answer,
                       bool fits);

#endif
