/* What a machine does, as `fascicle plan` and the benches' floors reckon with it:
 * constants measured by `fascicle bench`, one small JSON file a machine, each with its
 * origin (jobs/conf/machine_*.json; those two are built in). A user's own comes by
 * `plan --machine FILE`. */
#ifndef FASCICLE_MACHINE_H
#define FASCICLE_MACHINE_H

#include "core/fail.h"
#include "core/types.h"

enum { MACHINE_POINTS = 12, MACHINE_LINKS = 6 };

/* One exchange between ranks: every rank sends and receives `bytes`. */
struct link {
  char name[16]; /* "nccl", "peer", "mpi" between ranks of a host, "network" between hosts; what
                    LIF's spikes take, where that is something else: "spikes" on one host,
                    "spikes_hosts" on several, before the network */
  double beside_work; /* 0: as fast beside work as alone; 1: the two take their sum */
  double per_message; /* seconds for each rank that is sent to, beyond the first */
  double per_row;     /* of spikes: seconds of every step for each neuron of another rank */
  int n;
  double bytes[MACHINE_POINTS],
      seconds[MACHINE_POINTS]; /* measured, ascending; straight lines between */
};

struct machine {
  char name[32], about[256];
  int64_t memory; /* bytes of a rank; 0: not known */
  /* The recurrence, seconds: one pass over E edges into N rows with B columns takes
     step + E (edge + B column) + N B row; along edges fewer columns than `least_columns` cost as
     many. */
  double forward_edge, forward_column, forward_row, forward_step;
  double backward_edge, backward_column, backward_row, backward_step;
  double least_columns;
  double mixed_edges;                   /* in mixed precision, a rank with more edges than that: */
  double mixed_columns;                 /* as for so many times the columns, */
  double mixed_forward, mixed_backward; /* and then times as many seconds */
  double window_edges,
      window_gain;   /* graphs of at most so many edges, unsplit, in fp32 and with at most 32
                        columns: a window in one launch, so many times as fast */
  double launch;     /* one kernel more in a pass over a split graph */
  double row_rate;   /* bytes a second of rows read or written in order */
  double train_step; /* the whole training step around the recurrence: fixed seconds, */
  double readout;    /* and operations a second of its readout */
  /* A LIF step takes step + N neuron, and if any fire active + N active_neuron + events event;
   * neurons beyond those that stay on chip cost more, and so do events, up to twice. */
  double lif_step, lif_neuron, lif_active, lif_active_neuron, lif_event;
  double lif_component; /* with a model: of each component of a neuron, instead of `neuron` */
  double lif_on_chip, lif_neuron_beyond, lif_active_beyond;
  double lif_word; /* bytes that a rank is told each step for a neuron of another; 0: lists of who
                      fired */
  double lif_host_event; /* an event whose edge a GPU reads from host memory; 0: there is no such
                            thing */
  int n_links;
  struct link link[MACHINE_LINKS];
};

/* A built-in machine; "cpu|h200" for an option's help. EXIT_USAGE for another name. */
struct status machine_find(const char *name, struct machine *machine);
const char *machine_names(void);

/* From a file. EXIT_USAGE names the file, the key and what is wanted. */
struct status machine_load(const char *path, struct machine *machine);

/* NULL: the machine has no such link. The result is the machine's own: it may be changed there. */
struct link *machine_link(const struct machine *machine, const char *name);

/* A link by latency (seconds) and bandwidth (bytes a second) alone. */
void link_set(struct link *link, double latency, double bandwidth);

/* Seconds of an exchange in which this rank sends `bytes` in `messages` parts. 0 without any. */
double link_seconds(const struct link *link, double bytes, int64_t messages);

/* The least it could take: the link's shortest time, and its best rate. */
double link_floor(const struct link *link, double bytes);

#endif
